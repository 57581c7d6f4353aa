"""SNB, streaming Gaussian naive Bayes: a variance for each word and feature."""

import numpy as np

from tapword.learners.base import StateReader
from tapword.learners.statistics import KahanSum, Statistics, WordStatistics
from tapword.learners.statistics_learner import StatisticsLearner


class Snb(StatisticsLearner):
    """Streaming Gaussian naive Bayes: a mean and a variance per word and feature.

    score_k = ln p(x | k) = -sum_d (ln(2 pi v_kd) + (x_d - mean_kd)^2 / v_kd) / 2
    v_k = (1 - w_k) M2_k / n_k + w_k v + var_smoothing * (largest variance of a feature)
    w_k = max(0, 1 - (n_k - 1) / enough)

    M2_k are the summed squared deviations of word k (Welford), v = sum M2_k / (N - K) the pooled
    variances within words. Mixing in v is tapword's addition; variant "reference" is the method's
    own code.

    Parameters
    ----------
    var_smoothing
        Share of the largest variance (over all samples) added to each, as in scikit-learn's
        GaussianNB.
    enough
        With more samples than this, only a word's own variances count, and its score is that of
        GaussianNB with equal priors. With fewer they are mixed with the pooled ones; a single
        sample takes the pooled ones alone. 0: mixed only for a single sample. The default is about
        the best that training/learner_constants.py tries.
    variant
        "exact", or "reference", as in the method's public code: the variance is M2_k / (n_k - 1)
        (0 for one sample) shrunk by `eps`, and the score is that of slda, which leaves out terms of
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

    per_word = True

    var_smoothing: float = 1e-9
    enough: int = 50
    variant: str = "exact"
    eps: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("var_smoothing", 0 <= self.var_smoothing < np.inf, "at least 0")
        self._require_whole("enough", 0)
        self._require_one_of("variant", "exact", "reference")
        self._require("eps", 0 < self.eps <= 1, "above 0 and at most 1")
        self.mergeable = self.variant == "exact"

    def _size(self, dim: int) -> tuple[int, int]:
        return 8, 2 * 4 * dim + 8

    def _empty(self, dim: int) -> "_Variances":
        return _Variances(dim)

    def _changed(self) -> None:
        self._solved: np.ndarray | None = None

    def _scores(self, X: np.ndarray) -> np.ndarray:
        means = self.statistics.means.astype(np.float64)
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
        statistics = self.statistics
        n = statistics.counts[:, None].astype(np.float64)
        squares = np.array([statistics.scatter_of(k) for k in range(len(n))], dtype=np.float64)
        if self.variant == "reference":
            return (1 - self.eps) * squares / np.maximum(n - 1, 1) + self.eps
        means = statistics.means.astype(np.float64)
        within = squares.sum(axis=0)
        between = (n * np.square(means - (n * means).sum(axis=0) / n.sum())).sum(axis=0)
        smoothing = self.var_smoothing * ((within + between) / n.sum()).max()
        pooled = within / max(n.sum() - len(n), 1)
        weight = np.maximum(0, 1 - (n - 1) / max(self.enough, 1))
        variances = (1 - weight) * squares / n + weight * pooled + smoothing
        # Avoids a division by 0 for constant features without smoothing.
        return np.maximum(variances, np.finfo(np.float32).tiny)


class _Variances(WordStatistics):
    """The statistic with only the diagonal of each word's scatter, saved as `squares` (K, D)."""

    def __init__(self, dim: int):
        super().__init__(dim, block=1)

    def arrays(self) -> dict[str, np.ndarray]:
        squares = np.array([one.rounded() for one in self._sums], dtype=np.float32)
        return Statistics.arrays(self) | {"squares": squares.reshape(-1, self.dim)}

    def load(self, state: StateReader, n_rows: int) -> None:
        Statistics.load(self, state, n_rows)
        self._sums = [KahanSum(row) for row in state.take("squares", (n_rows, self.dim))]
