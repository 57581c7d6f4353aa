"""Thresholds from long recordings without the words: as high as too many false alarms ask for."""

import copy
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tapword.audio import HOP, SAMPLE_RATE
from tapword.detector import Detector
from tapword.errors import InputError
from tapword.metrics import poisson_interval
from tapword.spotter import NOT, Spotter

# How far a threshold is put above the score of a false alarm.
ABOVE = 0.001


class Calibration(NamedTuple):
    """What recordings without the words say of the thresholds.

    Attributes
    ----------
    before, after
        Word -> threshold: the shipped one, and the one that keeps to the wanted rate here.
    highest
        Word -> highest score that was heard; None where nothing was asked about.
    alarms_before, alarms_after
        Word -> false alarms in these recordings by either.
    hours
        How long the recordings are.
    at_most_per_hour
        Upper end of the 95% interval of all words' false alarms an hour, in sound like this.
    """

    before: dict[str, float]
    after: dict[str, float]
    highest: dict[str, float | None]
    alarms_before: dict[str, int]
    alarms_after: dict[str, int]
    hours: float
    at_most_per_hour: float


class _Witness(Detector):
    """Detector that notes what it would decide on, and says nothing."""

    def __init__(self, spotter: Spotter, thresholds: Mapping[str, float]):
        super().__init__(spotter, thresholds=thresholds)
        self.noted: list[tuple[int, dict[str, float]]] = []

    def _decide(
        self, time: int, scores: Mapping[str, float], thresholds: Mapping[str, float]
    ) -> str | None:
        taken = {
            word: score
            for word, score in scores.items()
            if not word.startswith(NOT) and score > scores.get(NOT + word, -np.inf)
        }
        self.noted.append((time, taken))
        return None


def calibrate(
    spotter: Spotter,
    recordings: Iterable[Iterable[np.ndarray]],
    false_alarms_per_hour: float = 0.5,
    refractory_s: float = 0.4,
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
    # Thresholds only rise from here, so that what cannot reach these need not be scored further.
    witness = _Witness(spotter, before)
    samples = 0
    for recording in recordings:
        for chunk in recording:
            samples += len(chunk)
            witness(chunk)
        witness.flush()
        witness.gap(refractory_s)
    if not samples:
        raise InputError("the recordings are empty")
    hours = samples / SAMPLE_RATE / 3600
    after = dict(before)
    first = alarms = _replay(witness.noted, before, refractory_s)
    while len(alarms) > false_alarms_per_hour * hours:
        word, score = min(alarms, key=lambda alarm: alarm[1] - before[alarm[0]])
        after[word] = score + ABOVE
        alarms = _replay(witness.noted, after, refractory_s)
    heard = {word: [taken[word] for _, taken in witness.noted if word in taken] for word in before}
    return Calibration(
        before,
        after,
        {word: max(scores, default=None) for word, scores in heard.items()},
        _count(first, before),
        _count(alarms, before),
        hours,
        poisson_interval(len(alarms), hours)[1],
    )


def _replay(
    noted: Iterable[tuple[int, Mapping[str, float]]],
    thresholds: Mapping[str, float],
    refractory_s: float,
) -> list[tuple[str, float]]:
    """Words and scores of the events that a detector with these thresholds would have given."""
    events: list[tuple[str, float]] = []
    last: int | None = None
    for time, scores in noted:
        if last is not None and (time - last) * HOP < refractory_s * SAMPLE_RATE:
            continue
        said = [word for word, score in scores.items() if score >= thresholds[word]]
        if said:
            word = max(said, key=lambda word: scores[word])
            events.append((word, scores[word]))
            last = time
    return events


def _count(events: Iterable[tuple[str, float]], words: Iterable[str]) -> dict[str, int]:
    said = [word for word, _ in events]
    return {word: said.count(word) for word in words}
