"""AVG: the mean over time."""

import numpy as np

from tapword.poolings.base import Pooling


class Avg(Pooling):
    """Mean over time.

    Examples
    --------
    >>> Avg().pool(np.array([[1.0, 2.0], [3.0, 6.0]]))
    array([2., 4.], dtype=float32)
    """

    def dim(self, d: int) -> int:
        """Length of the vector: d."""
        return d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        return frames.mean(axis=1)
