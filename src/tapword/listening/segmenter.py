"""Audio in, windows out: the seconds of a stream that may contain a word.

A window is centred on a sound, as a clip is when it is taught. A second of speech has one to three
of them, silence none. Other sound next to a word may move its centre. If a window's score is close
to a threshold, the detector requests windows at offsets around it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tapword.audio.align import HALF_WINDOW, HOP, centring, cut, decibels, energies
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.spotter.vocabulary import CLIP_S
from tapword.support.checks import in_range

WINDOW = round(CLIP_S * SAMPLE_RATE)
STEPS_PER_S = SAMPLE_RATE // HOP
# Half a window, in steps.
HALF = WINDOW // 2 // HOP
# A year. Beyond 17,000 of them, positions in samples would not be exact in float64.
MAX_GAP_S = 366 * 24 * 3600
# Steps on either side of a point that its level for the noise floor is the mean of.
FLOOR = 5
# Steps that a window at an offset waits at most for a moment without another window, so that the
# work is spread evenly. A choice.
PATIENCE = 8


@dataclass(frozen=True)
class Search:
    """Where windows are, and how loud: set by trial, docs/listening.md has the results.

    Attributes
    ----------
    near_ms
        Words said close together pull each other's centre between them. So sounds are also centred
        by this half window.
    apart_ms, apart_with_neighbours_ms
        A centre found by `near_ms` counts only if no other is within the first time, or within the
        second time if it has neighbours.
    offsets_ms
        Windows around one that is close to a threshold, in the order they are scored: the last
        after as long as the largest of these times.
    neighbour_db
        A window has neighbours unless the sound next to it is this much quieter.
    gate_db, silence_db
        Windows less than this above the noise floor, or below this level, are not loud.
    floor_rise_db_per_s
        The noise floor falls at once and rises at this rate.
    extent_db
        What is within this of the loudest step of a window counts as the word.
    """

    near_ms: int = 250
    apart_ms: int = 300
    apart_with_neighbours_ms: int = 80
    offsets_ms: tuple[int, ...] = (-80, 80, -160, 160)
    neighbour_db: float = -20.0
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
        Its samples, (16000,) float32; silence beyond the stream's ends.
    start
        Its first sample, since the stream's start; before it for the first sounds.
    centre
        Of the sound it was found by, in samples since the stream's start. A window at an offset
        keeps the centre.
    start_s, end_s
        Of the loud part, in seconds since the stream's start.
    loud
        Whether its middle is louder than the noise.
    is_offset
        Whether `request_offsets` requested it.
    """

    clip: np.ndarray
    start: int
    centre: int
    start_s: float
    end_s: float
    loud: bool
    is_offset: bool


class Segmenter:
    """Find the windows of a stream, in chunks of any size.

    Parameters
    ----------
    search
        Where windows are.
    lag
        Steps by which windows come later than they are complete.

    Attributes
    ----------
    spacing
        Steps between two windows at offsets.

    Examples
    --------
    >>> segmenter = Segmenter()
    >>> sound = np.zeros(48_000, dtype=np.float32)
    >>> sound[20_000:24_000] = 0.1
    >>> segmenter.push(sound)
    >>> [(window.centre, window.loud) for window in segmenter.windows()]
    [(22080, True)]
    """

    def __init__(self, search: Search = SEARCH, lag: int = 0):
        self.search, self.lag = search, lag
        self._near, self._apart, self._apart_with_neighbours = map(
            steps, (search.near_ms, search.apart_ms, search.apart_with_neighbours_ms)
        )
        self._offsets = [steps(ms) for ms in search.offsets_ms]
        self._farthest = max(map(abs, self._offsets), default=0)
        self.spacing = self._farthest // max(len(self._offsets), 1)
        # Steps that are kept, for centring and for windows at offsets, which come late.
        self._kept = HALF + HALF_WINDOW + self._apart + 2 * self._farthest + PATIENCE + 2
        self._first = 0
        self._pending = np.zeros(0, dtype=np.float32)
        self._begin()

    def _begin(self) -> None:
        """Begin a part of the stream without gaps, at its sample `_first`."""
        self._sound = np.zeros(0, dtype=np.float32)
        self._energy = np.zeros(0)
        self._settled = 0
        self._centre = -HALF * HOP
        self._requested: list[tuple[int, int, int]] = []
        self._floor_db = math.inf
        # The last moment at which a loud window was cut out, in samples.
        self._busy = -math.inf

    def gap(self, seconds: float = 0.0) -> None:
        """Note that audio was lost, `seconds` of it if known: the stream is not continuous here."""
        check_gap(seconds)
        samples = len(self._energy) * HOP + len(self._pending)
        self._first += samples + round(seconds * SAMPLE_RATE)
        self._pending = np.zeros(0, dtype=np.float32)
        self._begin()

    @property
    def flush_samples(self) -> int:
        """Samples of silence that bring out every window before them."""
        late = self._apart + self._farthest + PATIENCE + 1
        return WINDOW // 2 + (late + self.lag) * HOP

    @property
    def missing(self) -> int:
        """Samples until the next step is complete."""
        return HOP - len(self._pending)

    def push(self, sound: np.ndarray) -> None:
        """Take the next samples (n,) float32; `windows` returns their windows."""
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
        """Return the windows that are complete since the last call, in order."""
        # A point is settled once all of its window is there.
        end = max(len(self._energy) - HALF - self.lag + 1, self._settled)
        centres, near = _centres(self._energy, HALF_WINDOW, self._near)
        for point in range(self._settled, end):
            # Before the caller gets the window: an error there does not repeat.
            self._settled = point + 1
            self._follow_floor(point)
            if point in centres:
                yield self._window(point)
                self._centre = self._first + point * HOP
            earlier = point - self._apart
            if earlier in near:
                apart = abs(self._first + earlier * HOP - self._centre) // HOP
                squeezed = apart > self._apart_with_neighbours and self._has_neighbours(earlier)
                if apart > self._apart or squeezed:
                    yield self._window(earlier)
            while self._requested and self._is_due(self._requested[0][0]):
                _, middle, offset = self._requested.pop(0)
                centre = (middle - self._first) // HOP
                if self._has_neighbours(centre):
                    yield self._window(centre, offset)

    def quiet(self, seconds: float) -> bool:
        """Whether nothing was louder than the noise in the last seconds."""
        last = self._energy[-round(seconds * STEPS_PER_S) :]
        return not len(last) or not self._loud(last)

    def request_offsets(self, window: Window) -> None:
        """Return windows at offsets too, one after another, if this one has neighbours by then."""
        now = self._now
        for number, offset in enumerate(self._offsets, 1):
            due = max(now + number * self.spacing * HOP, window.centre + offset * HOP)
            self._requested.append((due, window.centre, offset))
        self._requested.sort(key=lambda request: request[0])

    @property
    def _now(self) -> int:
        """The last point that is settled, in samples since the stream's start."""
        return self._first + (self._settled - 1) * HOP

    def _is_due(self, sample: int) -> bool:
        """Whether a window that is complete at a sample is scored now."""
        late = self._now - sample
        busy = self._now - self._busy < self.spacing * HOP
        return late >= (PATIENCE * HOP if busy else 0)

    def _window(self, centre: int, offset: int = 0) -> Window:
        """Cut out the window around a step, moved by an offset in steps."""
        point = centre + offset
        first = max(0, point - HALF)
        energy = self._energy[first : point + HALF]
        middle = self._energy[max(0, point - HALF // 2) : point + HALF // 2]
        loud = np.flatnonzero(energy >= energy.max() * 10 ** (-self.search.extent_db / 10))
        start_s, end_s = (
            float(self._first + (first + step) * HOP) / SAMPLE_RATE
            for step in (loud[0], loud[-1] + 1)
        )
        is_loud = self._loud(middle)
        if is_loud:
            self._busy = self._now
        return Window(
            cut(self._sound, point * HOP, WINDOW),
            self._first + point * HOP - WINDOW // 2,
            self._first + centre * HOP,
            start_s,
            end_s,
            is_loud,
            bool(offset),
        )

    def _loud(self, energy: np.ndarray) -> bool:
        """Whether steps with these energies (t,) are louder than the noise."""
        least = max(self._floor_db + self.search.gate_db, self.search.silence_db)
        return _level_db(energy) >= least

    def _follow_floor(self, point: int) -> None:
        around = self._energy[max(0, point - FLOOR) : point + FLOOR]
        # Bounded: from digital silence it would take half a minute to rise to background noise.
        quietest = self.search.silence_db - self.search.gate_db
        level = max(_level_db(around), quietest) if len(around) else quietest
        self._floor_db = min(level, self._floor_db + self.search.floor_rise_db_per_s / STEPS_PER_S)

    def _has_neighbours(self, point: int) -> bool:
        """Whether there is other sound next to the window around a step."""
        if not self._farthest:
            return False
        first, last = max(0, point - HALF), point + HALF
        before = self._energy[max(0, first - self._farthest) : first]
        # However the stream is divided: no more than a point needs to be settled.
        known = self._settled - 1 + HALF + self.lag
        after = self._energy[last : min(last + self._farthest, known)]
        level_db = _level_db(self._energy[first:last])
        return _level_db(np.concatenate([before, after])) >= level_db + self.search.neighbour_db


def check_gap(seconds: float) -> None:
    """Refuse the length of a gap that is out of range."""
    if not in_range(seconds, 0, MAX_GAP_S):
        raise InputError(f"a gap lasts 0 to {MAX_GAP_S:,} seconds, got {seconds!r}")


def steps(ms: int) -> int:
    """Convert milliseconds to steps."""
    return ms * STEPS_PER_S // 1000


def _centres(energy: np.ndarray, *half_windows: int) -> list[set[int]]:
    """Find the steps that a sound is centred on, for each number of steps on either side."""
    _, offsets = centring(energy, np.array(half_windows)[:, None])
    falls = (offsets[:, :-1] > 0) & (offsets[:, 1:] <= 0)
    return [set((np.flatnonzero(row) + 1).tolist()) for row in falls]


def _level_db(energy: np.ndarray) -> float:
    """Level of steps by their energies (t,), in dB of full scale."""
    # `mean` takes several times as long for a few numbers.
    return float(decibels(np.add.reduce(energy) / (len(energy) * HOP)))
