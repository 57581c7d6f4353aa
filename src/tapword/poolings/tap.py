"""TAP, temporal aware pooling: the paper's moments over time."""

from typing import Any

import numpy as np

from tapword.poolings.base import Pooling

# A feature is constant if its standard deviation is at most this share of its mean: float32 cannot
# distinguish such a spread from rounding.
CONSTANT = 8 * np.finfo(np.float32).eps
# Between these the square of a deviation neither overflows float32 nor loses digits.
_SMALLEST, _LARGEST = 1e-15, 1e15

# The 32nd power of 16 standard deviations is the first to overflow float32.
MAX_ORDER = 32


class Tap(Pooling):
    """Mean, standard deviation and standardised moments up to order R (the paper's TAP).

    Parameters
    ----------
    R
        Highest moment: 1 is the mean, 2 adds the biased standard deviation, r >= 3 adds
        E[((g - mean) / std) ** r].

    Notes
    -----
    Frames (t, d) give a vector (R * d,): d means, d standard deviations, d third moments, ...
    A feature is constant where its standard deviation is at most 8 float32 roundings of its mean
    (8 * 2 ** -23 * abs(mean)); then the standard deviation and the moments are 0.

    Examples
    --------
    >>> Tap(R=3).pool(np.array([[1.0], [1.0], [4.0]])).round(3)
    array([2.   , 1.414, 0.707], dtype=float32)
    """

    on_device = True

    R: int = 5

    def __post_init__(self) -> None:
        self._require_whole("R", 1, MAX_ORDER)

    def dim(self, d: int) -> int:
        """Length of the vector: R * d."""
        return self.R * d

    def reduce_tensor(self, frames: Any) -> Any:
        """Pool torch frames (b, t, d) on their device; extreme values lose precision."""
        import torch

        first = frames[:, :1]
        z = frames - first
        mean = z.mean(dim=1)
        z -= mean[:, None]
        mean += first[:, 0]
        result = [mean]
        if self.R > 1:
            std = z.square().mean(dim=1).sqrt()
            constant = std <= CONSTANT * mean.abs()
            result.append(std.masked_fill(constant, 0))
            z /= std.masked_fill(constant, float("inf"))[:, None]
            power = z.square()
            for _ in range(2, self.R):
                power *= z
                result.append(power.mean(dim=1))
        return torch.cat(result, dim=1)

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return moments(frames, self.R).reshape(len(frames), -1)


def moments(frames: np.ndarray, order: int) -> np.ndarray:
    """Mean, std and standardised moments: (b, t, d) float32 -> (b, order, d) float32.

    Examples
    --------
    >>> moments(np.array([[[1.0], [3.0]]], dtype=np.float32), order=2).tolist()
    [[[2.0], [1.0]]]
    """
    b, _, d = frames.shape
    result = np.empty((b, order, d), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        _fill(frames, result)
    if order > 1:
        extreme = ~((result[:, 1] >= _SMALLEST) & (result[:, 1] <= _LARGEST))
        for row in np.flatnonzero(extreme.any(axis=1)):
            columns = frames[row, :, extreme[row]].T
            if (columns != columns[0]).any():
                exact = np.empty((1, order, columns.shape[1]))
                _fill(columns[None].astype(np.float64), exact)
                result[row][:, extreme[row]] = exact[0]
    return result


def _fill(frames: np.ndarray, result: np.ndarray) -> None:
    """Moments of frames (b, t, d) into result (b, order, d), in the frames' own precision."""
    # Clip by clip, so that the data stays in the cache; a whole batch would pass memory ten times.
    z, power = np.empty((2, *frames.shape[1:]), dtype=frames.dtype)
    # A product with a row of 1/t is the mean over time, and faster than np.mean.
    average = np.full(len(z), 1 / len(z), dtype=frames.dtype)
    for clip, out in zip(frames, result, strict=True):
        # Deviations from the first frame are exactly 0 for a constant feature, and the rounding of
        # their mean is relative to the spread, not to the offset.
        np.subtract(clip, clip[0], out=z)
        mean = np.dot(average, z, out=out[0])
        z -= mean
        mean += clip[0]
        if len(out) == 1:
            continue
        np.square(z, out=power)
        std = np.dot(average, power, out=out[1])
        np.sqrt(std, out=std)
        constant = std <= CONSTANT * np.abs(mean)
        if len(out) > 2:
            std[constant] = np.inf
            z *= 1 / std
            np.square(z, out=power)
            for moment in out[2:]:
                power *= z
                np.dot(average, power, out=moment)
        std[constant] = 0
