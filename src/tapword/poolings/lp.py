"""LP: the power mean of magnitudes."""

import math

import numpy as np

from tapword.poolings.base import Pooling


class Lp(Pooling):
    """Power mean of magnitudes over time, E[abs(g) ** p] ** (1 / p): (t, d) -> (d,).

    Parameters
    ----------
    p
        The power, at least 1: 1 is the mean magnitude, 2 the root mean square; higher powers come
        closer to the largest magnitude.

    Notes
    -----
    Each feature is scaled by its largest magnitude first and scaled back after, so that no power
    overflows.

    Examples
    --------
    >>> Lp(p=2).pool(np.array([[1.0, -3.0], [7.0, 3.0]]))
    array([5., 3.], dtype=float32)
    """

    p: int | float = 2

    def __post_init__(self) -> None:
        self._require("p", 1 <= self.p < math.inf, "a number of at least 1")

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
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
        # Up to here a running product is faster than `**`.
        if self.p == int(self.p) and self.p <= 8:
            power = np.square(magnitude)
            for _ in range(int(self.p) - 2):
                power *= magnitude
        else:
            power = magnitude ** np.float32(self.p)
        mean = power.mean(axis=0)
        return np.sqrt(mean) if self.p == 2 else mean ** np.float32(1 / self.p)
