"""scikit-learn estimators, for pipelines, cross-validation and comparison: encoder and learners."""

from typing import Any

import numpy as np

from tapword import registry
from tapword.audio.files import SAMPLE_RATE, check_rate
from tapword.errors import MissingExtra
from tapword.learners.base import Learner
from tapword.spotter.presets import DEFAULT, UNWHITENED
from tapword.spotter.spotter import Spotter

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )
    from sklearn.utils import Tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise MissingExtra("tapword.estimator", "scikit-learn", "sklearn") from error


class ClipEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Encode clips as the vectors of a preset: (n,) clips -> (n, D) float32.

    Parameters
    ----------
    size
        Preset: `"small"`, `"medium"` or `"large"`.
    sample_rate
        Samples per second of clips that are arrays; files have their own.

    Attributes
    ----------
    spotter_
        Spotter of the preset, without words. Nothing is learned from the clips.

    Examples
    --------
    >>> encoder = ClipEncoder().fit([])
    >>> encoder.transform(np.random.default_rng(0).uniform(-0.1, 0.1, (2, 16000))).shape
    (2, 672)
    >>> encoder.get_feature_names_out()[0]
    'clipencoder0'
    """

    def __init__(self, size: str = DEFAULT, sample_rate: int = SAMPLE_RATE):
        self.size = size
        self.sample_rate = sample_rate

    def fit(self, X: Any, y: Any = None) -> "ClipEncoder":
        """Load the preset; X and y are not used."""
        check_rate(self.sample_rate, "sample_rate")
        self.spotter_ = Spotter(size=self.size)
        self._n_features_out = self.spotter_.encoder.dim()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Encode X: a sequence of n files or arrays, or an array (n, samples). Returns (n, D)."""
        check_is_fitted(self)
        return self.spotter_.encode(list(X), self.sample_rate).vectors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Clips differ in length, and `transform` refuses those that cannot be speech.
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class WordClassifier(ClassifierMixin, BaseEstimator):
    """A learner with `fit`, `partial_fit`, `predict`, `predict_proba` and `score`.

    Parameters
    ----------
    learner
        Name with arguments: `"slda"`, `"cbcl:max_centroids=100"`. The default is the presets'
        learner for vectors that are not whitened.

    Attributes
    ----------
    classes_
        Labels seen so far, sorted, shape (K,). Unlike in scikit-learn's own estimators, any call of
        `partial_fit` may bring new labels; its argument `classes` is only checked.
    learner_
        The learner.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [9.0, 9.0]]), np.array([1, 1, 2])
    >>> WordClassifier("ncm").fit(X, y).predict([[8.0, 8.0]])
    array([2])
    """

    def __init__(self, learner: str = UNWHITENED):
        self.learner = learner

    def fit(self, X: Any, y: Any) -> "WordClassifier":
        """Learn X (n, D), y (n,) in order, from scratch."""
        for name in ("learner_", "classes_", "_labels"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "WordClassifier":
        """Learn X (n, D), y (n,) in order, in addition to earlier samples; labels may be new."""
        first = not hasattr(self, "learner_")
        X, y = validate_data(self, X, y, dtype=[np.float32, np.float64], reset=first)
        check_classification_targets(y)
        if classes is not None:
            unknown = np.setdiff1d(y, classes)
            if len(unknown):
                raise ValueError(f"y has labels {unknown} that are not in classes {classes}")
        if first:
            self.learner_: Learner = registry.build("learners", self.learner)
            self._labels = y[:0]
        # A word's name is the index of its label in the order of arrival.
        labels, appearance = np.unique(y, return_index=True)
        arrived = labels[np.argsort(appearance)]
        self._labels = np.concatenate([self._labels, arrived[~np.isin(arrived, self._labels)]])
        place = {label: str(index) for index, label in enumerate(self._labels.tolist())}
        self.learner_.learn_many(X, [place[label] for label in y.tolist()])
        self._order = np.argsort(self._labels)
        self.classes_ = self._labels[self._order]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Score X (n, D): (n, K), or (n,) for two classes, as in scikit-learn."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Best label for each row of X (n, D): (n,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, K), columns as in `classes_`."""
        scores = self._scores(X)
        return self.learner_.probabilities(scores)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float32, np.float64], reset=False)
        return self.learner_.scores(X)[:, self._order]
