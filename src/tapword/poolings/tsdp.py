"""TSDP, temporal standard deviation pooling."""

import numpy as np

from tapword.poolings.base import Pooling
from tapword.poolings.tap import moments


class Tsdp(Pooling):
    """Standard deviation over time.

    Notes
    -----
    Frames (t, d) give a vector (d,) of biased standard deviations; a constant feature, and every
    feature of a single frame, has 0.

    Examples
    --------
    >>> Tsdp().pool(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([1., 0.], dtype=float32)
    """

    def dim(self, d: int) -> int:
        """Length of the vector: d."""
        return d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        return moments(frames, order=2)[:, 1]
