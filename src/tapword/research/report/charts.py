"""Charts of results in inline SVG: lines over words or samples, and accuracy matrices.

Each chart is a fragment of HTML, empty without data. Colours and fonts come from page.css, for
light and dark pages and phones. Lengths are in pixels of the drawing, which scales with the page.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tapword.research.records import Result
from tapword.research.report.columns import PARTS

# Panel of presets, next to those of backbones.
SIZES = "sizes"
# Colours and dashes of lines: classes c0, c1, ... and d0, d1, ... in page.css.
N_COLOURS, N_DASHES = 7, 6
VIRIDIS = ("440154", "472c7a", "3b518b", "2c718e", "21908d", "27ad81", "5cc863", "aadc32", "fde725")

# With more tasks, numbers do not fit their cells, and tooltips make the page too large.
NUMBERS_UP_TO, TOOLTIPS_UP_TO = 12, 60
# More tasks are numbered, as names would overlap. Width of a letter.
NAMED_TASKS_UP_TO, LETTER = 36, 6.6
# Up to this many lines with short names are named at their ends, others are numbered. Minimum
# distance of labels; number of lines from which a phone hides them.
NAMES_UP_TO, NAME_LENGTH, LABEL_GAP, MANY_LINES = 6, 12, 16.0, 9
# Most points with a dot each, and most ticks of an axis; more would overlap.
DOTS_UP_TO, MAX_TICKS = 8, 8
# Largest cell of a matrix, and largest matrix.
CELL, MATRIX = 44.0, 480.0
LEFT, TOP = 56.0, 12.0
# Drawing area of lines: alone on the page, and as one of several panels.
ONE_PANEL, SEVERAL_PANELS = (580.0, 360.0), (480.0, 250.0)


class Point(NamedTuple):
    """A point of a line: y in percent, a tooltip and the standard deviation."""

    x: float
    y: float
    tip: str
    deviation: float = 0.0


class Line(NamedTuple):
    """A line of a chart: its panel, number or letter, label, and colour and dash in page.css."""

    panel: str
    mark: str
    label: str
    colour: int
    dash: int
    points: list[Point]


@dataclass(frozen=True)
class Axes:
    """Axes of a drawing; y is in percent, from its first tick to its last."""

    width: float
    height: float
    # Where lines end and their names begin.
    right: float
    x_range: tuple[float, float]
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    logarithmic: bool
    # Whether the ticks of the x axis have grid lines.
    x_grid: bool = False

    @property
    def base(self) -> float:
        """Vertical position of the x axis."""
        return TOP + self.height

    def across(self, x: float) -> float:
        """Horizontal position of a value, within the axis."""
        scale = math.log2 if self.logarithmic else float
        start, end = (scale(edge) for edge in self.x_range)
        share = (scale(max(x, self.x_range[0])) - start) / (end - start) if end > start else 1.0
        return LEFT + (self.right - LEFT) * share

    def down(self, y: float) -> float:
        """Vertical position of a percentage, within the axis."""
        share = (y - self.y_ticks[0]) / (self.y_ticks[-1] - self.y_ticks[0])
        return TOP + self.height * (1 - min(max(share, 0), 1))

    def path(self, points: Iterable[Sequence[float]]) -> str:
        """Draw a line through (x, y), ..."""
        return "M" + "L".join(f"{self.across(x):.1f} {self.down(y):.1f}" for x, y in points)

    def dots(self, points: Iterable[Point], attributes: str) -> str:
        """Draw a circle with its tooltip at each point."""
        return "".join(
            f'<circle {attributes} cx="{self.across(point.x):.1f}" cy="{self.down(point.y):.1f}">'
            f"<title>{escape(point.tip)}</title></circle>"
            for point in points
        )

    def svg(self, attributes: str, y_label: str, x_label: str, content: str) -> str:
        """Draw the axes, and the content over them."""
        rows = "".join(
            f'<path class="grid" d="M{LEFT} {self.down(y):.1f}H{self.right:.1f}"/>'
            f'<text x="{LEFT - 7}" y="{self.down(y) + 4:.1f}" text-anchor="end">{y:g}%</text>'
            for y in self.y_ticks
        )
        top = TOP if self.x_grid else self.base
        columns = "".join(
            f'<path class="grid" d="M{self.across(x):.1f} {top}V{self.base + 5}"/>'
            f'<text x="{self.across(x):.1f}" y="{self.base + 20}" text-anchor="middle">{x:g}</text>'
            for x in self.x_ticks
        )
        middle = (LEFT + self.right) / 2
        return (
            f'<svg {attributes} viewBox="0 0 {self.width:g} {self.base + 50:g}" role="img" '
            f'aria-label="{y_label} against {x_label}">{rows}{columns}<text x="{middle:.1f}" '
            f'y="{self.base + 42}" text-anchor="middle">{x_label}</text>{content}</svg>'
        )


def curves(results: Sequence[Result]) -> str:
    """Accuracy on all words so far against their number, one line a result."""
    lines = _lines(results, "backbone", "shots")
    for line, result in zip(lines, results, strict=True):
        for x, y in _mean_curve(result):
            line.points.append(Point(x, y, f"{line.label}: {y:.2f}% after {x:g} words"))
    if max((len(line.points) for line in lines), default=0) < 2:
        return ""
    return _figures(lines, "words learned so far")


def few_shot(results: Sequence[Result]) -> str:
    """Accuracy against samples a word, one line a combination, with bands of one deviation."""
    lines: dict[tuple[str, str], Line] = {}
    for one, result in zip(_lines(results, "backbone"), results, strict=True):
        if not result.shots or result.acc is None:
            continue
        # Letters, as numbers are those of results.
        key, deviation = (one.panel, one.label), result.acc_std or 0.0
        line = lines.setdefault(key, one._replace(mark=_letter(len(lines))))
        tip = f"{line.label}, {result.shots}-shot: {result.acc:.2f} ± {deviation:.2f}%"
        line.points.append(Point(float(result.shots), result.acc, tip, deviation))
    counts = sorted({point.x for line in lines.values() for point in line.points})
    if len(counts) < 2:
        return ""
    ordered = [line._replace(points=sorted(line.points)) for line in lines.values()]
    return _figures(ordered, "samples a word", counts)


def heat_map(
    matrix: Sequence[Sequence[float | None]] | None, low: float, tasks: Sequence[Sequence[str]] = ()
) -> str:
    """Accuracy on each task (across) after each task (down); colours run from `low` to 100%.

    Tasks are named by their words in `tasks`, or numbered.
    """
    if not matrix:
        return ""
    count = len(matrix)
    cell = min(CELL, MATRIX / count)
    names = [_task_name(words) for words in tasks] if count <= NAMED_TASKS_UP_TO else []
    room = round(LETTER * max(map(len, names), default=0))
    left, top, side = 46 + max(0, room - 12), 6, cell * count
    # Values of each colour channel from `low` to 100%.
    channels = list(zip(*map(bytes.fromhex, VIRIDIS), strict=True))
    stops = np.linspace(low, 100, len(VIRIDIS))
    cells = []
    for i, row in enumerate(matrix):
        for j, value in enumerate(row[: i + 1]):
            if value is None:
                continue
            x, y = left + j * cell, top + i * cell
            tip = ""
            if count <= TOOLTIPS_UP_TO:
                after, on = (
                    ", ".join(tasks[k]) if k < len(tasks) else f"task {k + 1}" for k in (i, j)
                )
                tip = f"after {after}, on {on}: {value:.1f}%"
                tip = f"<title>{escape(tip)}</title>"
            red, green, blue = (round(float(np.interp(value, stops, one))) for one in channels)
            cells.append(
                f'<rect x="{x:.4g}" y="{y:.4g}" width="{cell:.3g}" height="{cell:.3g}" '
                f'fill="#{red:02x}{green:02x}{blue:02x}">{tip}</rect>'
            )
            if count <= NUMBERS_UP_TO:
                # Black or white text, by the perceived brightness of the colour.
                ground = "light" if 0.3 * red + 0.6 * green + 0.1 * blue > 128 else "dark"
                cells.append(
                    f'<text class="on-{ground}" x="{x + cell / 2:.4g}" y="{y + cell / 2:.4g}" '
                    f'pointer-events="none">{value:.0f}</text>'
                )
    # Names below the matrix are rotated, numbers are not.
    turned = bool(names)
    axes = ""
    for t in range(1, count + 1) if names else map(int, whole_steps(1, count)):
        name = escape(names[t - 1] if t <= len(names) else str(t))
        x, y = left + (t - 0.5) * cell, top + (t - 0.5) * cell + 4
        place = f'transform="translate({x + 4:.4g} {top + side + 8:.4g}) rotate(-90)"'
        if not turned:
            place = f'x="{x:.4g}" y="{top + side + 17:.4g}"'
        anchor = "end" if turned else "middle"
        axes += (
            f'<text x="{left - 6}" y="{y:.4g}" text-anchor="end">{name}</text>'
            f'<text {place} text-anchor="{anchor}">{name}</text>'
        )
    below = top + side + (room if turned else 0)
    width, height = left + max(side, 120) + 4, max(below, top + 60) + 46
    return (
        f'<svg class="matrix" viewBox="0 0 {width:.4g} {height:.4g}" role="img" '
        f'style="max-width:{width:.4g}px" aria-label="accuracy on each task after each task">'
        f'{axes}<text x="{left + side / 2:.4g}" y="{below + 38:.4g}" text-anchor="middle">'
        f'accuracy on task</text><text transform="translate(14 {top + side / 2:.4g}) rotate(-90)" '
        f'text-anchor="middle">after task</text><g class="cells">{"".join(cells)}</g></svg>'
    )


def _task_name(words: Sequence[str]) -> str:
    """Name a task by its first word, shortened, and the number of others."""
    first = words[0] if len(words[0]) <= NAME_LENGTH else words[0][: NAME_LENGTH - 1] + "…"
    return first + (f" +{len(words) - 1}" if len(words) > 1 else "")


def scale(low: float) -> str:
    """Draw the colour scale of `heat_map`."""
    stops = ",".join(f"#{colour}" for colour in VIRIDIS)
    return (
        f'<p class="scale"><span>{low:g}%</span><span class="ramp" '
        f'style="background:linear-gradient(to right,{stops})"></span><span>100%</span></p>'
    )


def _figures(lines: list[Line], x_label: str, counts: Sequence[float] = ()) -> str:
    """Panels with the same axes; `counts` are the ticks of a logarithmic x axis."""
    lines = [line for line in lines if line.points]
    panels = list(dict.fromkeys(line.panel for line in lines))
    points = [point for line in lines for point in line.points]
    lowest = min(max(point.y - point.deviation, 0) for point in points)
    highest = max(min(point.y + point.deviation, 100) for point in points)
    x_range = min(point.x for point in points), max(point.x for point in points)
    x_ticks, y_ticks = counts or whole_steps(*x_range), percent_steps(lowest, highest)
    width, height = ONE_PANEL if len(panels) == 1 else SEVERAL_PANELS
    html = []
    for panel in panels:
        part = [line for line in lines if line.panel == panel]
        part.sort(key=lambda line: -line.points[-1].y)
        longest = max(len(line.label) for line in part)
        named = len(part) <= NAMES_UP_TO and longest <= NAME_LENGTH
        right = width - (24.0 + 11 * longest if named else 44.0)
        axes = Axes(width, height, right, x_range, x_ticks, y_ticks, logarithmic=bool(counts))
        ends = _spread([axes.down(line.points[-1].y) for line in part], TOP, axes.base)
        drawn = [_line(line, axes, end, named) for line, end in zip(part, ends, strict=True)]
        kind = "many" if len(part) >= MANY_LINES else "few"
        # Draw the best line last, on top.
        drawing = axes.svg(f'class="{kind}"', "accuracy", x_label, "".join(reversed(drawn)))
        caption = f"<figcaption>{escape(panel)}</figcaption>" if panel else ""
        html.append(f'<figure class="lines">{caption}{drawing}{_legend(part)}</figure>')
    kind = "panels" if len(panels) > 1 else "panels one"
    return f'<div class="{kind}">{"".join(html)}</div>'


def _line(line: Line, axes: Axes, end_y: float, named: bool) -> str:
    """Draw a line with its name or mark at the height `end_y`."""
    points = line.points
    band = ""
    if len(points) > 1 and any(point.deviation for point in points):
        above = [(point.x, point.y + point.deviation) for point in points]
        below = [(point.x, point.y - point.deviation) for point in reversed(points)]
        band = f'<path class="band" d="{axes.path(above + below)}Z"/>'
    dots = axes.dots(points, 'class="dot" r="3.5"' if len(points) <= DOTS_UP_TO else 'r="5"')
    return (
        f'<g class="line c{line.colour}" data-line="{line.mark}">{band}'
        f'<path class="d{line.dash}" d="{axes.path(point[:2] for point in points)}">'
        f"<title>{escape(line.label)}</title></path>{dots}"
        f'<path class="lead" d="{axes.path([points[-1][:2]])}L{axes.right + 12:.1f} {end_y:.1f}"/>'
        f'<text x="{axes.right + 15:.1f}" y="{end_y + 4:.1f}">'
        f"{escape(line.label if named else line.mark)}</text></g>"
    )


def _legend(lines: list[Line]) -> str:
    rows = "".join(
        f'<li class="line c{line.colour}" data-line="{line.mark}" tabindex="0">'
        f'<svg viewBox="0 0 36 8" aria-hidden="true"><path class="d{line.dash}" d="M0 4H36"/>'
        f"</svg><b>{line.mark}</b><span>{escape(line.label)}</span>"
        f"<span>{line.points[-1].y:.1f}%</span></li>"
        for line in lines
    )
    return f'<ul class="legend">{rows}</ul>'


def _varying(results: Iterable[Result], *keys: str) -> list[str]:
    """Fields that differ between results; a preset counts as one part."""
    found = ((key, {_part(result, key) for result in results}) for key in keys)
    return [key for key, values in found if len(values - {None, SIZES}) > 1]


def _part(result: Result, key: str) -> Any:
    """Field of a result; a preset's name replaces the learner."""
    if result.size is None or key not in PARTS:
        return getattr(result, key)
    return {"backbone": SIZES, "learner": result.size}.get(key)


def _names(result: Result, keys: Iterable[str]) -> str:
    values = ((key, _part(result, key)) for key in keys)
    named = (f"{value}-shot" if key == "shots" else value for key, value in values if value)
    return " · ".join(named)


def _lines(results: Sequence[Result], *panel_keys: str) -> list[Line]:
    """Make a numbered line without points for each result, in panels by `panel_keys` that differ.

    Colours show learner or pooling, whichever varies more, and dashes the other. Colours repeat
    with other dashes.
    """
    shown = _varying(results, "pooling", "learner") or ["pooling", "learner"]
    panel_keys = tuple(_varying(results, *panel_keys))
    drawn = [result for result in results if result.acc is not None]
    kinds = {
        # Refused results are never drawn; coming last, they take no colour from the rest.
        key: list(dict.fromkeys(_part(result, key) for result in [*drawn, *results]))
        for key in ("learner", "pooling")
    }
    counts = {key: len({_part(result, key) for result in drawn}) for key in kinds}
    by_colour, by_dash = sorted(kinds, key=lambda key: -counts[key])
    lines = []
    for number, result in enumerate(results, start=1):
        round_, colour = divmod(kinds[by_colour].index(_part(result, by_colour)), N_COLOURS)
        dash = round_ * max(counts[by_dash], 1) + kinds[by_dash].index(_part(result, by_dash))
        panel, label = _names(result, panel_keys), _names(result, shown)
        lines.append(Line(panel, str(number), label, colour, dash % N_DASHES, []))
    return lines


def _mean_curve(result: Result) -> list[tuple[float, float]]:
    """(words so far, mean accuracy over orderings); a single value is of the last task."""
    if not result.orderings:
        return []
    values = list(zip(*(ordering.curve for ordering in result.orderings), strict=True))
    seen = list(itertools.accumulate(len(words) for words in result.orderings[0].tasks))
    points = []
    for x, accuracies in zip(seen[-len(values) :], values, strict=True):
        known = [accuracy for accuracy in accuracies if accuracy is not None]
        if known:
            points.append((float(x), sum(known) / len(known)))
    return points


def _letter(index: int) -> str:
    """Name lines a to z, then aa, ab, ..."""
    first, second = divmod(index, 26)
    return (chr(ord("a") + first - 1) if first else "") + chr(ord("a") + second)


def percent_steps(low: float, high: float) -> list[float]:
    """Round numbers around [low, high] for an axis in percent."""
    step = _step(high - low)
    first, last = math.floor(low / step), math.ceil(high / step)
    if first == last:
        first, last = max(first - 1, 0), last + (1 if last * step < 100 else 0)
    return [float(n * step) for n in range(first, last + 1)]


def whole_steps(low: float, high: float) -> list[float]:
    """Round numbers within [low, high], two whole numbers."""
    step = _step(high - low)
    return [float(n) for n in range(0, int(high) + 1, step) if n >= low] or [low, high]


def _step(length: float) -> int:
    """Smallest round step with at most `MAX_TICKS` ticks over a length."""
    sizes = [size * 10**power for power in range(6) for size in (1, 2, 5)]
    return next((size for size in sizes if length / size <= MAX_TICKS - 1), sizes[-1])


def _spread(places: list[float], low: float, high: float) -> list[float]:
    """Move ascending places at least `LABEL_GAP` apart and into [low, high].

    The mean of pushing each down from the one above and up from the one below.
    """
    pushed, raised, count = list(places), list(places), len(places)
    gap = min(LABEL_GAP, (high - low) / max(count - 1, 1))
    for i in range(1, count):
        pushed[i] = max(pushed[i], pushed[i - 1] + gap)
        raised[-1 - i] = min(raised[-1 - i], raised[-i] - gap)
    return [
        min(max((down + up) / 2, low + i * gap), high - (count - 1 - i) * gap)
        for i, (down, up) in enumerate(zip(pushed, raised, strict=True))
    ]
