"""COSINE: the angle to each word's mean, in the metric of how words vary."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.covariance import CovarianceLearner

# Samples that the prior counts for, for each number of a vector.
STRENGTH = 2.0


class Cosine(CovarianceLearner):
    """Cosine between a vector and each word's mean after whitening; right from the first sample.

    score_k = (x - c).L.(mean_k - c) / (|mean_k - c|_L r), with L = ((S_w + nu V) / (N + nu))^-1 and
    nu = 2 D: the prior V counts for two samples for each number of a vector, so that few samples
    lean on it and many override it. r is the length that samples have on average, in place of the
    vector's own: this changes no decision and keeps the scores linear.

    Parameters
    ----------
    prior
        "shipped": vectors come whitened by statistics of other words, which the spotter does; V is
        the identity and c zero. "diagonal": V is the features' own variance over all samples and c
        the mean of the words' means.
    covariance
        "full"; "block": blocks of `block` numbers on the diagonal, the rest taken as 0;
        "lowrank": the diagonal and `rank` to twice as many directions, where the order of samples
        matters a little and two models cannot be merged; "diagonal".
    block, rank
        See `covariance`.
    max_kb
        The state is never larger. Where `covariance` would leave no room for 30 words, the next
        smaller of full, block and diagonal is taken; a word too many is refused.

    Notes
    -----
    Any order of the stream gives the same model, and two models merge exactly, unless the
    covariance is "lowrank".

    Examples
    --------
    >>> learner = Cosine(covariance="full")
    >>> learner.learn_many(np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[2.0, 2.5], [0.2, 0.0]]))
    ['on', 'off']
    """

    def __init__(
        self,
        prior: str = "diagonal",
        covariance: str = "block",
        block: int = 96,
        rank: int = 16,
        max_kb: float | None = None,
    ):
        super().__init__()
        self.prior = prior
        self.covariance = covariance
        self.block = block
        self.rank = rank
        self.max_kb = max_kb
        if prior not in ("diagonal", "shipped"):
            raise InputError(f"cosine: prior must be diagonal or shipped, got {prior!r}")
        self._check_covariance()

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Shares from cosines, of which a right and a wrong word's differ by some tenths."""
        return super().probabilities(20 * scores)

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self._statistics
        means = statistics.means.astype(np.float64)
        strength = STRENGTH * statistics.dim
        share = 1 / (statistics.n_scatter + strength)
        if self.prior == "shipped":
            variance, centre = np.ones(statistics.dim), np.zeros(statistics.dim)
        else:
            variance = statistics.variances()
            # A feature that never varied says nothing; any weight will do for what it multiplies.
            variance[variance <= 0] = 1.0
            centre = means.mean(axis=0) if len(means) > 1 else np.zeros(statistics.dim)
        directions = means - centre
        weights = self._solve_covariance(share, share * strength * variance, directions)
        squares = np.einsum("kd,kd->k", weights, directions)
        # A sample lies about sqrt(D) from its word's mean, of which the mean of few still has some.
        within = statistics.dim * np.mean(1 - 1 / np.maximum(statistics.counts, 1))
        typical = np.sqrt(squares.mean() + within)
        # A word whose mean is the centre has no direction; it scores 0.
        lengths = np.sqrt(squares) * typical
        weights /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return weights, -weights @ centre
