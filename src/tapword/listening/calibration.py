"""Set sensitivities by long recordings of a place, without the words."""

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Candidate, Event, independent, replay
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, Tail, sensitivity_for
from tapword.spotter.vocabulary import SENSITIVITY
from tapword.support.intervals import poisson_interval

# Distance of a threshold above the score of a false alarm.
ABOVE = 0.001
# The shipped cohort counts as much as this many hours of the recordings' sound.
SHIPPED_HOURS = 0.5
# Recordings need at least this much sound.
MIN_SOUND_S = 120


class Calibration(NamedTuple):
    """Sensitivities found in recordings without the words; dicts are by word."""

    # Sensitivities, and the thresholds they give by default: the model's, and those found.
    before: dict[str, float]
    after: dict[str, float]
    thresholds_before: dict[str, float]
    thresholds_after: dict[str, float]
    # Highest score of a candidate; None without candidates.
    highest: dict[str, float | None]
    # False alarms in these recordings with either.
    alarms_before: dict[str, int]
    alarms_after: dict[str, int]
    # Length of the recordings, and of the sound in them.
    hours: float
    sound_hours: float
    # Upper end of the 95% interval of false alarms per hour of all words, in such sound.
    at_most_per_hour: float


class Calibrator:
    """Find sensitivities that give few enough false alarms in recordings without the words.

    A word's threshold moves with the tail of its scores, from that in the shipped cohort to that in
    the recordings: where sounds are less like the word, it is recognised more readily. Then
    thresholds are raised just above the scores of false alarms, the lowest excess first, until the
    recordings' hours allow the rest. The sensitivities are those that give these thresholds, as far
    as the scale goes. The spotter is not changed. Scores are kept, audio is not.

    Parameters
    ----------
    spotter
        Whose words.
    false_alarms_per_hour
        Acceptable, of all words together.
    refractory_s
        As for `Detector`.
    """

    def __init__(
        self,
        spotter: Spotter,
        false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
        refractory_s: float = REFRACTORY_S,
    ):
        if not spotter.words:
            raise InputError("the model has no words yet; teach them first", code="no_words")
        self.spotter = spotter
        self.false_alarms_per_hour = false_alarms_per_hour
        self._usual = spotter.thresholds(false_alarms_per_hour, {None: SENSITIVITY})
        self._detector = Detector(
            spotter, thresholds=self._usual, refractory_s=refractory_s, observe=self._observe
        )
        self._candidates: list[Candidate] = []
        self._seconds_with_sound: set[int] = set()
        self._samples = 0

    def _observe(self, candidate: Candidate) -> None:
        self._candidates.append(candidate)
        self._seconds_with_sound.add(candidate.centre // SAMPLE_RATE)

    def push(self, chunk: np.ndarray) -> None:
        """Score the next samples (n,) at 16 kHz."""
        self._samples += len(chunk)
        self._detector(chunk)

    def gap(self, seconds: float = 0.0) -> None:
        """Note that audio was lost, `seconds` of it if known."""
        self._detector.gap(seconds)

    def end_recording(self) -> None:
        """Note that a recording ended; another may follow."""
        self._detector.flush()
        self._detector.gap(self._detector.refractory_s)

    @property
    def length_s(self) -> float:
        """Length of the recordings."""
        return self._samples / SAMPLE_RATE

    @property
    def sound_s(self) -> int:
        """Seconds of the recordings that contain sound."""
        return len(self._seconds_with_sound)

    def result(self) -> Calibration:
        """Give the sensitivities; refuse recordings with too little sound."""
        spotter, candidates, sound_s = self.spotter, self._candidates, self.sound_s
        refractory_s = self._detector.refractory_s
        if sound_s < MIN_SOUND_S:
            short = (
                f"Only {sound_s} s contain sound. Calibration needs at least {MIN_SOUND_S // 60} "
                "minutes of it"
            )
            params = {"seconds": sound_s, "minutes": MIN_SOUND_S // 60}
            message = short if self._samples else "the recordings are empty"
            raise InputError(message, code="calibration_short", params=params)
        words, hours = list(spotter.words), self.length_s / 3600
        before = {word: spotter.vocabulary.sensitivity_of(word) for word in words}
        usual = self._usual
        scores = _scores(candidates, words)
        sound_hours = sound_s / 3600
        weight = sound_hours / (sound_hours + SHIPPED_HOURS)
        wanted, tails = dict(usual), spotter.scorer.tails()
        for word, found in scores.items():
            # Every sound may be nearer to the word's negatives than to the word. Of a phrase only
            # the likeliest segments are scored, which have another tail.
            if len(found) and not spotter.vocabulary.length_of(word).is_phrase:
                line, shipped = tails[word].line, tails[word].tail_mean
                wanted[word] += weight * line.share * (Tail.of(found, line).tail_mean - shipped)
        wanted = _raised(candidates, wanted, self.false_alarms_per_hour * hours, refractory_s)
        # The sensitivities are for listening at the default rate, whatever the rate here.
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


def calibrate(
    spotter: Spotter,
    recordings: Iterable[Iterable[np.ndarray]],
    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
    refractory_s: float = REFRACTORY_S,
) -> Calibration:
    """Calibrate on recordings, each a stream of chunks (n,) at 16 kHz; see `Calibrator`."""
    calibrator = Calibrator(spotter, false_alarms_per_hour, refractory_s)
    for recording in recordings:
        for chunk in recording:
            calibrator.push(chunk)
        calibrator.end_recording()
    return calibrator.result()


def _raised(
    candidates: Sequence[Candidate], start: dict[str, float], most: float, refractory_s: float
) -> dict[str, float]:
    """Raise thresholds above false alarms, the lowest excess first, until at most `most` remain.

    After each, only the groups of candidates that it concerns are replayed.
    """
    wanted, groups = dict(start), independent(candidates, refractory_s)
    alarms = [replay(group, wanted, refractory_s) for group in groups]
    # Word -> scores that reach its threshold and their groups, the lowest score last.
    reached: dict[str, list[tuple[float, int]]] = {word: [] for word in start}
    for index, group in enumerate(groups):
        for candidate in group:
            for word, score in candidate.scores.words.items():
                if score >= start[word]:
                    reached[word].append((score, index))
    for found in reached.values():
        found.sort(reverse=True)

    def queued(index: int) -> list[tuple[float, int, float, Event]]:
        return [
            (alarm.score - start[alarm.word], index, alarm.start_s, alarm)
            for alarm in alarms[index]
        ]

    queue = [entry for index in range(len(groups)) for entry in queued(index)]
    heapq.heapify(queue)
    count = len(queue)
    while count > most:
        _, index, _, alarm = heapq.heappop(queue)
        # It may be gone by now.
        if alarm not in alarms[index]:
            continue
        wanted[alarm.word] = alarm.score + ABOVE
        changed = set()
        while reached[alarm.word] and reached[alarm.word][-1][0] < wanted[alarm.word]:
            changed.add(reached[alarm.word].pop()[1])
        for index in changed:
            count -= len(alarms[index])
            alarms[index] = replay(groups[index], wanted, refractory_s)
            count += len(alarms[index])
            for entry in queued(index):
                heapq.heappush(queue, entry)
    return wanted


def _scores(candidates: Iterable[Candidate], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Scores (n,) of each word, one for each sound that is not rejected for it."""
    # Of the windows around one centre the first is centred on the sound.
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.centre, candidate)
    found = [candidate.scores.not_rejected() for candidate in first.values()]
    return {word: np.array([one[word] for one in found if word in one]) for word in words}


def _count(events: Iterable[Event], words: Iterable[str]) -> dict[str, int]:
    said = [event.word for event in events]
    return {word: said.count(word) for word in words}
