"""RIDGE: least squares on the words, solved from the shared statistic."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.packed import factor, gram, packed_diagonal, solve
from tapword.learners.statistics_learner import LinearLearner

# Chen et al.'s rule is for the error of a covariance; for words it is best a few times stronger
# (4 over 1 and 2 at 1 to 20 shots, on held-out speakers of Speech Commands' own training and
# validation clips).
OAS_TIMES = 4.0


class Ridge(LinearLearner):
    """Regularised least squares on one-hot words, features standardised; right from few to many.

    Weights solve (S_t + lam diag(v)) w_k = n_k (mean_k - m), with S_t the total scatter,
    v its diagonal over N, m the mean of all samples: what ridge regression on all samples at once
    would find, computed from counts, means and the within-word scatter alone.

    Parameters
    ----------
    lam
        Strength of the prior, in samples; None: four times the oracle approximating shrinkage of
        the features' correlations (Chen, Wiesel, Eldar and Hero, 2010), which follows from the
        statistic and falls from many samples' worth at first to few.
    balanced
        Treat every word as if it had been taught equally often; otherwise a word taught more often
        is thought likelier to be said.

    Notes
    -----
    Any order of the stream gives the same model, and two models merge exactly.

    Examples
    --------
    >>> learner = Ridge()
    >>> learner.learn_many(np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[2.0, 2.5], [0.2, 0.0]]))
    ['on', 'off']
    """

    def __init__(self, lam: float | None = None, balanced: bool = True):
        super().__init__()
        self.lam = lam
        self.balanced = balanced
        if lam is not None and not lam > 0:
            raise InputError(f"ridge: lam must be above 0 or none, got {lam}")

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Shares from least-squares scores, which lie between about 0 and 1."""
        # Scores of right and wrong words differ by about 1: ten times that tells them apart.
        return super().probabilities(10 * scores)

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self._statistics
        counts = statistics.counts.astype(np.float64)
        if self.balanced:
            counts = np.full(len(counts), counts.mean())
        n = counts.sum()
        means = statistics.means.astype(np.float64)
        centre = counts @ means / n
        shift = means - centre
        between = gram((np.sqrt(counts)[:, None] * shift).astype(np.float32))
        # The scatter may hold samples of words forgotten since: what counts is its share a sample.
        within = statistics.pooled() * np.float64(n / max(statistics.n_scatter, 1))
        total = within + between
        diagonal = packed_diagonal(statistics.dim)
        variance = total[diagonal] / n
        # A feature that never varied says nothing; any weight will do for what it multiplies.
        variance[variance <= 0] = 1.0
        lam = self.lam if self.lam is not None else self._strength(total, variance, n)
        total[diagonal] += lam * variance
        weights = solve(factor(total), counts[:, None] * shift)
        return weights, counts / n - weights @ centre

    def _strength(self, total: np.ndarray, variance: np.ndarray, n: float) -> float:
        """Oracle approximating shrinkage of the correlations, as a number of samples."""
        dim = len(variance)
        if dim == 1 or n < 2:
            return float(n)
        deviation = np.sqrt(variance)
        squares, start = 0.0, 0
        for j in range(dim):
            column = total[start : start + dim - j] / (n * deviation[j] * deviation[j:])
            squares += 2 * float(column @ column) - float(column[0] ** 2)
            start += dim - j
        spread = squares - dim
        if spread <= 0:
            return OAS_TIMES * n
        share = ((1 - 2 / dim) * squares + dim**2) / ((n + 1 - 2 / dim) * spread)
        return OAS_TIMES * n * share / (1 - min(share, 0.9))
