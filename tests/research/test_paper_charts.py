"""Charts of the page: what stands in the SVG is what was given, to scale."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from tapword.research.paper import charts


def svgs(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in re.findall("<svg.*?</svg>", html)]


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.get(name)) for name in names]


def test_bars_are_as_high_as_their_numbers():
    groups = [("de, 25", [0.0, None, 50.0]), ("a<b", [100.0, 37.256, 80.0])]
    drawing = charts.bars("Acc & more", ["one", "two", "three"], groups)
    [svg] = svgs(drawing)
    assert svg.get("aria-label") == "Acc & more" and "<h4>Acc &amp; more</h4>" in drawing
    ticks = {text.text: text for text in svg.findall("text") if text.text.endswith("%")}
    assert list(ticks) == ["0%", "20%", "40%", "60%", "80%", "100%"]
    lines = [
        re.fullmatch(r"M([\d.]+) ([\d.]+)H([\d.]+)", path.get("d")) for path in svg.iter("path")
    ]
    floor, *_, ceiling = (float(line[2]) for line in lines)
    for line, (label, text) in zip(lines, ticks.items(), strict=True):
        assert float(line[2]) == pytest.approx(
            floor + (ceiling - floor) * int(label[:-1]) / 100, abs=0.1
        )
        # A label stands beside its line, lowered by half a digit's height, left of the bars.
        x, y = numbers(text, "x", "y")
        assert 0 < y - float(line[2]) < 8 and 0 < x < float(line[1])
    bars = svg.findall("g")
    values = [(0, "de, 25, one", 0.0), (2, "de, 25, three", 50.0)]
    values += [(0, "a<b, one", 100.0), (1, "a<b, two", 37.256), (2, "a<b, three", 80.0)]
    places = []
    for bar, (index, name, value) in zip(bars, values, strict=True):
        assert bar.get("class") == f"mark c{index}"
        rect, text = bar.find("rect"), bar.find("text")
        assert rect.find("title").text == f"{name}: {value:.2f}%" and text.text == f"{value:.1f}"
        x, y, width, height = numbers(rect, "x", "y", "width", "height")
        assert height == pytest.approx((floor - ceiling) * value / 100, abs=0.1)
        assert y + height == pytest.approx(floor, abs=0.1)
        # Its number stands above its middle.
        assert numbers(text, "x", "y") == pytest.approx([x + width / 2, y - 4], abs=0.1)
        places.append((x, x + width))
    # Side by side in their order, a missing one leaves its place free, and all are inside.
    step = places[3][0] - places[2][0]
    assert places[1][0] - places[0][0] == pytest.approx(2 * step)
    edges = [float(lines[0][1]), *np.ravel(places), float(lines[0][3])]
    assert edges == sorted(edges)
    left, top, width, height = map(float, svg.get("viewBox").split())
    assert (left, top) == (0, 0) and svg.get("style") == f"width:{width:g}px"
    assert edges[-1] == pytest.approx(width, abs=0.1) and 0 < ceiling < floor < height
    names = [text for text in svg.findall("text") if text.text not in ticks]
    assert [text.text for text in names] == ["de, 25", "a<b"]
    assert all(floor < float(text.get("y")) < height for text in names)
    middles = [(places[0][0] + places[1][1]) / 2, (places[2][0] + places[4][1]) / 2]
    assert [float(text.get("x")) for text in names] == pytest.approx(middles, abs=0.1)
    assert charts.bars("none", ["one"], []) == ""


def test_bars_stay_on_the_paper():
    [svg] = svgs(charts.bars("t", ["one", "two"], [("g", [-5.0, 120.0])]))
    below, above = (numbers(rect, "y", "height") for rect in svg.iter("rect"))
    assert below[1] == 0 and above[0] + above[1] == below[0]
    assert above[0] == float(svg.findall("path")[-1].get("d").split()[1].partition("H")[0])


def test_histograms_count_clips():
    one, two = np.array([0.0, 0.0, 0.0, 24.0]), np.array([5.5, 24.0])
    drawing = charts.histograms(
        "two & two", ["x", "y<"], [("moment 1", one, two), ("flat", two, two)]
    )
    assert "<h4>two &amp; two</h4>" in drawing and "</i>y&lt;<" in drawing
    assert re.findall("<figcaption>(.*?)</figcaption>", drawing) == ["moment 1", "flat"]
    svg, _ = svgs(drawing)
    assert svg.get("aria-label") == "moment 1"
    _, _, width, height = map(float, svg.get("viewBox").split())
    base = float(re.search(r"M0 ([\d.]+)H", svg.find("path").get("d"))[1])
    assert svg.find("path").get("d") == f"M0 {base:g}H{width:g}"
    # Shares of a word's clips in 24 equal bins from the least to the greatest value; the largest
    # share is the tallest bar.
    wanted = {"both c0": [(0, 0.75), (23, 0.25)], "both c1": [(5, 0.5), (23, 0.5)]}
    for group in svg.findall("g"):
        for rect, (place, share) in zip(group, wanted.pop(group.get("class")), strict=True):
            x, y, wide, high = numbers(rect, "x", "y", "width", "height")
            assert (x, wide) == pytest.approx((place * width / 24, width / 24), abs=0.05)
            assert high == pytest.approx(150 * share / 0.75, abs=0.05)
            assert y + high == pytest.approx(base, abs=0.1) and y > 0
    assert not wanted
    ticks = [
        (text.text, float(text.get("x")), text.get("text-anchor")) for text in svg.findall("text")
    ]
    assert ticks == [("0", 0, "start"), ("12", width / 2, "middle"), ("24", width, "end")]
    assert all(base < float(text.get("y")) < height for text in svg.findall("text"))


def test_a_histogram_of_one_value_has_it_in_the_middle():
    same = np.full(3, 2.0)
    [svg] = svgs(charts.histograms("t", ["x", "y"], [("same", same, same)]))
    assert [text.text for text in svg.findall("text")] == ["1.5", "2", "2.5"]
    places = [rect.get("x") for rect in svg.iter("rect")]
    assert places == ["200.0"] * 2
