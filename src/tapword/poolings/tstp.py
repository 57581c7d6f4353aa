"""TSTP, temporal statistics pooling: mean and standard deviation."""

import numpy as np

from tapword.poolings.base import Pooling
from tapword.poolings.tap import moments


class Tstp(Pooling):
    """Mean and biased standard deviation over time, side by side: (t, d) -> (2 * d,).

    It is `tap` with R=2, under the name the literature gives it.

    Examples
    --------
    >>> Tstp().pool(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([2., 2., 1., 0.], dtype=float32)
    """

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return moments(frames, order=2).reshape(len(frames), -1)
