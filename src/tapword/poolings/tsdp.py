"""TSDP, temporal standard deviation pooling."""

import numpy as np

from tapword.poolings.base import Pooling
from tapword.poolings.tap import moments


class Tsdp(Pooling):
    """Biased standard deviation over time: (t, d) -> (d,), 0 for a single frame.

    Examples
    --------
    >>> Tsdp().pool(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([1., 0.], dtype=float32)
    """

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return moments(frames, order=2)[:, 1]
