"""MIDDLE: the frames around the middle of a clip, or spread over a long one, in their order."""

import dataclasses
from typing import Self

import numpy as np

from tapword.poolings.base import MAX_FRAMES, Pooling


class Middle(Pooling):
    """The n frames in the middle, one after the other: (t, d) -> (n * d,).

    Parameters
    ----------
    n
        How many frames.
    second
        Frames of one second. A clip of more is cut into n equal parts, and the middle of each is
        taken: however fast a phrase is said, the same parts of it meet. None: never.

    Notes
    -----
    Moments are blind to order, this is not; it tells words apart only where clips are aligned on
    their speech. Where a clip has fewer frames, its first and last are repeated.

    Examples
    --------
    >>> frames = np.arange(8.0)[:, None]
    >>> Middle(n=2).pool(frames), Middle(n=2, second=4).pool(frames)
    (array([3., 4.], dtype=float32), array([2., 6.], dtype=float32))
    """

    n: int = 6
    second: int | None = None

    def __post_init__(self) -> None:
        self._require_whole("n", 1, MAX_FRAMES)
        self._require_whole("second", 1, MAX_FRAMES, none=True)

    def stretched(self, second: int) -> Self:
        """Return this pooling for clips of any length, of which a second has so many frames."""
        return dataclasses.replace(self, second=second) if self.second is None else self

    def dim(self, d: int) -> int:
        """Length of the vector: n * d."""
        return self.n * d

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, _ = frames.shape
        if self.second is not None and t > self.second:
            window = (2 * np.arange(self.n) + 1) * t // (2 * self.n)
        else:
            start = (t - self.n) // 2
            window = np.clip(np.arange(start, start + self.n), 0, t - 1)
        return frames[:, window].reshape(b, -1)
