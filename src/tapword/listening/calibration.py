"""Sensitivities from long recordings without the words: how readily they may be heard there."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Candidate, Event, replay
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, SENSITIVITY, Tail, sensitivity_for
from tapword.support.intervals import poisson_interval

# How far a threshold is put above the score of a false alarm.
ABOVE = 0.001
# The cohort that is shipped counts as much as so many hours of the recordings' own sound.
SHIPPED_HOURS = 0.5
# Recordings with less sound than this say nothing of a place.
LEAST_S = 120


class Calibration(NamedTuple):
    """What recordings without the words say of their sensitivities; dicts are by word."""

    # Sensitivities, and the thresholds they give by default: of the model, and of here.
    before: dict[str, float]
    after: dict[str, float]
    thresholds_before: dict[str, float]
    thresholds_after: dict[str, float]
    # Highest score of a candidate; None where there was none.
    highest: dict[str, float | None]
    # False alarms in these recordings by either.
    alarms_before: dict[str, int]
    alarms_after: dict[str, int]
    # Length of the recordings, and of the sound in them that stands out.
    hours: float
    sound_hours: float
    # Upper end of the 95% interval of all words' false alarms an hour, in sound like this.
    at_most_per_hour: float


def calibrate(
    spotter: Spotter,
    recordings: Iterable[Iterable[np.ndarray]],
    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
    refractory_s: float = REFRACTORY_S,
) -> Calibration:
    """Find sensitivities that give few enough false alarms in recordings without the words.

    A word's threshold is found in the recordings by the rule that finds it in the cohort that
    is shipped, and the two are averaged: where sounds are less like the word, it is heard more
    readily. Then thresholds are raised just above the scores of false alarms, the one that exceeds
    its threshold least first, until no more alarms are left than the recordings' hours allow. The
    sensitivities are those that give these thresholds, as far as the scale goes. The spotter is not
    changed.

    Parameters
    ----------
    spotter
        Whose words.
    recordings
        Each a stream of chunks (n,) at 16 kHz.
    false_alarms_per_hour
        How many are acceptable, of all words together.
    refractory_s
        As for `Detector`.
    """
    if not spotter.words:
        raise InputError("the model has no words yet; teach them first")
    words = list(spotter.words)
    before = {word: spotter.vocabulary.sensitivity_of(word) for word in words}
    usual = spotter.thresholds(false_alarms_per_hour, {None: SENSITIVITY})
    detector = Detector(spotter, thresholds=usual, refractory_s=refractory_s)
    candidates, hours = _hear(detector, recordings)
    sound_s = len({candidate.centre // SAMPLE_RATE for candidate in candidates})
    if sound_s < LEAST_S:
        raise InputError(
            f"only {sound_s} s of the recordings hold sound that stands out, and silence says "
            f"nothing of false alarms: give recordings with {LEAST_S // 60} minutes of speech or "
            "more"
        )
    scores = _scores(candidates, words)
    each = false_alarms_per_hour / len(words)
    sound_hours = sound_s / 3600
    share = sound_hours / (sound_hours + SHIPPED_HOURS)
    wanted, tails = dict(usual), spotter.scorer.tails()
    for word, found in scores.items():
        # Every sound may be nearer to the word's negatives than to the word; and of a phrase only
        # the likeliest stretches are scored, which have another tail.
        if len(found) and not spotter.vocabulary.length_of(word).is_phrase:
            heard = Tail.of(found, tails[word].offset, tails[word].slope)
            wanted[word] += share * (heard.threshold(each) - usual[word])
    start = dict(wanted)
    while len(alarms := replay(candidates, wanted, refractory_s)) > false_alarms_per_hour * hours:
        least = min(alarms, key=lambda alarm: alarm.score - start[alarm.word])
        wanted[least.word] = least.score + ABOVE
    # What is kept is to hold for whoever listens at the default rate, whatever was asked for here.
    default = FALSE_ALARMS_PER_HOUR / len(words)
    after = {
        word: sensitivity_for(tails[word].false_alarms_per_hour(wanted[word]) / default)
        for word in words
    }
    thresholds_before, thresholds_after = (
        spotter.thresholds(sensitivities={word: values[word] for word in words})
        for values in (before, after)
    )
    alarms_before = replay(candidates, thresholds_before, refractory_s)
    alarms_after = replay(candidates, thresholds_after, refractory_s)
    return Calibration(
        before,
        after,
        thresholds_before,
        thresholds_after,
        {word: float(found.max()) if len(found) else None for word, found in scores.items()},
        _count(alarms_before, words),
        _count(alarms_after, words),
        hours,
        sound_hours,
        poisson_interval(len(alarms_after), hours)[1],
    )


def _hear(
    detector: Detector, recordings: Iterable[Iterable[np.ndarray]]
) -> tuple[list[Candidate], float]:
    """Candidates of recordings, and the hours that these last."""
    candidates: list[Candidate] = []
    detector.observe = candidates.append
    samples = 0
    for recording in recordings:
        for chunk in recording:
            samples += len(chunk)
            detector(chunk)
        detector.flush()
        detector.gap(detector.refractory_s)
    if not samples:
        raise InputError("the recordings are empty")
    return candidates, samples / SAMPLE_RATE / 3600


def _scores(candidates: Iterable[Candidate], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Scores (n,) of each word, one for each sound that could be taken for it."""
    # Of the windows around one centre the first is where the sound lies.
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.centre, candidate)
    taken = [candidate.scores.not_rejected() for candidate in first.values()]
    return {word: np.array([one[word] for one in taken if word in one]) for word in words}


def _count(events: Iterable[Event], words: Iterable[str]) -> dict[str, int]:
    said = [event.word for event in events]
    return {word: said.count(word) for word in words}
