import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tapword import registry
from tapword.estimator import WordClassifier
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
