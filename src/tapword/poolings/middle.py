"""MIDDLE: the frames around the middle of a clip, in their order."""

import numpy as np

from tapword.poolings.base import MOST_FRAMES, Pooling


class Middle(Pooling):
    """The n frames in the middle, one after the other: (t, d) -> (n * d,).

    Parameters
    ----------
    n
        How many frames.

    Notes
    -----
    Moments are blind to order, this is not; it tells words apart only where clips are aligned on
    their speech. Where a clip has fewer frames, its first and last are repeated.

    Examples
    --------
    >>> Middle(n=2).pool(np.array([[1.0], [2.0], [3.0], [4.0]]))
    array([2., 3.], dtype=float32)
    """

    n: int = 6

    def __post_init__(self) -> None:
        self._require_whole("n", 1, MOST_FRAMES)

    def dim(self, d: int) -> int:
        """Length of the vector: n * d."""
        return self.n * d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        b, t, _ = frames.shape
        start = (t - self.n) // 2
        window = np.clip(np.arange(start, start + self.n), 0, t - 1)
        return frames[:, window].reshape(b, -1)
