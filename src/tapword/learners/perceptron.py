"""The online perceptron."""

import numpy as np

from tapword.learners.base import Learner, StateReader


class Perceptron(Learner):
    """Online perceptron: one weight vector per word, moved only by mistakes.

    score_k = w_k.x; the first sample of word y sets w_y = x; a later one for which another word j
    scores highest changes w_y += x and w_j -= x.

    Notes
    -----
    Kept: w_k. It depends on the order of samples, favours the words taught last and cannot be
    merged. Forgetting a word removes its weights; its effect on other words stays.

    Examples
    --------
    >>> learner = Perceptron()
    >>> learner.learn_many(np.array([[1.0, 0.0], [0.0, 1.0]]), ["off", "on"])
    >>> learner.learn_one(np.array([1.0, 2.0]), "off")
    >>> learner.scores(np.array([[1.0, 1.0]]))
    array([[ 4., -2.]])
    """

    # For scores divided by the largest; about the best that training/learner_constants.py tries.
    sharpness = 4.0
    _columns = "weights"

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores (n, K), which have no unit, into probabilities by their relative size."""
        size = np.abs(scores).max(axis=-1, keepdims=True, initial=0)
        return super().probabilities(scores / np.where(size > 0, size, 1))

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (rows, D) and biases (rows,), which are 0."""
        return self._weights.astype(np.float64), np.zeros(len(self._weights))

    def _size(self, dim: int) -> tuple[int, int]:
        return 0, 4 * dim

    def _start(self, dim: int) -> None:
        self._weights = np.zeros((0, dim), dtype=np.float32)
        # Rows that had a sample; a batch makes all its rows before it learns.
        self._begun = 0

    def _grow(self) -> None:
        self._weights = np.pad(self._weights, ((0, 1), (0, 0)))

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        if k >= self._begun:
            self._weights[k] = x
            self._begun = k + 1
            return
        best = (self._weights[: self._begun] @ x).argmax()
        if best != k:
            self._weights[k] += x
            self._weights[best] -= x

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return X @ self._weights.astype(np.float64).T

    def _forget(self, k: int) -> None:
        self._weights = np.delete(self._weights, k, axis=0)
        self._begun -= 1

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"weights": self._weights}

    def _load(self, state: StateReader, n_rows: int) -> None:
        self._weights = state.take("weights", (n_rows, self._weights.shape[1]))
        self._begun = n_rows
