import importlib
import pickle
import sys

import numpy as np
import pytest
import soundfile
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from tapword import InputError, Spotter, registry
from tapword.assets import CLIPS
from tapword.errors import MissingExtra
from tapword.estimator import ClipEncoder, WordClassifier
from tapword.spotter import presets

LEARNERS = list(registry.classes("learners"))


@parametrize_with_checks([WordClassifier(), WordClassifier("ncm")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_in_a_pipeline_and_cross_validation(learner):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), WordClassifier(learner))
    scores = cross_val_score(model, X, y, cv=3)
    # Samples come in class order, which learners that forget do not survive: chance is 0.33.
    forgets = learner in ("finetune", "perceptron", "icarl", "sovr")
    assert scores.shape == (3,) and scores.mean() > (0.3 if forgets else 0.8)
    shares = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


def test_agrees_with_scikit_learn_on_iris():
    X, y = load_iris(return_X_y=True)
    ours = WordClassifier("slda:eps=1e-9").fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-2)


def test_partial_fit_takes_new_classes():
    X, y = load_iris(return_X_y=True)
    model = WordClassifier()
    for label in (2, 0, 1):
        model.partial_fit(X[y == label], y[y == label])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.predict(X), WordClassifier().fit(X, y).predict(X))
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    assert set(WordClassifier().fit(X, names).predict(X)) == set(names)
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[:2], [7, 7], classes=[0, 1])


def test_the_learner_that_is_not_named_is_the_presets():
    assert WordClassifier().get_params() == {"learner": presets.UNWHITENED}


@pytest.fixture(scope="module")
def clips():
    found = [path for word in ("lamp", "music") for path in sorted((CLIPS / word).glob("*"))[:6]]
    return found, [path.parent.name for path in found]


def test_clips_are_encoded_as_a_spotter_does(clips):
    paths, _ = clips
    encoder = ClipEncoder(size="small").fit(paths)
    vectors = encoder.transform(paths)
    np.testing.assert_array_equal(vectors, Spotter(size="small").encode(paths).vectors)
    arrays = [soundfile.read(path, dtype="float32")[0] for path in paths]
    np.testing.assert_array_equal(encoder.transform(arrays), vectors)
    np.testing.assert_array_equal(encoder.transform(np.array([str(p) for p in paths])), vectors)
    names = encoder.get_feature_names_out()
    assert len(names) == vectors.shape[1] and names[0] == "clipencoder0"
    assert encoder.transform([]).shape == (0, vectors.shape[1])
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(paths[:1]), encoder.transform(paths[:1]))


@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_scikit_learns_checks_that_need_no_table(check):
    """scikit-learn runs few checks by itself on an estimator that takes no table of numbers."""
    getattr(estimator_checks, check)("ClipEncoder", ClipEncoder())


def test_clips_in_a_pipeline_and_cross_validation(clips):
    paths, words = clips
    model = make_pipeline(ClipEncoder(), WordClassifier())
    assert cross_val_score(clone(model), paths, words, cv=3).mean() > 0.9
    assert list(model.fit(paths, words).predict(paths)) == words


def test_an_encoder_of_clips_refuses_what_it_cannot_use(clips):
    assert ClipEncoder(sample_rate=8_000).get_params() == {"size": "small", "sample_rate": 8_000}
    with pytest.raises(InputError, match="no size named 'huge'"):
        ClipEncoder(size="huge").fit(clips[0])
    with pytest.raises(InputError, match="sample_rate must be"):
        ClipEncoder(sample_rate=0).fit(clips[0])
    with pytest.raises(InputError, match="all zeros"):
        ClipEncoder().fit_transform(np.zeros((1, 16_000)))


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    for name in ("sklearn", "sklearn.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tapword.estimator")
    with pytest.raises(MissingExtra, match=r"tapword.estimator needs .*\[sklearn\]"):
        importlib.import_module("tapword.estimator")
