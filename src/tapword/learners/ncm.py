"""NCM: the nearest class mean."""

import numpy as np

from tapword.learners.statistics_learner import StatisticsLearner


class Ncm(StatisticsLearner):
    """Nearest class mean by Euclidean distance; the score is minus its square.

    Examples
    --------
    >>> learner = Ncm()
    >>> learner.learn_one(np.array([0.0, 0.0]), "off")
    >>> learner.learn_one(np.array([3.0, 4.0]), "on")
    >>> learner.predict(np.array([[1.0, 1.0]])), learner.scores(np.array([[3.0, 0.0]]))
    (['off'], array([[ -9., -16.]]))
    """

    keeps_scatter = False
    supports_synthetic = True

    def _scores(self, X: np.ndarray) -> np.ndarray:
        # Expanded squares lose digits far from the origin; one pass per word does not.
        means = self.effective.means.astype(np.float64)
        return -np.stack([np.square(X - mean).sum(axis=1) for mean in means], axis=1)
