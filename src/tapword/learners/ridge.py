"""RIDGE: least squares on the words, solved from the shared statistic."""

import numpy as np

from tapword.learners.packed import factor, gram, packed_diagonal, solve
from tapword.learners.statistics_learner import LinearLearner

# At most this shrinkage: the regularisation, share / (1 - share), has a pole at 1.
MAX_SHRINKAGE = 0.9


class Ridge(LinearLearner):
    """Ridge regression on one-hot words with standardised features.

    Weights solve (S_t + lam diag(v)) w_k = n_k (mean_k - m), with S_t the total scatter, v its
    diagonal over N, m the mean of all samples. This equals ridge regression on all samples at once,
    computed from counts, means and the within-word scatter.

    Parameters
    ----------
    lam
        Regularisation, in samples. None: four times the oracle approximating shrinkage of the
        features' correlations (Chen, Wiesel, Eldar and Hero, 2010), which follows from the
        statistic and falls as samples come in.
    balanced
        Treat all words as if taught equally often. Otherwise a word taught more often is assumed
        to be said more often.
    scatter
        "shared" or "per-word": see `LinearLearner`.

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

    # Chen et al. minimise a covariance's error; classification works best with a few times as much.
    oas_times = 4.0
    # Scores of right and wrong words differ by up to 1. Right words of held-out speakers would be
    # likelier with more; training/learner_constants.py prints how much, and tries `oas_times`.
    sharpness = 10.0

    lam: float | None = None
    balanced: bool = True
    scatter: str = "shared"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("lam", self.lam is None or self.lam > 0, "above 0 or none")

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self.effective
        counts = statistics.counts.astype(np.float64)
        if self.balanced:
            counts = np.full(len(counts), counts.mean())
        n = counts.sum()
        means = statistics.means.astype(np.float64)
        centre = counts @ means / n
        shift = means - centre
        between = gram((np.sqrt(counts)[:, None] * shift).astype(np.float32))
        # The scatter may contain samples of forgotten words, so it is scaled per sample.
        scale = n / max(statistics.n_scatter, 1)
        # Before numpy 2, float32 times a float64 number stays float32.
        within = np.multiply(statistics.pooled(), scale, dtype=np.float64)
        total = within + between
        diagonal = packed_diagonal(statistics.dim)
        variance = total[diagonal] / n
        # A constant feature carries no information; any positive weight will do.
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
            return self.oas_times * n
        share = ((1 - 2 / dim) * squares + dim**2) / ((n + 1 - 2 / dim) * spread)
        return self.oas_times * n * share / (1 - min(share, MAX_SHRINKAGE))
