"""Audio in, segments out: where in a stream a taught phrase may have been said.

A phrase in running speech has no audible start. So the first backbone computes the stream's frames
once, and they score every segment that is as long as a taught phrase may be, every 80 ms. If the
backbone's frames of a stream do not compare with those of clips, what comes close to its threshold
is scored again as a clip.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.listening.frames import FrameBuffer
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Scores
from tapword.spotter.vocabulary import LONGEST_S

# Lengths of segments grow by about this factor: half of it is less than people's pace differs.
GROWTH = 1.12
# Segments are searched every step, sooner costs more; they start and end on a grid.
STEP_S, GRID_S = 0.32, 0.08
# After silence, frames start this long before the new audio.
LEAD_S = 1.28


# Hops at a segment's end whose frames may be unknown: most of its margin.
MARGIN_HOPS = 2


class Grid(NamedTuple):
    """Where segments are, in hops of a backbone's frames.

    Attributes
    ----------
    step
        Hops between two searches.
    spacing
        Hops between two starts, and between two ends.
    lead
        Hops before the new audio that frames start at after silence.
    lengths
        Of segments, in order.
    """

    step: int
    spacing: int
    lead: int
    lengths: list[int]

    @classmethod
    def of(cls, hop: int) -> "Grid":
        """Grid of a backbone with this hop in samples."""
        step, spacing, lead = (round(s * SAMPLE_RATE / hop) for s in (STEP_S, GRID_S, LEAD_S))
        longest = math.floor(LONGEST_S * SAMPLE_RATE / hop)
        shortest = math.ceil(SAMPLE_RATE / hop)
        count = math.floor(math.log(longest / shortest, GROWTH)) + 1
        lengths = {round(shortest * GROWTH**n) for n in range(count)}
        return cls(step, spacing, lead, sorted(lengths | {longest}))


def kept_hops(backbone: Backbone) -> int:
    """Hops of a stream that are kept to search for phrases."""
    assert backbone.hop is not None
    grid = Grid.of(backbone.hop)
    return grid.lengths[-1] + grid.step + grid.lead


class Segment(NamedTuple):
    """A segment of a stream that may contain a phrase.

    Attributes
    ----------
    clip
        Its samples, (n,) float32.
    start
        Its first sample, since the stream's start.
    words
        Phrases that may be this long.
    margin
        By how much the best of them exceeds its threshold, by the first backbone's frames.
    over
        Whether it ends before the newest audio: later ends were less likely.
    vector
        The first backbone's part of its vector, (D_1,), by the stream's frames.
    """

    clip: np.ndarray
    start: int
    words: list[str]
    margin: float
    over: bool
    vector: np.ndarray


class Phrases:
    """Find the segments of a stream in which a phrase may have been said.

    Parameters
    ----------
    spotter
        Whose phrases; its first backbone can stream.
    start
        Samples of the stream before the first that is pushed; with `frames`, before the first of
        theirs.
    frames
        Frames of the stream, which somebody else makes; None: they are made here, of what is not
        silent.
    skipped
        Samples that `frames` got before the first that is pushed here.

    Attributes
    ----------
    step
        Samples between two calls of `best`.
    lengths
        Of segments, in hops of the backbone's frames, as is everything here without another unit.
    """

    def __init__(
        self, spotter: Spotter, start: int, frames: FrameBuffer | None = None, skipped: int = 0
    ):
        self.spotter = spotter
        self._backbone = spotter.encoder.backbones[0]
        hop = self._backbone.hop
        assert hop is not None
        self._hop = hop
        self._step, self._spacing, self._lead, self.lengths = Grid.of(hop)
        self._given = frames is not None
        if self._given:
            # One end at a time, so that the work is spread evenly.
            self._step = self._spacing
        self.step = self._step * hop
        self._buffer_hops = kept_hops(self._backbone)
        self._buffer = FrameBuffer(self._backbone, self._buffer_hops) if frames is None else frames
        self._start = start
        # Of a step that began before, the part that is missing counts as silence.
        self._sound = np.zeros(skipped % self.step, dtype=np.float32)
        self._dropped = skipped // self.step * self._step

    def serves(self, spotter: Spotter) -> bool:
        """Take another spotter, if it has the same first backbone; say whether it does."""
        if spotter.encoder.backbones[0] is not self._backbone:
            return False
        self.spotter = spotter
        return True

    @property
    def lag_s(self) -> float:
        """Seconds by which the segments of a search end before the newest audio."""
        return self.seconds(self._end - self._last)

    @property
    def missing(self) -> int:
        """Samples until the next step."""
        return self.step - len(self._sound) % self.step

    def push(self, sound: np.ndarray) -> None:
        """Take the next samples (n,) float32, at most `missing`."""
        self._sound = np.concatenate([self._sound, sound])
        # By whole steps, so `missing` stays right.
        extra = (len(self._sound) - self._buffer_hops * self._hop) // self.step
        if extra > 0:
            self._sound = self._sound[extra * self.step :]
            self._dropped += extra * self._step

    def best(self, thresholds: Mapping[str, float]) -> Segment | None:
        """Return the segment ending in the last step that is likeliest a phrase, if there is one.

        Called when a step is complete; a step without a call counts as silence.
        """
        self.make_frames()
        scorer = self.spotter.scorer
        found = {length: scorer.phrases_of(self.seconds(length)) for length in self.lengths}
        places, vectors = self.vectors([length for length, words in found.items() if words])
        if vectors is None:
            return None
        # The cohort score is nearly the same for all that end here.
        scored = scorer.first_scores(vectors, 0.0)
        margins = [
            best_margin(scores, found[length], thresholds)
            for (_, length), scores in zip(places, scored, strict=True)
        ]
        likely = np.where(self.spotter.encoder.is_noise(vectors), -math.inf, margins)
        row = int(np.argmax(likely))
        if likely[row] == -math.inf:
            return None
        start, length = places[row]
        proposed = scorer.propose(vectors[row], self.seconds(length))
        words = found[length]
        margin = -math.inf if proposed is None else best_margin(proposed, words, thresholds)
        sound = self._sound[(start - self._dropped) * self._hop :][: length * self._hop]
        over = start + length < self._last
        return Segment(sound, self._start + start * self._hop, words, margin, over, vectors[row])

    def vectors(self, lengths: Sequence[int]) -> tuple[list[tuple[int, int]], np.ndarray | None]:
        """Return the segments of these lengths that end in the last step.

        Returns
        -------
        tuple
            Start and length of each, and the first backbone's part of their vectors, (n, D_1), from
            the stream's frames; None without segments.
        """
        places = [
            (end - length, length)
            for length in lengths
            for end in range(self._last - self._step + self._spacing, self._last + 1, self._spacing)
            if end - length >= max(self._buffer.first, self._dropped)
        ]
        cut = [self._buffer.cut(*place) for place in places]
        return places, self.spotter.encoder.pool_first(cut) if cut else None

    def seconds(self, length: int) -> float:
        """Convert a length in hops to seconds."""
        return length * self._hop / SAMPLE_RATE

    @property
    def _last(self) -> int:
        """Latest end of a segment: with final frames alone, its margin may lack them."""
        if not self._given:
            return self._end
        return self._end - self._backbone.latency + MARGIN_HOPS

    @property
    def _end(self) -> int:
        return self._dropped + len(self._sound) // self._hop

    def make_frames(self) -> None:
        """Push what is new to the backbone, unless the stream's frames are given."""
        if self._given:
            return
        buffer, end = self._buffer, self._end
        if buffer.until < end - self._step:
            buffer.begin(max(end - self._step - self._lead, self._dropped))
        new = self._sound[(buffer.until - self._dropped) * self._hop :]
        buffer.extend(new, provisional=True)


def best_margin(scores: Scores, words: Sequence[str], thresholds: Mapping[str, float]) -> float:
    """Return how far the best of some words is above its threshold."""
    taken = scores.not_rejected()
    return max(
        (taken[word] - thresholds[word] for word in words if word in taken), default=-math.inf
    )
