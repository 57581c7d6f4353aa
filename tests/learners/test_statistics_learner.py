"""The sizes a covariance comes in: packed blocks, the sketch, and the budget that chooses."""

import numpy as np
import pytest

from tapword import registry
from tapword.errors import InputError
from tapword.learners.packed import PackedBlocks
from tapword.learners.slda import Slda
from tapword.learners.statistics import SketchStatistics
from tapword.learners.statistics_learner import FORMS
from tapword.support.linear_algebra import packed_size

DIM = 12
# Sizes that divide 12 and that do not, one number, all of it and more.
SIZES = [1, 2, 4, 5, 7, 11, 12, 13, 96]


def masked(matrix, size):
    """Keep blocks on the diagonal of a dense matrix, the rest as 0."""
    block = np.arange(len(matrix)) // size
    return np.where(block[:, None] == block, matrix, 0)


def unpacked(blocks, packed):
    """The dense matrix that packed blocks stand for."""
    dense, start = np.zeros((blocks.dim, blocks.dim)), 0
    for row in range(0, blocks.dim, blocks.size):
        for column in range(row, min(row + blocks.size, blocks.dim)):
            stop = min(row + blocks.size, blocks.dim)
            n = stop - column
            dense[column:stop, column] = dense[column, column:stop] = packed[start : start + n]
            start += n
    assert start == len(packed)
    return dense


def scatter_of(X, labels):
    """Within-word scatter in float64."""
    e = X.astype(np.float64)
    for k in np.unique(labels):
        e[labels == k] -= e[labels == k].mean(axis=0)
    return e.T @ e


def draw(rng, n=60, dim=DIM, words=3):
    labels = rng.permutation(np.arange(n) % words)
    mixing = rng.normal(size=(dim, dim))
    X = 3 * rng.normal(size=(words, dim))[labels] + rng.normal(size=(n, dim)) @ mixing
    return X.astype(np.float32), labels


def names(labels):
    return [f"word{k}" for k in labels]


# Packed blocks against dense matrices.


@pytest.mark.parametrize("size", SIZES)
def test_blocks_hold_what_a_dense_matrix_has_there(rng, size):
    rows = rng.normal(size=(20, DIM)).astype(np.float32)
    blocks = PackedBlocks(DIM, min(size, DIM))
    packed = blocks.gram(rows)
    assert packed.shape == (blocks.n_entries,) and packed.dtype == np.float32
    dense = masked(rows.astype(float).T @ rows, size)
    np.testing.assert_allclose(unpacked(blocks, packed), dense, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(packed[blocks.diagonal()], np.diag(unpacked(blocks, packed)))


@pytest.mark.parametrize("size", SIZES)
def test_blocks_add_an_outer_product_in_place(rng, size):
    blocks = PackedBlocks(DIM, min(size, DIM))
    packed = blocks.gram(rng.normal(size=(20, DIM)).astype(np.float32))
    before, e = unpacked(blocks, packed), rng.normal(size=DIM).astype(np.float32)
    blocks.add_outer(packed, e, 0.25)
    wanted = before + masked(0.25 * np.outer(e, e), size)
    np.testing.assert_allclose(unpacked(blocks, packed), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_blocks_solve(rng, size):
    blocks = PackedBlocks(DIM, min(size, DIM))
    packed = blocks.gram(rng.normal(size=(40, DIM)).astype(np.float32)).astype(np.float64)
    rhs = rng.normal(size=(3, DIM))
    wanted = np.linalg.solve(unpacked(blocks, packed), rhs.T).T
    np.testing.assert_allclose(blocks.solve(packed, rhs), wanted, rtol=1e-8)


@pytest.mark.parametrize("dim", [1, 2, 5, 96, 97, 200])
@pytest.mark.parametrize("size", [1, 2, 96])
def test_blocks_count_their_numbers(dim, size):
    blocks = PackedBlocks(dim, min(size, dim))
    assert blocks.parts()[-1][1].stop == blocks.n_entries
    assert (
        sum(packed_size(rows.stop - rows.start) for rows, _ in blocks.parts()) == blocks.n_entries
    )
    assert len(set(blocks.diagonal())) == dim and blocks.diagonal().max() < blocks.n_entries


# The sketch.


def sketched(X, labels, rank):
    made = SketchStatistics(X.shape[1], rank)
    for _ in range(labels.max() + 1):
        made.add_word()
    made.update_many(X, labels)
    return made


def test_the_sketch_is_exact_while_rows_suffice(rng):
    """The first sample of a word has no residual: 3 words leave 9 rows of 12 samples."""
    X, labels = draw(rng, n=12)
    made = sketched(X, labels, rank=5)
    assert made.used == 9
    np.testing.assert_allclose(made.rows.T @ made.rows, scatter_of(X, labels), rtol=1e-4, atol=1e-3)


def test_the_sketch_shrinks_by_hand():
    made = SketchStatistics(3, 1)
    for e in np.diag([3.0, 1.0, 2.0]).astype(np.float32):
        made._add_outer(0, e, 1.0)
    # Two rows are full: what the second is long, squared, is taken off the first.
    np.testing.assert_allclose(np.abs(made.rows), [[np.sqrt(8), 0, 0], [0, 0, 2]], atol=1e-6)
    np.testing.assert_allclose(made.scatter, [9, 1, 4])


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_sketch_keeps_the_bound_of_frequent_directions(rng, rank):
    X, labels = draw(rng, n=300, dim=30)
    exact = scatter_of(X, labels)
    made = sketched(X, labels, rank)
    rows = made.rows.astype(np.float64)
    assert rank <= made.used <= 2 * rank
    error = np.linalg.eigvalsh(exact - rows.T @ rows)
    tolerance = 1e-5 * np.trace(exact)
    assert error[0] >= -tolerance, "the sketch claims more than there was"
    # At most the spectrum beyond the k strongest directions, over rank - k + 1 (Ghashami 2016).
    beyond = np.cumsum(np.linalg.eigvalsh(exact))[::-1]
    bound = min(beyond[k] / (rank + 1 - k) for k in range(rank + 1))
    assert 0.01 * bound < error[-1] <= bound + tolerance
    np.testing.assert_allclose(made.scatter, np.diag(exact), rtol=1e-4)


def test_the_sketch_solves_with_an_exact_diagonal(rng):
    X, labels = draw(rng, n=300, dim=30)
    made = sketched(X, labels, 4)
    rows = made.rows.astype(np.float64)
    low = rows.T @ rows
    dense = low + np.diag(np.diag(scatter_of(X, labels)) - np.diag(low))
    extra = rng.uniform(1, 2, 30)
    rhs = rng.normal(size=(3, 30))
    wanted = np.linalg.solve(0.01 * dense + np.diag(extra), rhs.T).T
    np.testing.assert_allclose(made.solve(0.01, extra, rhs), wanted, rtol=1e-3, atol=1e-4)


def test_a_sketch_as_wide_as_the_vector_is_the_whole_scatter(rng):
    X, labels = draw(rng, n=300)
    made = sketched(X, labels, DIM)
    exact = scatter_of(X, labels)
    np.testing.assert_allclose(made.rows.T @ made.rows, exact, atol=1e-4 * np.abs(exact).max())


# Every form of slda.


@pytest.mark.parametrize("scatter", ["shared", "per-word"])
@pytest.mark.parametrize("prior", ["none", "diagonal", "shipped"])
@pytest.mark.parametrize("covariance", FORMS)
def test_slda_in_every_form_is_its_formula(rng, covariance, prior, scatter):
    X, labels = draw(rng)
    if covariance == "lowrank" and scatter == "per-word":
        with pytest.raises(InputError, match="per-word cannot go with covariance lowrank"):
            Slda(scatter=scatter, covariance=covariance)
        return
    learner = Slda(1e-2, "exact", prior, scatter, covariance, block=5, rank=DIM)
    learner.learn_many(X, names(labels))
    size = {"full": DIM, "lowrank": DIM, "block": 5, "diagonal": 1}[covariance]
    order = [int(word[4:]) for word in learner.words]
    means = np.stack([X[labels == k].mean(axis=0, dtype=float) for k in order])
    strength = 0 if prior == "none" else DIM / 2
    variances = X.var(axis=0, dtype=float) if prior == "diagonal" else np.ones(DIM)
    total = masked(scatter_of(X, labels), size) + strength * np.diag(variances)
    sigma = 0.99 * total / (len(X) + strength) + 0.01 * np.eye(DIM)
    weights = np.linalg.solve(sigma, means.T).T
    wanted = X @ weights.T - 0.5 * np.einsum("kd,kd->k", weights, means)
    np.testing.assert_allclose(learner.scores(X), wanted, atol=1e-3 * np.ptp(wanted))


@pytest.mark.parametrize("spec", ["slda", "cosine"])
@pytest.mark.parametrize("covariance", FORMS)
def test_the_stated_bytes_are_those_held(rng, spec, covariance):
    X, labels = draw(rng, n=200)
    learner = registry.build("learners", f"{spec}:covariance={covariance},block=5,rank=3")
    learner.learn_many(X, names(labels))
    held = sum(array.nbytes for array in learner.state().values())
    assert held == learner.state_bytes.total


# A budget.


def kilobytes(dim, words, block):
    return (4 * PackedBlocks(dim, min(block, dim)).n_entries + 8 + words * (4 * dim + 8)) / 1000


@pytest.mark.parametrize("spec", ["slda:covariance=full", "cosine:covariance=full"])
def test_a_budget_chooses_the_largest_form_that_leaves_room_for_30_words(spec):
    dim = 40
    blocks = {"full": 40, "block": 8, "diagonal": 1}
    room = {form: kilobytes(dim, 30, block) for form, block in blocks.items()}

    def form(max_kb):
        return registry.build("learners", f"{spec},block=8,max_kb={max_kb}").form(dim)

    assert form("none") == form(room["full"]) == "full"
    assert form(room["full"] - 0.001) == form(room["block"]) == "block"
    assert form(room["block"] - 0.001) == form(room["diagonal"]) == form(1) == "diagonal"


@pytest.mark.parametrize("covariance", ["block", "lowrank", "diagonal"])
def test_a_budget_never_chooses_a_larger_form(covariance):
    learner = registry.build("learners", f"cosine:covariance={covariance},max_kb=100000")
    assert learner.form(40) == covariance
    tight = registry.build("learners", f"cosine:covariance={covariance},max_kb=0.1")
    assert tight.form(40) == ("lowrank" if covariance == "lowrank" else "diagonal")


@pytest.mark.parametrize("spec", ["slda", "cosine", "slda:scatter=per-word"])
def test_a_word_too_many_is_refused_and_nothing_is_lost(rng, spec):
    X, labels = draw(rng, n=40, words=4)
    # Room for four words and no more, in the smallest form there is.
    each = 4 * DIM * (2 if "per-word" in spec else 1) + 8
    budget = (8 + 4 * each + (0 if "per-word" in spec else 4 * DIM) + each - 1) / 1000
    join = "," if ":" in spec else ":"
    learner = registry.build("learners", f"{spec}{join}max_kb={budget}")
    learner.learn_many(X, names(labels))
    before = {key: array.copy() for key, array in learner.state().items()}
    calls = [
        lambda: learner.learn_one(X[0], "another"),
        lambda: learner.learn_many(X[:2], ["word0", "another"]),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"max_kb is .*: forget a word, or raise it"):
            call()
        assert list(learner.words) == [f"word{k}" for k in dict.fromkeys(labels)]
        for key, array in learner.state().items():
            np.testing.assert_array_equal(array, before[key])
    other = registry.build("learners", learner.spec)
    other.learn_one(X[0], "another")
    with pytest.raises(InputError, match="max_kb"):
        learner.merge(other)
    assert len(learner.words) == 4 and learner.state_bytes.total <= 1000 * budget
    learner.forget("word0")
    learner.learn_one(X[0], "another")
    assert "another" in learner.words


def test_a_state_within_a_budget_goes_on_after_loading(rng):
    X, labels = draw(rng)
    spec = "cosine:covariance=full,block=4,max_kb=1.9"
    learner, loaded = (registry.build("learners", spec) for _ in range(2))
    learner.learn_many(X, names(labels))
    assert learner.form(DIM) == "block"
    loaded.load_state(learner.state(), learner.words)
    np.testing.assert_array_equal(loaded.scores(X), learner.scores(X))


@pytest.mark.parametrize("name", ["slda", "cosine"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("covariance=banded", "one of full, block, lowrank, diagonal, got 'banded'"),
        ("block=0", "block must be a whole number of at least 1, got 0"),
        ("rank=-1", "rank must be a whole number of at least 1, got -1"),
        ("max_kb=0", "max_kb must be above 0 or none, got 0"),
        ("max_kb=nan", "max_kb must be above 0 or none, got nan"),
    ],
)
def test_arguments_that_make_no_sense_are_shown(name, arguments, message):
    with pytest.raises(InputError, match=f"{name}: .*{message}"):
        registry.build("learners", f"{name}:{arguments}")
