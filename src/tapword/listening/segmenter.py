"""Sound in, windows out: the seconds of a stream in which a word may have been said.

A window lies wherever a sound is centred, as a clip is centred when it is taught: a second of
speech has one to three of them, silence none. Other sound beside a word may move its centre;
whoever finds that a window holds nearly a word asks for those beside it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tapword.audio.align import HALF_WINDOW, HOP, centring, cut, decibels, energies
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.spotter.lengths import CLIP_S

WINDOW = round(CLIP_S * SAMPLE_RATE)
STEPS_PER_S = SAMPLE_RATE // HOP
# Steps on either side of a window's middle.
HALF = WINDOW // 2 // HOP
# Steps on either side of a point that its level is taken over, for the noise floor.
FLOOR = 5


@dataclass(frozen=True)
class Search:
    """Where windows lie, and how loud they are: set by trial, docs/listening.md has the outcome.

    Attributes
    ----------
    near_ms
        Words said close together pull each other's centre between them, so sounds are also centred
        by what lies within this time.
    apart_ms, apart_in_crowd_ms
        A centre found by `near_ms` counts only if no other lies within this time, or within the
        second where there is other sound beside it.
    beside_ms
        Windows beside one that holds nearly a word, in the order they are looked at.
    alone_db
        A window is in a crowd unless the sound beside it is this much quieter than itself.
    gate_db, silence_db
        Windows less than this above the noise floor, or below this level, are not loud.
    floor_rise_db_per_s
        The noise floor falls at once and rises so slowly.
    extent_db
        What is within this of the loudest step of a window counts as the word.
    """

    near_ms: int = 250
    apart_ms: int = 300
    apart_in_crowd_ms: int = 80
    beside_ms: tuple[int, ...] = (-80, 80, -160, 160)
    alone_db: float = -20.0
    gate_db: float = 6.0
    silence_db: float = -65.0
    floor_rise_db_per_s: float = 2.0
    extent_db: float = 25.0


SEARCH = Search()


class Window(NamedTuple):
    """A second of a stream.

    Attributes
    ----------
    clip
        Its sound, (16000,) float32; silence where the stream has none.
    centre
        Of the sound it was found by, in samples since the stream's start. A window beside another
        has the other's centre.
    start_s, end_s
        Of what is loud in it, in seconds since the stream's start.
    loud
        Whether its middle stands out from the noise.
    beside
        Whether it was asked for by `look_beside`.
    """

    clip: np.ndarray
    centre: int
    start_s: float
    end_s: float
    loud: bool
    beside: bool


class Segmenter:
    """Find the windows of a stream, whatever pieces it comes in.

    Parameters
    ----------
    search
        Where windows lie.

    Attributes
    ----------
    flush_samples
        So much silence brings out every window of what was heard before it.

    Examples
    --------
    >>> segmenter = Segmenter()
    >>> sound = np.zeros(48_000, dtype=np.float32)
    >>> sound[20_000:24_000] = 0.1
    >>> segmenter.hear(sound)
    >>> [(window.centre, window.loud) for window in segmenter.windows()]
    [(22080, True)]
    """

    def __init__(self, search: Search = SEARCH):
        self.search = search
        self._near, self._apart, self._apart_in_crowd = map(
            steps, (search.near_ms, search.apart_ms, search.apart_in_crowd_ms)
        )
        self._beside = [steps(ms) for ms in search.beside_ms]
        self._farthest = max(map(abs, self._beside), default=0)
        self.flush_samples = WINDOW // 2 + (self._apart + 1) * HOP
        # Steps that are kept: what centring and a window beside a centre need, looked at late.
        self._kept = HALF + HALF_WINDOW + self._apart + 2 * self._farthest + 2
        self._first = 0
        self._pending = np.zeros(0, dtype=np.float32)
        self._begin()

    def _begin(self) -> None:
        """Begin a stretch of sound without gaps, at sample `_first` of the stream."""
        self._sound = np.zeros(0, dtype=np.float32)
        self._energy = np.zeros(0)
        self._settled = 0
        self._centre = -HALF * HOP
        self._unclear: list[int] = []
        self._floor_db = math.inf

    def gap(self, seconds: float = 0.0) -> None:
        """Note that sound was lost, `seconds` of it if known: what comes does not follow on it."""
        if not 0 <= seconds < math.inf:
            raise InputError(f"a gap lasts 0 seconds or more, got {seconds!r}")
        heard = len(self._energy) * HOP + len(self._pending)
        self._first += heard + round(seconds * SAMPLE_RATE)
        self._pending = np.zeros(0, dtype=np.float32)
        self._begin()

    def hear(self, sound: np.ndarray) -> None:
        """Take the next samples (n,) float32; `windows` gives what became of them."""
        drop = self._settled - self._kept
        if drop > 0:
            self._sound = self._sound[drop * HOP :]
            self._energy = self._energy[drop:]
            self._settled -= drop
            self._first += drop * HOP
        sound = np.concatenate([self._pending, sound])
        whole = len(sound) // HOP * HOP
        self._pending = sound[whole:]
        self._sound = np.concatenate([self._sound, sound[:whole]])
        self._energy = np.concatenate([self._energy, energies(sound[:whole])])

    def windows(self) -> Iterator[Window]:
        """Give the windows that are settled since the last call, in order."""
        # A point is settled once all of its window was heard.
        end = max(len(self._energy) - HALF + 1, self._settled)
        centres, near = _centres(self._energy, HALF_WINDOW), _centres(self._energy, self._near)
        for point in range(self._settled, end):
            # Noted before anybody sees the window: what goes wrong there does not repeat itself.
            self._settled = point + 1
            self._follow_floor(point)
            if point in centres:
                yield self._window(point)
                self._centre = self._first + point * HOP
            earlier = point - self._apart
            if earlier in near:
                apart = abs(self._first + earlier * HOP - self._centre) // HOP
                crowded = apart > self._apart_in_crowd and self._crowded(earlier)
                if apart > self._apart or crowded:
                    yield self._window(earlier)
            heard = self._first + (point - self._farthest) * HOP
            while self._unclear and self._unclear[0] <= heard:
                centre = (self._unclear.pop(0) - self._first) // HOP
                if self._crowded(centre):
                    yield from [self._window(centre, beside) for beside in self._beside]

    def quiet(self, seconds: float) -> bool:
        """Whether nothing stood out from the noise in the last seconds."""
        last = self._energy[-round(seconds * STEPS_PER_S) :]
        return not len(last) or not self._loud(last)

    def look_beside(self, window: Window) -> None:
        """Give the windows beside one too, if it is in a crowd, once they were heard."""
        self._unclear.append(window.centre)

    def _window(self, centre: int, beside: int = 0) -> Window:
        """Cut out the window around a step, or so many steps beside it."""
        point = centre + beside
        first = max(0, point - HALF)
        energy = self._energy[first : point + HALF]
        middle = self._energy[max(0, point - HALF // 2) : point + HALF // 2]
        loud = np.flatnonzero(energy >= energy.max() * 10 ** (-self.search.extent_db / 10))
        start_s, end_s = (
            float(self._first + (first + step) * HOP) / SAMPLE_RATE
            for step in (loud[0], loud[-1] + 1)
        )
        return Window(
            cut(self._sound, point * HOP, WINDOW),
            self._first + centre * HOP,
            start_s,
            end_s,
            self._loud(middle),
            bool(beside),
        )

    def _loud(self, energy: np.ndarray) -> bool:
        """Whether steps with these energies (t,) stand out from the noise."""
        least = max(self._floor_db + self.search.gate_db, self.search.silence_db)
        return _level_db(energy) >= least

    def _follow_floor(self, point: int) -> None:
        around = self._energy[max(0, point - FLOOR) : point + FLOOR]
        # No lower than matters: from digital silence it would take half a minute to a room's noise.
        quietest = self.search.silence_db - self.search.gate_db
        level = max(_level_db(around), quietest) if len(around) else quietest
        self._floor_db = min(level, self._floor_db + self.search.floor_rise_db_per_s / STEPS_PER_S)

    def _crowded(self, point: int) -> bool:
        """Whether there is other sound beside the window around a step."""
        if not self._farthest:
            return False
        first, last = max(0, point - HALF), point + HALF
        beside = [self._energy[max(0, first - self._farthest) : first]]
        beside.append(self._energy[last : last + self._farthest])
        level_db = _level_db(self._energy[first:last])
        return _level_db(np.concatenate(beside)) >= level_db + self.search.alone_db


def steps(ms: int) -> int:
    """Give the steps of so many milliseconds."""
    return ms * STEPS_PER_S // 1000


def _centres(energy: np.ndarray, reach: int) -> set[int]:
    """Find the steps where a sound is centred by what lies within `reach` steps."""
    _, offsets = centring(energy, reach)
    return set((np.flatnonzero((offsets[:-1] > 0) & (offsets[1:] <= 0)) + 1).tolist())


def _level_db(energy: np.ndarray) -> float:
    """Level of steps by their energies (t,), in dB of full scale."""
    return float(decibels(energy.mean() / HOP))
