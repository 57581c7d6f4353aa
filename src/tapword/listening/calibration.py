"""Thresholds from long recordings without the words: raised until false alarms are rare enough."""

import copy
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.detector import REFRACTORY_S, Candidate, Detector, Event, replay
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR

# How far a threshold is put above the score of a false alarm.
ABOVE = 0.001


class Calibration(NamedTuple):
    """What recordings without the words say of the thresholds; dicts are by word."""

    # Thresholds: the shipped ones, and those that keep to the wanted rate here.
    before: dict[str, float]
    after: dict[str, float]
    # Highest score of a candidate; None where there was none.
    highest: dict[str, float | None]
    # False alarms in these recordings, so long, by either.
    alarms_before: dict[str, int]
    alarms_after: dict[str, int]
    hours: float
    # Upper end of the 95% interval of all words' false alarms an hour, in sound like this.
    at_most_per_hour: float


def calibrate(
    spotter: Spotter,
    recordings: Iterable[Iterable[np.ndarray]],
    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
    refractory_s: float = REFRACTORY_S,
) -> Calibration:
    """Find thresholds that give few enough false alarms in recordings without the words.

    A threshold is raised just above the score of a false alarm, the one that exceeds its threshold
    least first, until no more alarms are left than the recordings' hours allow. It is never below
    the shipped one. The spotter is not changed.

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
    shipped = copy.copy(spotter)
    shipped.calibrated = {}
    before = shipped.thresholds(false_alarms_per_hour)
    candidates: list[Candidate] = []
    detector = Detector(spotter, thresholds=before, observe=candidates.append)
    samples = 0
    for recording in recordings:
        for chunk in recording:
            samples += len(chunk)
            detector(chunk)
        detector.flush()
        detector.gap(refractory_s)
    if not samples:
        raise InputError("the recordings are empty")
    hours = samples / SAMPLE_RATE / 3600
    after = dict(before)
    first = alarms = replay(candidates, before, refractory_s)
    while len(alarms) > false_alarms_per_hour * hours:
        least = min(alarms, key=lambda alarm: alarm.score - before[alarm.word])
        after[least.word] = least.score + ABOVE
        alarms = replay(candidates, after, refractory_s)
    taken = [candidate.scores.taken() for candidate in candidates]
    by_word = {word: [one[word] for one in taken if word in one] for word in before}
    return Calibration(
        before,
        after,
        {word: max(scores, default=None) for word, scores in by_word.items()},
        _count(first, before),
        _count(alarms, before),
        hours,
        poisson_interval(len(alarms), hours)[1],
    )


def poisson_interval(count: int, hours: float) -> tuple[float, float]:
    """Exact 95% interval of a rate, in events an hour, of which `count` were seen in `hours`.

    Notes
    -----
    Garwood's: the rates under which so many or more, or so few or fewer, have a chance of 2.5%.

    Examples
    --------
    >>> [round(limit, 2) for limit in poisson_interval(0, hours=1 / 3)]
    [0.0, 11.07]
    """
    from scipy.special import gammaincinv

    if count < 0 or not hours > 0:
        raise InputError(f"wanted a count from 0 and hours above 0, got {count} in {hours}")
    low = gammaincinv(count, 0.025) if count else 0.0
    return float(low) / hours, float(gammaincinv(count + 1, 0.975)) / hours


def _count(events: Iterable[Event], words: Iterable[str]) -> dict[str, int]:
    said = [event.word for event in events]
    return {word: said.count(word) for word in words}
