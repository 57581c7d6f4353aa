"""Chunks in, events out: words said in a stream of sound. Knows nothing of microphones.

A word is looked for wherever a sound is centred, as a clip is centred when it is taught, and there
the spotter is asked: a second of speech has one to three such places, silence none. Other sound
beside a word may move its centre; there it is looked around for it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tapword.audio import HOP, REACH, SAMPLE_RATE, centring, cut, energies
from tapword.errors import InputError
from tapword.spotter import Spotter
from tapword.vectors import CLIP_S

# Samples of a window, and 10 ms steps on either side of its middle.
WINDOW = round(CLIP_S * SAMPLE_RATE)
HALF = WINDOW // 2 // HOP
# Words said close together pull each other's centre between them. So sounds are also centred by
# what is nearer, and asked about where no centre of the first kind comes within so many steps, or
# in a crowd within fewer.
NEAR, APART, APART_IN_CROWD = 25, 30, 8
# In a crowd, where a score comes this close to its threshold, windows so many steps beside are
# asked about too.
CLOSE, BESIDE = 0.2, (-8, 8, -16, 16)
# A window is in a crowd unless what those would bring in is this much quieter than itself.
ALONE_DB = -20.0
# Steps of sound that are kept: what centring and a window beside a centre need, asked about late.
KEPT = HALF + REACH + APART + 2 * max(BESIDE) + 2
# A chunk is heard in pieces no longer than this, so that memory stays bounded.
PIECE = 10 * SAMPLE_RATE

# The noise floor falls at once and rises slowly, in dB a step.
FLOOR_RISE_DB = 0.02
# Sounds less than this above the floor, or below the second level, are not asked about.
GATE_DB, SILENCE_DB = 6.0, -65.0
# Part of a window that counts as the word: steps within so many dB of the loudest.
EXTENT_DB = 25.0


class Event(NamedTuple):
    """A word that was heard: where in the stream, in seconds since its start, and how surely."""

    word: str
    start_s: float
    end_s: float
    score: float


class Detector:
    """Hear the words of a spotter in a stream.

    Parameters
    ----------
    spotter
        Whose words; what it learns between two chunks is heard at once. It is not to be changed by
        another thread while a chunk is heard.
    false_alarms_per_hour
        How many are acceptable in speech that holds none of the words; fewer cost more misses.
    thresholds
        Word -> score from which it counts as said, instead of the one calibrated.
    refractory_s
        One event at most in this time.

    Attributes
    ----------
    scores
        Word -> score where a sound was last asked about; empty before, in silence and in noise.

    Examples
    --------
    >>> detector = Detector(Spotter())
    >>> detector(np.zeros(1280, dtype=np.float32))
    []
    """

    def __init__(
        self,
        spotter: Spotter,
        *,
        false_alarms_per_hour: float = 0.5,
        thresholds: Mapping[str, float] | None = None,
        refractory_s: float = 0.4,
    ):
        if not false_alarms_per_hour > 0:
            raise InputError(
                f"false_alarms_per_hour must be above 0, got {false_alarms_per_hour!r}"
            )
        if not refractory_s >= 0:
            raise InputError(f"refractory_s must be at least 0, got {refractory_s!r}")
        self.spotter = spotter
        self.false_alarms_per_hour = false_alarms_per_hour
        self.refractory_s = refractory_s
        self._given = dict(thresholds or {})
        unknown = [word for word in self._given if word not in spotter.words]
        if unknown:
            known = ", ".join(spotter.words) or "none"
            raise InputError(f"no word {unknown[0]!r} is taught; known: {known}")
        # Where thresholds cannot be had, this is the moment to say so.
        _ = self.thresholds
        self.reset()

    @property
    def thresholds(self) -> dict[str, float]:
        """Word -> score from which it counts as said."""
        words = self.spotter.words
        # A word may have been forgotten since.
        given = {word: score for word, score in self._given.items() if word in words}
        if len(given) == len(words):
            return given
        return self.spotter.thresholds(self.false_alarms_per_hour) | given

    def reset(self) -> None:
        """Start anew: nothing that was heard before matters to what comes."""
        self._pending = np.zeros(0, dtype=np.float32)
        self._start()
        self._time = 0
        self._lost = 0

    def _start(self) -> None:
        """Begin a stretch of sound without gaps, at step `_time` of the stream."""
        self._sound = np.zeros(0, dtype=np.float32)
        self._energy = np.zeros(0)
        self._asked = 0
        self._centre = -HALF
        self._unclear_at: list[int] = []
        self._floor_db: float | None = None
        self._last: int | None = None
        self.scores: dict[str, float] = {}

    def gap(self, seconds: float = 0.0) -> None:
        """Note that sound was lost, `seconds` of it if known: what comes does not follow on it."""
        self._time += len(self._energy)
        self._lost += len(self._pending) + round(seconds * SAMPLE_RATE)
        self._pending = np.zeros(0, dtype=np.float32)
        self._start()

    def __call__(self, chunk: np.ndarray) -> list[Event]:
        """Hear the next samples.

        Parameters
        ----------
        chunk
            Shape (n,) with any n, 16 kHz: float32 in [-1, 1] or int16.

        Returns
        -------
        list of Event
            Words whose last needed sample was in this chunk, in order.
        """
        chunk = _check(chunk)
        events: list[Event] = []
        for start in range(0, len(chunk), PIECE):
            piece = np.concatenate([self._pending, chunk[start : start + PIECE]])
            whole = len(piece) // HOP * HOP
            self._pending = piece[whole:]
            if whole:
                events += self._hear(piece[:whole])
        return events

    def flush(self) -> list[Event]:
        """Hear a moment of silence, for words at the very end of a stream."""
        return self(np.zeros(WINDOW // 2 + (APART + 1) * HOP, dtype=np.float32))

    def _hear(self, piece: np.ndarray) -> list[Event]:
        self._sound = np.concatenate([self._sound, piece])
        self._energy = np.concatenate([self._energy, energies(piece)])
        events = []
        # A point is settled once all of its window was heard.
        end = max(len(self._energy) - HALF + 1, self._asked)
        centres = _centres(self._energy, REACH)
        near = _centres(self._energy, NEAR)
        for point in range(self._asked, end):
            self._follow_floor(point)
            if point in centres:
                events += self._ask(point)
                self._centre = self._time + point
            earlier = point - APART
            if earlier in near:
                apart = abs(self._time + earlier - self._centre)
                if apart > APART or (apart > APART_IN_CROWD and self._crowded(earlier)):
                    events += self._ask(earlier)
            while self._unclear_at and self._unclear_at[0] <= self._time + point - max(BESIDE):
                events += self._ask_beside(self._unclear_at.pop(0) - self._time)
        self._asked = end
        drop = self._asked - KEPT
        if drop > 0:
            self._sound = self._sound[drop * HOP :]
            self._energy = self._energy[drop:]
            self._asked -= drop
            self._time += drop
        return events

    def _follow_floor(self, point: int) -> None:
        around = self._energy[max(0, point - 5) : point + 5]
        # No lower than matters: from digital silence it would take half a minute to a room's noise.
        quietest = SILENCE_DB - GATE_DB
        level = max(_decibels(around.mean()), quietest) if len(around) else quietest
        if self._floor_db is None:
            self._floor_db = level
        self._floor_db = min(level, self._floor_db + FLOOR_RISE_DB)

    def _crowded(self, point: int) -> bool:
        """Whether there is other sound beside the window around a point."""
        first, last = max(0, point - HALF), point + HALF
        beside = [self._energy[max(0, first - max(BESIDE)) : first]]
        beside.append(self._energy[last : last + max(BESIDE)])
        level_db = _decibels(self._energy[first:last].mean())
        return _decibels(np.concatenate(beside).mean()) >= level_db + ALONE_DB

    def _ask_beside(self, centre: int) -> list[Event]:
        """Ask about a centre by the windows beside it, now that they were heard."""
        if not self._crowded(centre):
            return []
        for steps in BESIDE:
            events = self._ask(centre, steps)
            if events:
                return events
        return []

    def _ask(self, centre: int, steps: int = 0) -> list[Event]:
        """Ask the spotter about a centre, by the window around it or so many steps beside it."""
        point = centre + steps
        window = self._energy[max(0, point - HALF) : point + HALF]
        middle = self._energy[max(0, point - HALF // 2) : point + HALF // 2]
        floor_db = -100.0 if self._floor_db is None else self._floor_db
        if _decibels(middle.mean()) < max(floor_db + GATE_DB, SILENCE_DB):
            self.scores = {}
            return []
        time = self._time + centre
        if self._last is not None and (time - self._last) * HOP < self.refractory_s * SAMPLE_RATE:
            return []
        thresholds = self.thresholds
        sound = cut(self._sound, point * HOP, WINDOW)
        scores = self.spotter.score_window(sound, thresholds)
        self.scores = {word: scores[word] for word in thresholds if scores}
        said = self._decide(time, scores, thresholds)
        if not steps and self._unclear(said, scores, thresholds):
            self._unclear_at.append(time)
        if said is None:
            return []
        self._last = time
        first = max(0, point - HALF)
        loud = np.flatnonzero(window >= window.max() * 10 ** (-EXTENT_DB / 10))
        start_s, end_s = (
            float((self._time + first + step) * HOP + self._lost) / SAMPLE_RATE
            for step in (loud[0], loud[-1] + 1)
        )
        return [Event(said, start_s, end_s, self.scores[said])]

    def _decide(
        self, time: int, scores: Mapping[str, float], thresholds: Mapping[str, float]
    ) -> str | None:
        """Word said around a centre, given as a step of the stream, if any."""
        return self.spotter.decide(scores, thresholds)

    def _unclear(
        self, said: str | None, scores: Mapping[str, float], thresholds: Mapping[str, float]
    ) -> bool:
        """Whether what was asked about is no word, but nearly one."""
        lower = {word: limit - CLOSE for word, limit in thresholds.items()}
        return said is None and self.spotter.decide(scores, lower) is not None


def _centres(energy: np.ndarray, reach: int) -> set[int]:
    """Points where a sound is centred by what lies within `reach` steps."""
    _, offsets = centring(energy, reach)
    return set((np.flatnonzero((offsets[:-1] > 0) & (offsets[1:] <= 0)) + 1).tolist())


def _decibels(energy: float) -> float:
    """Level of a step's energy in dB of full scale."""
    return float(10 * np.log10(energy / HOP + 1e-10))


def _check(chunk: np.ndarray) -> np.ndarray:
    if not isinstance(chunk, np.ndarray) or chunk.ndim != 1:
        shape = getattr(chunk, "shape", type(chunk).__name__)
        raise InputError(f"a chunk must be an array of shape (n,), got {shape}")
    if chunk.dtype == np.int16:
        return chunk.astype(np.float32) / 32768.0
    if chunk.dtype != np.float32:
        raise InputError(f"a chunk must be float32 or int16 samples, not {chunk.dtype}")
    if not np.isfinite(chunk).all():
        raise InputError("the chunk contains NaN or infinite samples")
    return chunk
