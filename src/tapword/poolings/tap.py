"""TAP, temporal aware pooling: the paper's moments over time."""

import numpy as np

from tapword.errors import InputError
from tapword.poolings.base import Pooling

# A feature that varies by less than float32 can tell from rounding is constant.
_CONSTANT = 8 * np.finfo(np.float32).eps


class Tap(Pooling):
    """Mean, standard deviation and standardised moments up to order R (the paper's TAP).

    Parameters
    ----------
    R
        Highest moment: 1 is the mean, 2 adds the biased standard deviation, r >= 3 adds
        E[((g - mean) / std) ** r].

    Notes
    -----
    A constant feature has standard deviation and moments 0.

    Examples
    --------
    >>> Tap(R=3).pool(np.array([[1.0], [1.0], [4.0]])).round(3)
    array([2.   , 1.414, 0.707], dtype=float32)
    """

    def __init__(self, R: int = 5):
        self.R = R
        if R < 1:
            raise InputError(f"tap: R must be at least 1, got {R}")

    def dim(self, d: int) -> int:
        """Length of the vector: R * d."""
        return self.R * d

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        b, _, d = frames.shape
        result = np.empty((b, self.R, d), dtype=np.float32)
        for clip, moments in zip(frames, result, strict=True):
            _moments(clip, moments)
        return result.reshape(b, self.R * d)


def _moments(clip: np.ndarray, out: np.ndarray) -> None:
    """Moments of one clip (t, d) into out (R, d); a clip at a time stays in the cache."""
    t = len(clip)
    mean = np.mean(clip, axis=0, out=out[0])
    if len(out) == 1:
        return
    z = clip - mean
    power = z * z
    std = np.sqrt(power.mean(axis=0), out=out[1])
    constant = std <= _CONSTANT * np.abs(mean)
    std[constant] = 0
    if len(out) == 2:
        return
    scale = np.where(constant, np.float32(0), 1 / np.where(constant, np.float32(1), std))
    z *= scale
    power *= scale * scale
    for moment in out[2:]:
        power *= z
        np.divide(power.sum(axis=0), t, out=moment)
