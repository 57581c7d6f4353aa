"""The HTML page of an evaluation on a stream."""

import math
from datetime import timedelta
from html import escape

from tapword.research.records import as_json
from tapword.research.report import Writers, charts, shell, write_json, write_text
from tapword.research.stream_eval import StreamReport

# Kind of mark -> its colour in the charts, its drawing around (0, 0), and its name.
MARKS = {
    "hit": (2, '<circle r="4"/>', "detected"),
    "miss": (1, '<circle r="3.5" class="hollow"/>', "missed"),
    "false alarm": (3, '<path d="M0-5L5 4H-5Z"/>', "false alarm"),
    "confusion": (4, '<path d="M0-5L5 0L0 5L-5 0Z"/>', "confused"),
    "repeat": (0, '<path d="M-4-4H4V4H-4Z"/>', "detected twice"),
}
# Most rows of the timeline, and shortest time of a row.
MAX_ROWS, ROW_S = 30, 300.0


def stream_page(report: StreamReport) -> str:
    """Write the whole page."""
    config = as_json(report.config) | {"words": list(report.config.words)}
    sections = [
        _headline(report),
        shell.what_was_run(config, as_json(report.environment)),
        shell.section("Words", _words(report)),
        shell.section(
            "Misses against false alarms",
            _det(report),
            "The thresholds of all words are shifted together. The dot shows the thresholds in "
            "use, its bar the 95% interval of false alarms per hour.",
        ),
        shell.section("Timeline", _keys() + _timeline(report)),
    ]
    return shell.html_page("tapword in a stream", "".join(sections), script=shell.SCRIPT)


# Suffix of a file -> writer of a stream's report.
STREAM_WRITERS: Writers = {
    ".html": lambda report, path: write_text(path, stream_page(report)),
    ".json": write_json,
}


def _headline(report: StreamReport) -> str:
    low, high = report.false_alarms_ci
    fewest, most = report.miss_rate_ci
    late_s = report.latency_s.median
    latency = "" if late_s is None else f" Words are reported {late_s:.2f} s after they end."
    return (
        f'<p class="lead"><b>{report.miss_rate:.1f}%</b> of {report.config.positives} words '
        f"missed (95%: {fewest:.1f} to {most:.1f}%), "
        f"<b>{report.false_alarms_per_hour:.2f}</b> false alarms per hour "
        f"(95%: {low:.2f} to {high:.2f}) in {60 * report.hours:.0f} minutes.{latency}</p>"
    )


def _words(report: StreamReport) -> str:
    titles = ("clips", "missed", "missed %", "95%", "false alarms", "confused", "threshold")
    head = '<th scope="col" class="name">word</th>'
    head += "".join(f'<th scope="col">{title}</th>' for title in titles)
    rows = []
    for word, row in report.per_word.items():
        rate = "" if row.miss_rate is None else f"{row.miss_rate:.1f}"
        ends = "" if row.miss_rate_ci is None else "{:.1f} to {:.1f}".format(*row.miss_rate_ci)
        numbers = [row.positives, row.misses, rate, ends, row.false_alarms, row.confusions]
        cells = [f"<td>{value}</td>" for value in [*numbers, f"{report.thresholds[word]:.3f}"]]
        rows.append(f'<td class="name">{escape(word)}</td>{"".join(cells)}')
    table = shell.table('id="words"', head, rows)
    return shell.copy_button("words") + shell.scrolling(table, "words")


def _det(report: StreamReport) -> str:
    if not report.det:
        return ""
    points = [
        charts.Point(
            point.false_alarms_per_hour,
            point.miss_rate,
            f"threshold {point.threshold:.3f}: {point.miss_rate:.1f}% missed, "
            f"{point.false_alarms_per_hour:.2f} false alarms per hour",
        )
        for point in report.det
    ]
    # Zero alarms are drawn where half an alarm in the whole time would be.
    least = 0.5 / report.hours
    low, high = report.false_alarms_ci
    most = max(10.0, high, *(point.x for point in points))
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)))
    ticks = [tick * 10.0**n for n in powers for tick in (1, 3)] + [10.0 ** (powers[-1] + 1)]
    axes = charts.Axes(
        width=640.0,
        height=320.0,
        right=616.0,
        x_range=(least, most),
        x_ticks=[0.0, *(tick for tick in ticks if 1.5 * least < tick <= most)],
        y_ticks=charts.percent_steps(0.0, max([10.0, *(point.y for point in points[:-1])])),
        logarithmic=True,
        x_grid=True,
    )
    x, y = axes.across(report.false_alarms_per_hour), axes.down(report.miss_rate)
    tips = axes.dots(points, 'r="5"')
    drawing = (
        f'<g class="line c0"><path d="{axes.path(point[:2] for point in points)}"/>{tips}</g>'
        f'<g class="c1"><path class="step" d="M{axes.across(low):.1f} {y:.1f}'
        f'H{axes.across(high):.1f}"/><circle class="event" r="5" cx="{x:.1f}" cy="{y:.1f}"/></g>'
    )
    width = f'style="max-width:{axes.width:g}px"'
    return axes.svg(width, "misses", "false alarms per hour", drawing)


def _keys() -> str:
    return "".join(
        f'<span class="kind"><svg viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<g class="event c{colour}">{drawing}</g></svg>{name}</span>'
        for colour, drawing, name in MARKS.values()
    )


def _timeline(report: StreamReport) -> str:
    """Events and misses over time, in rows of some minutes."""
    marks: list[tuple[float, str, str, str]] = [
        (event.start_s, event.kind, event.word, f", {event.score:.3f}") for event in report.events
    ]
    marks += [(clip.start_s, "miss", clip.word, "") for clip in report.clips if not clip.hit]
    row_s = max(ROW_S, 60 * math.ceil(report.seconds / MAX_ROWS / 60))
    rows = max(1, math.ceil(report.seconds / row_s))
    left, width, height = 60.0, 1000.0, 30.0
    parts = []
    for row in range(rows):
        end = left + (width - left - 10) * min(1, report.seconds / row_s - row)
        y = (row + 0.5) * height
        parts.append(
            f'<path class="grid" d="M{left} {y}H{end:.1f}"/>'
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{_clock(row * row_s)}</text>'
        )
    for time_s, kind, word, score in sorted(marks):
        place, rest_s = divmod(max(time_s, 0.0), row_s)
        colour, drawing, name = MARKS[kind]
        tip = f"{_clock(time_s)} {word}: {name}{score}"
        x, y = left + (width - left - 10) * rest_s / row_s, (place + 0.5) * height
        parts.append(
            f'<g class="event c{colour}" transform="translate({x:.1f} {y:.1f})">'
            f"<title>{escape(tip)}</title>{drawing}</g>"
        )
    return (
        f'<svg viewBox="0 0 {width:g} {rows * height:g}" role="img" '
        f'aria-label="events over time">{"".join(parts)}</svg>'
    )


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(max(seconds, 0))))
