"""LP: the power mean of magnitudes."""

import math

import numpy as np

from tapword.errors import InputError
from tapword.poolings.base import Pooling

# Up to here a running product is faster than `**`.
_HIGHEST_PRODUCT = 8


class Lp(Pooling):
    """Power mean of magnitudes over time, E[abs(g) ** p] ** (1 / p).

    Parameters
    ----------
    p
        The power, at least 1: 1 is the mean magnitude, 2 the root mean square; the higher, the
        closer to the largest magnitude.

    Notes
    -----
    Frames (t, d) give a vector (d,). Each feature is divided by its largest magnitude before, and
    multiplied after, so that no power overflows.

    Examples
    --------
    >>> Lp(p=2).pool(np.array([[1.0, -3.0], [7.0, 3.0]]))
    array([5., 3.], dtype=float32)
    """

    def __init__(self, p: int | float = 2):
        self.p = p
        if not 1 <= p < math.inf:
            raise InputError(f"lp: p must be a number of at least 1, got {p}")

    def dim(self, d: int) -> int:
        """Length of the vector: d."""
        return d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        result = np.empty((len(frames), frames.shape[2]), dtype=np.float32)
        # One clip at a time stays in the cache.
        for clip, out in zip(frames, result, strict=True):
            magnitude = np.abs(clip)
            largest = magnitude.max(axis=0)
            magnitude /= np.where(largest > 0, largest, np.float32(1))
            np.multiply(largest, self._power_mean(magnitude), out=out)
        return result

    def _power_mean(self, magnitude: np.ndarray) -> np.ndarray:
        if self.p == 1:
            return magnitude.mean(axis=0)
        if self.p == int(self.p) and self.p <= _HIGHEST_PRODUCT:
            power = np.square(magnitude)
            for _ in range(int(self.p) - 2):
                power *= magnitude
        else:
            power = magnitude ** np.float32(self.p)
        mean = power.mean(axis=0)
        return np.sqrt(mean) if self.p == 2 else mean ** np.float32(1 / self.p)
