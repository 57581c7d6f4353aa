"""Model files of every format load for ever, and mean what they meant."""

import json

import numpy as np
import pytest

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.errors import ModelFileError
from tapword.learners.base import Row
from tapword.spotter import model_header, store
from tapword.spotter.whitening import Whitening
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"
# Those of format 1 were written by the last version that kept negatives among the words, with a
# sign before them; later ones by tests/golden/make.py.
FOLDERS = {1: GOLDEN, 2: GOLDEN / "format2", 3: GOLDEN / "format3"}


def loaded(path):
    """Load a file; those of the sizes were taught with the whitening that was shipped then."""
    return Spotter.load(path, whitening=[Whitening.load(GOLDEN / "whitening.safetensors")])


@pytest.mark.parametrize("name", ["small", "slda", "cbcl"])
@pytest.mark.parametrize("number", FOLDERS)
def test_a_file_knows_what_it_knew(number, name):
    folder = FOLDERS[number]
    wanted = json.loads((folder / "expected.json").read_text("utf-8"))[name]
    spotter = loaded(folder / f"{name}.tap")
    rows = [Row(row.removeprefix("¬"), row.startswith("¬")) for row in wanted["rows"]]
    assert spotter.learner.rows == rows
    assert spotter.words == wanted["words"] and spotter.vocabulary.negatives == wanted["rejected"]
    assert spotter.vocabulary.synthetic == wanted.get("synthetic", {})
    assert spotter.vocabulary.sensitivities == wanted.get("sensitivities", {})
    encoded = spotter.encode([CLIPS / file for file in wanted["files"]])
    words, negatives = spotter.learner.all_scores(encoded.vectors)
    scores, negative = np.array(wanted["scores"]), np.array([row.negative for row in rows])
    np.testing.assert_allclose(words, scores[:, ~negative], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(negatives, scores[:, negative], rtol=1e-4, atol=1e-4)
    closed = spotter.predict_encoded(encoded, closed=True)
    assert [answer.word for answer in closed] == wanted["nearest"]


def test_there_are_files_of_every_format():
    assert sorted(FOLDERS) == list(range(1, model_header.FORMAT + 1))
    for number, folder in FOLDERS.items():
        assert store.read(folder / "small.tap").header["format"] == number


def test_it_goes_on_in_the_format_of_today(tmp_path):
    spotter = loaded(GOLDEN / "small.tap")
    spotter.learn(CLIPS / "stop" / "espeak-en-us_0.ogg", "stop")
    spotter.save(tmp_path / "new.tap")
    again = loaded(tmp_path / "new.tap")
    assert again.learner.rows == spotter.learner.rows and again.words["stop"] == 1
    assert again.vocabulary.negatives == {"lamp": 1, "door": 1}


def test_a_file_of_another_whitening_says_what_to_do():
    with pytest.raises(ModelFileError, match=r"another whitening.* teach it again"):
        Spotter.load(GOLDEN / "small.tap")
