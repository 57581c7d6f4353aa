"""Charts of the page in inline SVG, in the colours of the report's."""

from collections.abc import Sequence
from html import escape

import numpy as np

# Bars of a histogram.
N_BINS = 24


def bars(
    title: str, series: Sequence[str], groups: Sequence[tuple[str, Sequence[float | None]]]
) -> str:
    """Draw groups of bars, in percent: name of each group, height for each of `series` or None."""
    if not groups:
        return ""
    thick, gap, left, top, height = 30.0, 26.0, 46.0, 18.0, 240.0
    wide = len(series) * thick + gap
    width = left + len(groups) * wide + 8
    parts = [
        f'<path class="grid" d="M{left} {_down(y, top, height):.1f}H{width:.1f}"/>'
        f'<text x="{left - 6}" y="{_down(y, top, height) + 4:.1f}" text-anchor="end">{y}%</text>'
        for y in (0, 20, 40, 60, 80, 100)
    ]
    for place, (name, values) in enumerate(groups):
        start = left + place * wide + gap / 2
        for index, value in enumerate(values):
            if value is None:
                continue
            x, y = start + index * thick, _down(value, top, height)
            tip = escape(f"{name}, {series[index]}: {value:.2f}%")
            parts.append(
                f'<g class="mark c{index}"><rect x="{x + 1:.1f}" y="{y:.1f}" '
                f'width="{thick - 2:g}" height="{top + height - y:.1f}"><title>{tip}</title></rect>'
                f'<text x="{x + thick / 2:.1f}" y="{y - 4:.1f}">{value:.1f}</text></g>'
            )
        middle = start + len(series) * thick / 2
        parts.append(
            f'<text x="{middle:.1f}" y="{top + height + 18:g}" text-anchor="middle">'
            f"{escape(name)}</text>"
        )
    return (
        f"<figure><h4>{escape(title)}</h4>{_key(series)}"
        f'<div class="bars"><svg viewBox="0 0 {width:g} {top + height + 26:g}" role="img" '
        f'style="width:{width:g}px" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        "</div></figure>"
    )


def histograms(
    title: str, names: Sequence[str], panels: Sequence[tuple[str, np.ndarray, np.ndarray]]
) -> str:
    """Draw two histograms a panel: its caption and the samples (n,) and (m,) that `names` names."""
    drawn = "".join(
        f"<figure><figcaption>{escape(caption)}</figcaption>"
        f"{_histogram(caption, one, two)}</figure>"
        for caption, one, two in panels
    )
    return f'<h4>{escape(title)}</h4>{_key(names)}<div class="histograms">{drawn}</div>'


def _histogram(caption: str, one: np.ndarray, two: np.ndarray) -> str:
    both = np.concatenate([one, two]).astype(np.float64)
    low, high = float(both.min()), float(both.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    width, height, base = 400.0, 150.0, 156.0
    edges = np.linspace(low, high, N_BINS + 1)
    shares = [np.histogram(values, edges)[0] / len(values) for values in (one, two)]
    tallest = max(share.max() for share in shares)
    step = width / N_BINS
    parts = []
    for index, share in enumerate(shares):
        marks = "".join(
            f'<rect x="{i * step:.1f}" y="{base - height * value / tallest:.1f}" '
            f'width="{step:.2f}" height="{height * value / tallest:.1f}"/>'
            for i, value in enumerate(share)
            if value
        )
        parts.append(f'<g class="both c{index}">{marks}</g>')
    ticks = "".join(
        f'<text x="{share * width:g}" y="{base + 16:g}" text-anchor="{anchor}">'
        f"{low + share * (high - low):.3g}</text>"
        for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    return (
        f'<svg viewBox="0 0 {width:g} {base + 22:g}" role="img" aria-label="{escape(caption)}">'
        f'<path class="grid" d="M0 {base:g}H{width:g}"/>{"".join(parts)}{ticks}</svg>'
    )


def _down(value: float, top: float, height: float) -> float:
    return top + height * (1 - min(max(value, 0.0), 100.0) / 100)


def _key(names: Sequence[str]) -> str:
    items = "".join(
        f'<span class="c{index}"><i></i>{escape(name)}</span>' for index, name in enumerate(names)
    )
    return f'<div class="key">{items}</div>'
