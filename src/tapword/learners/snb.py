"""SNB, streaming Gaussian naive Bayes: a variance for each word and feature."""

from typing import Self

import numpy as np

from tapword.errors import InputError
from tapword.learners.base import StateReader
from tapword.learners.statistics import Statistics
from tapword.learners.statistics_learner import StatisticsLearner


class Snb(StatisticsLearner):
    """Streaming Gaussian naive Bayes: one mean and one variance a word and feature.

    score_k = ln p(x | k) = -sum_d (ln(2 pi v_kd) + (x_d - mean_kd)^2 / v_kd) / 2
    v_k = (1 - w_k) M2_k / n_k + w_k v + var_smoothing * (largest variance of a feature)
    w_k = max(0, 1 - (n_k - 1) / enough)

    M2_k are the summed squared deviations of word k (Welford), v = sum M2_k / (N - K) the
    variances within words, pooled.

    Parameters
    ----------
    var_smoothing
        Share of the largest variance (over all samples) added to each, as in scikit-learn's
        GaussianNB.
    enough
        Samples from which on a word's variances stand alone, and the score is that of GaussianNB
        with equal priors. Fewer lean on the pooled ones; with one sample, whose own variance is
        0, a word takes them whole. 0: always alone, but for that.
    variant
        "exact", or "reference": as the public code of the method has it, M2_k / (n_k - 1) (0 for
        one sample) shrunk by `eps`, and the score of slda with it, which leaves out the parts of
        the likelihood that differ between words.
    eps
        Shrinkage towards 1 in variant "reference".

    Notes
    -----
    Kept: n_k, mean_k, M2_k. Merging (variant "exact") and forgetting are exact.

    Examples
    --------
    >>> learner = Snb()
    >>> learner.learn_many(np.array([[0.0], [0.1], [9.0], [5.0]]), ["off", "off", "on", "on"])
    >>> learner.predict(np.array([[0.2], [4.0]]))
    ['off', 'on']
    """

    _statistics: "_Variances"

    def __init__(
        self,
        var_smoothing: float = 1e-9,
        enough: int = 50,
        variant: str = "exact",
        eps: float = 1e-4,
    ):
        super().__init__()
        self.var_smoothing = var_smoothing
        self.enough = enough
        self.variant = variant
        self.eps = eps
        if not 0 <= var_smoothing < np.inf:
            raise InputError(f"snb: var_smoothing must be at least 0, got {var_smoothing}")
        if enough < 0:
            raise InputError(f"snb: enough must be at least 0, got {enough}")
        if variant not in ("exact", "reference"):
            raise InputError(f"snb: variant must be exact or reference, got {variant!r}")
        if not 0 < eps <= 1:
            raise InputError(f"snb: eps must be above 0 and at most 1, got {eps}")
        self.mergeable = variant == "exact"

    def _size(self, dim: int) -> tuple[int, int]:
        return 8, 2 * 4 * dim + 8

    def _empty(self, dim: int) -> "_Variances":
        return _Variances(dim)

    def _changed(self) -> None:
        self._solved: np.ndarray | None = None

    def _scores(self, X: np.ndarray) -> np.ndarray:
        means = self._statistics.means.astype(np.float64)
        if self._solved is None:
            self._solved = self._variances()
        if self.variant == "reference":
            weights = means / self._solved
            return X @ weights.T - 0.5 * (means * weights).sum(axis=1)
        scores = np.empty((len(X), len(means)))
        for k, (mean, variances) in enumerate(zip(means, self._solved, strict=True)):
            distances = (np.square(X - mean) / variances).sum(axis=1)
            scores[:, k] = -0.5 * (distances + np.log(2 * np.pi * variances).sum())
        return scores

    def _variances(self) -> np.ndarray:
        """Variances (K, D) that the rule uses."""
        statistics = self._statistics
        n = statistics.counts[:, None].astype(np.float64)
        squares = statistics.squares.astype(np.float64)
        if self.variant == "reference":
            return (1 - self.eps) * squares / np.maximum(n - 1, 1) + self.eps
        means = statistics.means.astype(np.float64)
        within = squares.sum(axis=0)
        between = (n * np.square(means - (n * means).sum(axis=0) / n.sum())).sum(axis=0)
        smoothing = self.var_smoothing * ((within + between) / n.sum()).max()
        pooled = within / max(n.sum() - len(n), 1)
        weight = np.maximum(0, 1 - (n - 1) / max(self.enough, 1))
        variances = (1 - weight) * squares / n + weight * pooled + smoothing
        # Features that never vary, where nothing smooths them: ruled by distance alone.
        return np.maximum(variances, np.finfo(np.float32).tiny)


class _Variances(Statistics):
    """The statistic with the diagonal of each word's scatter alone: `squares` (K, D)."""

    def __init__(self, dim: int):
        super().__init__(dim, scatter=False)
        self.keeps_scatter = True
        self.squares = np.zeros((0, dim), dtype=np.float32)

    def add_word(self) -> None:
        super().add_word()
        self.squares = np.vstack([self.squares, np.zeros((1, self.dim), dtype=np.float32)])

    def remove(self, k: int) -> None:
        super().remove(k)
        self.squares = np.delete(self.squares, k, axis=0)

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"squares": self.squares}

    def load(self, state: StateReader, n_words: int) -> None:
        super().load(state, n_words)
        self.squares = state.take("squares", (n_words, self.dim))

    def _add_outer(self, k: int, e: np.ndarray, weight: float) -> None:
        self.squares[k] += np.float32(weight) * e * e

    def _add_rows(self, words: np.ndarray, residuals: np.ndarray, rows: np.ndarray) -> None:
        for row, k in enumerate(words):
            self.squares[k] += np.square(residuals[rows == row]).sum(axis=0)

    def _add_scatter(self, other: Self, words: np.ndarray) -> None:
        self.squares[words] += other.squares
