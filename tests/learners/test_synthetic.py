"""Synthetic clips of typed words: kept apart from samples, and forgotten without a trace."""

import copy

import numpy as np
import pytest

from tapword import registry
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Row
from tapword.learners.spoken import SpokenStatistics
from tapword.learners.statistics import Statistics
from tests.test_contracts import VARIANTS, loaded_again, same_state, samples

ALL = [*registry.classes("learners"), *VARIANTS["learners"]]
SPECS = [spec for spec in ALL if registry.build("learners", spec).supports_synthetic]
OTHERS = [spec for spec in registry.classes("learners") if spec not in SPECS]
MERGEABLE = [spec for spec in SPECS if registry.build("learners", spec).mergeable]
X, WORDS = samples(40)
SPOKEN, _ = samples(12, seed=5)


def taught(spec, typed=("word0", "typed"), rows=slice(None)):
    """A learner of samples, and of clips of the typed words."""
    learner = registry.build("learners", spec)
    if len(WORDS[rows]):
        learner.learn_many(X[rows], WORDS[rows])
    for k, word in enumerate(typed):
        learner.learn_synthetic(SPOKEN[4 * k : 4 * k + 4], word)
    return learner


def test_the_sizes_learner_and_the_simple_ones_support_it():
    assert {"cosine", "ncm", "ridge", "slda", "sovr"} <= set(SPECS)
    assert registry.build("learners", "cosine:prior=shipped,covariance=full").supports_synthetic


@pytest.mark.parametrize("spec", OTHERS)
def test_other_learners_refuse(spec):
    learner = registry.build("learners", spec)
    with pytest.raises(InputError, match="cannot learn typed words; those of the sizes can"):
        learner.learn_synthetic(SPOKEN, "typed")
    assert learner.dim is None and not learner.words


@pytest.mark.parametrize("spec", SPECS)
def test_they_are_counted_apart(spec):
    learner = taught(spec)
    assert learner.words["typed"] == 0 and learner.words["word0"] == WORDS.count("word0")
    assert learner.synthetic == {"word0": 4, "typed": 4}
    assert learner.scores(X).shape == (40, 5) and np.isfinite(learner.scores(X)).all()
    assert list(learner.rows)[-1] == Row("typed")


def mean_of(word):
    """Mean of a word's samples, (D,)."""
    return X[[own == word for own in WORDS]].mean(axis=0)


@pytest.mark.parametrize("spec", SPECS)
def test_they_count_as_one_sample_at_their_mean(spec):
    """By hand: the word's mean, and a pseudo-sample at the mean of the clips."""
    learner, own = taught(spec, typed=()), X[[word == "word0" for word in WORDS]]
    clips = SPOKEN[:4] + mean_of("word0")
    learner.learn_synthetic(clips, "word0")
    wanted = (own.sum(axis=0) + clips.mean(axis=0)) / (len(own) + 1)
    row = learner.rows.index(Row("word0"))
    np.testing.assert_allclose(learner.effective.means[row], wanted, rtol=0, atol=1e-5)
    assert learner.effective.counts[row] == len(own) + 1
    plain = taught(spec, typed=())
    np.testing.assert_array_equal(learner.statistics.means, plain.statistics.means)
    others = [row for row in range(4) if learner.rows[row].word != "word0"]
    np.testing.assert_array_equal(learner.effective.means[others], plain.statistics.means[others])


@pytest.mark.parametrize("spec", SPECS)
def test_they_count_for_nothing_beside_samples_that_disagree(spec):
    learner, plain = taught(spec, typed=()), taught(spec, typed=())
    learner.learn_synthetic(SPOKEN[:4] - 3 * mean_of("word0"), "word0")
    np.testing.assert_array_equal(learner.effective.means, plain.statistics.means)
    np.testing.assert_array_equal(learner.effective.counts, plain.statistics.counts)
    np.testing.assert_array_equal(learner.scores(X), plain.scores(X))


@pytest.mark.parametrize("spec", MERGEABLE)
def test_whether_they_count_depends_on_the_samples_there_are_now(spec):
    learner = registry.build("learners", spec)
    learner.learn_many(X, WORDS)
    typed = np.tile(mean_of("word0"), (3, 1))
    learner.learn_synthetic(typed, "typed")
    row = learner.rows.index(Row("typed"))
    assert learner.effective.counts[row] == 1
    learner.learn_one(-typed[0], "typed")
    assert learner.effective.counts[row] == 1
    np.testing.assert_allclose(learner.effective.means[row], -typed[0], rtol=1e-5)
    for _ in range(4):
        learner.learn_one(typed[0], "typed")
    assert learner.effective.counts[row] == 6
    for _ in range(4):
        learner.unlearn_one(typed[0], "typed")
    np.testing.assert_allclose(learner.effective.means[row], -typed[0], rtol=1e-4, atol=1e-4)
    learner.unlearn_one(-typed[0], "typed")
    np.testing.assert_allclose(learner.effective.means[row], typed[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("cosine", "samples", "native", "weight"),
    [
        (0.29, 1, True, 0),
        (0.31, 1, True, 1),
        (0.59, 3, False, 0),
        (0.61, 3, False, 1),
        (-1.0, 0, True, 1),
        (-1.0, 0, False, 1),
    ],
)
def test_the_cosine_of_both_means_decides(cosine, samples, native, weight):
    own, spoken = Statistics(2, scatter=False), SpokenStatistics(2, 1)
    own.add_word()
    for _ in range(samples):
        own.update(np.float32([5, 0]), 0)
    spoken.update(np.float32([cosine, np.sqrt(1 - cosine**2)]), 0)
    spoken.foreign[0] = not native
    assert spoken.weight(own).tolist() == [weight]


@pytest.mark.parametrize("spec", MERGEABLE)
def test_clips_without_native_speakers_are_counted_exactly(spec):
    def made(*clips):
        learner = registry.build("learners", spec)
        learner.learn_many(X, WORDS)
        for k, native in clips:
            learner.learn_synthetic(SPOKEN[k : k + 1], "typed", native)
        return learner

    learner = made((0, True), (1, False))
    other = made((2, False))
    learner.merge(other.extract_word("typed"))
    row = learner.rows.index(Row("typed"))
    assert learner.spoken_statistics.foreign[row] == 2
    assert learner.state()["synthetic_foreign"].tolist() == [2]
    for k in (2, 1):
        learner.unlearn_synthetic(SPOKEN[k], "typed", native=False)
    assert "synthetic_foreign" not in learner.state()
    np.testing.assert_allclose(learner.effective.means[row], SPOKEN[0], rtol=1e-4, atol=1e-4)
    again = registry.build("learners", spec)
    again.load_state(other.state(), other.words, {}, other.rows, synthetic=other.synthetic)
    np.testing.assert_array_equal(again.spoken_statistics.foreign, other.spoken_statistics.foreign)
    other.forget("typed")
    assert other.spoken_statistics is None


@pytest.mark.parametrize("wrong", [-1, 5])
def test_impossible_counts_of_clips_are_refused(wrong):
    learner = taught("cosine")
    learner.unlearn_synthetic(SPOKEN[0], "word0")
    learner.learn_synthetic(SPOKEN[:1], "word0", native=False)
    state = learner.state()
    assert state["synthetic_foreign"].tolist() == [1, 0]
    state["synthetic_foreign"] = np.array([wrong, 0])
    with pytest.raises(ModelFileError, match="'synthetic_foreign' cannot be right"):
        registry.build("learners", "cosine").load_state(
            state, learner.words, learner.negatives, learner.rows, synthetic=learner.synthetic
        )


@pytest.mark.parametrize("spec", SPECS)
def test_a_typed_word_alone_can_be_recognised(spec):
    if registry.build("learners", spec).needs_whitening and "diagonal" in spec:
        pytest.skip("scores of one word alone say nothing here")
    learner = registry.build("learners", spec)
    learner.learn_synthetic(np.float32([[0, 0, 1], [0, 0.2, 1]]), "on")
    learner.learn_synthetic(np.float32([[1, 0, 0], [1, 0.2, 0]]), "off")
    assert learner.predict(np.float32([[0.1, 0, 0.9], [0.8, 0, 0.1]])) == ["on", "off"]


@pytest.mark.parametrize("spec", SPECS)
def test_order_does_not_matter(spec):
    if "lowrank" in spec or not registry.build("learners", spec).mergeable:
        pytest.skip("the order of samples matters here")
    first = registry.build("learners", spec)
    for word, clips in (("typed", SPOKEN[4:8]), ("word0", SPOKEN[:2])):
        first.learn_synthetic(clips, word)
    first.learn_many(X, WORDS)
    first.learn_synthetic(SPOKEN[2:4], "word0")
    second = taught(spec)
    names = list(second.words)
    ours = first.scores(X)[:, [list(first.words).index(name) for name in names]]
    np.testing.assert_allclose(ours, second.scores(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", SPECS)
def test_the_state_holds_them(spec):
    learner = taught(spec)
    state = {key: array.copy() for key, array in learner.state().items()}
    assert state["synthetic_means"].shape == (2, X.shape[1])
    made = registry.build("learners", spec)
    made.load_state(
        state, learner.words, learner.negatives, learner.rows, synthetic=learner.synthetic
    )
    same_state(made.state(), learner.state())
    np.testing.assert_array_equal(made.scores(X), learner.scores(X))
    assert made.synthetic == learner.synthetic
    # Both go on the same way.
    for one in (made, learner):
        one.learn_synthetic(SPOKEN[8:], "typed")
        one.learn_one(X[0], "typed")
    same_state(made.state(), learner.state())


@pytest.mark.parametrize("spec", SPECS)
def test_a_state_without_its_clips_is_refused(spec):
    learner = taught(spec)
    state = learner.state()
    for synthetic in ({}, {"word0": 4}, {"nobody": 4}, {"word0": 4, "typed": 4, "word1": 1}):
        with pytest.raises(ModelFileError):
            registry.build("learners", spec).load_state(
                state, learner.words, learner.negatives, learner.rows, synthetic=synthetic
            )


@pytest.mark.parametrize("spec", SPECS)
def test_unlearned_clips_leave_no_trace(spec):
    learner, plain = taught(spec), taught(spec, typed=())
    for k, word in enumerate(("word0", "typed")):
        for x in SPOKEN[[4 * k + 2, 4 * k, 4 * k + 3, 4 * k + 1]]:
            learner.unlearn_synthetic(x, word)
    assert learner.words == plain.words and not learner.synthetic
    same_state(learner.state(), plain.state())
    with pytest.raises(InputError, match="no synthetic clip of 'word0' is taught"):
        learner.unlearn_synthetic(SPOKEN[0], "word0")
    with pytest.raises(InputError, match="'typed' is not in this model"):
        learner.unlearn_synthetic(SPOKEN[0], "typed")


@pytest.mark.parametrize("spec", SPECS)
def test_a_word_without_a_clip_is_as_if_it_had_never_been_taught(spec):
    learner, other = taught(spec, typed=()), taught(spec, typed=())
    learner.learn_synthetic(SPOKEN[:4], "typed")
    learner.unlearn_synthetic(SPOKEN[1], "typed")
    other.learn_synthetic(SPOKEN[[0, 2, 3]], "typed")
    assert learner.synthetic == other.synthetic == {"typed": 3}
    ours, theirs = learner.state()["synthetic_means"], other.state()["synthetic_means"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(learner.scores(X), other.scores(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", SPECS)
def test_forgetting_a_word_forgets_its_clips(spec):
    learner = taught(spec)
    learner.learn_one(X[0], "word0", negative=True)
    for word in ("typed", "word0"):
        learner.forget(word)
        assert word not in learner.words and word not in learner.synthetic
    assert "synthetic_means" not in learner.state()
    loaded_again(lambda: registry.build("learners", spec), learner)
    for word in list(learner.words):
        learner.forget(word)
    assert learner.dim is None


@pytest.mark.parametrize("spec", SPECS)
def test_renaming_keeps_them(spec):
    learner = taught(spec)
    learner.rename("typed", "other")
    assert learner.synthetic == {"word0": 4, "other": 4}
    with pytest.raises(InputError, match="already a word"):
        learner.rename("other", "word0")


@pytest.mark.parametrize("spec", MERGEABLE)
def test_merging_is_exact(spec):
    whole = taught(spec)
    first = taught(spec, typed=(), rows=slice(0, 25))
    first.learn_synthetic(SPOKEN[:1], "word0")
    second = registry.build("learners", spec)
    second.learn_many(X[25:], WORDS[25:])
    second.learn_synthetic(SPOKEN[1:4], "word0")
    second.learn_synthetic(SPOKEN[4:8], "typed")
    first.merge(second)
    assert (first.words, first.synthetic) == (whole.words, whole.synthetic)
    np.testing.assert_allclose(first.effective.means, whole.effective.means, rtol=0, atol=1e-5)
    np.testing.assert_allclose(first.scores(X), whole.scores(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("spec", MERGEABLE)
def test_extract_and_merge_restore_a_word(spec):
    learner = taught(spec)
    before = {key: array.copy() for key, array in learner.state().items()}
    kept = learner.extract_word("typed")
    assert kept.words == {"typed": 0} and kept.synthetic == {"typed": 4}
    learner.forget("typed")
    learner.merge(kept)
    same_state(learner.state(), before)


@pytest.mark.parametrize("spec", MERGEABLE)
def test_unlearning_the_last_sample_keeps_a_typed_word(spec):
    learner = registry.build("learners", spec)
    learner.learn_many(X, WORDS)
    learner.learn_synthetic(SPOKEN[:4], "typed")
    learner.learn_one(X[3], "typed")
    learner.unlearn_one(X[3], "typed")
    assert learner.words["typed"] == 0 and learner.synthetic == {"typed": 4}
    with pytest.raises(InputError, match="no sample of 'typed' is taught, only synthetic clips"):
        learner.unlearn_one(X[3], "typed")


def test_a_copy_does_not_share_them():
    learner = taught("cosine")
    other = copy.deepcopy(learner)
    other.learn_synthetic(SPOKEN[8:], "typed")
    assert learner.synthetic["typed"] == 4 and other.synthetic["typed"] == 8
    same_state(learner.state(), taught("cosine").state())


def test_the_memory_budget_counts_them():
    learner = registry.build("learners", "cosine:covariance=diagonal,max_kb=0.1")
    learner.learn_one(X[0], "word0")
    learner.learn_synthetic(SPOKEN[:2], "word0")
    with pytest.raises(InputError, match=r"max_kb is 0\.1: forget a word, or raise it"):
        learner.learn_synthetic(SPOKEN[:2], "typed")
    assert learner.synthetic == {"word0": 2} and list(learner.words) == ["word0"]


@pytest.mark.parametrize("wrong", [np.zeros(6), np.full((2, 6), np.nan), np.zeros((2, 5))])
def test_vectors_are_checked(wrong):
    learner = taught("cosine")
    before = {key: array.copy() for key, array in learner.state().items()}
    with pytest.raises(InputError):
        learner.learn_synthetic(wrong, "typed")
    same_state(learner.state(), before)


def test_directions_are_those_of_the_effective_means():
    learner = taught("cosine:prior=shipped")
    means = learner.effective.means
    lengths = np.linalg.norm(means, axis=1)
    np.testing.assert_allclose(learner.directions() * lengths[:, None], means, atol=1e-5)
    assert lengths.min() > 0


@pytest.mark.parametrize(
    ("word", "count"), [("word1", 0), ("word1", -1), ("word0", -9), ("word0", 0), ("typed", 0)]
)
def test_only_a_typed_word_has_no_samples(word, count):
    learner = taught("cosine")
    counts = learner.state()["counts"].copy()
    counts[learner.rows.index(Row(word))] = count
    given = [learner.state() | {"counts": counts}, learner.words, {}, learner.rows]
    made = registry.build("learners", "cosine")
    if word in learner.synthetic and not count:
        made.load_state(*given, synthetic=learner.synthetic)
        return
    with pytest.raises(ModelFileError, match="cannot be right"):
        made.load_state(*given, synthetic=learner.synthetic)
