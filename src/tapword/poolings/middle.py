"""MIDDLE: the frames around the middle of a clip, in their order."""

import numpy as np

from tapword.poolings.base import Pooling


class Middle(Pooling):
    """The n frames in the middle, one after the other: moments are blind to order, this is not.

    Parameters
    ----------
    n
        How many frames.

    Notes
    -----
    Frames (t, d) give a vector (n * d,). It tells words apart only where clips are aligned on
    their speech. Where a clip has fewer frames, its first and last are repeated.

    Examples
    --------
    >>> Middle(n=2).pool(np.array([[1.0], [2.0], [3.0], [4.0]]))
    array([2., 3.], dtype=float32)
    """

    def __init__(self, n: int = 6):
        self.n = n
        self._require_whole("n", 1)

    def dim(self, d: int) -> int:
        """Length of the vector: n * d."""
        return self.n * d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        b, t, d = frames.shape
        start = (t - self.n) // 2
        window = np.clip(np.arange(start, start + self.n), 0, t - 1)
        return np.ascontiguousarray(frames[:, window]).reshape(b, self.dim(d))
