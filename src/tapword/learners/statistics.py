"""The shared statistic: counts, means and the pooled within-word scatter.

    e = x - mean_k;  S_w += n_k / (n_k + 1) * e e^T;  mean_k += e / (n_k + 1);  n_k += 1

It equals the batch within-word scatter whatever the order, and two of them merge exactly
(Chan, Golub, LeVeque 1983). Of S_w only the lower triangle is kept, packed by columns as BLAS
and LAPACK name it (`sspr`, `strttp`, `dtpttr`): half the memory, one pass over it per sample.
"""

from abc import abstractmethod

import numpy as np
from scipy.linalg import blas, lapack

from tapword.errors import InputError
from tapword.learners.base import Learner, StateReader

# Rows that one rank-k update takes at a time: bounds the copy of a large batch.
_CHUNK = 4096


class Statistics:
    """Counts (K,), means (K, D) and scatter (D (D + 1) / 2,), or (0,) where it is not wanted.

    Attributes
    ----------
    n_scatter
        Samples behind `scatter`; forgetting a word does not lower it, because the word's share
        of the scatter stays.

    Examples
    --------
    >>> statistics = Statistics(dim=1)
    >>> statistics.add_word()
    >>> for value in (1.0, 2.0, 6.0):
    ...     statistics.update(np.array([value], dtype=np.float32), 0)
    >>> statistics.means[0], statistics.scatter
    (array([3.], dtype=float32), array([14.], dtype=float32))
    """

    def __init__(self, dim: int, scatter: bool = True):
        self.dim = dim
        self.counts = np.zeros(0, dtype=np.int64)
        self.means = np.zeros((0, dim), dtype=np.float32)
        self.scatter = np.zeros(packed_size(dim) if scatter else 0, dtype=np.float32)
        self.n_scatter = 0

    def add_word(self) -> None:
        """Add a word without samples as the last row."""
        self.counts = np.append(self.counts, 0)
        self.means = np.vstack([self.means, np.zeros((1, self.dim), dtype=np.float32)])

    def update(self, x: np.ndarray, k: int, weight: float | None = None) -> None:
        """Add one sample of word `k`; `weight` replaces n_k / (n_k + 1) in the scatter."""
        n = int(self.counts[k])
        e = x - self.means[k]
        self._add_outer(e, n / (n + 1) if weight is None else weight)
        self.means[k] += e / np.float32(n + 1)
        self.counts[k] = n + 1
        self.n_scatter += 1

    def update_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        """Add rows of `X` (n, D) of words `indices` (n,): equal to `update` one by one."""
        for start in range(0, len(X), _CHUNK):
            self._update_chunk(X[start : start + _CHUNK], indices[start : start + _CHUNK])

    def _update_chunk(self, X: np.ndarray, indices: np.ndarray) -> None:
        words, rows = np.unique(indices, return_inverse=True)
        new = np.bincount(rows)
        members = np.zeros((len(words), len(X)), dtype=np.float32)
        members[rows, np.arange(len(X))] = 1 / new[rows]
        batch_means = members @ X
        shift, weights = self._shift(words, batch_means, new)
        if self.scatter.size:
            # Batch scatter around its own means, and the means' moves as rows of their own.
            residuals = np.vstack([X - batch_means[rows], shift * np.sqrt(weights)[:, None]])
            product = blas.ssyrk(1.0, residuals.T, lower=1)
            self.scatter += lapack.strttp(product, uplo="L")[0]
        self.n_scatter += len(X)

    def merge(self, other: "Statistics", words: np.ndarray) -> None:
        """Add another's samples; `words` (K_other,) are the rows here of its words."""
        shift, weights = self._shift(words, other.means, other.counts)
        if self.scatter.size:
            for e, weight in zip(shift, weights, strict=True):
                self._add_outer(e, float(weight))
            self.scatter += other.scatter
        self.n_scatter += other.n_scatter

    def remove(self, k: int) -> None:
        """Drop a word's count and mean. Its share of the scatter cannot be taken out."""
        self.counts = np.delete(self.counts, k)
        self.means = np.delete(self.means, k, axis=0)

    def _shift(
        self, words: np.ndarray, means: np.ndarray, new: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move means of `words` by `new` samples each; give the moves and n_a n_b / (n_a + n_b)."""
        old = self.counts[words]
        shift = means - self.means[words]
        total = np.maximum(old + new, 1)
        self.means[words] += shift * (new / total).astype(np.float32)[:, None]
        self.counts[words] += new
        return shift, (old * new / total).astype(np.float32)

    def _add_outer(self, e: np.ndarray, weight: float) -> None:
        if self.scatter.size and weight:
            blas.sspr(self.dim, weight, e, self.scatter, lower=1, overwrite_ap=1)


class StatisticsLearner(Learner):
    """A learner whose whole state is `Statistics`; a subclass gives `_scores`.

    Attributes
    ----------
    keeps_scatter
        Whether the rule needs the scatter or the means alone.
    """

    mergeable = True
    keeps_scatter = True

    def _size(self, dim: int) -> tuple[int, int]:
        return (4 * packed_size(dim) if self.keeps_scatter else 0) + 8, 4 * dim + 8

    def _start(self, dim: int) -> None:
        self._statistics = Statistics(dim, self.keeps_scatter)
        self._changed()

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
        statistics = self._statistics
        arrays: dict[str, np.ndarray] = {
            "means": statistics.means,
            "counts": statistics.counts,
            "n_scatter": np.array([statistics.n_scatter]),
        }
        if self.keeps_scatter:
            arrays["scatter"] = statistics.scatter
        return arrays

    def _load(self, state: StateReader, n_words: int) -> None:
        statistics = self._statistics
        statistics.means = state.take("means", (n_words, statistics.dim))
        statistics.counts = state.take("counts", (n_words,), np.int64)
        statistics.n_scatter = int(state.take("n_scatter", (1,), np.int64)[0])
        if self.keeps_scatter:
            statistics.scatter = state.take("scatter", (packed_size(statistics.dim),))
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


def packed_size(dim: int) -> int:
    """Numbers in the lower triangle of a (dim, dim) matrix."""
    return dim * (dim + 1) // 2


def packed_diagonal(dim: int) -> np.ndarray:
    """Positions of the diagonal in a packed lower triangle, shape (dim,)."""
    column = np.arange(dim)
    return column * dim - column * (column - 1) // 2


def factor(packed: np.ndarray) -> np.ndarray:
    """Cholesky factor of a packed covariance, in float64.

    Sums in float32 can leave a matrix of nearly dependent features indefinite by rounding alone;
    then each diagonal entry is raised by a share of itself, from float32's rounding upwards,
    until it is not.

    Parameters
    ----------
    packed
        Shape (D (D + 1) / 2,), float64, lower triangle by columns.

    Returns
    -------
    np.ndarray
        Shape (D, D), Fortran order, lower triangle (the upper one is not cleared).
    """
    dim = (int(np.sqrt(8 * len(packed) + 1)) - 1) // 2
    diagonal = packed[packed_diagonal(dim)]
    for jitter in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        matrix = lapack.dtpttr(dim, packed, uplo="L")[0]
        matrix[np.diag_indices(dim)] = diagonal * (1 + jitter)
        lower, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lower
    raise InputError("the features are too nearly dependent for a covariance to be inverted")


def solve(lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve with a factor of `factor`: rhs (K, D) -> (K, D), float64."""
    return lapack.dpotrs(lower, np.asfortranarray(rhs.T, dtype=np.float64), lower=1)[0].T
