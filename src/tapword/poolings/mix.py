"""MIX: between the maximum and the mean."""

import numpy as np

from tapword.errors import InputError
from tapword.poolings.base import Pooling


class Mix(Pooling):
    """Weighted sum of maximum and mean over time.

    Parameters
    ----------
    alpha
        Weight of the maximum, from 0 to 1; the mean has the rest.

    Notes
    -----
    Frames (t, d) give a vector (d,): alpha * max + (1 - alpha) * mean.

    Examples
    --------
    >>> Mix(alpha=0.25).pool(np.array([[1.0], [5.0]]))
    array([3.5], dtype=float32)
    """

    def __init__(self, alpha: float = 0.5):
        self.alpha = alpha
        if not 0 <= alpha <= 1:
            raise InputError(f"mix: alpha must lie in 0..1, got {alpha}")

    def dim(self, d: int) -> int:
        """Length of the vector: d."""
        return d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        alpha = np.float32(self.alpha)
        return alpha * frames.max(axis=1) + (1 - alpha) * frames.mean(axis=1)
