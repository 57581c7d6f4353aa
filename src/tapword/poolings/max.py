"""MAX: the largest value over time."""

import numpy as np

from tapword.poolings.base import Pooling


class Max(Pooling):
    """Maximum over time: (t, d) -> (d,).

    Examples
    --------
    >>> Max().pool(np.array([[1.0, 6.0], [3.0, 2.0]]))
    array([3., 6.], dtype=float32)
    """

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return frames.max(axis=1)
