"""What stays of a forgotten word: nothing with a scatter a word, a share with one for all."""

import numpy as np
import pytest
import safetensors.numpy

from tapword import registry
from tapword.spotter.spotter import Spotter
from tests.conftest import tone

SHARED = [
    "cosine:covariance=full",
    "slda",
    "slda:prior=diagonal",
    "ridge",
    "cosine:covariance=block,block=4",
]
PER_WORD = ["cosine:covariance=full", "cosine:covariance=diagonal", "slda", "ridge"]
DIM, TAKES = 8, 6


def taught(spec, rng, words=4):
    learner = registry.build("learners", spec)
    centres = 2 * rng.normal(size=(words, DIM))
    spread = rng.normal(size=(DIM, DIM)) / 2
    takes = {
        f"word{k}": (centre + rng.normal(size=(TAKES, DIM)) @ spread).astype(np.float32)
        for k, centre in enumerate(centres)
    }
    for word, X in takes.items():
        learner.learn_many(X, [word] * TAKES)
    return learner, takes


def by_word(learner, X):
    return learner.scores(X)[:, np.argsort(list(learner.words))]


@pytest.mark.parametrize("spec", SHARED)
@pytest.mark.parametrize("one_by_one", [True, False])
def test_forgetting_and_learning_again_moves_no_score(rng, spec, one_by_one):
    """By less than 1%, however often. Without limit, scores once moved by half and more."""
    learner, takes = taught(spec, rng)
    asked = np.concatenate(list(takes.values()))
    before = by_word(learner, asked)
    for _ in range(10_000 if spec == "slda" and not one_by_one else 300):
        learner.forget("word1")
        if one_by_one:
            for x in takes["word1"]:
                learner.learn_one(x, "word1")
        else:
            learner.learn_many(takes["word1"], ["word1"] * TAKES)
    moved = np.abs(by_word(learner, asked) - before).max()
    assert moved < 1e-3 * np.abs(before).max()


def test_no_mean_of_a_forgotten_word_stays_in_memory():
    learner = registry.build("learners", "ncm")
    for value in (97.0, 98.0, 99.0):
        learner.learn_one(np.full(3, value, np.float32), f"word{value}")
    learner.forget("word98.0")
    held = [learner.statistics.centres.base, learner.statistics.centres, learner.statistics._buffer]
    assert not any((array == 98.0).any() for array in held if array is not None)


@pytest.mark.parametrize("one_by_one", [True, False])
def test_a_scatter_of_few_samples_is_one_array(rng, one_by_one):
    learner = registry.build("learners", "cosine:covariance=diagonal,scatter=per-word")
    X = rng.normal(size=(2_500, DIM)).astype(np.float32)
    for rows in X[:, None] if one_by_one else [X]:
        learner.learn_many(rows, ["lamp"] * len(rows))
    [own] = learner.statistics._sums
    assert own._collected is None


def test_later_samples_take_the_places_of_forgotten_ones_and_then_add(rng):
    learner, _ = taught("slda", rng)
    learner.forget("word1")
    statistics = learner.statistics
    assert (statistics.n_scatter, statistics.forgotten) == (4 * TAKES, TAKES)
    scatter = statistics.scatter.copy()
    new = rng.normal(size=(TAKES + 3, DIM)).astype(np.float32)
    learner.learn_many(new[:TAKES], ["new"] * TAKES)
    np.testing.assert_array_equal(statistics.scatter, scatter)
    assert statistics.forgotten == 0
    learner.learn_many(new[TAKES:], ["new"] * 3)
    assert (
        statistics.scatter[statistics.blocks.diagonal()] > scatter[statistics.blocks.diagonal()]
    ).all()
    assert statistics.n_scatter == 4 * TAKES + 3
    np.testing.assert_allclose(learner.state()["means"][-1], new.mean(axis=0), rtol=1e-5)


def test_a_single_place_is_taken_by_the_first_of_a_batch(rng):
    learner, _ = taught("slda", rng)
    learner.learn_one(rng.normal(size=DIM), "once")
    learner.forget("once")
    assert learner.statistics.forgotten == 1
    learner.learn_many(rng.normal(size=(3, DIM)), ["new"] * 3)
    assert (learner.statistics.n_scatter, learner.statistics.forgotten) == (4 * TAKES + 3, 0)


def test_a_batch_takes_places_as_its_samples_one_by_one(rng):
    learners = []
    new = rng.normal(size=(2 * TAKES, DIM)).astype(np.float32)
    words = ["new", "word0"] * TAKES
    for many in (True, False):
        learner, _ = taught("slda", np.random.default_rng(1))
        learner.forget("word1")
        if many:
            learner.learn_many(new, words)
        else:
            for x, word in zip(new, words, strict=True):
                learner.learn_one(x, word)
        learners.append(learner)
    one, other = (learner.state() for learner in learners)
    for key in one:
        np.testing.assert_allclose(one[key], other[key], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", PER_WORD)
def test_a_scatter_a_word_scores_as_one_for_all(rng, spec):
    joint = ":" if ":" not in spec else ","
    one, takes = taught(spec, np.random.default_rng(1))
    other, _ = taught(f"{spec}{joint}scatter=per-word", np.random.default_rng(1))
    X = np.concatenate(list(takes.values()))
    wanted = one.scores(X)
    np.testing.assert_allclose(other.scores(X), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "spec",
    [
        *("cosine:covariance=block,block=4", "cosine:covariance=diagonal", "cosine", "slda"),
        *("slda:prior=diagonal", "ridge"),
    ],
)
def test_a_scatter_a_word_states_its_bytes(rng, spec):
    joint = ":" if ":" not in spec else ","
    shared, _ = taught(spec, rng)
    learner, _ = taught(f"{spec}{joint}scatter=per-word", rng)
    held = sum(array.nbytes for array in learner.state().values())
    assert held == learner.state_bytes.total == learner.bytes_for(DIM, 4)
    scatter = shared.state()["scatter"].nbytes
    assert held == shared.state_bytes.total + 3 * scatter


@pytest.mark.parametrize("spec", ["finetune", "icarl", *SHARED])
def test_learners_with_a_trace_say_so(spec):
    """The contract of all learners checks those that say they keep none."""
    learner, takes = taught(spec, np.random.default_rng(1))
    never = registry.build("learners", spec)
    learner.forget("word1")
    for word in learner.words:
        never.learn_many(takes[word], [word] * TAKES)
    state = never.state()
    same = [np.array_equal(array, state[key]) for key, array in learner.state().items()]
    assert learner.keeps_trace and not all(same)


# The file.

SECRET = [300.0, 420.0]


def sounds(pitches):
    return [tone(pitch) for pitch in pitches]


def saved(tmp_path, learner, secret):
    """Arrays of a saved model of two words, with a third taught and forgotten or never taught."""
    spotter = Spotter("logmel", "avg", learner, augment=False)
    for word, pitches in (("one", (200, 210, 221, 235)), ("two", (800, 830, 790, 822))):
        spotter.learn_many(sounds(pitches), [word] * 4)
    vectors = spotter.encode(sounds(SECRET)).vectors
    if secret:
        spotter.learn_many(sounds(SECRET), ["secret"] * 2)
        spotter.forget("secret")
    path = tmp_path / f"{secret}.tap"
    spotter.save(path)
    difference = np.subtract(*vectors.astype(np.float64))
    return safetensors.numpy.load_file(path), difference / np.linalg.norm(difference)


def along(arrays, direction):
    """Squares that the file's scatter holds along a direction."""
    dim, total = len(direction), 0.0
    for name, packed in arrays.items():
        if "scatter" in name and packed.size > 1:
            dense = np.zeros((dim, dim))
            dense.T[np.triu_indices(dim)] = packed
            dense += np.tril(dense, -1).T
            total += direction @ dense @ direction
    return total


def test_the_file_shows_what_a_shared_scatter_keeps_of_a_forgotten_word(tmp_path):
    """As documented: the difference of two takes can be found in it."""
    learner = "cosine:covariance=full"
    with_trace, direction = saved(tmp_path, learner, secret=True)
    without, _ = saved(tmp_path, learner, secret=False)
    assert along(with_trace, direction) > 2 * along(without, direction)


@pytest.mark.parametrize(
    "learner", ["cosine:covariance=full,scatter=per-word", "ridge:scatter=per-word"]
)
def test_the_file_holds_no_byte_of_a_forgotten_word_with_a_scatter_a_word(tmp_path, learner):
    forgotten, direction = saved(tmp_path, learner, secret=True)
    never, _ = saved(tmp_path, learner, secret=False)
    assert along(forgotten, direction) == along(never, direction) > 0
    assert {name: array.tobytes() for name, array in forgotten.items()} == {
        name: array.tobytes() for name, array in never.items()
    }
