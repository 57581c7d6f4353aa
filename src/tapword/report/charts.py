"""Records -> charts in inline SVG: lines over words or samples, and accuracy matrices.

Each function returns a fragment of HTML, empty where there is nothing to draw. Colours and letters
come from `STYLE`, so that one drawing serves light and dark pages, and phones.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

Result = dict[str, Any]

# Okabe and Ito's colours, told apart with any colour vision, darkened or lightened until each
# stands out from its background; dashes carry the difference once more.
LIGHT = ("#0072b2", "#d55e00", "#00855f", "#b8559b", "#a87400", "#2a91cf", "#444444")
DARK = ("#4aa8e8", "#ff8a3c", "#22c495", "#e29ac6", "#f0b93a", "#8fd3ff", "#d8d8d8")
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "14 4", "4 2 1 2 1 2")
VIRIDIS = ("440154", "472c7a", "3b518b", "2c718e", "21908d", "27ad81", "5cc863", "aadc32", "fde725")
# Beyond these counts of tasks numbers do not fit their cells, and tooltips make a page too heavy.
NUMBERS_UP_TO, TOOLTIPS_UP_TO = 12, 60

STYLE = (
    "".join(f".c{i}{{--line:{colour}}}" for i, colour in enumerate(LIGHT))
    + "@media(prefers-color-scheme:dark){"
    + "".join(f".c{i}{{--line:{colour}}}" for i, colour in enumerate(DARK))
    + "}"
    + "".join(f".d{i}{{stroke-dasharray:{dash}}}" for i, dash in enumerate(DASHES))
    + """
svg{display:block;width:100%;height:auto}
svg text{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}
.grid{stroke:var(--rule)}
.line path{fill:none;stroke:var(--line);stroke-width:2;stroke-linejoin:round}
.line .lead{stroke-width:1;stroke-dasharray:none;opacity:.5}
.line .band{fill:var(--line);stroke:none;opacity:.13}
.line text{fill:var(--line);font-weight:600}
.line circle{fill:transparent}
.line circle.dot,.line circle:hover{fill:var(--line)}
.line{transition:opacity .15s}
.picking g.line:not(.picked){opacity:.1}
.legend{list-style:none;margin:0;padding:0;font-size:.85rem}
.legend li{display:grid;grid-template-columns:36px 1.9em 1fr auto;gap:.4em;align-items:center;
padding:.1em .3em;border-radius:4px;overflow-wrap:anywhere}
.legend li:hover,.legend li:focus{background:var(--rule)}
.legend b{text-align:right;color:var(--line)}
.matrix rect{shape-rendering:crispEdges}
.matrix text.on-dark{fill:#fff}.matrix text.on-light{fill:#000}
.matrix text.on-dark,.matrix text.on-light{text-anchor:middle;dominant-baseline:central}
@media(max-width:600px){svg text{font-size:17px}.matrix .cells text{font-size:14px}
.many .line text,.many .lead{display:none}}
"""
)


class Line(NamedTuple):
    """One line of a chart; `mark` stands at its end, a point is (x, y, deviation, tooltip)."""

    panel: str
    label: str
    mark: str
    colour: int
    dash: int
    points: list[tuple[float, float, float, str]]


def curves(results: Sequence[Result]) -> str:
    """Accuracy over the words seen so far against their number, one line a result."""
    lines = []
    for number, (result, look) in enumerate(zip(results, _looks(results), strict=True), start=1):
        panel = _names(result, _varying(results, "backbone", "size", "shots"))
        points = [
            (x, y, 0.0, f"{look[0]}: {y:.2f}% after {x:g} words") for x, y in _mean_curve(result)
        ]
        lines.append(Line(panel, look[0], str(number), look[1], look[2], points))
    if max((len(line.points) for line in lines), default=0) < 2:
        return ""
    return _figures(lines, "words learned so far", ticks=None)


def few_shot(results: Sequence[Result]) -> str:
    """Accuracy against samples a word, one line a combination, bands of a standard deviation."""
    lines: dict[tuple[str, str], Line] = {}
    for result, look in zip(results, _looks(results), strict=True):
        shots, accuracy, deviation = (result.get(key) for key in ("shots", "acc", "acc_std"))
        if not shots or accuracy is None:
            continue
        panel = _names(result, _varying(results, "backbone", "size"))
        fresh = Line(panel, look[0], _letter(len(lines)), look[1], look[2], [])
        tip = f"{look[0]}, {shots}-shot: {accuracy:.2f} ± {deviation or 0:.2f}%"
        lines.setdefault((panel, look[0]), fresh).points.append(
            (float(shots), accuracy, deviation or 0.0, tip)
        )
    ticks = sorted({point[0] for line in lines.values() for point in line.points})
    if len(ticks) < 2:
        return ""
    ordered = [line._replace(points=sorted(line.points)) for line in lines.values()]
    return _figures(ordered, "samples a word", ticks)


def heat_map(
    matrix: Sequence[Sequence[float | None]] | None, low: float, tasks: Sequence[Sequence[str]] = ()
) -> str:
    """Accuracy on each task (across) after each task (down); colours run from `low` to 100."""
    if not matrix:
        return ""
    count = len(matrix)
    cell = min(44.0, 480 / count)
    left, top, side = 46, 6, cell * count
    parts = []
    for i, row in enumerate(matrix):
        for j, value in enumerate(row[: i + 1]):
            if value is None:
                continue
            x, y = left + j * cell, top + i * cell
            tip = ""
            if count <= TOOLTIPS_UP_TO:
                words = f" ({', '.join(map(str, tasks[j]))})" if j < len(tasks) else ""
                tip = f"after task {i + 1}, on task {j + 1}{words}: {value:.1f}%"
                tip = f"<title>{escape(tip)}</title>"
            red, green, blue = _viridis((value - low) / (100 - low))
            parts.append(
                f'<rect x="{x:.4g}" y="{y:.4g}" width="{cell:.3g}" height="{cell:.3g}" '
                f'fill="#{red:02x}{green:02x}{blue:02x}">{tip}</rect>'
            )
            if count <= NUMBERS_UP_TO:
                ground = "light" if 0.3 * red + 0.6 * green + 0.1 * blue > 128 else "dark"
                parts.append(
                    f'<text class="on-{ground}" x="{x + cell / 2:.4g}" y="{y + cell / 2:.4g}" '
                    f'pointer-events="none">{value:.0f}</text>'
                )
    ticks = _steps(1, count, 8, whole=True) if count > 1 else [1]
    axis = "".join(
        f'<text x="{left - 6}" y="{top + (t - 0.5) * cell + 4:.4g}" text-anchor="end">{t:g}</text>'
        f'<text x="{left + (t - 0.5) * cell:.4g}" y="{top + side + 17:.4g}" '
        f'text-anchor="middle">{t:g}</text>'
        for t in ticks
    )
    names = (
        f'<text x="{left + side / 2:.4g}" y="{top + side + 38:.4g}" '
        'text-anchor="middle">accuracy on task</text>'
        f'<text transform="translate(14 {top + side / 2:.4g}) rotate(-90)" '
        'text-anchor="middle">after task</text>'
    )
    width, height = left + max(side, 120) + 4, top + max(side, 60) + 46
    return (
        f'<svg class="matrix" viewBox="0 0 {width:.4g} {height:.4g}" role="img" '
        f'style="max-width:{width:.4g}px" aria-label="accuracy on each task after each task">'
        f"{axis}{names}"
        f'<g class="cells">{"".join(parts)}</g></svg>'
    )


def scale(low: float) -> str:
    """Show the colours of `heat_map` and what they stand for."""
    stops = ",".join(f"#{colour}" for colour in VIRIDIS)
    return (
        f'<p class="scale"><span>{low:g}%</span><span class="ramp" '
        f'style="background:linear-gradient(to right,{stops})"></span><span>100%</span></p>'
    )


def _figures(lines: list[Line], x_label: str, ticks: list[float] | None) -> str:
    """Panels side by side on common axes; with `ticks`, those counts on a logarithmic axis."""
    lines = [line for line in lines if line.points]
    panels = list(dict.fromkeys(line.panel for line in lines))
    points = [point for line in lines for point in line.points]
    lowest = min(max(y - deviation, 0) for _, y, deviation, _ in points)
    highest = max(min(y + deviation, 100) for _, y, deviation, _ in points)
    y_ticks = _steps(lowest, highest, 8)
    x_range = min(p[0] for p in points), max(p[0] for p in points)
    width, height = (580.0, 360.0) if len(panels) == 1 else (480.0, 250.0)
    html = []
    for panel in panels:
        part = [line for line in lines if line.panel == panel]
        part.sort(key=lambda line: -line.points[-1][1])
        caption = f"<figcaption>{escape(panel)}</figcaption>" if panel else ""
        drawing = _draw(part, width, height, y_ticks, x_range, x_label, ticks)
        html.append(f'<figure class="lines">{caption}{drawing}{_legend(part)}</figure>')
    kind = "panels" if len(panels) > 1 else "panels one"
    return f'<div class="{kind}">{"".join(html)}</div>'


def _draw(
    lines: list[Line],
    width: float,
    height: float,
    y_ticks: list[float],
    x_range: tuple[float, float],
    x_label: str,
    counts: list[float] | None,
) -> str:
    longest = max(len(line.label) for line in lines)
    names = len(lines) <= 6 and longest <= 12
    left, top = 56.0, 12.0
    right = width - (24 + 11 * longest if names else 44)
    stretch = math.log2 if counts else float
    start, end = (stretch(x) for x in x_range)

    def across(x: float) -> float:
        return left + (right - left) * ((stretch(x) - start) / (end - start) if end > start else 1)

    def down(y: float) -> float:
        share = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return top + height * (1 - min(max(share, 0), 1))

    parts = [
        f'<path class="grid" d="M{left} {down(y):.1f}H{right:.1f}"/>'
        f'<text x="{left - 7}" y="{down(y) + 4:.1f}" text-anchor="end">{y:g}%</text>'
        for y in y_ticks
    ]
    base = top + height
    parts += [
        f'<path class="grid" d="M{across(x):.1f} {base}v5"/>'
        f'<text x="{across(x):.1f}" y="{base + 20}" text-anchor="middle">{x:g}</text>'
        for x in counts or _steps(*x_range, 8, whole=True)
    ]
    parts.append(
        f'<text x="{(left + right) / 2:.1f}" y="{base + 42}" text-anchor="middle">{x_label}</text>'
    )
    ends = _spread([down(line.points[-1][1]) for line in lines], 16, top, base)
    for line, end_y in reversed(list(zip(lines, ends, strict=True))):
        parts.append(_line(line, across, down, end_y, right, line.label if names else line.mark))
    kind = "many" if len(lines) > 8 else "few"
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:g} {base + 50:g}" role="img" '
        f'aria-label="accuracy against {x_label}">{"".join(parts)}</svg>'
    )


def _line(line: Line, across: Any, down: Any, end_y: float, right: float, name: str) -> str:
    spots = [(across(x), down(y), tip) for x, y, _, tip in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in spots)
    band = ""
    if len(spots) > 1 and any(deviation for _, _, deviation, _ in line.points):
        edge = [(x, y + deviation) for x, y, deviation, _ in line.points]
        edge += [(x, y - deviation) for x, y, deviation, _ in reversed(line.points)]
        outline = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in edge)
        band = f'<path class="band" d="M{outline}Z"/>'
    shape = 'class="dot" r="3.5"' if len(spots) <= 8 else 'r="5"'
    dots = "".join(
        f'<circle {shape} cx="{x:.1f}" cy="{y:.1f}"><title>{escape(tip)}</title></circle>'
        for x, y, tip in spots
    )
    x, y, _ = spots[-1]
    return (
        f'<g class="line c{line.colour}" data-line="{line.mark}">{band}'
        f'<path class="d{line.dash}" d="M{path}"><title>{escape(line.label)}</title></path>{dots}'
        f'<path class="lead" d="M{x:.1f} {y:.1f}L{right + 12:.1f} {end_y:.1f}"/>'
        f'<text x="{right + 15:.1f}" y="{end_y + 4:.1f}">{escape(name)}</text></g>'
    )


def _legend(lines: list[Line]) -> str:
    rows = "".join(
        f'<li class="line c{line.colour}" data-line="{line.mark}" tabindex="0">'
        f'<svg viewBox="0 0 36 8" aria-hidden="true"><path class="d{line.dash}" d="M0 4H36"/></svg>'
        f"<b>{line.mark}</b><span>{escape(line.label)}</span>"
        f"<span>{line.points[-1][1]:.1f}%</span></li>"
        for line in lines
    )
    return f'<ul class="legend">{rows}</ul>'


def _varying(results: Iterable[Result], *keys: str) -> list[str]:
    return [key for key in keys if len({str(result.get(key)) for result in results}) > 1]


def _names(result: Result, keys: Iterable[str]) -> str:
    said = {"shots": "{}-shot"}
    return " · ".join(said.get(key, "{}").format(result.get(key)) for key in keys)


def _looks(results: Sequence[Result]) -> list[tuple[str, int, int]]:
    """Label, colour and dash of each result: colour for the part of more kinds, dash for the other.

    Colours that run out start again with other dashes.
    """
    # What was refused is never drawn, and comes last so as to take no colour from the rest.
    drawn = sorted(results, key=lambda result: result.get("acc") is None)
    kinds = {
        key: list(dict.fromkeys(str(result.get(key)) for result in drawn))
        for key in ("learner", "pooling")
    }
    counts = {
        key: len({str(r.get(key)) for r in drawn if r.get("acc") is not None}) for key in kinds
    }
    first, second = sorted(kinds, key=lambda key: -counts[key])
    shown = _varying(results, "pooling", "learner") or ["pooling", "learner"]
    looks = []
    for result in results:
        a, b = (kinds[key].index(str(result.get(key))) for key in (first, second))
        dash = (a // len(LIGHT)) * max(counts[second], 1) + b
        looks.append((_names(result, shown), a % len(LIGHT), dash % len(DASHES)))
    return looks


def _mean_curve(result: Result) -> list[tuple[float, float]]:
    """(words so far, mean accuracy over orderings); a lone value belongs to the last task."""
    orderings = [o for o in result.get("orderings") or [] if o.get("curve")]
    if not orderings:
        return []
    sizes = [len(task) for task in orderings[0].get("tasks") or []]
    length = max(len(o["curve"]) for o in orderings)
    seen = [sum(sizes[: i + 1]) for i in range(len(sizes))][-length:]
    if len(seen) < length:
        seen = list(range(1, length + 1))
    points = []
    for i, x in enumerate(seen):
        values = [o["curve"][i] for o in orderings if i < len(o["curve"])]
        values = [value for value in values if value is not None]
        if values:
            points.append((float(x), sum(values) / len(values)))
    return points


def _letter(index: int) -> str:
    return (chr(96 + index // 26) if index >= 26 else "") + chr(97 + index % 26)


def _steps(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """Round numbers: within whole [low, high], or around [low, high] percent for an axis."""
    sizes = [s * 10**power for power in range(6) for s in (1, 2, 5)]
    step = next((s for s in sizes if (high - low) / s <= most - 1), sizes[-1])
    if whole:
        inside = [float(n) for n in range(0, int(high) + 1, step) if n >= low]
        return inside or [low, high]
    first, last = math.floor(low / step), math.ceil(high / step)
    if first == last:
        first, last = max(first - 1, 0), last + (last * step < 100)
    return [float(n * step) for n in range(first, last + 1)]


def _spread(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels, ascending, at least `gap` apart: halfway between pushing down and pushing up."""
    gap = min(gap, (high - low) / max(len(places) - 1, 1))
    pushed, raised, count = list(places), list(places), len(places)
    for i in range(1, count):
        pushed[i] = max(pushed[i], pushed[i - 1] + gap)
        raised[-1 - i] = min(raised[-1 - i], raised[-i] - gap)
    return [
        min(max((down + up) / 2, low + i * gap), high - (count - 1 - i) * gap)
        for i, (down, up) in enumerate(zip(pushed, raised, strict=True))
    ]


def _viridis(share: float) -> tuple[int, ...]:
    place = min(max(share, 0.0), 1.0) * (len(VIRIDIS) - 1)
    index = min(int(place), len(VIRIDIS) - 2)
    pair = zip(*(bytes.fromhex(colour) for colour in VIRIDIS[index : index + 2]), strict=True)
    return tuple(round(a + (b - a) * (place - index)) for a, b in pair)
