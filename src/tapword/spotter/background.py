"""The background: windows of running speech, which scores and thresholds are measured against."""

import functools

import numpy as np

from tapword.learners.base import Learner
from tapword.learners.cosine import Cosine

# How many windows are the nearest, and how much of their cosine is taken off a word's. Words of
# other people are missed least with these (training/background.py).
NEAREST, SHARE = 3, 0.5


def applies(learner: Learner) -> bool:
    """Whether a learner's scores are measured against the background: plain cosines are."""
    return isinstance(learner, Cosine) and learner.is_angle


class Background:
    """Windows of running speech as an encoder's vectors.

    A sound that is like many other sounds is like a word by chance more often. So what counts is
    how much nearer it is to the word than to the nearest windows here.

    Parameters
    ----------
    vectors
        Shape (n, D), n at least 4, of any length.

    Examples
    --------
    >>> background = Background(np.eye(4, dtype=np.float32))
    >>> background.level(np.array([[2.0, 0.0, 0.0, 0.0]])).round(3)
    array([0.167])
    """

    def __init__(self, vectors: np.ndarray):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self.vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)

    def level(self, X: np.ndarray) -> np.ndarray:
        """Give what is taken off the cosines of vectors (n, D), (n,)."""
        lengths = np.maximum(np.linalg.norm(X, axis=1), 1e-12)
        return self._level(X.astype(np.float32) @ self.vectors.T) / lengths

    def scores(self, directions: np.ndarray) -> np.ndarray:
        """Score the windows themselves as words of unit vectors (K, D): (n, K)."""
        return self.vectors @ directions.T.astype(np.float32) - self.levels[:, None]

    @functools.cached_property
    def levels(self) -> np.ndarray:
        """What is taken off the cosines of the windows themselves, each among the others, (n,)."""
        cosines = self.vectors @ self.vectors.T
        np.fill_diagonal(cosines, -1.0)
        return self._level(cosines)

    @functools.cached_property
    def least(self) -> float:
        """What is taken off nearly all cosines at least: 98% of the windows' own."""
        return float(np.quantile(self.levels, 0.02))

    @staticmethod
    def _level(cosines: np.ndarray) -> np.ndarray:
        return SHARE * np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
