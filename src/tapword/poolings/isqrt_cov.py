"""iSQRT-COV: the square root of the covariance over time, after Li et al. (2018)."""

import functools

import numpy as np

from tapword.poolings.base import Pooling


class IsqrtCov(Pooling):
    """Square root of the covariance over time, by Newton-Schulz: (t, d) -> (c * (c + 1) / 2,).

    Parameters
    ----------
    channels
        Frames are first projected to c = min(channels, d) channels by a fixed random matrix with
        orthonormal columns. None: all d. With c = d nothing is projected.
    seed
        Seed of the projection.
    iterations
        Newton-Schulz steps, 1 to 15; with few, small eigenvalues stay below their square root.

    Notes
    -----
    The vector is the upper triangle, row by row, of the matrix Y times sqrt(trace), where the
    iteration starts from the biased covariance divided by its trace. Frames that do not vary have
    trace 0 and give zeros.

    Examples
    --------
    >>> IsqrtCov().pool(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])).round(3)
    array([1.414, 0.   , 1.414], dtype=float32)
    """

    channels: int | None = 64
    seed: int = 0
    iterations: int = 5

    def __post_init__(self) -> None:
        self._require_whole("channels", 1, none=True)
        self._require_whole("seed", 0)
        # With more, rounding in directions without variance diverges.
        self._require_whole("iterations", 1, 15)

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        d = frames.shape[2]
        c = d if self.channels is None else min(self.channels, d)
        upper = np.triu_indices(c)
        return np.stack([self._square_root(clip, c)[upper] for clip in frames])

    def _square_root(self, clip: np.ndarray, c: int) -> np.ndarray:
        """Square root (c, c) of the covariance of a clip (t, d)."""
        # Halves, because the difference of two float32 numbers may overflow; deviations from the
        # first frame, because they are exactly 0 for constant features.
        z = clip / 2 - clip[0] / 2
        largest = np.abs(z).max()
        z /= largest or np.float32(1)
        if c < clip.shape[1]:
            z = z @ _projection(clip.shape[1], c, self.seed)
        z -= z.mean(axis=0)
        covariance = z.T @ z / np.float32(len(z))
        trace = np.trace(covariance)
        if trace == 0:
            return np.zeros((c, c), dtype=np.float32)
        three = 3 * np.eye(c, dtype=np.float32)
        y, inverse = covariance / trace, np.eye(c, dtype=np.float32)
        for _ in range(self.iterations):
            step = (three - inverse @ y) / 2
            y, inverse = y @ step, step @ inverse
        return y * (np.sqrt(trace) * largest * 2)


@functools.lru_cache(maxsize=8)
def _projection(d: int, c: int, seed: int) -> np.ndarray:
    """Matrix (d, c) with orthonormal columns, the same on every machine."""
    random = np.random.default_rng(seed).standard_normal((d, c))
    columns, triangle = np.linalg.qr(random)
    # A QR decomposition is unique up to signs, which differ between libraries.
    columns *= np.where(np.diag(triangle) < 0, -1, 1)
    result = columns.astype(np.float32)
    result.flags.writeable = False
    return result
