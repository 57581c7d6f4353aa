from itertools import pairwise

import numpy as np
import pytest
from sklearn.covariance import OAS
from sklearn.linear_model import Ridge as Reference
from sklearn.preprocessing import StandardScaler

from tapword.learners.ridge import Ridge
from tests.conftest import shared
from tests.test_contracts import samples


def reference_scores(X, words, names, Y, alpha):
    """Scikit-learn's ridge on standardised features and one-hot words."""
    scaler = StandardScaler().fit(X.astype(np.float64))
    targets = np.array([[word == name for name in names] for word in words], dtype=float)
    model = Reference(alpha=alpha).fit(scaler.transform(X.astype(np.float64)), targets)
    return model.predict(scaler.transform(Y.astype(np.float64)))


@pytest.mark.parametrize("lam", [0.5, 20.0])
def test_equals_scikit_learns_ridge(lam):
    X, words = samples(90, d=12, words=5)
    words = [words[0]] * 20 + words[20:]
    Y, _ = samples(30, d=12, seed=1)
    learner = Ridge(lam=lam, balanced=False)
    learner.learn_many(X, words)
    expected = reference_scores(X, words, list(learner.words), Y, lam)
    np.testing.assert_allclose(learner.scores(Y), expected, atol=1e-4)


def test_balanced_equals_plain_where_counts_are_equal():
    X, words = samples(60, words=4)
    one, two = Ridge(balanced=True), Ridge(balanced=False)
    one.learn_many(X, words)
    two.learn_many(X, words)
    np.testing.assert_allclose(one.scores(X), two.scores(X), atol=1e-5)


def test_a_word_taught_often_does_not_swallow_the_others(rng):
    """Two words of one spread, taught 200 to 3: the middle between them stays the border."""
    X = np.concatenate([rng.normal(-2, 1, (200, 4)), rng.normal(2, 1, (3, 4))])
    learner = Ridge(lam=1.0)
    learner.learn_many(X, ["often"] * 200 + ["seldom"] * 3)
    asked = rng.normal(1.0, 1, (200, 4))
    plain = Ridge(lam=1.0, balanced=False)
    plain.learn_many(X, ["often"] * 200 + ["seldom"] * 3)
    assert learner.predict(asked).count("seldom") > 180
    assert plain.predict(asked).count("seldom") < 100


def test_strength_is_the_oracle_approximating_shrinkage():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 10)) @ rng.normal(size=(10, 10))).astype(np.float32)
    learner = Ridge(balanced=False)
    words = [f"w{i % 3}" for i in range(60)]
    learner.learn_many(X, words)
    standardised = StandardScaler().fit_transform(X.astype(np.float64))
    share = OAS(assume_centered=True).fit(standardised).shrinkage_
    given = Ridge(lam=Ridge.oas_times * 60 * share / (1 - share), balanced=False)
    given.learn_many(X, words)
    # scikit-learn leaves out the 2 / D terms of the published formula.
    np.testing.assert_allclose(learner.scores(X), given.scores(X), atol=0.01)


@pytest.mark.parametrize(("n", "dim", "capped"), [(60, 10, False), (40, 4, True), (2, 4, False)])
def test_strength_is_four_times_the_published_shrinkage(n, dim, capped):
    """By the formula of Chen et al., its 2 / D terms included; nine tenths at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, dim)) + (0 if capped else 2 * rng.normal(size=(n, 1)))
    words = [f"w{i % 2}" for i in range(n)]
    learner = Ridge()
    learner.learn_many(X.astype(np.float32), words)
    correlations = np.corrcoef(X.T)
    squares = np.square(correlations).sum()
    share = ((1 - 2 / dim) * squares + dim**2) / ((n + 1 - 2 / dim) * (squares - dim))
    assert bool(share > 0.9) is capped
    given = Ridge(lam=4 * n * share / (1 - min(share, 0.9)))
    given.learn_many(X.astype(np.float32), words)
    np.testing.assert_allclose(learner.scores(X), given.scores(X), atol=1e-5)


def test_strength_where_nothing_can_be_estimated():
    """One sample, one feature, or features that go together in nothing."""
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=np.float32)
    for X, lam in ((square[:, :1], 4.0), (square, 4 * 4.0), (square[:1], 1.0)):
        learner, given = Ridge(), Ridge(lam=lam)
        words = ["on", "on", "off", "off"][: len(X)]
        for one in (learner, given):
            one.learn_many(X, words)
        np.testing.assert_allclose(learner.scores(X), given.scores(X), atol=1e-6)


def test_shares_are_ten_times_as_sharp_as_the_scores():
    [shares] = Ridge().probabilities(np.array([[1.0, 0.8, 0.8]]))
    np.testing.assert_allclose(shares[0] / shares[1:], np.exp(2), rtol=1e-6)


def test_few_samples_do_not_collapse_on_real_vectors():
    """More samples never hurt much, where the paper's SLDA falls as samples near dimensions."""
    with np.load(shared("oracle", "reference_learners.npz")) as oracle:
        X, y, Y, truth = (oracle[name] for name in ("train_x", "train_y", "test_x", "test_y"))
    accuracies = []
    for shots in (1, 3, 5, 10, 20, 40):
        learner = Ridge()
        for word in range(10):
            chosen = np.flatnonzero(y == word)[:shots]
            learner.learn_many(X[chosen], [str(word)] * len(chosen))
        predicted = np.array(learner.predict(Y), dtype=int)
        accuracies.append(100 * np.mean(predicted == truth))
    assert accuracies[-1] > 93
    assert all(b > a - 2 for a, b in pairwise(accuracies)), accuracies


def test_forgetting_words_leaves_the_scale_of_scores(rng):
    """What forgotten words left in the scatter must not drown the words that stay."""
    centres = rng.normal(scale=3, size=(18, 8))
    y = np.arange(18 * 20) % 18
    X = (centres[y] + rng.normal(size=(len(y), 8))).astype(np.float32)
    many, two = Ridge(lam=5.0), Ridge(lam=5.0)
    many.learn_many(X, [str(label) for label in y])
    two.learn_many(X[y < 2], [str(label) for label in y[y < 2]])
    for label in range(2, 18):
        many.forget(str(label))
    np.testing.assert_allclose(many.scores(X[y < 2]), two.scores(X[y < 2]), atol=0.1)
