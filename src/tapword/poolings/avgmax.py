"""AVGMAX: mean and maximum side by side."""

import numpy as np

from tapword.poolings.base import Pooling


class Avgmax(Pooling):
    """Mean and maximum over time, side by side: (t, d) -> (2 * d,).

    Examples
    --------
    >>> Avgmax().pool(np.array([[1.0, 6.0], [3.0, 2.0]]))
    array([2., 4., 3., 6.], dtype=float32)
    """

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return np.concatenate([frames.mean(axis=1), frames.max(axis=1)], axis=1)
