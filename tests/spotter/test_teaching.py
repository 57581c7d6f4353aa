"""What is said of clips before they are taught."""

import numpy as np
import pytest

import tapword
from tapword.assets import CLIPS
from tapword.spotter.encoder import Encoded
from tapword.spotter.teaching import (
    FEWEST,
    NOISE,
    Lesson,
    close_word,
    doubts,
    lesson_warnings,
    warnings,
)


def vectors(spotter, word, start, end):
    clips = sorted((CLIPS / word).glob("*.ogg"))[start:end]
    return spotter.encode(clips, learning=True)


@pytest.fixture(scope="module")
def taught():
    spotter = tapword.Spotter("speech_embedding", "tap", "ridge")
    for word in ("lamp", "music", "window"):
        found = vectors(spotter, word, 0, 4)
        spotter.learn_encoded(found, [word] * len(found))
    return spotter


def test_the_same_word_by_another_name_is_close(taught):
    takes, before = vectors(taught, "lamp", 4, 9), taught.words
    assert close_word(taught, takes, "light") == "lamp"
    assert close_word(taught, takes, "lamp") is None
    assert close_word(taught, takes[: FEWEST - 1], "light") is None
    [said] = warnings(taught, takes, "light")
    assert said.startswith('"light" sounds close to "lamp"')
    assert taught.words == before


@pytest.mark.parametrize("word", ["coffee", "garage", "kitchen", "timer"])
def test_other_words_are_not_close(taught, word):
    assert warnings(taught, vectors(taught, word, 4, 9), word) == []


def test_nothing_is_close_to_nothing():
    spotter = tapword.Spotter("logmel", "avg", "ncm")
    assert close_word(spotter, vectors(spotter, "lamp", 0, 3), "lamp") is None


def test_noise_is_told_by_name():
    spotter = tapword.Spotter()
    noise = 0.1 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    clip = sorted((CLIPS / "lamp").glob("*.ogg"))[0]
    found = spotter.encode([noise, clip], learning=True)
    assert warnings(spotter, found, "lamp", ["hiss.wav", "lamp.wav"]) == [f"hiss.wav {NOISE}"]
    assert warnings(spotter, found, "lamp") == [f"take 1 {NOISE}"]
    assert Lesson(spotter, "lamp").warnings(found[0]) == [f"this take {NOISE}"]


def test_a_lesson_looks_at_its_clips_together(taught):
    """Clip by clip, it says what would be said of all of them so far."""
    takes = vectors(taught, "lamp", 4, 9)
    lesson = Lesson(taught, "light")
    said = [lesson.warnings(take) for take in takes]
    assert said == [warnings(taught, takes[:n], "light") for n in range(1, len(takes) + 1)]
    assert said[0] == said[1] == [] != said[2]


@pytest.fixture(scope="module")
def small():
    """Size small, taught by one voice."""
    spotter = tapword.Spotter()
    for word in ("lamp", "music"):
        spotter.learn(CLIPS / word / "flite-rms_0.ogg", word)
    return spotter


def second_take(spotter, word):
    return spotter.encode([CLIPS / word / "flite-rms_1.ogg"], learning=True)[0]


def test_a_take_that_may_be_none_of_the_word_is_doubted(small):
    for word in ("lamp", "music"):
        assert doubts(small, second_take(small, word), word) == []
    music, coffee = second_take(small, "music"), second_take(small, "coffee")
    assert doubts(small, music, "lamp") == ['this take sounds like "music"']
    assert doubts(small, music, "new") == ['this take sounds like "music"']
    assert doubts(small, coffee, "lamp") == ['this take sounds unlike "lamp" so far']
    assert doubts(small, coffee, "coffee") == []
    noise = 0.1 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    heard = small.encode([noise], learning=True)[0]
    assert doubts(small, heard, "lamp") == [f"this take {NOISE}"]


def test_where_thresholds_are_not_known_nothing_is_doubted(taught):
    [take] = vectors(taught, "music", 5, 6)
    assert doubts(taught, take, "lamp") == []


def lesson(spotter, **counts):
    """Vectors, words and names of so many clips of each word."""
    found = [vectors(spotter, word, 0, count) for word, count in counts.items()]
    words = [word for word, count in counts.items() for _ in range(count)]
    return Encoded.concatenate(found), words, [f"{row}.wav" for row in range(len(words))]


@pytest.fixture(scope="module")
def spotter():
    return tapword.Spotter()


def test_words_of_one_lesson_are_looked_at_beside_each_other(spotter):
    X, words, names = lesson(spotter, lamp=6, music=6, window=3, coffee=1)
    assert lesson_warnings(spotter, X, words, names) == []
    half = ["Lamp" if row in (0, 2, 4) else word for row, word in enumerate(words)]
    [said] = lesson_warnings(spotter, X, half, names)
    assert '"lamp" sounds close to "Lamp"' in said or '"Lamp" sounds close to "lamp"' in said
    assert not spotter.words


@pytest.mark.parametrize("row", [0, 7])
def test_a_clip_under_a_wrong_name_is_told_wherever_it_lies(spotter, row):
    X, words, names = lesson(spotter, lamp=6, music=6)
    right, words[row] = words[row], "music" if words[row] == "lamp" else "lamp"
    said = f'taught as "{words[row]}", sounds like "{right}": {row}.wav'
    assert lesson_warnings(spotter, X, words, names) == [said]


def test_one_clip_that_sounds_like_a_taught_word_is_told(taught, spotter):
    X, words, _ = lesson(spotter, lamp=5, music=1)
    pupil = tapword.Spotter()
    pupil.learn_encoded(X[:4], words[:4])
    assert lesson_warnings(pupil, X[4:5], ["timer"], ["a.wav"]) == [
        'taught as "timer", sounds like "lamp": a.wav'
    ]
    assert lesson_warnings(pupil, X[5:], ["timer"], ["a.wav"]) == []
    # Whether one clip is a word can only be said where thresholds are known.
    [clip] = vectors(taught, "lamp", 5, 6)
    assert lesson_warnings(taught, clip, ["timer"], ["a.wav"]) == []
