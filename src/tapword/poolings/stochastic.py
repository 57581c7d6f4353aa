"""STOCHASTIC: a frame drawn for each feature, after Zeiler and Fergus (2013)."""

import zlib

import numpy as np

from tapword.poolings.base import Pooling


class Stochastic(Pooling):
    """Learning: a frame drawn for each feature; predicting: the mean weighted by probability.

    Parameters
    ----------
    seed
        Of the draw.

    Notes
    -----
    Frames (t, d) give a vector (d,). Zeiler and Fergus draw in proportion to the activation, which
    comes from a rectifier and is never negative. Here the weight is max(g, 0), so that frames from
    a rectifier are pooled as they do. Where a feature fires in no frame, all its frames are equally
    likely and the value is a true, negative one: theirs would be 0 and say nothing.

    There is no state: the draw follows from the seed and the clip's own numbers, so a clip is
    pooled alike alone, in a batch and in any order.

    Examples
    --------
    >>> frames = np.array([[1.0, -2.0], [3.0, -4.0]])
    >>> Stochastic().pool(frames)
    array([ 2.5, -3. ], dtype=float32)
    >>> Stochastic(seed=1).pool(frames, learning=True)
    array([ 3., -2.], dtype=float32)
    """

    seed: int = 0

    def __post_init__(self) -> None:
        self._require_whole("seed", 0)

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        return np.stack([self._pool_clip(clip, learning) for clip in frames])

    def _pool_clip(self, clip: np.ndarray, learning: bool) -> np.ndarray:
        # In float64: sums of float32 may overflow.
        weights = np.maximum(clip, 0, dtype=np.float64)
        weights[:, ~weights.any(axis=0)] = 1
        if not learning:
            mean = np.einsum("td,td->d", weights, clip) / weights.sum(axis=0)
            return mean.astype(np.float32)
        random = np.random.default_rng([self.seed, zlib.crc32(clip.tobytes())])
        reached = np.cumsum(weights, axis=0)
        frame = (reached <= random.random(clip.shape[1]) * reached[-1]).sum(axis=0)
        # A draw of almost 1 may round up to the whole.
        frame = np.minimum(frame, len(clip) - 1)
        return np.take_along_axis(clip, frame[None], axis=0)[0]
