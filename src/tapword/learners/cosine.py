"""COSINE: the angle to each word's mean, in the metric of how words vary."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.statistics_learner import FORMS, CovarianceLearner

# A vector shorter than this has no direction; it scores 0.
SHORTEST = 1e-12


class Cosine(CovarianceLearner):
    """Cosine between a vector and each word's mean after whitening; works from the first sample.

    score_k = (x - c).L.(mean_k - c) / (|mean_k - c|_L r), with L = ((S_w + nu V) / (N + nu))^-1 and
    nu = 2 D: the prior V counts for two samples per number of a vector, so that it decides while
    samples are few. r is the average length of samples, in place of the vector's own: this changes
    no decision and keeps the scores linear.

    With covariance "none" L is the identity and c zero, r is the vector's own length, and the
    score is the cosine itself: it means the same however many samples there are, of however many
    words. Means are all that is kept.

    Parameters
    ----------
    prior
        "shipped": for vectors that the spotter has whitened by how other words vary; V is the
        identity and c zero. "diagonal": V is the features' own variance over all samples and c the
        mean of the words' means.
    covariance, block, rank, max_kb
        How much of the covariance is kept: see `CovarianceLearner`; with the shipped prior also
        "none".
    scatter
        "shared" or "per-word": see `LinearLearner`.

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

    # Samples that the prior counts for, for each number of a vector: accuracy hardly depends on it.
    # With this sharpness the right words of held-out speakers are likeliest. Both are printed by
    # training/learner_constants.py.
    strength = 2.0
    sharpness = 20.0

    forms = (*FORMS, "none")

    prior: str = "diagonal"
    covariance: str = "block"
    block: int = 96
    rank: int = 16
    max_kb: float | None = None
    scatter: str = "shared"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_one_of("prior", "diagonal", "shipped")
        if self.is_angle and self.prior != "shipped":
            raise InputError("cosine: covariance none goes with prior shipped alone")

    @property
    def is_angle(self) -> bool:
        """Whether scores are plain cosines to the words' means."""
        return self.covariance == "none"

    def _scores(self, X: np.ndarray) -> np.ndarray:
        scores = super()._scores(X)
        if self.is_angle:
            scores /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), SHORTEST)
        return scores

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self.statistics
        means = statistics.means.astype(np.float64)
        if self.is_angle:
            lengths = np.linalg.norm(means, axis=1, keepdims=True)
            return means / np.maximum(lengths, SHORTEST), np.zeros(len(means))
        strength = self.strength * statistics.dim
        share = 1 / (statistics.n_scatter + strength)
        if self.prior == "shipped":
            variance, centre = np.ones(statistics.dim), np.zeros(statistics.dim)
        else:
            variance = statistics.variances()
            # A feature that never varied says nothing; any weight will do for what it multiplies.
            variance[variance <= 0] = 1.0
            centre = means.mean(axis=0) if len(means) > 1 else np.zeros(statistics.dim)
        directions = means - centre
        weights = statistics.solve(share, share * strength * variance, directions)
        squares = np.einsum("kd,kd->k", weights, directions)
        # A sample lies about sqrt(D) from its word's true mean; a mean of n samples still holds
        # 1 / n of its squared distance.
        within = statistics.dim * np.mean(1 - 1 / np.maximum(statistics.counts, 1))
        typical = np.sqrt(squares.mean() + within)
        # A word whose mean is the centre has no direction; it scores 0.
        lengths = np.sqrt(squares) * typical
        weights /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return weights, -weights @ centre
