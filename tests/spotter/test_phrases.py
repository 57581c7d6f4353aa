"""Phrases: words of up to three seconds beside short ones, taught, asked, kept and forgotten."""

import shutil
import subprocess

import numpy as np
import pytest

from tapword import Spotter
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.encoder import prepare
from tapword.spotter.vocabulary import Length
from tests.conftest import tone
from tests.sounds import ASKED, TAUGHT, noise, padded, silence, speech

# Of the same words in another order, and of other words in the middle.
PHRASES = ("lamp music coffee", "coffee music lamp", "lamp window coffee")
EIGHT = (
    "turn on the living room lights",
    "turn off the living room lights",
    "set a timer for ten minutes",
    "set an alarm for seven",
    "what is the weather today",
    "play some music in the kitchen",
    "open the garage door",
    "good night everybody",
)


def phrase(text, voice):
    """Words of the demo's voices, one after the other."""
    parts = [part for word in text.split() for part in (speech(word, voice), silence(0.03))]
    return padded(np.concatenate(parts[:-1]))


def teach(spotter, *texts, voices=TAUGHT):
    for text in texts:
        spotter.learn_many([phrase(text, voice) for voice in voices], [text] * len(voices))


@pytest.fixture(scope="module")
def spotter():
    """Three phrases and three words that are part of them."""
    made = Spotter()
    teach(made, *PHRASES, "lamp", "music", "coffee")
    return made


def test_what_is_asked_by_other_voices_is_told_apart(spotter):
    asked = [(text, voice) for text in (*PHRASES, "lamp", "music", "coffee") for voice in ASKED]
    predictions = spotter.predict_many([phrase(*one) for one in asked], closed=True)
    wrong = [
        (text, voice, one.word)
        for (text, voice), one in zip(asked, predictions, strict=True)
        if one.word != text
    ]
    assert not wrong
    # A phrase of words that nobody taught.
    strange = [phrase("timer door window", voice) for voice in ASKED]
    assert [one.word for one in spotter.predict_many(strange)] == [None] * len(strange)


def test_the_vector_covers_all_of_the_speech_and_the_second_around_a_short_word():
    long = phrase(PHRASES[0], ASKED[0])
    spoken_s = len(long) / SAMPLE_RATE - 1.0
    assert len(prepare(long, aligned=True)) / SAMPLE_RATE == pytest.approx(spoken_s + 0.2, abs=0.1)
    assert len(prepare(phrase("lamp", ASKED[0]), aligned=True)) == SAMPLE_RATE
    # However much silence lies around it.
    wide = np.concatenate([noise(1.0, 1e-4), long, noise(1.5, 1e-4)])
    one, other = Spotter().encode([long, wide]).vectors
    assert one[-1] == pytest.approx(other[-1], abs=0.15)
    assert one[:-1] @ other[:-1] > 0.9 * (one[:-1] @ one[:-1])


def test_more_than_three_seconds_without_a_pause_are_refused_and_nothing_is_learned():
    made, sound = Spotter(), padded(noise(3.2, 0.1))
    for call in (lambda: made.learn(sound, "long"), lambda: made.predict(sound)):
        with pytest.raises(InputError, match=r"3\.\d+ s of sound without a pause"):
            call()
    assert not made.words and not made.vocabulary.lengths


def test_lengths_are_kept_merged_renamed_forgotten_and_unlearned(spotter, tmp_path):
    lengths = spotter.vocabulary.lengths
    assert set(lengths) >= set(PHRASES) and "lamp" not in lengths
    spotter.save(tmp_path / "home.tap")
    loaded = Spotter.load(tmp_path / "home.tap")
    assert loaded.vocabulary.lengths == lengths
    assert loaded.thresholds() == pytest.approx(spotter.thresholds(), abs=1e-6)
    halves = Spotter(), Spotter()
    teach(halves[0], PHRASES[0], voices=TAUGHT[:2])
    teach(halves[1], PHRASES[0], voices=TAUGHT[2:])
    halves[0].merge(halves[1])
    assert halves[0].vocabulary.lengths[PHRASES[0]] == pytest.approx(lengths[PHRASES[0]])
    vectors = halves[0].encode([phrase(PHRASES[0], TAUGHT[0])], learning=True)
    before = halves[0].vocabulary.lengths[PHRASES[0]]
    halves[0].learn_encoded(vectors, [PHRASES[0]])
    assert halves[0].vocabulary.lengths[PHRASES[0]] != before
    halves[0].unlearn_encoded(vectors, [PHRASES[0]])
    assert halves[0].vocabulary.lengths[PHRASES[0]] == pytest.approx(before)
    loaded.rename(PHRASES[0], "first")
    assert loaded.vocabulary.lengths["first"] == lengths[PHRASES[0]]
    loaded.forget("first")
    assert "first" not in loaded.vocabulary.lengths and PHRASES[1] in loaded.vocabulary.lengths


@pytest.mark.parametrize(
    "lengths",
    [
        {"low": [0.5]},
        {"low": [0.5, 1e7]},
        {"low": [-1, 0]},
        {"low": [2.0, 0]},
        {"low": ["x", 0]},
        {"other": [0, 0]},
        [],
    ],
)
def test_lengths_of_a_file_must_make_sense(tmp_path, lengths):
    made, path = Spotter(backbone="logmel", pooling="avg", learner="ncm"), tmp_path / "model.tap"
    made.learn(tone(300), "low")
    made.save(path)
    header, arrays = store.read(path)
    path.write_bytes(store.pack(header | {"lengths": lengths}, arrays))
    with pytest.raises(ModelFileError, match="length"):
        Spotter.load(path)


def test_teaching_a_copy_leaves_the_lengths_alone(spotter):

    made = spotter.copy()
    before = spotter.vocabulary.lengths
    teach(made, "music lamp window")
    made.forget(PHRASES[0])
    assert spotter.vocabulary.lengths == before and "music lamp window" in made.vocabulary.lengths


def test_a_phrase_is_measured_against_phrases(spotter):
    cohort = spotter.scorer.cohort
    assert len(cohort.words.vectors) == 1600 and len(cohort.phrases.vectors) == 900
    tails = spotter.scorer.tails()
    vocabulary = spotter.vocabulary
    assert vocabulary.length_of(PHRASES[0]).is_phrase and vocabulary.length_of("lamp") == Length()
    learner = spotter.learner
    row = [one.word for one in learner.rows].index(PHRASES[0])
    scores = cohort.phrases.scores(learner.directions()[[row]])[:, 0]
    assert tails[PHRASES[0]].tail_mean == pytest.approx(np.sort(scores)[::-1][:2].mean())


@pytest.mark.skipif(not shutil.which("espeak-ng"), reason="espeak-ng is not installed")
def test_eight_phrases_taught_by_four_synthetic_voices_are_known_of_four_others(tmp_path):
    def say(text, voice):
        path = tmp_path / f"{voice} {text}.wav"
        subprocess.run(["espeak-ng", "-v", voice, "-w", path, text], check=True)
        return files.read(path)

    made = Spotter()
    for text in EIGHT:
        for voice in ("en-us", "en-gb+f2", "en-gb-scotland", "en-us+m3"):
            made.learn(say(text, voice), text)
    right = 0
    for text in EIGHT:
        for voice in ("en-gb", "en-us+f3", "en-gb-x-rp", "en-gb-x-gbclan+m1"):
            right += made.predict(say(text, voice), closed=True).word == text
    assert right == 32
