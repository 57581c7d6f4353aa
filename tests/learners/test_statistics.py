"""The shared statistic against batch arithmetic in float64."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import linalg

from tapword import registry
from tapword.errors import InputError
from tapword.learners import statistics
from tapword.learners.packed import factor, gram, packed_diagonal, solve, whiten
from tapword.learners.slda import Slda
from tapword.learners.statistics import Statistics, WordStatistics
from tapword.support.linear_algebra import packed_size

DIM = 5


def samples(rng, n=50, words=3):
    X = rng.normal(size=(n, DIM)) * [1, 1, 10, 0.1, 1] + [0, 100, 0, 0, -3]
    return X.astype(np.float32), rng.permutation(np.arange(n) % words)


def pack(matrix):
    """Lower triangle by columns."""
    return matrix.T[np.triu_indices(len(matrix))]


def batch_scatter(X, labels, word=None):
    X = X.astype(np.float64)
    total = np.zeros((X.shape[1], X.shape[1]))
    for k in np.unique(labels) if word is None else [word]:
        e = X[labels == k] - X[labels == k].mean(axis=0)
        total += e.T @ e
    return total


def empty(kind, words=3):
    made = kind(DIM)
    for _ in range(words):
        made.add_word()
    return made


def one_by_one(kind, X, labels):
    made = empty(kind)
    for x, k in zip(X, labels, strict=True):
        made.update(x, k)
    return made


def check(made, X, labels):
    np.testing.assert_array_equal(made.counts, np.bincount(labels, minlength=3))
    means = np.stack([X[labels == k].mean(axis=0, dtype=np.float64) for k in range(3)])
    np.testing.assert_allclose(made.means, means, rtol=1e-5, atol=1e-5)
    close(made.pooled(), batch_scatter(X, labels))
    assert made.n_scatter == len(X)
    if isinstance(made, WordStatistics):
        for k, scatter in enumerate(made.scatters):
            close(scatter, batch_scatter(X, labels, k))


def close(scatter, wanted):
    # By the size of each pair of features: scales differ.
    size = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert (np.abs(scatter - pack(wanted)) <= 1e-4 * pack(size)).all()


both = pytest.mark.parametrize("kind", [Statistics, WordStatistics])


@both
def test_samples_one_by_one_give_the_batch_scatter(rng, kind):
    X, labels = samples(rng)
    check(one_by_one(kind, X, labels), X, labels)


@both
@pytest.mark.parametrize("chunk", [1, 7, 50, 4096])
def test_chunks_give_the_batch_scatter(rng, kind, chunk):
    X, labels = samples(rng)
    made = one_by_one(kind, X[:5], labels[:5])
    made.update_many(X[5:], labels[5:], chunk)
    check(made, X, labels)


def close_words(rng, n, dim=8):
    """Samples of two words a hundredth of their spread apart and away from zero, and their labels.

    Also what float64 makes of them: means, scatter, and which of some vectors are the second word.
    """
    centre, apart = 3 * rng.normal(size=dim), rng.normal(size=dim)
    labels = np.arange(n) % 2
    words = centre + np.outer(labels, 0.01 * apart / np.linalg.norm(apart))
    X = (words + rng.normal(size=(n, dim))).astype(np.float32)
    means = np.stack([X[labels == k].mean(axis=0, dtype=np.float64) for k in (0, 1)])
    scatter = batch_scatter(X, labels)
    asked = (means.mean(axis=0) + rng.normal(size=(10_000, dim))).astype(np.float32)
    sigma = (1 - 1e-4) * scatter / n + 1e-4 * np.eye(dim)
    second = (asked - means.mean(axis=0)) @ np.linalg.solve(sigma, means[1] - means[0]) > 0
    return X, labels, scatter, asked, second


def agreement(made, asked, second):
    """Share of decisions that are those of the exact statistic."""
    learner = Slda()
    learner.load_state(made.arrays(), dict(zip("ab", map(int, made.counts), strict=True)))
    return ((np.array(learner.predict(asked)) == "b") == second).mean()


def off(packed, scatter):
    """Largest error of a scatter, as a share of its largest number."""
    return np.abs(packed - pack(scatter)).max() / scatter.max()


@pytest.mark.parametrize("n", [200_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_close_words_learned_one_by_one_stay_as_exact_as_in_a_batch(rng, n):
    """Sums in float32 alone differed in 0.1% of these decisions, and by 0.00006 in the scatter."""
    X, labels, scatter, asked, second = close_words(rng, n)
    made = Statistics(8)
    made.add_word()
    made.add_word()
    for x, k in zip(X, labels.tolist(), strict=True):
        made.update(x, k)
    assert off(made.scatter, scatter) < 2e-6
    assert agreement(made, asked, second) > 0.9998


def test_each_words_own_scatter_stays_exact(rng):
    X, labels, _, _, _ = close_words(rng, 40_000)
    made = WordStatistics(8)
    made.add_word()
    made.add_word()
    for x, k in zip(X, labels.tolist(), strict=True):
        made.update(x, k)
    for k in (0, 1):
        assert off(made.scatters[k], batch_scatter(X, labels, k)) < 1e-6


@pytest.mark.parametrize(
    ("n", "share", "agree"),
    [(10_000, 6e-6, 0.999), pytest.param(100_000, 5e-5, 0.998, marks=pytest.mark.soak)],
)
def test_saving_after_each_sample_loses_no_more_than_its_rounding(rng, n, share, agree):
    X, labels, scatter, asked, second = close_words(rng, n)
    learner = Slda()
    for x, k in zip(X, labels.tolist(), strict=True):
        learner.learn_one(x, "ab"[k])
        saved, learner = learner, Slda()
        learner.load_state(saved.state(), saved.words)
    assert off(learner.statistics.scatter, scatter) < share
    assert agreement(learner.statistics, asked, second) > agree


@pytest.mark.parametrize("spec", ["slda", "sqda", "snb", "cosine:covariance=lowrank,rank=2"])
def test_of_many_samples_too_a_learner_goes_on_as_one_that_was_loaded(rng, spec, monkeypatch):
    """Scores are those of the state, and taking the state gives up what it does not hold."""
    monkeypatch.setattr(statistics, "CHUNK", 10)
    X, labels, _, asked, _ = close_words(rng, 300)
    words = ["ab"[k] for k in labels]
    steady = registry.build("learners", spec)
    for x, word in zip(X[:200], words[:200], strict=True):
        steady.learn_one(x, word)
    before = steady.scores(asked)
    loaded = registry.build("learners", spec)
    loaded.load_state({key: a.copy() for key, a in steady.state().items()}, steady.words)
    np.testing.assert_array_equal(loaded.scores(asked), before)
    np.testing.assert_array_equal(steady.scores(asked), before)
    for learner in (steady, loaded):
        for x, word in zip(X[200:], words[200:], strict=True):
            learner.learn_one(x, word)
        learner.learn_many(X, words)
    state = loaded.state()
    for key, array in steady.state().items():
        np.testing.assert_array_equal(array, state[key], err_msg=key)


def test_the_first_sample_of_a_word_adds_no_scatter(rng):
    X, _ = samples(rng, n=3)
    assert not one_by_one(Statistics, X, [0, 1, 2]).scatter.any()


def test_a_given_weight_replaces_the_exact_one(rng):
    made = empty(Statistics)
    x = np.ones(DIM, dtype=np.float32)
    made.update(x, 0, weight=0.5)
    np.testing.assert_array_equal(made.scatter, np.full(15, 0.5))


def test_removing_leaves_the_shared_scatter_and_its_count(rng):
    X, labels = samples(rng)
    made = one_by_one(Statistics, X, labels)
    scatter = made.scatter.copy()
    made.remove(1)
    np.testing.assert_array_equal(made.scatter, scatter)
    assert made.n_scatter == 50 and len(made.counts) == len(made.means) == 2


def test_removing_is_exact_with_a_scatter_a_word(rng):
    X, labels = samples(rng)
    made = one_by_one(WordStatistics, X, labels)
    made.remove(1)
    close(made.pooled(), batch_scatter(X[labels != 1], labels[labels != 1]))
    assert made.n_scatter == (labels != 1).sum()


def test_means_alone_keep_no_scatter(rng):
    X, labels = samples(rng)
    made = Statistics(DIM, scatter=False)
    for _ in range(3):
        made.add_word()
    made.update_many(X, labels)
    made.merge(made, np.arange(3))
    assert made.scatter.size == 0 and made.n_scatter == 100 and "scatter" not in made.arrays()


def test_updates_work_in_place(rng):
    X, labels = samples(rng)
    made = one_by_one(Statistics, X, labels)
    before = made.scatter
    made.update(X[0], 0)
    made.update_many(X, labels)
    assert made.scatter is before


# Packed matrices.


def test_packing_is_that_of_lapack(rng):
    rows = rng.normal(size=(20, DIM)).astype(np.float32)
    triangle = gram(rows)
    assert triangle.shape == (packed_size(DIM),)
    np.testing.assert_allclose(triangle, pack(rows.T @ rows), rtol=1e-5)
    np.testing.assert_array_equal(
        triangle[packed_diagonal(DIM)], np.diag(linalg.blas.ssyrk(1.0, rows.T))
    )


@pytest.mark.parametrize("dim", [1, 2, 7, 100])
def test_factor_and_solve(rng, dim):
    root = rng.normal(size=(dim + 5, dim))
    matrix = root.T @ root
    lower = factor(pack(matrix))
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(matrix), rtol=1e-8, atol=1e-10)
    rhs = rng.normal(size=(3, dim))
    np.testing.assert_allclose(solve(lower, rhs), np.linalg.solve(matrix, rhs.T).T, rtol=1e-6)
    distances = np.einsum("kd,de,ke->k", rhs, np.linalg.inv(matrix), rhs)
    np.testing.assert_allclose(np.square(whiten(lower, rhs)).sum(axis=1), distances, rtol=1e-6)


def test_factor_leaves_its_matrix_alone(rng):
    matrix = pack(np.diag([1.0, 2.0]))
    factor(matrix)
    np.testing.assert_array_equal(matrix, [1, 0, 2])


def test_factor_raises_the_diagonal_of_what_rounding_made_indefinite():
    """By as little as is enough: here a millionth, where a tenth of it is too little."""
    matrix = np.array([[1.0, 1.0 + 5e-7], [1.0 + 5e-7, 1.0]])
    assert np.linalg.eigvalsh(matrix)[0] < 0
    lower = np.tril(factor(pack(matrix)))
    np.testing.assert_allclose(lower @ lower.T, matrix + 1e-6 * np.eye(2), rtol=1e-12)


def test_factor_gives_up_on_what_is_no_covariance():
    with pytest.raises(InputError, match="too nearly dependent"):
        factor(pack(np.array([[1.0, 2.0], [2.0, 1.0]])))


def test_variances_are_those_of_all_samples(rng):
    X = rng.normal(5, 3, (60, 4)).astype(np.float32)
    made = Statistics(4)
    for _ in range(3):
        made.add_word()
    made.update_many(X, np.arange(60) % 3)
    np.testing.assert_allclose(made.variances(), X.var(axis=0, dtype=float), rtol=1e-4)


def test_one_thread_holds_for_the_blas_that_learners_load_later():
    code = (
        "import sys, threadpoolctl\n"
        "from tapword.support.threads import one_thread\n"
        "assert 'scipy' not in sys.modules\n"
        "with one_thread():\n"
        "    import scipy.linalg\n"
        "    assert {pool['num_threads'] for pool in threadpoolctl.threadpool_info()} == {1}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
