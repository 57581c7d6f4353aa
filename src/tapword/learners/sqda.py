"""SQDA, streaming quadratic discriminant analysis: a covariance for each word."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.base import StateReader
from tapword.learners.packed import factor, packed_diagonal, whiten
from tapword.learners.statistics import WordStatistics
from tapword.learners.statistics_learner import StatisticsLearner

# Rows whitened at a time: bounds the float64 copies of a large batch.
_CHUNK = 1024


class Sqda(StatisticsLearner):
    """Streaming quadratic discriminant analysis: one mean and one covariance a word.

    score_k = -((x - mean_k).C_k^-1.(x - mean_k) + ln det C_k) / 2
    C_k = (1 - eps) ((1 - w_k) S_k / n_k + w_k V) + eps I
    w_k = max(0, 1 - (n_k - 1) / enough)

    S_k is the scatter of word k around its mean and V the diagonal matrix of the features'
    variances within words, sum S_k / (N - K).

    Parameters
    ----------
    eps
        Shrinkage of every covariance towards the identity, between 0 and 1.
    enough
        Samples from which on a word's covariance stands alone; None: four times the vector's
        length; 0: always alone (a word of one sample, which has none, takes V).

    Notes
    -----
    n samples span n - 1 directions. Along the others a covariance of their own is eps, and near
    n = D it inverts to noise; leaning on the pooled variances, which every word knows well from
    few samples, until n is a few times D avoids both. (Leaning on the pooled covariance would
    not: it has the same trouble while all samples together are about as many as D.)

    Kept: n_k, mean_k and S_k, D (D + 1) / 2 numbers a word. Merging and forgetting are exact.
    Factors of the covariances are held besides where they fit into `max_gb`, else each call of
    `scores` makes them anew.

    Examples
    --------
    >>> learner = Sqda(enough=0)
    >>> learner.learn_many(np.array([[0.0], [0.1], [9.0], [5.0]]), ["off", "off", "on", "on"])
    >>> learner.predict(np.array([[0.2], [3.0]]))
    ['off', 'on']
    """

    per_word = True
    _statistics: WordStatistics

    def __init__(self, eps: float = 1e-4, enough: int | None = None):
        super().__init__()
        self.eps = eps
        self.enough = enough
        if not 0 < eps <= 1:
            raise InputError(f"sqda: eps must be above 0 and at most 1, got {eps}")
        if enough is not None and enough < 0:
            raise InputError(f"sqda: enough must be at least 0 or none, got {enough}")

    def _start(self, dim: int) -> None:
        self._changes = 0
        # Of each word: what its factor was made from, the factor (D, D) and ln det.
        self._factors: list[tuple[tuple[int, int], np.ndarray, float] | None] = []
        super()._start(dim)

    def _grow(self) -> None:
        self._factors.append(None)
        super()._grow()

    def _forget(self, k: int) -> None:
        del self._factors[k]
        super()._forget(k)

    def _load(self, state: StateReader, n_words: int) -> None:
        self._factors = [None] * n_words
        super()._load(state, n_words)

    def _changed(self) -> None:
        self._changes += 1

    def _scores(self, X: np.ndarray) -> np.ndarray:
        variances = self._variances()
        scores = np.empty((len(X), len(self.words)))
        for k, mean in enumerate(self._statistics.means.astype(np.float64)):
            lower, log_determinant = self._factor(k, variances)
            for start in range(0, len(X), _CHUNK):
                rows = slice(start, start + _CHUNK)
                distances = np.square(whiten(lower, X[rows] - mean)).sum(axis=1)
                scores[rows, k] = -0.5 * (distances + log_determinant)
        return scores

    def _variances(self) -> np.ndarray:
        """Variance of each feature within words, (D,)."""
        statistics = self._statistics
        diagonal = packed_diagonal(statistics.dim)
        total = np.sum([scatter[diagonal] for scatter in statistics.scatters], axis=0, dtype=float)
        return total / max(statistics.n_scatter - len(statistics.counts), 1)

    def _factor(self, k: int, variances: np.ndarray) -> tuple[np.ndarray, float]:
        statistics = self._statistics
        dim, n = statistics.dim, int(statistics.counts[k])
        enough = 4 * dim if self.enough is None else self.enough
        alone = n > max(enough, 1)
        source = (n, 0 if alone else self._changes)
        held = self._factors[k]
        if held is not None and held[0] == source:
            return held[1:]
        weight = 0.0 if alone else 1 - (n - 1) / max(enough, 1)
        share = np.float64((1 - self.eps) * (1 - weight) / n)
        covariance = statistics.scatters[k] * share
        covariance[packed_diagonal(dim)] += (1 - self.eps) * weight * variances + self.eps
        lower = factor(covariance)
        log_determinant = 2 * float(np.log(np.diagonal(lower)).sum())
        if self.state_bytes.total + lower.nbytes * len(self.words) <= self.max_gb * 1e9:
            self._factors[k] = source, lower, log_determinant
        return lower, log_determinant
