"""SLDA, streaming linear discriminant analysis: the paper's learner."""

import numpy as np

from tapword.learners.statistics_learner import CovarianceLearner


class Slda(CovarianceLearner):
    """Streaming linear discriminant analysis: a mean per word, one covariance for all.

    score_k = x.L.mean_k - mean_k.L.mean_k / 2 with L = ((1 - eps) S_w / N + eps I)^-1.

    Parameters
    ----------
    eps
        Shrinkage of the covariance towards the identity, between 0 and 1.
    variant
        "exact": S_w is the within-word scatter. "reference", as in the method's public code: sample
        number N + 1 adds N / (N + 1) e e^T with e = x - mean_k, and means start at zero, so that
        the first sample of a word adds x x^T.
    prior
        "none"; "diagonal": the features' own variances v are added to S_w as if they were D / 2
        samples, (S_w + D / 2 diag(v)) / (N + D / 2), which stabilises models of few samples;
        "shipped": the same with v = 1, for vectors that the spotter has whitened.
    scatter
        "shared" or "per-word": see `LinearLearner`.
    covariance, block, rank, max_kb
        How much of the covariance is kept: see `CovarianceLearner`.

    Notes
    -----
    With variant "exact" any order of the stream gives the same model, and two models merge
    exactly.

    Examples
    --------
    >>> learner = Slda()
    >>> learner.learn_many(np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[2.0, 2.0]])), learner.words
    (['on'], {'off': 2, 'on': 1})
    """

    # Weight of the prior in samples per number of a vector (training/learner_constants.py prints
    # it).
    strength = 0.5

    eps: float = 1e-4
    variant: str = "exact"
    prior: str = "none"
    scatter: str = "shared"
    covariance: str = "full"
    block: int = 96
    rank: int = 16
    max_kb: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("eps", 0 < self.eps <= 1, "above 0 and at most 1")
        self._require_one_of("variant", "exact", "reference")
        self._require_one_of("prior", "none", "diagonal", "shipped")
        self.needs_whitening = self.prior == "shipped"
        self.mergeable = self.mergeable and self.variant == "exact"
        # A sample's weight depends on the number of samples before it.
        self.keeps_trace = self.keeps_trace or self.variant == "reference"

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        n = self.statistics.n_scatter
        self.statistics.update(x, k, None if self.variant == "exact" else n / (n + 1))

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        if self.variant == "exact":
            super()._learn_many(X, indices)
        else:
            for x, k in zip(X, indices, strict=True):
                self._learn_one(x, k)

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self.effective
        strength = 0.0 if self.prior == "none" else self.strength * statistics.dim
        scale = (1 - self.eps) / max(statistics.n_scatter + strength, 1)
        extra = np.full(statistics.dim, self.eps)
        if self.prior == "diagonal":
            extra += scale * strength * statistics.variances()
        elif self.prior == "shipped":
            extra += scale * strength
        means = statistics.means.astype(np.float64)
        weights = statistics.solve(scale, extra, means)
        return weights, -0.5 * np.einsum("kd,kd->k", weights, means)
