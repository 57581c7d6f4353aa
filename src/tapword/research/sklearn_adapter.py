"""Classifiers of other libraries, with scikit-learn's interface, as learners in an evaluation."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapword.errors import InputError


class SklearnLearner:
    """A classifier with `partial_fit` and `predict` as a learner.

    Parameters
    ----------
    model
        The classifier; a copy of it learns.
    words
        All words to come: scikit-learn's own classifiers need them at the start.
    """

    def __init__(self, model: Any, words: Sequence[str]):
        self._model = copy.deepcopy(model)
        needs_classes = "classes" in inspect.signature(self._model.partial_fit).parameters
        self._classes = {"classes": sorted(set(words))} if needs_classes else {}

    def learn_one(self, x: np.ndarray, word: str) -> None:
        """Learn that the vector `x` (D,) is `word`."""
        self._model.partial_fit(x[None], [word], **self._classes)

    def learn_many(self, X: np.ndarray, words: Sequence[str]) -> None:
        """Learn the rows of `X` (n, D) one by one: a model may treat a batch differently."""
        for x, word in zip(X, words, strict=True):
            self.learn_one(x, word)

    def predict(self, X: np.ndarray) -> list[str | None]:
        """Best word of each row of `X` (n, D)."""
        return list(self._model.predict(X))

    @property
    def state_bytes(self) -> None:
        """None: the size of another library's model is unknown."""


def require_classifier(model: Any) -> None:
    """Refuse an object that is not a classifier."""
    learns = hasattr(model, "partial_fit") or hasattr(model, "fit")
    if isinstance(model, type) or not (learns and hasattr(model, "predict")):
        raise InputError(
            "a learner is a name with arguments, or a classifier with partial_fit or fit, and "
            f"predict; got {model!r}"
        )


def name_of(learner: Any) -> str:
    """Name of a learner with its arguments; of a classifier, its repr in one line."""
    return learner if isinstance(learner, str) else " ".join(repr(learner).split())
