"""AVG: the mean over time."""

from typing import Any

import numpy as np

from tapword.poolings.base import Pooling


class Avg(Pooling):
    """Mean over time: (t, d) -> (d,).

    Examples
    --------
    >>> Avg().pool(np.array([[1.0, 2.0], [3.0, 6.0]]))
    array([2., 4.], dtype=float32)
    """

    on_device = True

    def reduce_tensor(self, frames: Any) -> Any:
        """Pool torch frames (b, t, d) on their device."""
        return frames.mean(dim=1)

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return frames.mean(axis=1)
