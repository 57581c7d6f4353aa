"""RAP, rank-based average pooling without the averaging: the largest values over time."""

import math

import numpy as np

from tapword.poolings.base import FixedLength


class Rap(FixedLength):
    """The largest values of each feature over time, in descending order: (t, d) -> (k * d,).

    Parameters
    ----------
    share
        Share of the frames to keep, above 0 and up to 1.
    n_frames
        Number of frames that the share refers to: k = ceil(share * n_frames) values of each feature
        are kept for a clip of any length. None: the frames of a 1 s clip within a spotter, the
        clip's own frames otherwise.

    Notes
    -----
    The vector holds the d largest values of the clip (`max`), then the d second largest, and so on.
    A clip of fewer than k frames repeats its smallest value; zeros would rank above its
    negative values.

    Examples
    --------
    >>> Rap(share=0.5, n_frames=4).pool(np.array([[1.0, -2.0], [5.0, -9.0], [3.0, -4.0]]))
    array([ 5., -2.,  3., -4.], dtype=float32)
    >>> Rap(share=0.5, n_frames=4).pool(np.array([[1.0, -2.0]]))
    array([ 1., -2.,  1., -2.], dtype=float32)
    """

    share: float = 0.10
    n_frames: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("share", 0 < self.share <= 1, "above 0 and at most 1")

    def _kept(self, n_frames: int) -> int:
        # 0.1 * 30 is 3.0000000000000004 in binary: that is 3 values, not 4.
        return max(1, math.ceil(round(self.share * n_frames, 9)))

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, d = frames.shape
        kept = self._kept(self.n_frames or t)
        found = min(kept, t)
        largest = np.empty((b, kept, d), dtype=np.float32)
        for clip, out in zip(frames, largest, strict=True):
            out[:found] = np.sort(np.partition(clip, t - found, axis=0)[t - found :], axis=0)[::-1]
        largest[:, found:] = largest[:, found - 1 : found]
        return largest.reshape(b, kept * d)
