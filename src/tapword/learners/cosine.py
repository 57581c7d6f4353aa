"""COSINE: the angle to each word's mean, in the metric of how words vary."""

import numpy as np

from tapword.learners.statistics_learner import CovarianceLearner


class Cosine(CovarianceLearner):
    """Cosine between a vector and each word's mean after whitening, from the first sample on.

    score_k = (x - c).L.(mean_k - c) / (|mean_k - c|_L r), with L = ((S_w + nu V) / (N + nu))^-1 and
    nu = 2 D: the prior V weighs as much as two samples per number of a vector, so it dominates
    while samples are few. r is the average length of samples instead of the vector's own, which
    changes no decision and keeps the scores linear.

    Parameters
    ----------
    prior
        "shipped": for vectors that the spotter has whitened; V is the identity and c zero.
        "diagonal": V is the features' variance over all samples and c the mean of the words' means.
    covariance, block, rank, max_kb
        How much of the covariance is kept: see `CovarianceLearner`.
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

    # Weight of the prior in samples per number of a vector; accuracy hardly depends on it. This
    # sharpness makes right words of held-out speakers likeliest. training/learner_constants.py
    # prints both.
    strength = 2.0
    sharpness = 20.0

    prior: str = "diagonal"
    covariance: str = "block"
    block: int = 96
    rank: int = 16
    max_kb: float | None = None
    scatter: str = "shared"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_one_of("prior", "diagonal", "shipped")
        whitened = self.prior == "shipped"
        self.needs_whitening = self.supports_thresholds = self.supports_phrases = whitened
        self._directions: np.ndarray | None = None

    def _changed(self) -> None:
        super()._changed()
        self._directions = None

    def directions(self) -> np.ndarray:
        """Means scaled to unit length, (rows, D) float32; computed once after each change."""
        if self._directions is None:
            means = self.effective.means.astype(np.float64)
            lengths = np.linalg.norm(means, axis=1, keepdims=True)
            self._directions = (means / np.maximum(lengths, 1e-12)).astype(np.float32)
        return self._directions

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self.effective
        means = statistics.means.astype(np.float64)
        strength = self.strength * statistics.dim
        scale = 1 / (statistics.n_scatter + strength)
        if self.prior == "shipped":
            variance, centre = np.ones(statistics.dim), np.zeros(statistics.dim)
        else:
            variance = statistics.variances()
            # A constant feature carries no information; any positive weight will do.
            variance[variance <= 0] = 1.0
            centre = means.mean(axis=0) if len(means) > 1 else np.zeros(statistics.dim)
        directions = means - centre
        weights = statistics.solve(scale, scale * strength * variance, directions)
        squares = np.einsum("kd,kd->k", weights, directions)
        # A sample is about sqrt(D) away from its word's true mean; a mean of n samples still has
        # 1 / n of that squared distance.
        within = statistics.dim * np.mean(1 - 1 / np.maximum(statistics.counts, 1))
        typical = np.sqrt(squares.mean() + within)
        # A word whose mean is the centre has no direction and scores 0.
        lengths = np.sqrt(squares) * typical
        weights /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return weights, -weights @ centre
