"""A backbone's frames of a stream, kept for as long as a candidate may need them."""

import functools
import math

import numpy as np

from tapword.audio.align import HOP
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone, FrameStream
from tapword.listening.segmenter import WINDOW

# How much of a window must have final frames; the last of these stands for the others. With less,
# words are reported sooner: at 0.68 s, 0.06 s sooner, but a tenth more of them are missed in noise.
# `training/ear/evaluate.py --known` shows the effect.
KNOWN_S = 0.76
# Hops of a clip whose frames are counted, to know those of any length. A choice.
PROBED = 25


class FrameBuffer:
    """The last frames of a stream; positions are in hops of the backbone.

    Parameters
    ----------
    backbone
        One that can stream.
    kept
        Hops that are kept.

    Attributes
    ----------
    first, until
        First hop that is kept, and hops that were pushed.

    Examples
    --------
    >>> from tapword.backbones.ear_s import EarS
    >>> buffer = FrameBuffer(EarS(), 25)
    >>> buffer.push(np.zeros(16_100, dtype=np.float32))
    >>> buffer.until, buffer.end, [block.shape for block in buffer.cut(10, 5)]
    (25, 18, [(5, 101)])
    """

    def __init__(self, backbone: Backbone, kept: int):
        assert backbone.hop is not None
        self.backbone, self.hop, self._kept = backbone, backbone.hop, kept
        self.begin(0)

    def begin(self, hop: int) -> None:
        """Begin a stream whose first sample is that of a hop."""
        self._stream: FrameStream = self.backbone.stream()
        self._pending = np.zeros(0, dtype=np.float32)
        self.first = self.until = hop
        # Of each block, and how many of them are final.
        self._frames = [np.zeros((0, d), dtype=np.float32) for d in self.backbone.dims]
        self._n_final = [0] * len(self._frames)

    @property
    def end(self) -> int:
        """Hops whose frames are final."""
        counts = zip(self._n_final, self._per_hop, strict=True)
        return self.first + min(count // per for count, per in counts)

    def push(self, sound: np.ndarray) -> None:
        """Take the next samples (n,) float32, any number of them.

        Hops pass the network one by one, so frames do not depend on how the stream is divided.
        """
        self._pending = np.concatenate([self._pending, sound])
        while len(self._pending) >= self.hop:
            self.extend(self._pending[: self.hop])
            # After the network took it: if it fails, the next call goes on with this hop.
            self._pending = self._pending[self.hop :]

    def extend(self, sound: np.ndarray, provisional: bool = False) -> None:
        """Take whole hops at once; `provisional` adds the frames that hold if silence follows."""
        final = self._stream.advance(sound)
        after = self._stream.provisional() if provisional else [block[:0] for block in final]
        self.until += len(sound) // self.hop
        old = max(0, self.until - self._kept - self.first)
        self.first += old
        for index, per in enumerate(self._per_hop):
            kept = self._frames[index][old * per : self._n_final[index]]
            self._frames[index] = np.concatenate([kept, final[index], after[index]])
            self._n_final[index] = len(kept) + len(final[index])

    def cut(self, start: int, length: int, known: int | None = None) -> list[np.ndarray]:
        """Frames of each block for some hops.

        Where a frame is not known, or not among the first `known` hops, it is the nearest that is;
        0 before there is any.
        """
        first, known = start - self.first, length if known is None else known
        result = []
        for block, per, count in zip(
            self._frames, self._per_hop, self._counts(length), strict=True
        ):
            block = block[: max((first + known) * per, 1)]
            if not len(block):
                block = np.zeros((1, block.shape[1]), dtype=np.float32)
            rows = np.arange(first * per, first * per + count)
            result.append(block[np.clip(rows, 0, len(block) - 1)])
        return result

    def window(self, start: int) -> list[np.ndarray]:
        """Frames of the window that begins at a sample, as soon as it is scored."""
        first = (start + self.hop // 2) // self.hop
        return self.cut(first, -(-WINDOW // self.hop), known_hops(self.hop))

    @functools.cached_property
    def _per_hop(self) -> list[int]:
        """Frames of each block in a hop."""
        return [more - fewer for fewer, more in zip(*self._probed, strict=True)]

    @functools.cached_property
    def _probed(self) -> list[list[int]]:
        """Frames of each block for a number of hops, and for one more."""
        clips = [np.zeros((PROBED + more) * self.hop, dtype=np.float32) for more in (0, 1)]
        return [list(map(len, self.backbone.frames(clip))) for clip in clips]

    def _counts(self, length: int) -> list[int]:
        """Frames of each block for audio of `length` hops."""
        probed = zip(self._probed[0], self._per_hop, strict=True)
        return [count + (length - PROBED) * per for count, per in probed]


def known_hops(hop: int) -> int:
    """Count the hops of a window whose frames must be final."""
    return math.ceil(KNOWN_S * SAMPLE_RATE / hop)


def lag(backbone: Backbone) -> int:
    """Count the steps by which a window's frames come after its last sample."""
    assert backbone.hop is not None
    hops = known_hops(backbone.hop) + backbone.latency
    # On the grid of the frames, windows begin up to half a hop later.
    late = hops * backbone.hop + backbone.hop / 2 - WINDOW
    return max(0, math.ceil(late / HOP))
