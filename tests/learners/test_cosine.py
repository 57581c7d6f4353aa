"""The cosine learner against plain numpy, in every form of its covariance."""

import itertools

import numpy as np
import pytest

from tapword.errors import InputError
from tapword.learners.cosine import Cosine
from tapword.learners.statistics_learner import FORMS
from tests.learners.test_statistics_learner import DIM, draw, masked, names, scatter_of

PRIORS = ["diagonal", "shipped"]
forms = pytest.mark.parametrize("covariance", FORMS)
priors = pytest.mark.parametrize("prior", PRIORS)


def make(prior, covariance, rank=DIM, **arguments):
    return Cosine(prior, covariance, block=5, rank=rank, **arguments)


def taught(learner, X, labels):
    learner.learn_many(X, names(labels))
    return learner


def oracle(X, labels, prior, covariance, order, Y):
    """Scores of Y for the words `order`, word by word as the formula says it."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    size = {"full": DIM, "lowrank": DIM, "block": 5, "diagonal": 1}[covariance]
    means = [X[labels == k].mean(axis=0) for k in order]
    if prior == "shipped":
        variances, centre = np.ones(DIM), np.zeros(DIM)
    else:
        variances = X.var(axis=0)
        centre = np.mean(means, axis=0) if len(means) > 1 else np.zeros(DIM)
    nu = 2 * DIM
    sigma = (masked(scatter_of(X, labels), size) + nu * np.diag(variances)) / (len(X) + nu)
    metric = np.linalg.inv(sigma)
    lengths = [np.sqrt((mean - centre) @ metric @ (mean - centre)) for mean in means]
    spread = DIM * np.mean([1 - 1 / np.sum(labels == k) for k in order])
    typical = np.sqrt(np.mean(np.square(lengths)) + spread)
    columns = [
        (Y - centre) @ metric @ (mean - centre) / (length * typical)
        for mean, length in zip(means, lengths, strict=True)
    ]
    return np.stack(columns, axis=1)


def order_of(learner):
    return [int(word[4:]) for word in learner.words]


def columns_of(one, other):
    return [list(other.words).index(word) for word in one.words]


@forms
@priors
@pytest.mark.parametrize("words", [1, 2, 4])
def test_scores_are_those_of_the_formula(rng, prior, covariance, words):
    X, labels = draw(rng, words=words)
    Y = rng.normal(scale=3, size=(20, DIM)).astype(np.float32)
    learner = taught(make(prior, covariance), X, labels)
    wanted = oracle(X, labels, prior, covariance, order_of(learner), Y)
    np.testing.assert_allclose(learner.scores(Y), wanted, atol=1e-4 * np.abs(wanted).max())


@priors
def test_small_numbers_and_single_samples_follow_the_formula(rng, prior):
    """Vectors that vary by less than 1, near each other, and words of one sample."""
    X, labels = draw(rng, n=12, words=4)
    X, labels = 0.005 * np.vstack([X, X[:1]]), np.append(labels, 4)
    learner = taught(make(prior, "full"), X, labels)
    wanted = oracle(X, labels, prior, "full", order_of(learner), X)
    np.testing.assert_allclose(learner.scores(X), wanted, atol=1e-4 * np.abs(wanted).max())


def test_directions_are_the_means_at_length_one():
    learner = Cosine()
    learner.learn_many(np.array([[3e-3, 0.0], [0.0, 50.0], [0.0, 0.0]]), ["a", "b", "c"])
    assert learner.directions().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert learner.directions() is learner.directions()
    learner.learn_one(np.array([5e-3, 8e-3]), "a")
    np.testing.assert_allclose(learner.directions()[0], [0.5**0.5] * 2, rtol=1e-6)
    assert learner.directions().dtype == np.float32


@priors
def test_a_sketch_is_exact_until_its_rows_are_full(rng, prior):
    """Three words and 11 samples leave 8 residual rows, as many as a rank of 4 holds."""
    X, labels = draw(rng, n=12)
    learner = taught(make(prior, "lowrank", rank=4), X[:11], labels[:11])
    assert learner.state()["used"] == 8
    wanted = oracle(X[:11], labels[:11], prior, "full", order_of(learner), X)
    np.testing.assert_allclose(learner.scores(X), wanted, atol=1e-4 * np.abs(wanted).max())
    learner.learn_many(X[11:], names(labels[11:]))
    assert learner.state()["used"] == 5


@priors
def test_the_largest_score_is_the_largest_cosine(rng, prior):
    """The length that all scores of a vector are divided by changes no decision."""
    X, labels = draw(rng)
    learner = taught(make(prior, "full"), X, labels)
    means = learner.state()["means"].astype(np.float64)
    centre = means.mean(axis=0) if prior == "diagonal" else 0
    variances = X.var(axis=0, dtype=float) if prior == "diagonal" else np.ones(DIM)
    sigma = scatter_of(X, labels) + 2 * DIM * np.diag(variances)
    root = np.linalg.cholesky(np.linalg.inv(sigma))
    left, right = (X - centre) @ root, (means - centre) @ root
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    np.testing.assert_array_equal(learner.scores(X).argmax(axis=1), (left @ right.T).argmax(axis=1))


def test_scores_are_about_cosines(rng):
    """Of vectors that vary by 1 about their word: near 1 at most, whatever the number taught."""
    centres = 2 * rng.normal(size=(10, 50))
    for n in (1, 3, 30):
        labels = np.repeat(np.arange(10), n)
        X = (centres[labels] + rng.normal(size=(len(labels), 50))).astype(np.float32)
        learner = taught(Cosine("shipped", "full"), X, labels)
        fresh = (centres + rng.normal(size=(10, 50))).astype(np.float32)
        scores = learner.scores(fresh)
        np.testing.assert_array_equal(scores.argmax(axis=1), np.arange(10))
        assert 0.6 < np.diag(scores).mean() < 1.1 and np.abs(scores).max() < 1.5
        shares = learner.probabilities(scores)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert np.diag(shares).min() > 0.9


def test_few_samples_lean_on_the_prior_and_many_override_it(rng):
    """With a first sample a word, the metric is the prior's; with thousands it is the samples'."""
    X, labels = draw(rng, n=3)
    learner = taught(Cosine("shipped", "full"), X, labels)
    units = X[np.argsort(labels)] / np.linalg.norm(X[np.argsort(labels)], axis=1, keepdims=True)
    scores = learner.scores(X)[:, columns_of_sorted(learner)]
    ratio = scores / (X @ units.T)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-4)
    X, labels = draw(rng, n=20_000)
    learner = taught(Cosine("shipped", "full"), X, labels)
    metric = np.linalg.inv(scatter_of(X, labels) / len(X))
    means = learner.state()["means"].astype(np.float64)
    weights, _ = learner.linear()
    for weight, mean in zip(weights, means, strict=True):
        wanted = metric @ mean / np.linalg.norm(metric @ mean)
        np.testing.assert_allclose(weight / np.linalg.norm(weight), wanted, atol=0.02)


def columns_of_sorted(learner):
    return [list(learner.words).index(word) for word in sorted(learner.words)]


@priors
def test_forms_are_not_mixed(prior):
    for one, other in itertools.permutations(FORMS, 2):
        with pytest.raises(InputError, match="arguments differ"):
            make(prior, one).merge(make(prior, other))


@forms
@priors
def test_forgetting_leaves_the_shared_scatter_alone(rng, prior, covariance):
    X, labels = draw(rng)
    learner = taught(make(prior, covariance), X, labels)
    scatter = learner.state()["scatter"].copy()
    learner.forget("word1")
    assert list(learner.words) == [word for word in names(dict.fromkeys(labels)) if word != "word1"]
    np.testing.assert_array_equal(learner.state()["scatter"], scatter)
    assert learner.scores(X).shape == (len(X), 2)
    kept = labels != 1
    right = np.array(learner.predict(X[kept])) == np.array(names(labels[kept]))
    assert right.mean() > 0.6
    if prior == "shipped":
        # Nothing of the rule but the mean was the word's own.
        before = taught(make(prior, covariance), X, labels)
        columns = columns_of(learner, before)
        shape = learner.scores(X) / before.scores(X)[:, columns]
        np.testing.assert_allclose(shape, shape[0, 0], rtol=1e-3)


@forms
@priors
@pytest.mark.parametrize("words", [2, 3, 7])
@pytest.mark.parametrize("n", [1, 4])
def test_identical_words_share_alike(rng, prior, covariance, words, n):
    """Words of one sound have no direction to tell them apart, and no word is preferred."""
    x = rng.normal(size=(n, DIM)).astype(np.float32)
    learner = make(prior, covariance)
    for word in range(words):
        learner.learn_many(x, [f"word{word}"] * n)
    scores = learner.scores(3 * rng.normal(size=(5, DIM)))
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, scores[:, :1] * np.ones(words), atol=1e-6)
    np.testing.assert_allclose(learner.probabilities(scores), 1 / words, rtol=1e-4)


def test_a_feature_that_never_varies_is_harmless(rng):
    X, labels = draw(rng)
    wanted = taught(Cosine("diagonal", "full"), X, labels).predict(X)
    wide = np.hstack([X, np.full((len(X), 2), 7.5, dtype=np.float32)])
    learner = taught(Cosine("diagonal", "full"), wide, labels)
    assert np.isfinite(learner.scores(wide)).all() and learner.predict(wide) == wanted


def test_no_collapse_where_samples_are_as_many_as_dimensions(rng):
    """Accuracy never falls as samples come, also where they are about as many as dimensions."""
    centres = rng.normal(size=(10, 60))
    shots = (1, 3, 5, 6, 7, 10, 20)

    def drawn(n):
        labels = np.arange(10 * n) % 10
        return (centres[labels] + rng.normal(scale=2, size=(10 * n, 60))).astype(np.float32), labels

    (X, labels), (Y, truth) = drawn(max(shots)), drawn(100)
    for prior, covariance in itertools.product(PRIORS, FORMS):
        learner = Cosine(prior, covariance)
        accuracies = []
        for start, stop in itertools.pairwise((0, *shots)):
            part = slice(10 * start, 10 * stop)
            taught(learner, X[part], labels[part])
            right = np.array(learner.predict(Y)) == np.array(names(truth))
            accuracies.append(right.mean())
        assert (np.diff(accuracies) > -0.02).all(), (prior, covariance, accuracies)
        assert accuracies[-1] > 0.9
