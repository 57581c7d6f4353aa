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
from tapword.spotter.lengths import LONGEST_S
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Scores

# Lengths of stretches grow by about this factor: half of it is less than people's pace differs.
GROWTH = 1.12
# Stretches are looked for after so many hops of the backbone's frames: sooner costs more.
STEP_HOPS = 4


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
        self._edge = math.ceil(self._backbone.edge / hop)
        self.step = STEP_HOPS * hop
        longest = math.floor(LONGEST_S * SAMPLE_RATE / hop)
        shortest = math.ceil(SAMPLE_RATE / hop)
        count = math.floor(math.log(longest / shortest, GROWTH)) + 1
        self.lengths = sorted({round(shortest * GROWTH**n) for n in range(count)} | {longest})
        self._reach = longest + STEP_HOPS + 2 * self._edge
        self._start = start
        self._sound = np.zeros(0, dtype=np.float32)
        self._dropped = 0
        # The backbone's frames of each block, and the hop that the first of them belong to.
        self._frames: list[np.ndarray] = []
        self._from = 0
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
            self._dropped += extra * STEP_HOPS

    def best(self, thresholds: Mapping[str, float]) -> Stretch | None:
        """Give the stretch ending in the last step in which a phrase is likeliest; None: nowhere.

        Asked when nothing is `missing` to a step; a step without it is one of silence.
        """
        self.make_frames()
        encoder = self.spotter.encoder
        found: tuple[float, np.ndarray, int, int, list[str]] | None = None
        for length in self.lengths:
            words = self.spotter.phrases_of(self.seconds(length))
            starts, vectors = self.vectors(length) if words else (range(0), None)
            if vectors is None:
                continue
            # What running speech takes off is nearly the same for all that end here.
            scored = self.spotter.first_scores(vectors, 0.0)
            noise = encoder.is_noise(vectors)
            for row, scores in enumerate(scored):
                margin = best_margin(scores, words, thresholds)
                if not noise[row] and margin > (found[0] if found else -math.inf):
                    found = margin, vectors[row], starts[row], length, words
        if found is None:
            return None
        _, vector, start, length, words = found
        proposed = self.spotter.propose(vector, self.seconds(length))
        margin = -math.inf if proposed is None else best_margin(proposed, words, thresholds)
        sound = self._sound[(start - self._dropped) * self._hop :][: length * self._hop]
        over = start + length < self._end
        return Stretch(sound, self._start + start * self._hop, words, margin, over)

    def vectors(self, length: int) -> tuple[range, np.ndarray | None]:
        """Give starts of stretches that end in the last step, and the first part of their vectors.

        The vectors are (n, D_1), by the frames that were made; None where there are no stretches.
        """
        first = max(self._end - STEP_HOPS + 1 - length, self._from)
        starts = range(first, self._end - length + 1)
        cut = [self._cut(start, length) for start in starts]
        return starts, self.spotter.encoder.pool_first(cut) if cut else None

    def seconds(self, length: int) -> float:
        """How long a stretch is."""
        return length * self._hop / SAMPLE_RATE

    @property
    def _end(self) -> int:
        return self._dropped + len(self._sound) // self._hop

    def make_frames(self) -> None:
        """Make the frames of the last step, and again those before that it was heard in now."""
        end = self._end
        begin = max(end - STEP_HOPS - 2 * self._edge, self._dropped)
        made = self._backbone.frames(self._sound[(begin - self._dropped) * self._hop :])
        # Frames near where the backbone began to hear would be others if it had heard more; not so
        # at the stream's start, where there was nothing.
        sure = begin + self._edge if begin else 0
        made = [
            block[(sure - begin) * per :] for block, per in zip(made, self._per_hop, strict=True)
        ]
        follows = (
            self._frames
            and self._from <= sure
            and all(
                (sure - self._from) * per <= len(block)
                for block, per in zip(self._frames, self._per_hop, strict=True)
            )
        )
        if not follows:
            self._frames, self._from = made, sure
            return
        oldest = max(self._from, end - self._reach)
        self._frames = [
            np.concatenate([old[(oldest - self._from) * per : (sure - self._from) * per], new])
            for old, new, per in zip(self._frames, made, self._per_hop, strict=True)
        ]
        self._from = oldest

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
    taken = scores.taken()
    return max(
        (taken[word] - thresholds[word] for word in words if word in taken), default=-math.inf
    )
