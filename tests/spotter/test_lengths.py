"""How long words last: a statistic that is exact in any order, and what follows from it."""

import numpy as np
import pytest

from tapword.spotter.lengths import CLIP_S, LONGEST_S, Length

SECONDS = np.array([1.0, 1.2, 1.9, 2.4, 1.5])


def test_any_order_and_any_parts_give_the_same(rng):
    whole = Length.of(SECONDS)
    for _ in range(5):
        seconds, first = rng.permutation(SECONDS), int(rng.integers(1, len(SECONDS)))
        parts = Length.of(seconds[:first]), Length.of(seconds[first:])
        joined = parts[0].joined(first, parts[1], len(SECONDS) - first)
        assert joined == pytest.approx(whole)
        parted = joined.parted(len(SECONDS), parts[1], len(SECONDS) - first)
        assert parted == pytest.approx(parts[0], abs=1e-9)
    assert Length().joined(0, whole, 5) == pytest.approx(whole)
    assert whole.parted(5, whole, 5) == Length()


def test_a_word_of_one_second_is_no_phrase():
    assert not Length.of(np.ones(3)).is_phrase and Length.of(np.ones(3)) == Length()
    assert not Length.of(np.array([1.0, 1.0, 1.0, 1.3])).is_phrase
    assert Length.of(SECONDS).is_phrase


def test_a_phrase_is_looked_for_around_its_length_and_more_samples_say_more():
    alike = np.full(20, 1.6)
    few, many = Length.of(alike[:2]).span(2), Length.of(alike).span(20)
    assert CLIP_S <= few[0] < many[0] < 1.6 < many[1] < few[1] <= LONGEST_S
    assert Length.of(np.array([1.05, 1.2, 1.2])).span(3)[0] == CLIP_S
    assert Length.of(np.array([3.1])).span(1)[1] == LONGEST_S
