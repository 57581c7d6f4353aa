"""A clip cut to one second around its sound."""

import numpy as np
import pytest

from tapword.audio.align import align

SECOND = 16_000


def spoken(rng, n=6_000):
    """A burst that is nowhere symmetric, (n,) float32."""
    return (0.3 * rng.normal(size=n) * np.linspace(0.2, 1, n)).astype(np.float32)


def placed(word, start, n):
    """Put a word into a clip of `n` samples that is otherwise silent."""
    clip = np.zeros(n, dtype=np.float32)
    clip[start : start + len(word)] = word
    return clip


def test_align_finds_the_loudest_second_of_a_long_clip(rng):
    word = spoken(rng)
    clip = 0.01 * rng.normal(size=5 * SECOND).astype(np.float32)
    clip[50_000:56_000] += word
    clip[10_000:16_000] += 0.3 * word
    window = align(clip, 1.0)
    start = int(np.correlate(window, word, "valid").argmax())
    np.testing.assert_array_equal(window[start : start + 6_000], clip[50_000:56_000])
    near = slice(SECOND // 2 - 5_600, SECOND // 2 + 5_600)
    centre = np.arange(SECOND)[near] @ np.square(window[near]) / np.square(window[near]).sum()
    assert abs(centre - SECOND / 2) <= 160


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("n", [100, 6_000, 8_000, 16_000, 16_001, 40_000])
def test_align_gives_the_length_asked_for(rng, n, seconds):
    window = align(spoken(rng, n), seconds)
    assert window.dtype == np.float32 and window.shape == (round(seconds * SECOND),)


@pytest.mark.parametrize("start", [0, 160, 9_920, 41_920])
def test_align_does_not_care_where_the_word_lies(rng, start):
    """Even at the very edge: what lies beyond the clip is silence."""
    word = spoken(rng)
    wanted = align(placed(word, 20_960, 48_000), 1.0)
    np.testing.assert_array_equal(align(placed(word, start, 48_000), 1.0), wanted)
    assert np.count_nonzero(wanted) == np.count_nonzero(word)


@pytest.mark.parametrize("start", [1, 77, 159, 10_001, 41_999, 42_000])
def test_align_is_right_to_10_ms(rng, start):
    """Steps are that long, so a word between two of them moves by less, and nothing is cut off."""
    word = spoken(rng)
    middle = np.arange(len(word)) @ np.square(word) / np.square(word).sum()
    window = align(placed(word, start, 48_000), 1.0)
    found = np.flatnonzero(window)[0]
    np.testing.assert_array_equal(window, placed(word, found, SECOND))
    assert abs(found + middle - SECOND / 2) <= 160


def test_align_does_not_care_for_silence_around_the_clip(rng):
    clips = [spoken(rng), spoken(rng, 30_000), placed(spoken(rng), 0, SECOND)]
    for clip in clips:
        wanted = align(clip, 1.0)
        for silence in (160, 8_000):
            padded = align(np.pad(clip, silence), 1.0)
            np.testing.assert_array_equal(padded, wanted)


def test_align_centres_a_clip_shorter_than_the_window():
    window = align(np.full(1_600, 0.5, dtype=np.float32), 1.0)
    np.testing.assert_array_equal(np.flatnonzero(window), np.arange(7_200, 8_800))


def test_align_takes_one_of_two_words_and_not_the_gap_between_them(rng):
    """Two equal words 0.8 s apart: the first, alone in the middle."""
    word = spoken(rng)
    clip = placed(word, 8_000, 48_000) + placed(word, 26_720, 48_000)
    alone = align(placed(word, 8_000, 48_000), 1.0)
    np.testing.assert_array_equal(align(clip, 1.0), alone)


@pytest.mark.parametrize("n", [1_600, 16_000, 48_000])
def test_align_of_silence_is_silence(n):
    window = align(np.zeros(n, dtype=np.float32), 1.0)
    assert window.shape == (SECOND,) and not window.any()


def test_align_leaves_the_clip_alone(rng):
    clip = spoken(rng)
    before = clip.copy()
    align(clip, 1.0)[:] = 7
    np.testing.assert_array_equal(clip, before)
