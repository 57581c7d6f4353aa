"""Sound in, stretches out: where in a stream a taught phrase may have been said.

A phrase among other speech has no beginning that could be heard. So the first backbone's frames of
the stream are made once, and every stretch of a length that a taught phrase may have is scored by
them, from 80 ms to 80 ms. What comes near its threshold is worth a second look.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import FrameStream
from tapword.spotter.lengths import LONGEST_S
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Scores

# Lengths of stretches grow by about this factor: half of it is less than people's pace differs.
GROWTH = 1.12
# Stretches are looked for after so many seconds of sound, sooner costs more; they end, and begin,
# so many seconds apart.
STEP_S, GRID_S = 0.32, 0.08
# What is heard anew after silence begins so many seconds before what is new.
LEAD_S = 1.28


class Grid(NamedTuple):
    """Where stretches lie, in hops of a backbone's frames.

    Attributes
    ----------
    step
        Stretches are looked for after so many hops.
    apart
        They end, and begin, so far apart.
    lead
        What is heard anew after silence begins so long before what is new.
    lengths
        That they have, in order.
    """

    step: int
    apart: int
    lead: int
    lengths: list[int]

    @classmethod
    def of(cls, hop: int) -> "Grid":
        """Grid of a backbone whose hop is so many samples."""
        step, apart, lead = (round(s * SAMPLE_RATE / hop) for s in (STEP_S, GRID_S, LEAD_S))
        longest = math.floor(LONGEST_S * SAMPLE_RATE / hop)
        shortest = math.ceil(SAMPLE_RATE / hop)
        count = math.floor(math.log(longest / shortest, GROWTH)) + 1
        lengths = {round(shortest * GROWTH**n) for n in range(count)}
        return cls(step, apart, lead, sorted(lengths | {longest}))


class Stretch(NamedTuple):
    """A stretch of a stream that may hold a phrase.

    Attributes
    ----------
    clip
        Its sound, (n,) float32.
    start
        Its first sample, since the stream's start.
    words
        That may be that long.
    margin
        By how much the best of them exceeds its threshold, by the first backbone's frames.
    over
        Whether it ends before the last that was heard: later ends were less likely.
    """

    clip: np.ndarray
    start: int
    words: list[str]
    margin: float
    over: bool


class Phrases:
    """Find the stretches of a stream in which a phrase may have been said.

    Parameters
    ----------
    spotter
        Whose phrases; its first backbone can be heard in pieces.
    start
        Samples of the stream before what is heard first.

    Attributes
    ----------
    step
        Samples after which `best` can be asked again.
    lengths
        Of stretches, in hops of the backbone's frames, as everything here that is not said to be in
        samples or seconds.
    """

    def __init__(self, spotter: Spotter, start: int):
        self.spotter = spotter
        self._backbone = spotter.backbones[0]
        hop = self._backbone.hop
        assert hop is not None
        self._hop = hop
        self._step, self._apart, self._lead, self.lengths = Grid.of(hop)
        self.step = self._step * hop
        self._reach = self.lengths[-1] + self._step + self._lead
        self._start = start
        self._sound = np.zeros(0, dtype=np.float32)
        self._dropped = 0
        # The backbone, which has heard so many hops; its frames of each block, of which the first
        # belong to hop `_from`, and how many of them no later sound will change.
        self._stream: FrameStream | None = None
        self._until = 0
        self._from = 0
        self._frames: list[np.ndarray] = []
        self._settled: list[int] = []
        self._known: dict[int, list[int]] = {}

    def serves(self, spotter: Spotter) -> bool:
        """Take another spotter, if what was heard does for it; say whether it does."""
        if spotter.backbones[0] is not self._backbone:
            return False
        self.spotter = spotter
        return True

    @property
    def missing(self) -> int:
        """Samples that are missing to the next step."""
        return self.step - len(self._sound) % self.step

    def hear(self, sound: np.ndarray) -> None:
        """Take the next samples (n,) float32, `missing` ones at most."""
        self._sound = np.concatenate([self._sound, sound])
        # By whole steps, so that `missing` stays right.
        extra = (len(self._sound) - self._reach * self._hop) // self.step
        if extra > 0:
            self._sound = self._sound[extra * self.step :]
            self._dropped += extra * self._step

    def best(self, thresholds: Mapping[str, float]) -> Stretch | None:
        """Give the stretch ending in the last step in which a phrase is likeliest; None: nowhere.

        Asked when nothing is `missing` to a step; a step without it is one of silence.
        """
        self.make_frames()
        found = {length: self.spotter.phrases_of(self.seconds(length)) for length in self.lengths}
        places, vectors = self.vectors([length for length, words in found.items() if words])
        if vectors is None:
            return None
        # What running speech takes off is nearly the same for all that end here.
        scored = self.spotter.first_scores(vectors, 0.0)
        margins = [
            best_margin(scores, found[length], thresholds)
            for (_, length), scores in zip(places, scored, strict=True)
        ]
        likely = np.where(self.spotter.encoder.is_noise(vectors), -math.inf, margins)
        row = int(np.argmax(likely))
        if likely[row] == -math.inf:
            return None
        start, length = places[row]
        proposed = self.spotter.propose(vectors[row], self.seconds(length))
        words = found[length]
        margin = -math.inf if proposed is None else best_margin(proposed, words, thresholds)
        sound = self._sound[(start - self._dropped) * self._hop :][: length * self._hop]
        over = start + length < self._end
        return Stretch(sound, self._start + start * self._hop, words, margin, over)

    def vectors(self, lengths: Sequence[int]) -> tuple[list[tuple[int, int]], np.ndarray | None]:
        """Give the stretches of these lengths that end in the last step.

        Returns
        -------
        tuple
            Start and length of each, and the first backbone's part of their vectors, (n, D_1), by
            the frames that were made; None where there are no stretches.
        """
        places = [
            (end - length, length)
            for length in lengths
            for end in range(self._end - self._step + self._apart, self._end + 1, self._apart)
            if end - length >= self._from
        ]
        cut = [self._cut(*place) for place in places]
        return places, self.spotter.encoder.pool_first(cut) if cut else None

    def seconds(self, length: int) -> float:
        """How long a stretch is."""
        return length * self._hop / SAMPLE_RATE

    @property
    def _end(self) -> int:
        return self._dropped + len(self._sound) // self._hop

    def make_frames(self) -> None:
        """Let the backbone hear what it has not heard yet."""
        end = self._end
        if self._stream is None or self._until < end - self._step:
            self._stream = self._backbone.stream()
            self._until = self._from = max(end - self._step - self._lead, self._dropped)
            self._frames = [np.zeros((0, d), dtype=np.float32) for d in self._backbone.dims]
            self._settled = [0] * len(self._frames)
        new = self._sound[(self._until - self._dropped) * self._hop :]
        sure, open_ = self._stream.push(new)
        self._until = end
        old = max(0, end - self._reach - self._from)
        self._from += old
        for index, per in enumerate(self._per_hop):
            kept = self._frames[index][old * per : self._settled[index]]
            self._frames[index] = np.concatenate([kept, sure[index], open_[index]])
            self._settled[index] = len(kept) + len(sure[index])

    def _cut(self, start: int, length: int) -> list[np.ndarray]:
        """Frames of a stretch: those that the backbone gives for its sound, but for its edges."""
        first = start - self._from
        return [
            block[first * per : first * per + count]
            for block, per, count in zip(
                self._frames, self._per_hop, self._counts(length), strict=True
            )
        ]

    @functools.cached_property
    def _per_hop(self) -> list[int]:
        """Frames of each block in a hop."""
        fewer, more = self._counts(self.lengths[0]), self._counts(self.lengths[0] + 1)
        return [b - a for a, b in zip(fewer, more, strict=True)]

    def _counts(self, length: int) -> list[int]:
        """Frames of each block for a sound of so many hops."""
        if length not in self._known:
            silence = np.zeros(length * self._hop, dtype=np.float32)
            self._known[length] = list(map(len, self._backbone.frames(silence)))
        return self._known[length]


def best_margin(scores: Scores, words: Sequence[str], thresholds: Mapping[str, float]) -> float:
    """By how much the best of some words exceeds its threshold."""
    taken = scores.not_rejected()
    return max(
        (taken[word] - thresholds[word] for word in words if word in taken), default=-math.inf
    )
