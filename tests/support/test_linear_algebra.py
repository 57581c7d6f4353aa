"""Both ways give the same, and large matrices take scipy's where it is installed."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tapword import registry
from tapword.support import linear_algebra
from tapword.support.linear_algebra import ByNumpy, ByScipy, pack, packed_dim, packed_size

WAYS = ByNumpy(), ByScipy()
# Below and above each number of rows that is taken at a time, and just as many.
DIMS = 1, 2, 47, 48, 97, 128, 129, 300
dims = pytest.mark.parametrize("dim", DIMS)


def both(call):
    return [call(way) for way in WAYS]


@dims
def test_grams_agree(rng, dim):
    rows = rng.normal(size=(20, dim)).astype(np.float32)
    ours, theirs = both(lambda way: way.gram(rows))
    np.testing.assert_allclose(ours, pack(rows.T @ rows), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert packed_dim(len(ours)) == dim and len(ours) == packed_size(dim)


@dims
def test_factors_and_solutions_agree_and_can_be_exchanged(rng, dim):
    root = rng.normal(size=(dim + 5, dim))
    matrix, rhs = root.T @ root + np.eye(dim), rng.normal(size=(3, dim))
    packed = pack(matrix)
    for lower in both(lambda way: way.cholesky(packed)):
        lower = np.tril(lower)
        np.testing.assert_allclose(lower @ lower.T, matrix, rtol=1e-10, atol=1e-10)
        for solved in both(lambda way, lower=lower: way.solve(lower, rhs)):
            np.testing.assert_allclose(solved @ matrix, rhs, rtol=1e-9, atol=1e-9)
        for solved in both(lambda way, lower=lower: way.solve_lower(lower, rhs)):
            np.testing.assert_allclose(solved @ lower.T, rhs, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(packed, pack(matrix))


def test_both_notice_what_has_no_factor():
    assert both(lambda way: way.cholesky(np.array([1.0, 2.0, 1.0]))) == [None, None]


@dims
@pytest.mark.parametrize("weight", [0.75, -0.5])
def test_rank_one_updates_agree_in_place(rng, dim, weight):
    e = rng.normal(size=dim).astype(np.float32)
    before = rng.normal(size=packed_size(dim)).astype(np.float32)
    wanted = before + weight * pack(np.outer(e, e).astype(np.float64))
    for way in WAYS:
        packed = before.copy()
        way.add_outer(packed, e, weight)
        np.testing.assert_allclose(packed, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 700, 96), (3, 2, 40_000)])
def test_distances_agree_also_far_from_the_origin(rng, shape):
    n, m, dim = shape
    X, Y = (1000 + rng.normal(size=(k, dim)).astype(np.float32) for k in (n, m))
    for found in both(lambda way: way.squared_distances(X, Y)):
        np.testing.assert_allclose(found, np.square(cdist(X, Y)), rtol=1e-9)


def test_long_vectors_take_scipy_and_short_ones_never_import_it():
    code = (
        "import sys\n"
        "from tapword.support import linear_algebra as la\n"
        "assert isinstance(la.way(la.LARGE - 1), la.ByNumpy)\n"
        "assert 'scipy' not in sys.modules\n"
        "assert isinstance(la.way(la.LARGE), la.ByScipy)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scipy_long_vectors_take_numpy():
    code = (
        "import sys\n"
        "sys.modules['scipy'] = None\n"
        "from tapword.support import linear_algebra as la\n"
        "from tapword.support.threads import one_thread\n"
        "assert isinstance(la.way(la.LARGE), la.ByNumpy)\n"
        "with one_thread():\n"
        "    pass\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", registry.classes("learners"))
def test_learners_score_the_same_both_ways(rng, monkeypatch, name):
    X = rng.normal(size=(300, 60)).astype(np.float32)
    words = ["ab"[k] for k in rng.integers(2, size=200)]
    found = []
    for limit in (60, 61):
        monkeypatch.setattr(linear_algebra, "LARGE", limit)
        learner = registry.build("learners", name)
        for x, word in zip(X[:200], words, strict=True):
            learner.learn_one(x, word)
        found.append(learner.scores(X))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4 * np.abs(found[0]).max())
