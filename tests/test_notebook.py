"""Run the cells of the notebook in examples/, if the libraries they need are installed."""

import json
from pathlib import Path

import pytest

from tapword import registry

NOTEBOOK = Path(__file__).parents[1] / "examples" / "continual_learning.ipynb"
CHANCE = 100 / 18


@pytest.fixture(scope="module")
def cells():
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in found if cell["cell_type"] == "code"]
    return [("".join(cell["source"]), cell["metadata"].get("tags", [])) for cell in code]


@pytest.fixture(scope="module")
def plain(cells):
    """Run the cells that need no other library, and return their names."""
    return run(cells, [], {})


def run(cells, tags: list[str], before: dict) -> dict:
    space = dict(before)
    for source, needs in cells:
        if needs == tags:
            exec(compile(source, NOTEBOOK.name, "exec"), space)
    return space


def test_scikit_learn(plain):
    found = plain
    assert set(registry.classes("learners")) < set(found["cross_validated"])
    # Numbers that are standardised may be negative, which sovr is not made for.
    assert min(x for name, x in found["cross_validated"].items() if name != "sovr") > 70
    assert found["streamed"]["cosine"][-1] > 90
    # Theirs forgets each word for the next.
    assert found["streamed"]["scikit-learn's SGD"][-1] < 2 * CHANCE
    accuracies = {result.learner: result.acc for result in found["ours"]}
    sgd, lda = found["scikit_learns"]
    assert sgd.learner == "SGDClassifier(random_state=0)" and sgd.acc < accuracies["cosine"]
    assert lda.forg is None and lda.acc > 90


@pytest.mark.filterwarnings("default")
def test_river(cells, plain):
    pytest.importorskip("river", reason="river is not installed")
    found = run(cells, ["river"], plain)
    assert 0.8 < found["progressed"]["cosine"] <= 1
    [bayes] = found["rivers"]
    assert bayes.acc > 2 * CHANCE and "GaussianNB" in bayes.learner


@pytest.mark.filterwarnings("default")
def test_avalanche(cells, plain):
    pytest.importorskip("avalanche", reason="Avalanche is not installed")
    found = run(cells, ["avalanche"], plain)
    theirs, same = found["avalanches"]
    # Once all words are taught, the reference is this very rule.
    assert theirs.learner == "Avalanche's StreamingLDA" and theirs.acc == pytest.approx(same.acc)
    assert found["incremental"]["cosine"][0] > 0.9


def test_no_pictures_and_no_paths():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 30_000 and "image/png" not in text
    assert "/home/" not in text and "/work" not in text
