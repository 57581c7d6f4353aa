"""A word from its text: what a spotter, a model file and a lesson make of the clips of a voice."""

import json

import numpy as np
import pytest

from tapword import Spotter
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store, typed
from tapword.spotter.session import ModelFile, TeachSession
from tapword.spotter.vocabulary import MAX_S
from tapword.voices.base import Said, SpokenBy, Unspeakable, Voice
from tests import hostile
from tests.conftest import tone
from tests.test_contracts import same_state

ROBOT = SpokenBy("espeak", native=False)
PARTS = {"backbone": "logmel", "pooling": "avg", "learner": "cosine"}
PITCHES = {"low": 300, "middle": 700, "high": 1500}


class Tones(Voice):
    """A voice that says a word as a tone; every speaker is a little higher."""

    seconds: float = 1.0
    loud: float = 1.0

    def why_not(self, language, phonemes=""):
        return None if language in ("en-us", "de") else f"no {language!r} here"

    def _speak(self, text, language, n, seed, phonemes):
        for k in range(seed, seed + n):
            pitch = PITCHES.get(phonemes or text, 1000) + 10 * k
            yield Said(self.loud * tone(pitch, self.seconds), f"speaker {k}")

    takes_phonemes = True


@pytest.fixture
def spotter():
    made = Spotter(**PARTS)
    for word in ("low", "high"):
        made.learn_text(word, voice=Tones(), n=4)
    return made


def test_a_typed_word_is_recognised_and_counted_apart(spotter):
    assert spotter.words == {"low": 0, "high": 0}
    assert spotter.vocabulary.synthetic == spotter.learner.synthetic == {"low": 4, "high": 4}
    assert spotter.predict(tone(310)).word == "low"
    assert spotter.predict(tone(1510)).word == "high"
    spotter.learn(tone(305), "low")
    assert spotter.words == {"low": 1, "high": 0}
    assert spotter.vocabulary.synthetic == {"low": 4, "high": 4}


def test_text_and_pronunciation_may_differ_from_the_word(spotter):
    spotter.learn_text("light_1", "middle", voice=Tones(), n=3)
    spotter.learn_text("light_2", "anything", voice=Tones(), n=3, phonemes="middle")
    row = [row.word for row in spotter.learner.rows]
    first, second = (
        spotter.learner.effective.means[row.index(word)] for word in ("light_1", "light_2")
    )
    np.testing.assert_array_equal(first, second)


def test_saying_it_again_takes_other_speakers(spotter):
    spotter.learn_text("low", voice=Tones(), n=2)
    whole = Spotter(**PARTS)
    whole.learn_text("low", voice=Tones(), n=6)
    assert spotter.vocabulary.synthetic["low"] == 6
    row = spotter.learner.effective.means[0]
    np.testing.assert_allclose(row, whole.learner.effective.means[0], rtol=1e-5)


def test_progress_counts_clips():
    seen = []
    Spotter(**PARTS).learn_text("low", voice=Tones(), n=5, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word": "x" * 100}, "at most 64 bytes"),
        ({"word": "lamp", "text": "x" * 300}, "at most 80 characters"),
        ({"word": "\U0001f600"}, "cannot be said"),
        ({"word": "..."}, "no letters"),
        ({"word": "lamp", "language": "tlh"}, "no 'tlh' here"),
        ({"word": "lamp", "n": 0}, "1 to 500 times"),
        ({"word": "lamp", "voice": "nobody"}, "no voice named 'nobody'"),
        ({"word": "lamp", "voice": Tones(loud=0.0)}, "says nothing"),
    ],
)
def test_bad_input_gets_one_clear_line_and_changes_nothing(spotter, options, message):
    before = {key: array.copy() for key, array in spotter.learner.state().items()}
    with pytest.raises(InputError, match=message) as error:
        spotter.learn_text(**{"voice": Tones(), "n": 2} | options)
    assert "\n" not in str(error.value)
    same_state(spotter.learner.state(), before)
    assert list(spotter.words) == ["low", "high"]


def test_a_text_that_takes_too_long_is_refused():
    spotter = Spotter()
    with pytest.raises(Unspeakable, match="'a very long text' cannot be taught") as error:
        spotter.learn_text("a very long text", voice=Tones(seconds=MAX_S + 2), n=1)
    assert f"{MAX_S:g} s" in str(error.value)


def test_a_learner_that_cannot_is_refused_before_a_voice_speaks():
    spotter = Spotter("logmel", "avg", "perceptron")
    with pytest.raises(InputError, match="cannot learn typed words"):
        spotter.learn_text("low", voice="nobody")


# The model file.


def test_a_model_file_keeps_them_apart(spotter, tmp_path):
    spotter.learn(tone(900), "own")
    spotter.save(tmp_path / "home.tap")
    header = store.read(tmp_path / "home.tap").header
    assert header["format"] == 3 and header["synthetic"] == {"low": 4, "high": 4}
    loaded = Spotter.load(tmp_path / "home.tap")
    assert loaded.words == spotter.words and loaded.vocabulary == spotter.vocabulary
    same_state(loaded.learner.state(), spotter.learner.state())
    for one in (loaded, spotter):
        one.learn_text("low", voice=Tones(), n=2)
        one.learn(tone(310), "low")
    same_state(loaded.learner.state(), spotter.learner.state())


def test_a_file_without_them_stays_readable_for_earlier_versions(spotter, tmp_path):
    spotter.learn(tone(900), "own")
    for word in ("low", "high"):
        spotter.forget(word)
    spotter.save(tmp_path / "home.tap")
    header = json.loads(_metadata(tmp_path / "home.tap")["tapword"])
    assert header["format"] == 2 and not header["synthetic"]
    del header["synthetic"]
    hostile_path = tmp_path / "old.tap"
    hostile_path.write_bytes(store.pack(header, store.read(tmp_path / "home.tap").arrays))
    assert Spotter.load(hostile_path).words == {"own": 1}


def _metadata(path):
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


@pytest.mark.parametrize(
    "changes",
    [
        {"synthetic": {}},
        {"synthetic": {"low": 4}},
        {"synthetic": {"low": 4, "high": 4, "other": 1}},
        {"synthetic": {"low": 4, "high": -4}},
        {"synthetic": {"low": 4, "high": "4"}},
        {"synthetic": ["low"]},
        {"synthetic": 3},
        {"words": {"low": 0, "high": -1}},
        {"voices": {"nobody": ["kokoro"]}},
        {"voices": {"low": "kokoro"}},
        {"voices": {"low": []}},
        {"voices": {"low": ["../kokoro"]}},
        {"voices": {"low": ["kokoro"] * 17}},
        {"voices": ["kokoro"]},
    ],
)
def test_a_damaged_table_of_clips_is_refused(spotter, tmp_path, changes):
    path = tmp_path / "home.tap"
    spotter.save(path)
    path.write_bytes(hostile.forged(store.read(path), **changes))
    with pytest.raises(ModelFileError, match=r"home\.tap"):
        Spotter.load(path)


def test_a_model_knows_which_voices_spoke(spotter, tmp_path):
    encoded = spotter.encode([tone(300)], learning=True)
    assert spotter.vocabulary.voices == {"low": ["test_typed"], "high": ["test_typed"]}
    spotter.learn_encoded(encoded, ["low"], spoken_by=ROBOT)
    spotter.learn_encoded(encoded, ["low"])
    spotter.save(tmp_path / "home.tap")
    again = Spotter.load(tmp_path / "home.tap")
    assert again.vocabulary.voices == {"low": ["espeak", "test_typed"], "high": ["test_typed"]}
    again.forget("high")
    again.rename("low", "deep")
    assert again.vocabulary.voices == {"deep": ["espeak", "test_typed"]}


def test_a_clip_can_be_taken_out_again(spotter):
    said = spotter.encode([tone(PITCHES["middle"] + 10 * k) for k in range(3)], learning=True)
    other = spotter.copy()
    spotter.learn_encoded(said, ["middle"] * 3, spoken_by=ROBOT)
    spotter.unlearn_encoded(said[1], ["middle"], spoken_by=ROBOT)
    other.learn_encoded(said[[0, 2]], ["middle"] * 2, spoken_by=ROBOT)
    assert spotter.vocabulary == other.vocabulary
    means = [one.learner.state()["synthetic_means"] for one in (spotter, other)]
    np.testing.assert_allclose(*means, rtol=1e-6, atol=1e-6)
    spotter.unlearn_encoded(said[[0, 2]], ["middle"] * 2, spoken_by=ROBOT)
    assert "middle" not in spotter.words and spotter.vocabulary.voices.keys() == {"low", "high"}


def test_forgetting_and_merging_take_them_along(spotter, tmp_path):
    other = Spotter(**PARTS)
    other.learn_text("low", voice=Tones(), n=2)
    other.learn_text("middle", voice=Tones(), n=3)
    spotter.merge(other)
    assert spotter.vocabulary.synthetic == {"low": 6, "high": 4, "middle": 3}
    assert spotter.vocabulary.synthetic == spotter.learner.synthetic
    spotter.rename("middle", "centre")
    kept = spotter.extract_word("centre")
    spotter.forget("centre")
    assert "centre" not in spotter.words and "centre" not in spotter.learner.synthetic
    spotter.merge(kept)
    assert spotter.vocabulary.synthetic["centre"] == spotter.learner.synthetic["centre"] == 3


def test_unlearning_the_last_take_keeps_the_typed_word(spotter):
    taught = spotter.encode([tone(310)], learning=True)
    before = spotter.vocabulary
    spotter.learn_encoded(taught, ["low"])
    spotter.unlearn_encoded(taught, ["low"])
    assert spotter.vocabulary == before and spotter.learner.words["low"] == 0


# A lesson.


def test_a_lesson_warns_of_a_word_that_is_close_to_another(tmp_path):
    path = tmp_path / "home.tap"
    parts = PARTS | {"learner": "ncm"}
    first = TeachSession.open(ModelFile(path, parts=parts), ["low"], lambda issue: True)
    said = first.speak("low", typed.Request("low", n=6), Tones())
    assert [one.speaker for one in said] == [f"speaker {k}" for k in range(6)]
    first.write(lambda issue: pytest.fail(f"nothing to say of one word: {issue}"))
    issues = []
    second = TeachSession.open(ModelFile(path), ["lower"], lambda issue: True)
    second.speak("lower", typed.Request("low", n=6), Tones())
    spotter = second.write(issues.append)
    assert ("close_word", {"word": "lower", "other": "low"}) in [
        (issue.code, issue.params) for issue in issues
    ]
    assert spotter.vocabulary.synthetic == {"low": 6, "lower": 6}
    assert not any(spotter.words.values())


def test_undo_takes_a_typed_word_back(spotter, tmp_path):
    path = tmp_path / "home.tap"
    spotter.save(path)
    before = path.read_bytes()
    session = TeachSession.open(ModelFile(path), ["middle"], lambda issue: True)
    session.speak("middle", typed.Request("middle", n=3), Tones())
    session.write(lambda issue: None)
    assert Spotter.load(path).learner.synthetic["middle"] == 3
    [step] = store.take_back(path)
    assert step.what == "say middle: 3 clips" and path.read_bytes() == before
