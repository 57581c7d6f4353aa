"""SLDA, streaming linear discriminant analysis: the paper's learner."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.covariance import CovarianceLearner


class Slda(CovarianceLearner):
    """Streaming linear discriminant analysis: one mean a word, one covariance for all.

    score_k = x.L.mean_k - mean_k.L.mean_k / 2 with L = ((1 - eps) S_w / N + eps I)^-1.

    Parameters
    ----------
    eps
        Shrinkage of the covariance towards the identity, between 0 and 1.
    variant
        "exact": S_w is the within-word scatter. "reference": as the public code of the method has
        it, where sample number N + 1 adds N / (N + 1) e e^T with e = x - mean_k and means start
        at zero, so that the first sample of a word adds x x^T.
    prior
        "none"; "diagonal": D / 2 samples' worth of the features' own variances are added to
        S_w, which keeps few samples from collapsing: S_w + D / 2 diag(v) over N + D / 2;
        "shipped": the same with v = 1, for vectors that come whitened by statistics of other
        words, which the spotter does.
    scatter
        "shared": one S_w for all words. "per-word": one a word, used as their sum, at as many
        times the memory.
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
    With variant "exact" any order of the stream gives the same model, and two models merge
    exactly. Forgetting a word removes its mean and count; what it added to a shared covariance
    stays, which tells how words vary but not which word was said. With scatter "per-word" that
    goes too, and the model is as if the word had never been taught.

    Examples
    --------
    >>> learner = Slda()
    >>> learner.learn_many(np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[2.0, 2.0]])), learner.words
    (['on'], {'off': 2, 'on': 1})
    """

    def __init__(
        self,
        eps: float = 1e-4,
        variant: str = "exact",
        prior: str = "none",
        scatter: str = "shared",
        covariance: str = "full",
        block: int = 96,
        rank: int = 16,
        max_kb: float | None = None,
    ):
        super().__init__()
        self.eps = eps
        self.variant = variant
        self.prior = prior
        self.scatter = scatter
        self.covariance = covariance
        self.block = block
        self.rank = rank
        self.max_kb = max_kb
        if not 0 < eps <= 1:
            raise InputError(f"slda: eps must be above 0 and at most 1, got {eps}")
        if variant not in ("exact", "reference"):
            raise InputError(f"slda: variant must be exact or reference, got {variant!r}")
        if prior not in ("none", "diagonal", "shipped"):
            raise InputError(f"slda: prior must be none, diagonal or shipped, got {prior!r}")
        if scatter not in ("shared", "per-word"):
            raise InputError(f"slda: scatter must be shared or per-word, got {scatter!r}")
        self.mergeable = variant == "exact"
        self.per_word = scatter == "per-word"
        self._check_covariance()
        if self.per_word and covariance == "lowrank":
            raise InputError("slda: scatter per-word cannot go with covariance lowrank")

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        n = self._statistics.n_scatter
        self._statistics.update(x, k, None if self.variant == "exact" else n / (n + 1))
        self._changed()

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        if self.variant == "exact":
            super()._learn_many(X, indices)
        else:
            for x, k in zip(X, indices, strict=True):
                self._learn_one(x, k)

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self._statistics
        strength = 0.0 if self.prior == "none" else statistics.dim / 2
        share = (1 - self.eps) / max(statistics.n_scatter + strength, 1)
        extra = np.full(statistics.dim, self.eps)
        if self.prior == "diagonal":
            extra += share * strength * statistics.variances()
        elif self.prior == "shipped":
            extra += share * strength
        weights = self._solve_covariance(share, extra, statistics.means.astype(np.float64))
        biases = -0.5 * np.einsum("kd,kd->k", weights, statistics.means.astype(np.float64))
        return weights, biases
