import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest

from tapword.report import charts
from tests.test_report import CASES, few_shot, many, records, refused, result


def results(case):
    return case["results"]


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


@pytest.mark.parametrize("case", sorted(set(CASES) - {"sparse", "hostile"}))
def test_charts_are_well_formed_xml(case):
    found = results(CASES[case]())
    drawings = [charts.curves(found), charts.few_shot(found)]
    drawings += [charts.heat_map(entry["matrix"], 50, [["<&>"]]) for entry in found]
    for drawing in drawings:
        if drawing:
            ElementTree.fromstring(drawing)
            assert "nan" not in drawing and "None" not in drawing


def test_eighteen_lines_all_look_different():
    looks = charts._looks(results(many()))[:18]
    assert len(set(looks)) == len({look[1:] for look in looks}) == 18
    eighteen = [result(pooling=f"p{i}") for i in range(18)]
    assert len({look[1:] for look in charts._looks(eighteen)}) == 18


def test_refused_results_take_no_colour():
    kept = [result("avg"), result("max")]
    assert charts._looks([refused(), *kept])[1:][0][1:] == charts._looks(kept)[0][1:]


def test_curves_are_means_over_orderings_at_words_so_far():
    entry = result(tasks=2)
    for ordering, curve in zip(entry["orderings"], ([100, 80], [90, None]), strict=True):
        ordering |= {"tasks": [["a", "b"], ["c", "d", "e"]], "curve": curve}
    assert charts._mean_curve(entry) == [(2, 95), (5, 80)]


def test_a_lone_value_stands_at_the_last_task():
    offline = result(tasks=4)
    for ordering in offline["orderings"]:
        ordering["curve"] = [88.0]
    assert charts._mean_curve(offline) == [(4, 88)]
    assert "offline: 88.00% after 4 words" in charts.curves(
        [result(), offline | {"learner": "offline"}]
    )


def test_few_lines_are_named_and_many_numbered():
    few = texts(charts.curves([result(), result(learner="ncm")]))
    assert {"slda", "ncm"} <= set(few)
    assert {str(n) for n in range(1, 19)} <= set(texts(charts.curves(results(many()))))


def test_few_shot_axis_carries_the_counts_and_bands():
    drawing = charts.few_shot(results(few_shot()))
    assert {"1", "5", "20"} <= set(texts(drawing))
    assert drawing.count('class="band"') == 2


def test_panels_for_backbones():
    two = [result(), result() | {"backbone": "other"}]
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
    assert "after task 2, on task 1 (yes): 40.0%" in drawing


@pytest.mark.parametrize(
    "low, high, whole, wanted",
    [
        (100, 100, False, [99, 100]),
        (0, 0, False, [0, 1]),
        (38.9, 100, False, [30, 40, 50, 60, 70, 80, 90, 100]),
        (1, 30, True, [5, 10, 15, 20, 25, 30]),
        (7, 7, True, [7]),
    ],
)
def test_steps_are_round(low, high, whole, wanted):
    assert charts._steps(low, high, 8, whole) == wanted


def test_labels_are_spread_inside_the_axis():
    places = charts._spread([10, 10, 10, 95, 100], 20, 0, 100)
    assert all(b - a >= 20 - 1e-9 for a, b in itertools.pairwise(places))
    assert places[0] >= 0 and places[-1] <= 100


def test_empty_results_draw_nothing():
    assert charts.curves([]) == charts.few_shot([]) == ""
    assert charts.curves(records(refused())["results"]) == ""
