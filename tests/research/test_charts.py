import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from tapword.research.records import Result
from tapword.research.report import charts
from tests.research.test_report import CASES, few_shot, many, refused, result


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def looks(svg):
    """Number of each line -> its colour and dash, as the legend has them."""
    rows = re.findall(r'<li class="line c(\d+)" data-line="(\w+)".*?class="d(\d+)"', svg)
    return {mark: (int(colour), int(dash)) for colour, mark, dash in rows}


def tips(svg, label):
    return re.findall(rf"<title>{label}: (.*?)</title>", svg)


@pytest.mark.parametrize("case", CASES)
def test_charts_are_well_formed_xml(case):
    found = [one for one in CASES[case]().results if isinstance(one, Result)]
    drawings = [charts.curves(found), charts.few_shot(found)]
    drawings += [charts.heat_map(entry.matrix, 50, [["<&>"]]) for entry in found]
    for drawing in drawings:
        if drawing:
            ElementTree.fromstring(drawing.replace("\x00", "").replace("\udc80", ""))
            assert "nan" not in drawing and "None" not in drawing


def test_eighteen_lines_all_look_different():
    for eighteen in (many().results, [result(pooling=f"p{i}") for i in range(18)]):
        found = looks(charts.curves(eighteen))
        assert len(found) == len(set(found.values())) == 18


def test_refused_results_take_no_colour():
    kept = [result("avg"), result("max")]
    among, alone = (looks(charts.curves(found)) for found in ([refused(), *kept], kept))
    assert list(among.values()) == list(alone.values())


def test_curves_are_means_over_orderings_at_words_so_far():
    entry = result(tasks=2)
    for ordering, curve in zip(entry.orderings, ([100, 80], [90, None]), strict=True):
        ordering.tasks, ordering.curve = [["a", "b"], ["c", "d", "e"]], curve
    drawing = charts.curves([entry, result(learner="ncm")])
    assert tips(drawing, "slda") == ["95.00% after 2 words", "80.00% after 5 words"]


def test_a_lone_value_stands_at_the_last_task():
    offline = result(tasks=4, learner="offline")
    for ordering in offline.orderings:
        ordering.curve = [88.0]
    assert tips(charts.curves([result(), offline]), "offline") == ["88.00% after 4 words"]


def test_few_lines_are_named_and_many_numbered():
    few = texts(charts.curves([result(), result(learner="ncm")]))
    assert {"slda", "ncm"} <= set(few)
    assert {str(n) for n in range(1, 19)} <= set(texts(charts.curves(many().results)))


def test_few_shot_axis_carries_the_counts_and_bands():
    drawing = charts.few_shot(few_shot().results)
    assert {"1", "5", "20"} <= set(texts(drawing))
    assert drawing.count('class="band"') == 2


def test_panels_for_backbones():
    two = [result(), result(backbone="other")]
    assert re.findall(r"<figcaption>(.*?)</figcaption>", charts.curves(two)) == [
        "speech_embedding",
        "other",
    ]


@pytest.mark.parametrize(
    "matrix, cells", [(None, 0), ([], 0), ([[100.0]], 1), ([[None, None], [40.0, 50.0]], 2)]
)
def test_heat_map_draws_what_is_there(matrix, cells):
    drawing = charts.heat_map(matrix, 40)
    assert drawing.count("<rect") == drawing.count("<title>") == cells


def test_heat_map_runs_from_dark_to_light_and_names_words():
    drawing = charts.heat_map([[100.0, None], [40.0, 100.0]], 40, [["yes"], ["no"]])
    assert "#440154" in drawing and drawing.count("#fde725") == 2
    assert "after no, on yes: 40.0%" in drawing
    assert texts(drawing)[:4] == ["yes", "yes", "no", "no"]
    several = charts.heat_map([[100.0, None], [40.0, 100.0]], 40, [["yes", "up"], ["x" * 30]])
    assert texts(several)[0] == "yes +1" and texts(several)[2] == "x" * 11 + "…"
    assert "after task 2, on task 1: 40.0%" in charts.heat_map([[1.0, None], [40.0, 1.0]], 40)


def test_a_preset_is_called_by_its_name_wherever_its_parts_stand():
    spec = {"backbone": "b:layers=x", "pooling": "p:R=2", "learner": "l:prior=y"}
    sizes = [replace(result(size=size), **spec) for size in ("small", "large")]
    assert {"small", "large"} <= set(texts(charts.curves(sizes)))
    # Beside other parts on one backbone there is one panel, beside several a panel for the sizes.
    assert "<figcaption>" not in charts.curves([*sizes, result(), result(learner="ncm")])
    several = charts.curves([*sizes, result(), result(backbone="other")])
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", several)
    assert captions == ["sizes", "speech_embedding", "other"]
    for drawing in (charts.curves(sizes), several):
        assert "layers" not in drawing and "None" not in drawing


@pytest.mark.parametrize(
    "low, high, wanted",
    [
        (100, 100, [99, 100]),
        (0, 0, [0, 1]),
        (38.9, 100, [30, 40, 50, 60, 70, 80, 90, 100]),
    ],
)
def test_percentages_stand_at_round_steps(low, high, wanted):
    assert charts.percent_steps(low, high) == wanted


@pytest.mark.parametrize("low, high, wanted", [(1, 30, [5, 10, 15, 20, 25, 30]), (7, 7, [7])])
def test_counts_stand_at_round_steps(low, high, wanted):
    assert charts.whole_steps(low, high) == wanted


def test_labels_are_spread_inside_the_axis():
    """Twelve lines that end at one height, and one far below."""
    found = [result(f"p{i}", acc=90.0) for i in range(12)] + [result("low", acc=10.0)]
    drawing = charts.curves(found)
    ends = re.findall(r'<text x="[\d.]+" y="([\d.]+)">\d+</text></g>', drawing)
    places = sorted(map(float, ends))
    assert len(places) == 13
    assert min(b - a for a, b in itertools.pairwise(places)) >= charts.LABEL_GAP - 0.2
    assert places[0] >= charts.TOP and places[-1] <= charts.TOP + charts.ONE_PANEL[1] + 4


def test_empty_results_draw_nothing():
    assert charts.curves([]) == charts.few_shot([]) == ""
    assert charts.curves([refused()]) == ""
