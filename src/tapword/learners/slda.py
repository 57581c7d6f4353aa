"""SLDA, streaming linear discriminant analysis: the paper's learner."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.statistics import LinearLearner, factor, packed_diagonal, solve


class Slda(LinearLearner):
    """Streaming linear discriminant analysis: one mean a word, one covariance for all.

    score_k = x.L.mean_k - mean_k.L.mean_k / 2 with L = ((1 - eps) S_w / N + eps I)^-1.

    Parameters
    ----------
    eps
        Shrinkage of the covariance towards the identity, between 0 and 1.

    Notes
    -----
    Any order of the stream gives the same model, and two models merge exactly. Forgetting a word
    removes its mean and count; what it added to the shared covariance stays, which tells how
    words vary but not which word was said.

    Examples
    --------
    >>> learner = Slda()
    >>> learner.learn_many(np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[2.0, 2.0]])), learner.words
    (['on'], {'off': 2, 'on': 1})
    """

    def __init__(self, eps: float = 1e-4):
        super().__init__()
        self.eps = eps
        if not 0 < eps <= 1:
            raise InputError(f"slda: eps must be above 0 and at most 1, got {eps}")

    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        statistics = self._statistics
        covariance = statistics.scatter * np.float64((1 - self.eps) / max(statistics.n_scatter, 1))
        covariance[packed_diagonal(statistics.dim)] += self.eps
        weights = solve(factor(covariance), statistics.means)
        biases = -0.5 * np.einsum("kd,kd->k", weights, statistics.means.astype(np.float64))
        return weights, biases
