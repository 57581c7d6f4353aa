"""STOCHASTIC: one random frame for each feature, after Zeiler and Fergus (2013)."""

import numpy as np

from tapword.poolings.base import Pooling

# How often a draw goes round while a feature's activity moves one frame later: with this many,
# clips draw independently (tests/poolings) and rounding moves a draw by less than a thousandth.
ROUNDS = 100


class Stochastic(Pooling):
    """Draw a frame for each feature to learn from; predict from the expected value.

    Parameters
    ----------
    seed
        Seed of the draw.

    Notes
    -----
    Frames (t, d) give a vector (d,). Zeiler and Fergus draw in proportion to activations of a
    rectifier, which are never negative. Here the weight is max(g, 0), so frames of a rectifier are
    pooled as in the paper. Where a feature is never positive, all frames are equally likely. The
    paper's value would be 0 there; this one is negative and still informative.

    The pooling has no state. A draw depends on the seed, the feature's index and when the feature
    is active in the clip. So a clip gives the same vector alone, in a batch and in any order, and
    rounding changes few of its draws.

    Examples
    --------
    >>> frames = np.array([[1.0, -2.0], [3.0, -4.0]])
    >>> Stochastic().pool(frames)
    array([ 2.5, -3. ], dtype=float32)
    >>> Stochastic(seed=1).pool_for_learning(frames)
    array([ 3., -4.], dtype=float32)
    """

    revision = 1

    seed: int = 0

    def __post_init__(self) -> None:
        self._require_whole("seed", 0)

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return np.stack([_expected(clip) for clip in frames])

    def _reduce_for_learning(self, frames: np.ndarray) -> np.ndarray:
        offsets = np.random.default_rng(self.seed).random(frames.shape[2:])
        return np.stack([_drawn(clip, offsets) for clip in frames])


def _weights(clip: np.ndarray) -> np.ndarray:
    # In float64: sums of float32 may overflow.
    weights = np.maximum(clip, 0, dtype=np.float64)
    weights[:, ~weights.any(axis=0)] = 1
    return weights


def _expected(clip: np.ndarray) -> np.ndarray:
    weights = _weights(clip)
    mean = np.einsum("td,td->d", weights, clip) / weights.sum(axis=0)
    return mean.astype(np.float32)


def _drawn(clip: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Draw a frame for each feature of a clip (t, d): (d,)."""
    activity = np.abs(clip, dtype=np.float64)
    centre = np.arange(len(clip)) @ activity / np.maximum(activity.sum(axis=0), 1e-300)
    draw = (offsets + ROUNDS * centre) % 1
    cumulative = np.cumsum(_weights(clip), axis=0)
    frame = (cumulative <= draw * cumulative[-1]).sum(axis=0)
    # A draw of almost 1 may round up to the total.
    frame = np.minimum(frame, len(clip) - 1)
    return np.take_along_axis(clip, frame[None], axis=0)[0]
