"""A learned sample is taken out again as if it had never been, and a forgotten word given back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapword import registry
from tapword.errors import InputError
from tapword.learners.base import Row
from tests.learners.test_forgetting import DIM, TAKES, by_word, taught
from tests.learners.test_search import ASKED, LEARNERS, build, lessons
from tests.search import SEARCH
from tests.test_contracts import VARIANTS, loaded_again

SPECS = LEARNERS + VARIANTS["learners"]
ADDITIVE = [spec for spec in SPECS if build(spec).mergeable]
ORDERED = [spec for spec in SPECS if not build(spec).mergeable]


def same_knowledge(learner, wanted):
    """The same rows and the same statistic, up to rounding; rows may stand in another order."""
    assert learner.words == wanted.words and learner.negatives == wanted.negatives
    assert learner.dim == wanted.dim
    if learner.dim is None:
        assert learner.state() == {}
        return
    ours, theirs = learner.statistics, wanted.statistics
    order = [learner.rows.index(row) for row in wanted.rows]
    np.testing.assert_array_equal(ours.counts[order], theirs.counts)
    np.testing.assert_allclose(ours.means[order], theirs.means, rtol=1e-4, atol=1e-4)
    assert (ours.n_scatter, ours.forgotten) == (theirs.n_scatter, theirs.forgotten)
    np.testing.assert_allclose(ours.pooled(), theirs.pooled(), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("spec", ADDITIVE)
@settings(SEARCH, max_examples=max(SEARCH.max_examples // 5, 10))
@given(lesson=lessons(), data=st.data())
def test_what_is_taken_out_was_never_learned(spec, lesson, data):
    """Learn a, b, c, take out b: the same as a, c; any of them, in any order, loaded or not."""
    X, words = lesson
    order = data.draw(st.permutations(range(len(X))))
    out = order[: data.draw(st.integers(0, len(X)))]
    learner, wanted = build(spec), build(spec)
    learner.learn_many(X, words)
    if data.draw(st.booleans()):
        learner = loaded_again(lambda: build(spec), learner)
    for i in out:
        learner.unlearn_one(X[i], words[i])
    left = sorted(set(order) - set(out))
    wanted.learn_many(X[left], [words[i] for i in left])
    same_knowledge(learner, wanted)
    assert np.isfinite(learner.scores(ASKED)).all()


@pytest.mark.parametrize("spec", ADDITIVE)
def test_scores_are_those_of_what_is_left(rng, spec):
    """Also where factors of covariances were kept from before."""
    learner, takes = taught(spec, rng)
    asked = np.concatenate(list(takes.values()))
    learner.scores(asked)
    learner.unlearn_one(takes["word1"][2], "word1")
    learner.scores(asked)
    learner.learn_one(takes["word1"][2] + 1, "word1")
    X = takes["word1"].copy()
    X[2] += 1
    wanted = registry.build("learners", spec)
    for word, rows in (takes | {"word1": X}).items():
        wanted.learn_many(rows, [word] * TAKES)
    np.testing.assert_allclose(
        by_word(learner, asked), by_word(wanted, asked), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("spec", ADDITIVE)
def test_the_last_sample_takes_the_word_along(rng, spec):
    learner, takes = taught(spec, rng, words=2)
    learner.learn_one(takes["word0"][0] + 9, "word1", negative=True)
    for x in takes["word1"][:-1]:
        learner.unlearn_one(x, "word1")
    assert learner.words == {"word0": TAKES, "word1": 1} and learner.negatives == {"word1": 1}
    learner.unlearn_one(takes["word1"][-1], "word1")
    assert learner.words == {"word0": TAKES} and learner.negatives == {}
    for x in takes["word0"]:
        learner.unlearn_one(x, "word0")
    assert learner.words == {} and learner.state() == {}


@pytest.mark.parametrize("spec", ADDITIVE)
def test_a_negative_is_taken_out_alone(rng, spec):
    learner, takes = taught(spec, rng)
    before, x = loaded_again(lambda: build(spec), learner), takes["word0"][0] + 9
    with pytest.raises(InputError, match="no negative of 'word1'"):
        learner.unlearn_one(x, "word1", negative=True)
    learner.learn_one(x, "word1", negative=True)
    learner.unlearn_one(x, "word1", negative=True)
    same_knowledge(learner, before)


@pytest.mark.parametrize("spec", [spec for spec in ADDITIVE if build(spec).keeps_trace])
def test_a_sample_that_took_a_forgotten_ones_place_gives_it_back(rng, spec):
    learner, takes = taught(spec, rng)
    learner.forget("word1")
    assert learner.forgotten == TAKES
    before = loaded_again(lambda: build(spec), learner)
    scattered = not learner.forgotten
    learner.learn_one(takes["word1"][0], "word2")
    assert learner.forgotten == TAKES - 1
    learner.unlearn_one(takes["word1"][0], "word2", scattered=scattered)
    same_knowledge(learner, before)


@pytest.mark.parametrize("spec", [spec for spec in ADDITIVE if build(spec).keeps_trace])
def test_where_places_were_taken_no_scatter_is_broken(rng, spec):
    """Some samples of a word are in the scatter and some are not: means stay exact all the same."""
    learner, _ = taught(spec, rng, words=2)
    learner.forget("word1")
    new = 3 * rng.normal(size=(9, DIM)).astype(np.float32)
    held = []
    for x in new:
        held.append(not learner.forgotten)
        learner.learn_one(x, "new")
    assert held == [False] * TAKES + [True] * 3
    for i in (1, 7, 0, 6, 4, 8):
        learner.unlearn_one(new[i], "new", scattered=held[i])
        assert (learner.statistics.pooled()[learner.statistics.blocks.diagonal()] >= 0).all()
        assert np.isfinite(learner.scores(new)).all()
    assert learner.words == {"word0": TAKES, "new": 3}
    mean = learner.statistics.means[learner.rows.index(Row("new"))]
    np.testing.assert_allclose(mean, new[[2, 3, 5]].mean(axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", ["cosine:scatter=per-word", "slda:scatter=per-word", "ridge"])
def test_what_was_never_learned_is_refused(rng, spec):
    """The only sample of a word tells; so do all of them where each word has a scatter."""
    learner, takes = taught(spec, rng, words=2)
    learner.learn_one(takes["word0"][0], "once")
    before = loaded_again(lambda: build(spec), learner)
    foreign = [(takes["word0"][1], "once")]
    if "per-word" in spec:
        foreign.append((takes["word0"][0] + 50, "word0"))
    for x, word in foreign:
        with pytest.raises(InputError, match="not among those that were learned"):
            learner.unlearn_one(x, word)
    with pytest.raises(InputError, match="'never' is not in this model"):
        learner.unlearn_one(takes["word0"][0], "never")
    same_knowledge(learner, before)


@pytest.mark.parametrize("spec", ORDERED)
def test_where_the_order_matters_it_is_refused(rng, spec):
    learner, takes = taught(spec, rng, words=2)
    with pytest.raises(InputError, match="cannot unlearn: what it knows depends on the order"):
        learner.unlearn_one(takes["word0"][0], "word0")
    with pytest.raises(InputError, match="cannot extract a word"):
        learner.extract_word("word0")
    assert learner.words == {"word0": TAKES, "word1": TAKES}


@pytest.mark.parametrize("spec", ADDITIVE)
@pytest.mark.parametrize("words", [1, 3])
def test_a_forgotten_word_is_given_back(rng, spec, words):
    """The last one too, with what all words shared; even if it was taught again meanwhile."""
    learner, takes = taught(spec, rng, words)
    learner.learn_one(takes["word0"][0] + 9, "word0", negative=True)
    before = loaded_again(lambda: build(spec), learner)
    part = learner.extract_word("word0")
    assert part.words == {"word0": TAKES} and part.negatives == {"word0": 1}
    learner.forget("word0")
    learner.merge(part)
    same_knowledge(learner, before)
    np.testing.assert_allclose(
        by_word(learner, takes["word0"]), by_word(before, takes["word0"]), rtol=1e-3, atol=1e-3
    )
    learner.forget("word0")
    learner.learn_one(np.ones(DIM, np.float32), "word0")
    learner.merge(part)
    assert learner.words["word0"] == TAKES + 1
