"""Classifiers of other libraries in a learner's place, as far as an evaluation needs one."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapword.errors import InputError


class Foreign:
    """A classifier behind `partial_fit` and `predict`, as scikit-learn has them, as a learner.

    Parameters
    ----------
    model
        It stays as it is: a copy of it learns.
    words
        All that will come: scikit-learn's own classifiers must be told at the start.
    """

    def __init__(self, model: Any, words: Sequence[str]):
        self._model = copy.deepcopy(model)
        told = "classes" in inspect.signature(self._model.partial_fit).parameters
        self._known = {"classes": sorted(set(words))} if told else {}

    def learn_one(self, x: np.ndarray, word: str) -> None:
        """Learn that the vector `x` (D,) is `word`."""
        self._model.partial_fit(x[None], [word], **self._known)

    def learn_many(self, X: np.ndarray, words: Sequence[str]) -> None:
        """Learn the rows of `X` (n, D) one by one: a batch may mean something else to the model."""
        for x, word in zip(X, words, strict=True):
            self.learn_one(x, word)

    def predict(self, X: np.ndarray) -> list[str | None]:
        """Best word of each row of `X` (n, D)."""
        return list(self._model.predict(X))

    @property
    def state_bytes(self) -> None:
        """How much it keeps cannot be told from outside."""


def require_classifier(model: Any) -> None:
    """Refuse what is no classifier."""
    learns = hasattr(model, "partial_fit") or hasattr(model, "fit")
    if isinstance(model, type) or not (learns and hasattr(model, "predict")):
        raise InputError(
            "a learner is a name with arguments, or a classifier with partial_fit or fit, and "
            f"predict; got {model!r}"
        )


def name_of(learner: Any) -> str:
    """Give a learner's name with its arguments, or what a classifier calls itself, in one line."""
    return learner if isinstance(learner, str) else " ".join(repr(learner).split())
