"""Sensitivities from recordings without the words."""

import numpy as np
import pytest

from tapword import Spotter
from tapword.errors import InputError
from tapword.listening import calibration
from tapword.listening.calibration import calibrate
from tapword.listening.decider import Candidate, replay
from tapword.listening.detector import Detector
from tapword.spotter.thresholds import Scores, Tail
from tests.conftest import tone
from tests.sounds import RATE, TAUGHT, clip, silence

WORDS = ("lamp", "music")


class Told(Spotter):
    """A spotter whose scores of the sounds it hears are told by the test, one after another."""

    def tell(self, lamp, music):
        self.told = [
            Scores(dict(zip(WORDS, map(float, scores), strict=True)), {})
            for scores in zip(lamp, music, strict=True)
        ]

    @property
    def scorer(self):
        made = super().scorer
        made.score_window = lambda clip, limits, first: self.told.pop(0)
        return made


@pytest.fixture(scope="module")
def taught():
    made = Told()
    for word in WORDS:
        made.learn_many([clip(word, voice) for voice in TAUGHT[:4]], [word] * 4)
    return made


@pytest.fixture
def spotter(taught):
    taught.set_sensitivity(0.5)
    return taught


def bursts(n):
    """A sound each second."""
    return np.concatenate([silence(0.4), tone(440, 0.2), silence(0.4)] * n)


def like_speech(spotter, rng, n=200, shift=0.0):
    """Scores of each word that are spread as in the cohort; at the same rate no alarm."""
    found = {}
    for word, tail in spotter.scorer.tails().items():
        scores = rng.normal(0, 1, n)
        now = Tail.of(scores, tail.line)
        found[word] = tail.tail_mean + (scores - now.tail_mean) * 0.1 + shift
        found[word] = found[word].clip(max=spotter.thresholds()[word] - 0.02)
    return found


@pytest.mark.parametrize(("shift", "moved"), [(-0.1, 1), (0.0, 0), (0.02, -1)])
def test_sensitivities_follow_the_sounds_of_a_place(spotter, rng, shift, moved):
    scores = like_speech(spotter, rng, shift=shift)
    usual = spotter.thresholds()
    spotter.tell(**scores)
    found = calibrate(spotter, [[bursts(200)]])
    assert spotter.told == [] and found.sound_hours == pytest.approx(200 / 3600)
    share = found.sound_hours / (found.sound_hours + 0.5)
    for word in WORDS:
        shipped = spotter.scorer.tails()[word]
        here = Tail.of(scores[word], shipped.line)
        moved_by = shipped.line.share * (here.tail_mean - shipped.tail_mean)
        wanted = usual[word] + share * moved_by
        assert found.thresholds_after[word] == pytest.approx(wanted)
        assert np.sign(round(found.after[word] - 0.5, 6)) == moved
        assert found.before[word] == 0.5 and found.thresholds_before[word] == usual[word]
        assert found.highest[word] == pytest.approx(scores[word].max())
    assert found.alarms_before == found.alarms_after == {"lamp": 0, "music": 0}
    for word, value in found.after.items():
        spotter.set_sensitivity(value, word)
    assert spotter.thresholds() == pytest.approx(found.thresholds_after)


def test_false_alarms_lower_the_sensitivity(spotter, rng):
    scores = like_speech(spotter, rng)
    usual = spotter.thresholds()
    scores["lamp"][[10, 100]] = usual["lamp"] + np.array([0.02, 0.03])
    # From what was set before it does not start.
    spotter.set_sensitivity(0.9, "lamp")
    hours = 200 / 3600
    for allowed in (2, 1, 0):
        spotter.tell(**scores)
        rate = (allowed + 0.5) / hours
        found = calibrate(spotter, [[bursts(100)], [bursts(100)]], rate)
        assert found.hours == pytest.approx(hours) and found.before["lamp"] == 0.9
        assert sum(found.alarms_after.values()) <= allowed
        assert found.at_most_per_hour > sum(found.alarms_after.values()) / hours
    spotter.tell(**scores)
    found = calibrate(spotter, [[bursts(200)]])
    assert found.alarms_before["lamp"] == 2 and found.alarms_after["lamp"] == 0
    assert found.thresholds_after["lamp"] == pytest.approx(usual["lamp"] + 0.031)
    assert found.after["lamp"] < 0.5
    assert spotter.vocabulary.sensitivities == {"lamp": 0.9}


def test_the_scale_ends_somewhere(spotter, rng):
    scores = like_speech(spotter, rng)
    scores["lamp"][10] = 0.95
    spotter.tell(**scores)
    found = calibrate(spotter, [[bursts(200)]])
    assert found.after["lamp"] == 0 and found.alarms_after == {"lamp": 1, "music": 0}
    assert found.thresholds_after == spotter.thresholds(0.5, found.after)


def test_windows_around_a_sound_count_once(spotter, rng, monkeypatch):
    """They are looked at where a sound is nearly the word, and would be counted as often."""
    scores = like_speech(spotter, rng)
    spotter.tell(**scores)
    once = calibrate(spotter, [[bursts(200)]])
    observe = calibration.Calibrator._observe

    def observe_around(self, candidate):
        for _ in range(5):
            observe(self, candidate)

    monkeypatch.setattr(calibration.Calibrator, "_observe", observe_around)
    spotter.tell(**scores)
    assert calibrate(spotter, [[bursts(200)]]) == once


def test_silence_says_nothing(spotter):
    spotter.tell(np.zeros(119), np.zeros(119))
    with pytest.raises(InputError, match=r"Only 119 s contain sound.*2 minutes"):
        calibrate(spotter, [[bursts(119)]])
    with pytest.raises(InputError, match="Only 0 s contain sound"):
        calibrate(spotter, [[silence(5.0)]])
    with pytest.raises(InputError, match="the recordings are empty"):
        calibrate(spotter, [[]])
    with pytest.raises(InputError, match="no words yet"):
        calibrate(Spotter(), [[silence(5.0)]])


def test_events_are_those_that_a_detector_gives(monkeypatch):
    monkeypatch.setattr(calibration, "MIN_SOUND_S", 2)
    spotter = Spotter()
    for word in WORDS:
        spotter.learn_many([clip(word, voice) for voice in TAUGHT[:4]], [word] * 4)
    sound = np.concatenate(
        [silence(0.5), clip("lamp", TAUGHT[5]), silence(1), clip("music", TAUGHT[5])]
    )
    rate = 1.5 / (len(sound) / RATE / 3600)
    found = calibrate(spotter, [[sound]], rate)
    detector = Detector(spotter, thresholds=found.thresholds_after)
    assert len(detector(sound) + detector.flush()) == sum(found.alarms_after.values())
    # A sound that was rejected is no false alarm.
    before = calibrate(spotter, [[sound]]).alarms_before
    spotter.reject(clip("lamp", TAUGHT[5]))
    assert before["lamp"] == 1 and calibrate(spotter, [[sound]]).alarms_before["lamp"] == 0


def test_a_word_whose_sounds_are_all_rejected_stays_as_it_was(spotter, rng):
    spotter.tell(**like_speech(spotter, rng, shift=-0.1))
    spotter.told = [scores._replace(negatives={"lamp": 2.0}) for scores in spotter.told]
    found = calibrate(spotter, [[bursts(200)]])
    assert found.after["lamp"] == pytest.approx(0.5) and found.highest["lamp"] is None
    assert found.after["music"] > 0.5


def test_what_is_kept_holds_at_the_default_rate(spotter, rng):
    scores, after = like_speech(spotter, rng), []
    for rate in (0.01, 0.5, 5.0):
        spotter.tell(**scores)
        after.append(calibrate(spotter, [[bursts(200)]], rate).after["lamp"])
    assert after[0] < after[1] < after[2]


def scored(rng, n, phrases):
    """Candidates with random scores, some close together."""
    centre, found = 0, []
    for _ in range(n):
        centre += int(rng.choice([800, 3000, 20_000, 60_000]))
        length = int(rng.integers(2000, 12_000))
        scores = {word: float(rng.normal(0.4, 0.15)) for word in WORDS}
        phrase = phrases and bool(rng.integers(2))
        words = WORDS[1:] if phrase else WORDS[:1] if phrases else WORDS
        start_s, end_s = (centre - length / 2) / RATE, (centre + length / 2) / RATE
        wanted = Scores({word: scores[word] for word in words}, {})
        found.append(Candidate(centre, start_s, end_s, wanted, phrase))
    return found


@pytest.mark.parametrize("phrases", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_thresholds_are_raised_as_if_all_was_replayed_after_each_alarm(seed, phrases, monkeypatch):
    rng = np.random.default_rng(seed)
    candidates, start = scored(rng, 300, phrases), {"lamp": 0.35, "music": 0.3}
    most, pause_s = float(rng.integers(10)), float(rng.choice([0.0, 0.4, 2.0]))
    wanted = dict(start)
    n_alarms = len(replay(candidates, wanted, pause_s))
    while len(alarms := replay(candidates, wanted, pause_s)) > most:
        least = min(alarms, key=lambda alarm: alarm.score - start[alarm.word])
        wanted[least.word] = least.score + calibration.ABOVE
    replayed = []
    monkeypatch.setattr(
        calibration,
        "replay",
        lambda group, *rest: (replayed.append(len(group)), replay(group, *rest))[1],
    )
    assert calibration._raised(candidates, start, most, pause_s) == wanted
    # Not all of them once an alarm.
    assert n_alarms > 50 and (pause_s > 1 or sum(replayed) < 10 * len(candidates))
