"""Near misses: the best of a second in which no word was said."""

import pytest

from tapword.listening.decider import Candidate
from tapword.listening.detector import CLOSE_SCORE, Detector
from tapword.listening.near import NearMisses
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Scores
from tests.sounds import RATE

THRESHOLDS = {"lamp": 0.5, "music": 0.6}
CLOSE = 0.5 - CLOSE_SCORE / 2


class Listening:
    """Stands for a detector whose candidates are told by the test."""

    thresholds = THRESHOLDS
    observe = None
    resets = 0
    spotter = Spotter()


@pytest.fixture
def misses():
    detector = Listening()
    made = NearMisses(detector)
    assert detector.observe is made
    return made


def candidate(at_s, lamp, music=-1.0, not_lamp=-1.0):
    scores = Scores({"lamp": lamp, "music": music}, {"lamp": not_lamp})
    return Candidate(round(at_s * RATE), at_s - 0.2, at_s + 0.2, scores)


def test_the_best_of_a_second_is_given_once_nothing_can_replace_it(misses):
    for one in (candidate(1.0, CLOSE), candidate(1.3, CLOSE + 0.01), candidate(1.5, CLOSE)):
        misses(one)
    assert misses.since(2.0) == []
    [near] = misses.since(3.5)
    assert (near.word, near.score, near.threshold, near.rejected) == (
        "lamp",
        CLOSE + 0.01,
        0.5,
        False,
    )
    assert (near.start_s, near.end_s) == (pytest.approx(1.1), pytest.approx(1.5))
    assert misses.since(100.0) == []


def test_the_word_that_lacks_least_is_named(misses):
    misses(candidate(1.0, CLOSE, music=0.6 - CLOSE_SCORE / 4))
    assert [near.word for near in misses.since(9.0)] == ["music"]


def test_what_is_far_from_its_threshold_is_none(misses):
    misses(candidate(1.0, 0.5 - 1.1 * CLOSE_SCORE, music=0.6 - 1.1 * CLOSE_SCORE))
    assert misses.since(9.0) == []


def test_what_is_beside_a_word_is_no_near_miss(misses):
    misses(candidate(1.0, CLOSE))
    misses(candidate(1.5, 0.5))
    misses(candidate(2.0, CLOSE))
    assert misses.since(9.0) == []
    misses(candidate(3.0, CLOSE))
    assert len(misses.since(9.0)) == 1


def test_near_misses_survive_a_reset(misses):
    misses(candidate(8.0, CLOSE))
    misses(candidate(9.5, 0.5))
    misses(candidate(11.0, CLOSE))
    misses._detector.resets += 1
    # One that was not final yet is found, and words of the stream before hide none of this one.
    misses(candidate(0.6, CLOSE))
    assert [near.start_s for near in misses.since(9.0)] == pytest.approx([7.8, 10.8, 0.4])


def test_a_detector_says_when_it_was_reset():
    detector = Detector(Spotter())
    assert detector.resets == 0
    detector.reset()
    assert detector.resets == 1


def test_a_rejected_sound_is_told_as_such(misses):
    misses(candidate(1.0, 0.7, music=CLOSE, not_lamp=0.8))
    [near] = misses.since(9.0)
    assert (near.word, near.score, near.rejected) == ("lamp", 0.7, True)
