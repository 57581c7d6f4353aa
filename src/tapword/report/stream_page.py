"""The HTML page of a stream that was listened to: stands alone, loads nothing."""

import base64
import hashlib
import math
import os
from html import escape
from typing import Any

from tapword.report import charts
from tapword.report.columns import clean
from tapword.report.page import SCRIPT, STYLE, _command, _facts, _section
from tapword.report.writers import write_text

Records = dict[str, Any]

# Kind of mark -> its colour among the charts', its drawing around (0, 0), and what it is.
MARKS = {
    "hit": (2, '<circle r="4"/>', "heard"),
    "miss": (1, '<circle r="3.5" class="hollow"/>', "missed"),
    "false alarm": (3, '<path d="M0-5L5 4H-5Z"/>', "false alarm"),
    "confusion": (4, '<path d="M0-5L5 0L0 5L-5 0Z"/>', "taken for another word"),
    "repeat": (0, '<path d="M-4-4H4V4H-4Z"/>', "heard twice"),
}
# Rows of the timeline at most, and the shortest that is worth a row.
ROWS, ROW_S = 30, 300.0
MARK_STYLE = """
.mark{fill:var(--line);stroke:var(--line)}.mark .hollow{fill:var(--ground);stroke-width:2}
.key{display:inline-flex;align-items:center;gap:.4em;margin-right:1.2em;font-size:.875rem}
.key svg{width:14px}.step{fill:none;stroke:var(--line);stroke-width:2}
"""


def write_stream_html(records: Records, path: str | os.PathLike[str]) -> None:
    """Write what `evaluate_stream` returned as a page in one file."""
    write_text(path, stream_page(records))


def stream_page(records: Records) -> str:
    """Write the whole page."""
    records = clean(records)
    config = dict(records["config"])
    command, notes = config.pop("command", None), config.pop("notes", [])
    config["words"] = list(config["words"])
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none';style-src 'unsafe-inline';script-src 'sha256-{digest}'"
    title = "tapword in a stream"
    said = "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    run = _facts(config) + said + _command(command) + _facts(records["environment"])
    sections = [
        f"<h1>{title}</h1>{_headline(records)}",
        _section("What was run", run),
        _section("Words", _words(records)),
        _section(
            "Misses against false alarms",
            _det(records),
            "While the thresholds of all words are moved alike. The dot is where the model stood, "
            "its bar what false alarms per hour so short a recording allows (95%).",
        ),
        _section("When", _keys() + _timeline(records)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}{charts.STYLE}{MARK_STYLE}</style></head>\n"
        f"<body><main>{''.join(sections)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _headline(records: Records) -> str:
    low, high = records["false_alarms_ci"]
    late = records["latency_s"]["median"]
    told = "" if late is None else f" A word is told {late:.2f} s after its end."
    return (
        f'<p class="lead"><b>{records["miss_rate"]:.1f}%</b> of '
        f"{records['config']['positives']} words missed, "
        f"<b>{records['false_alarms_per_hour']:.2f}</b> false alarms per hour "
        f"(95%: {low:.2f} to {high:.2f}) in {60 * records['hours']:.0f} minutes.{told}</p>"
    )


def _words(records: Records) -> str:
    titles = ("word", "clips", "missed", "missed %", "false alarms", "taken for it", "threshold")
    head = "".join(
        f'<th scope="col"{"" if number else " class=name"}>{title}</th>'
        for number, title in enumerate(titles)
    )
    rows = ""
    for word, row in records["per_word"].items():
        rate = "" if row["miss_rate"] is None else f"{row['miss_rate']:.1f}"
        numbers = (row["positives"], row["misses"], rate, row["false_alarms"], row["confusions"])
        cells = "".join(f"<td>{value}</td>" for value in numbers)
        limit = f"<td>{records['thresholds'][word]:.3f}</td>"
        rows += f'<tr><td class="name">{escape(word)}</td>{cells}{limit}</tr>'
    return (
        '<button class="js-only" data-copy="words">Copy as TSV</button>'
        '<div class="scroll" tabindex="0" role="region" aria-label="words"><table id="words">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _det(records: Records) -> str:
    points = records["det"]
    if not points:
        return ""
    width, height, left, top = 640.0, 320.0, 56.0, 12.0
    # None at all stands where half an alarm in the whole time would.
    least = 0.5 / records["hours"]
    low, high = records["false_alarms_ci"]
    most = max(10.0, high, *(point["false_alarms_per_hour"] for point in points))
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)))
    ticks = [tick * 10.0**n for n in powers for tick in (1, 3)] + [10.0 ** (powers[-1] + 1)]
    ticks = [tick for tick in ticks if 1.5 * least < tick <= most]
    y_ticks = charts._steps(0, max(10.0, *(point["miss_rate"] for point in points[:-1])), 8)

    def across(x: float) -> float:
        share = math.log(max(x, least) / least) / math.log(most / least)
        return left + share * (width - left - 24)

    def down(y: float) -> float:
        return top + height * (1 - min(y / y_ticks[-1], 1))

    base = top + height
    parts = [
        f'<path class="grid" d="M{left} {down(y):.1f}H{width - 24}"/>'
        f'<text x="{left - 7}" y="{down(y) + 4:.1f}" text-anchor="end">{y:g}%</text>'
        for y in y_ticks
    ]
    parts += [
        f'<path class="grid" d="M{across(x):.1f} {top}V{base + 5}"/>'
        f'<text x="{across(x):.1f}" y="{base + 20}" text-anchor="middle">{x:g}</text>'
        for x in (0.0, *ticks)
    ]
    path = "".join(
        f"{'L' if number else 'M'}{across(point['false_alarms_per_hour']):.1f} "
        f"{down(point['miss_rate']):.1f}"
        for number, point in enumerate(points)
    )
    x, y = across(records["false_alarms_per_hour"]), down(records["miss_rate"])
    tips = "".join(
        f'<circle r="5" cx="{across(point["false_alarms_per_hour"]):.1f}" '
        f'cy="{down(point["miss_rate"]):.1f}"><title>threshold {point["threshold"]:.3f}: '
        f"{point['miss_rate']:.1f}% missed, {point['false_alarms_per_hour']:.2f} false alarms "
        "per hour</title></circle>"
        for point in points
    )
    return (
        f'<svg viewBox="0 0 {width:g} {base + 50:g}" style="max-width:{width:g}px" role="img" '
        f'aria-label="misses against false alarms per hour">{"".join(parts)}'
        f'<text x="{(left + width) / 2:.1f}" y="{base + 42}" text-anchor="middle">'
        "false alarms per hour</text>"
        f'<g class="line c0"><path d="{path}"/>{tips}</g><g class="c1">'
        f'<path class="step" d="M{across(low):.1f} {y:.1f}H{across(high):.1f}"/>'
        f'<circle class="mark" r="5" cx="{x:.1f}" cy="{y:.1f}"/></g></svg>'
    )


def _keys() -> str:
    return "".join(
        f'<span class="key"><svg viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<g class="mark c{colour}">{drawing}</g></svg>{name}</span>'
        for colour, drawing, name in MARKS.values()
    )


def _timeline(records: Records) -> str:
    """Everything that was heard or missed, in rows of some minutes."""
    marks = [(one["start_s"], one["kind"], one["word"], one["score"]) for one in records["events"]]
    marks += [(c["start_s"], "miss", c["word"], None) for c in records["clips"] if not c["hit"]]
    row_s = max(ROW_S, 60 * math.ceil(records["seconds"] / ROWS / 60))
    rows = max(1, math.ceil(records["seconds"] / row_s))
    left, width, height = 60.0, 1000.0, 30.0
    parts = []
    for row in range(rows):
        end = left + (width - left - 10) * min(1, records["seconds"] / row_s - row)
        y = (row + 0.5) * height
        parts.append(
            f'<path class="grid" d="M{left} {y}H{end:.1f}"/>'
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{_clock(row * row_s)}</text>'
        )
    for time_s, kind, word, score in sorted(marks, key=lambda mark: mark[0]):
        row, rest_s = divmod(max(time_s, 0.0), row_s)
        colour, drawing, name = MARKS[kind]
        tip = f"{_clock(time_s)} {word}: {name}" + ("" if score is None else f", {score:.3f}")
        x, y = left + (width - left - 10) * rest_s / row_s, (row + 0.5) * height
        parts.append(
            f'<g class="mark c{colour}" transform="translate({x:.1f} {y:.1f})">'
            f"<title>{escape(tip)}</title>{drawing}</g>"
        )
    return (
        f'<svg viewBox="0 0 {width:g} {rows * height:g}" role="img" '
        f'aria-label="what was heard when">{"".join(parts)}</svg>'
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
