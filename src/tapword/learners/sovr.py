"""SOvR, streaming one-versus-rest."""

import numpy as np

from tapword.learners.statistics_learner import StatisticsLearner


class Sovr(StatisticsLearner):
    """Streaming one-versus-rest: similarity to a word's mean against that to all others.

    score_k = a / (a + b) with a = x.mean_k and b = x.(mean of the samples of all other words)

    A single word has b = 0 and score 1; a + b = 0 gives 1/2.

    Notes
    -----
    Kept: counts and means. The rule is meant for non-negative features, whose scores are between 0
    and 1; with others a + b can change its sign, and the order of scores with it.

    Examples
    --------
    >>> learner = Sovr()
    >>> learner.learn_many(np.array([[3.0, 0.0], [0.0, 1.0]]), ["off", "on"])
    >>> learner.scores(np.array([[1.0, 1.0]]))
    array([[0.75, 0.25]])
    """

    keeps_scatter = False
    supports_synthetic = True
    # Around score 1/2, exp(4 score - 2) is the odds a / b.
    sharpness = 4.0

    def _scores(self, X: np.ndarray) -> np.ndarray:
        statistics = self.effective
        n = statistics.counts.astype(np.float64)
        a = X @ statistics.means.astype(np.float64).T
        b = ((a * n).sum(axis=1, keepdims=True) - a * n) / np.maximum(n.sum() - n, 1)
        total = a + b
        return np.divide(a, total, out=np.full_like(a, 0.5), where=total != 0)
