"""MAXW: what happens around each feature's maximum."""

import numpy as np

from tapword.poolings.base import MAX_FRAMES, Pooling


class Maxw(Pooling):
    """Each feature's maximum over time with l frames on either side: (t, d) -> ((2 l + 1) d,).

    Parameters
    ----------
    l
        Frames on either side; 0 is `max`.

    Notes
    -----
    The vector holds the d values l frames before each feature's own maximum, ..., the d maxima,
    ..., the d values l frames after. Of equal maxima the first counts. Beyond the clip's ends, its
    first or last frame is repeated.

    Examples
    --------
    >>> Maxw(l=1).pool(np.array([[1.0, 9.0], [2.0, 8.0], [4.0, 7.0], [3.0, 6.0]]))
    array([2., 9., 4., 9., 3., 8.], dtype=float32)
    """

    l: int = 2  # noqa: E741 - the paper's name

    def __post_init__(self) -> None:
        self._require_whole("l", 0, MAX_FRAMES)

    def dim(self, d: int) -> int:
        """Length of the vector: (2 * l + 1) * d."""
        return (2 * self.l + 1) * d

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, _ = frames.shape
        offsets = np.arange(-self.l, self.l + 1)[:, None]
        window = np.clip(frames.argmax(axis=1)[:, None] + offsets, 0, t - 1)
        return np.take_along_axis(frames, window, axis=1).reshape(b, -1)
