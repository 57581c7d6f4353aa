"""STOCHASTIC: a frame drawn for each feature, after Zeiler and Fergus (2013)."""

import numpy as np

from tapword.poolings.base import Pooling

# Rounds of the draw for each frame that a feature's activity lies later: so many that clips draw as
# if by chance (tests/poolings), so few that rounding moves a draw by less than a thousandth.
ROUNDS = 100


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

    There is no state: a draw follows from the seed, the feature's place and when the feature is
    active in the clip. So a clip is pooled alike alone, in a batch and in any order, and a clip
    that differs by rounding draws the same frames but for a few neighbours.

    Examples
    --------
    >>> frames = np.array([[1.0, -2.0], [3.0, -4.0]])
    >>> Stochastic().pool(frames)
    array([ 2.5, -3. ], dtype=float32)
    >>> Stochastic(seed=1).pool(frames, learning=True)
    array([ 3., -4.], dtype=float32)
    """

    revision = 1

    seed: int = 0

    def __post_init__(self) -> None:
        self._require_whole("seed", 0)

    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        places = np.random.default_rng(self.seed).random(frames.shape[2:])
        return np.stack([self._pool_clip(clip, places if learning else None) for clip in frames])

    def _pool_clip(self, clip: np.ndarray, places: np.ndarray | None) -> np.ndarray:
        # In float64: sums of float32 may overflow.
        weights = np.maximum(clip, 0, dtype=np.float64)
        weights[:, ~weights.any(axis=0)] = 1
        if places is None:
            mean = np.einsum("td,td->d", weights, clip) / weights.sum(axis=0)
            return mean.astype(np.float32)
        activity = np.abs(clip, dtype=np.float64)
        centre = np.arange(len(clip)) @ activity / np.maximum(activity.sum(axis=0), 1e-300)
        draw = (places + ROUNDS * centre) % 1
        reached = np.cumsum(weights, axis=0)
        frame = (reached <= draw * reached[-1]).sum(axis=0)
        # A draw of almost 1 may round up to the whole.
        frame = np.minimum(frame, len(clip) - 1)
        return np.take_along_axis(clip, frame[None], axis=0)[0]
