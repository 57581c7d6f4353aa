"""MIX: between the maximum and the mean."""

import numpy as np

from tapword.poolings.base import Pooling


class Mix(Pooling):
    """Weighted sum of maximum and mean over time: (t, d) -> (d,).

    Parameters
    ----------
    alpha
        Weight of the maximum, from 0 to 1; the mean has the weight 1 - alpha.

    Examples
    --------
    >>> Mix(alpha=0.25).pool(np.array([[1.0], [5.0]]))
    array([3.5], dtype=float32)
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        self._require("alpha", 0 <= self.alpha <= 1, "from 0 to 1")

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        alpha = np.float32(self.alpha)
        return alpha * frames.max(axis=1) + (1 - alpha) * frames.mean(axis=1)
