"""FLAT: no pooling, every frame one after the other."""

import numpy as np

from tapword.poolings.base import FixedLength


class Flat(FixedLength):
    """All frames, one after the other: (t, d) -> (n_frames * d,).

    Parameters
    ----------
    n_frames
        Number of frames to keep. None: the frames of a 1 s clip within a spotter, the clip's own
        frames otherwise. A longer clip loses the frames at its end; a shorter one is padded with
        zeros.

    Examples
    --------
    >>> Flat(n_frames=2).pool(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([1., 2., 3., 4.], dtype=float32)
    >>> Flat(n_frames=2).pool(np.array([[1.0, 2.0]]))
    array([1., 2., 0., 0.], dtype=float32)
    """

    n_frames: int | None = None

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, d = frames.shape
        wanted = self.n_frames or t
        result = np.zeros((b, wanted, d), dtype=np.float32)
        result[:, :t] = frames[:, :wanted]
        return result.reshape(b, wanted * d)
