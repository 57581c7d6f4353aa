"""Learners whose whole state is the shared statistic."""

from abc import abstractmethod

import numpy as np

from tapword.learners.base import Learner, StateReader
from tapword.learners.packed import packed_size
from tapword.learners.statistics import Statistics, WordStatistics


class StatisticsLearner(Learner):
    """A learner whose whole state is `Statistics`; a subclass gives `_scores`.

    Attributes
    ----------
    keeps_scatter
        Whether the rule needs the scatter or the means alone.
    per_word
        Whether each word has a scatter of its own.
    """

    mergeable = True
    keeps_scatter: bool = True
    per_word: bool = False

    def _size(self, dim: int) -> tuple[int, int]:
        scatter = 4 * packed_size(dim) if self.keeps_scatter else 0
        fixed, each = (0, scatter) if self.per_word else (scatter, 0)
        return fixed + 8, each + 4 * dim + 8

    def _start(self, dim: int) -> None:
        self._statistics = self._empty(dim)
        self._changed()

    def _empty(self, dim: int) -> Statistics:
        return WordStatistics(dim) if self.per_word else Statistics(dim, self.keeps_scatter)

    def _grow(self) -> None:
        self._statistics.add_word()
        self._changed()

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        self._statistics.update(x, k)
        self._changed()

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        self._statistics.update_many(X, indices)
        self._changed()

    def _merge(self, other: "StatisticsLearner", indices: np.ndarray) -> None:
        self._statistics.merge(other._statistics, indices)
        self._changed()

    def _forget(self, k: int) -> None:
        self._statistics.remove(k)
        self._changed()

    def _changed(self) -> None:
        """Drop what was solved from the statistic."""

    def _arrays(self) -> dict[str, np.ndarray]:
        return self._statistics.arrays()

    def _load(self, state: StateReader, n_words: int) -> None:
        self._statistics.load(state, n_words)
        self._changed()


class LinearLearner(StatisticsLearner):
    """A learner on the statistic whose scores are X @ weights.T + biases."""

    _linear: tuple[np.ndarray, np.ndarray] | None

    def _changed(self) -> None:
        self._linear = None

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, D) and biases (K,), float64; solved once after each change."""
        if self._linear is None:
            self._linear = self._solve()
        return self._linear

    def _scores(self, X: np.ndarray) -> np.ndarray:
        weights, biases = self.linear()
        return X @ weights.T + biases

    @abstractmethod
    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases from the statistic as it is now."""
