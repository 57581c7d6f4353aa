"""SQDA, streaming quadratic discriminant analysis: a covariance for each word."""

import numpy as np

from tapword.learners.packed import factor, packed_diagonal, whiten
from tapword.learners.statistics_learner import StatisticsLearner

# Vectors whitened at a time: bounds the float64 copies of a large batch.
CHUNK = 1024
# From this many samples per number of a vector, a word's own covariance is used alone: near 1 its
# inverse is noise (training/learner_constants.py prints the accuracies).
ENOUGH_PER_NUMBER = 4


class Sqda(StatisticsLearner):
    """Streaming quadratic discriminant analysis: a mean and a covariance per word.

    score_k = -((x - mean_k).C_k^-1.(x - mean_k) + ln det C_k) / 2
    C_k = (1 - eps) ((1 - w_k) S_k / n_k + w_k V) + eps I
    w_k = max(0, 1 - (n_k - 1) / enough)

    S_k is the scatter of word k around its mean and V the diagonal matrix of the features'
    variances within words, sum S_k / (N - K). Mixing in V is tapword's addition; variant
    "reference" is the method's own rule, w_k = 0.

    Parameters
    ----------
    eps
        Shrinkage of every covariance towards the identity, between 0 and 1.
    enough
        With more samples than this, only a word's own covariance counts; with fewer it is mixed
        with V. None: four times the vector's length. 0: mixed only for a single sample, which has
        no covariance and takes V.
    variant
        "exact", or "reference": as published, V is never mixed in, and the covariance of a single
        sample is eps I.

    Notes
    -----
    n samples span n - 1 directions. Along the others their covariance is eps, and near n = D its
    inverse is noise. Mixing in the pooled variances until n is a few times D avoids both. The
    pooled covariance would not help: it has the same problem while all samples together are about
    as many as D.

    Kept: n_k, mean_k and S_k, D (D + 1) / 2 numbers per word. Merging and forgetting are exact.
    Factors of the covariances are cached if they fit into `max_gb`; otherwise each call of `scores`
    computes them again.

    Examples
    --------
    >>> learner = Sqda(enough=0)
    >>> learner.learn_many(np.array([[0.0], [0.1], [9.0], [5.0]]), ["off", "off", "on", "on"])
    >>> learner.predict(np.array([[0.2], [3.0]]))
    ['off', 'on']
    """

    per_word = True

    eps: float = 1e-4
    enough: int | None = None
    variant: str = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("eps", 0 < self.eps <= 1, "above 0 and at most 1")
        self._require_whole("enough", 0, none=True)
        self._require_one_of("variant", "exact", "reference")

    def _start(self, dim: int) -> None:
        self._changes = 0
        # Row -> what its factor was computed from, the factor (D, D) and ln det.
        self._factors: dict[int, tuple[tuple[int, int], np.ndarray, float]] = {}
        super()._start(dim)

    def _unlearn_one(self, x: np.ndarray, k: int, scattered: bool) -> None:
        # An equal number of samples need not mean the same samples.
        self._factors.clear()
        super()._unlearn_one(x, k, scattered)

    def _keep_rows(self, indices: list[int]) -> None:
        self._factors = {}
        super()._keep_rows(indices)

    def _forget(self, k: int) -> None:
        self._factors.clear()
        super()._forget(k)

    def _changed(self) -> None:
        self._changes += 1

    def _scores(self, X: np.ndarray) -> np.ndarray:
        statistics = self.statistics
        words, diagonal = range(len(statistics.counts)), packed_diagonal(statistics.dim)
        squares = np.stack([statistics.scatter_of(k)[diagonal] for k in words])
        within = squares.sum(axis=0, dtype=np.float64) / max(statistics.n_scatter - len(words), 1)
        scores = np.empty((len(X), len(words)))
        for k, mean in enumerate(statistics.means.astype(np.float64)):
            lower, log_determinant = self._factor(k, within)
            for start in range(0, len(X), CHUNK):
                rows = slice(start, start + CHUNK)
                distances = np.square(whiten(lower, X[rows] - mean)).sum(axis=1)
                scores[rows, k] = -0.5 * (distances + log_determinant)
        return scores

    def _factor(self, k: int, variances: np.ndarray) -> tuple[np.ndarray, float]:
        """Factor (D, D) of a word's covariance and its ln det, from the variances within words."""
        statistics = self.statistics
        dim, n = statistics.dim, int(statistics.counts[k])
        enough = ENOUGH_PER_NUMBER * dim if self.enough is None else self.enough
        alone = n > max(enough, 1) or self.variant == "reference"
        source = (n, 0 if alone else self._changes)
        held = self._factors.get(k)
        if held is not None and held[0] == source:
            return held[1:]
        weight = 0.0 if alone else 1 - (n - 1) / max(enough, 1)
        scale = (1 - self.eps) * (1 - weight) / n
        # Before numpy 2, float32 times a float64 number stays float32.
        covariance = np.multiply(statistics.scatter_of(k), scale, dtype=np.float64)
        covariance[packed_diagonal(dim)] += (1 - self.eps) * weight * variances + self.eps
        lower = factor(covariance)
        log_determinant = 2 * float(np.log(np.diagonal(lower)).sum())
        if self.state_bytes.total + lower.nbytes * len(self.rows) <= self.max_gb * 1e9:
            self._factors[k] = source, lower, log_determinant
        return lower, log_determinant
