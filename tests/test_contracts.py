"""The written contract of each kind of part, checked on every registered part without listing them.

A check takes a class, or anything else that makes a part when called, and fails by an assertion.
Each one is itself shown to fail, on a part broken for it (`broken_parts.py`).
"""

import functools
import inspect
from pathlib import Path

import numpy as np
import pytest

from tapword import assets, registry
from tapword.backbones import checkpoints
from tapword.backbones.base import Unavailable
from tapword.errors import InputError, MissingExtra, ModelFileError
from tapword.learners.base import Row
from tapword.learners.ncm import Ncm
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.spotter.cohort import unit
from tapword.spotter.spotter import Spotter
from tests import broken_parts
from tests.conftest import tone

D = 6
CLIPS = Path(assets.__file__).parent / "clips"
# Parts in the forms that their arguments give them: each keeps the whole contract of its kind.
VARIANTS = {
    "poolings": [
        *("mix:alpha=0.2", "lp:p=3", "lp:p=2.5", "rap:share=0.3", "tap:R=1", "tap:R=8", "maxw:l=5"),
        *("isqrt_cov:channels=4,iterations=3", "middle:n=1", "middle:n=41"),
        *("blocks:poolings=tap:R=2",),
    ],
    "learners": [
        *(
            "slda:variant=reference",
            "slda:variant=reference,scatter=per-word",
            "slda:scatter=per-word",
        ),
        *("slda:prior=diagonal", "slda:prior=shipped", "slda:covariance=block,block=3"),
        *("slda:covariance=diagonal", "slda:covariance=lowrank,rank=4"),
        *(
            "slda:scatter=per-word,covariance=block,block=3",
            "slda:scatter=per-word,covariance=diagonal",
        ),
        *("cosine:covariance=full", "cosine:covariance=full,prior=shipped", "cosine:prior=shipped"),
        *("cosine:covariance=block,block=4", "cosine:covariance=diagonal,prior=shipped"),
        *(
            "cosine:scatter=per-word",
            "cosine:scatter=per-word,covariance=full,prior=shipped",
            "cosine:scatter=per-word,covariance=diagonal",
            "ridge:scatter=per-word",
        ),
        *("cosine:covariance=lowrank,rank=4", "snb:variant=reference", "sqda:enough=0"),
        "sqda:variant=reference",
        *("cbcl:distance_threshold=2,max_centroids=9,topk=3", "icarl:buffer=8,replay=3"),
        "icarl:unit_length=true,lr=1",
        *("cbcl:variant=reference,distance_threshold=2,max_centroids=9",),
        *("finetune:vocabulary=word0+word2+later", "ridge:lam=2,balanced=false"),
    ],
}


def frames(b=4, t=9, d=D, seed=0):
    return np.random.default_rng(seed).normal(size=(b, t, d)).astype(np.float32)


def samples(n=40, d=D, words=4, seed=0):
    """Vectors (n, d) around one centre a word, and their words, shuffled."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % words
    rng.shuffle(labels)
    centres = np.random.default_rng(99).normal(scale=3, size=(words, d))
    X = (centres[labels] + rng.normal(size=(n, d))).astype(np.float32)
    return X, [f"word{label}" for label in labels]


def taught(cls, X=None, words=None):
    """A learner of some samples, one by one; without any, of `samples()`."""
    learner = cls()
    X, words = samples() if X is None else (X, words)
    for x, word in zip(X, words, strict=True):
        learner.learn_one(x, word)
    return learner


def loaded_again(cls, learner):
    """What a new learner makes of another's state, which must be all there is to it."""
    loaded = cls()
    state = {key: array.copy() for key, array in learner.state().items()}
    loaded.load_state(state, learner.words, learner.negatives, learner.rows)
    assert (loaded.words, loaded.negatives) == (learner.words, learner.negatives)
    assert loaded.rows == learner.rows
    same_state(loaded.state(), learner.state())
    return loaded


def by_word(learner, X):
    """Scores with columns in the order of the alphabet."""
    return learner.scores(X)[:, np.argsort(list(learner.words))]


def alike(scores, wanted):
    """Assert that scores are the same but for rounding."""
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


def refused(call, *parts):
    """Assert that a call raises InputError with every part in its message."""
    try:
        call()
    except InputError as error:
        for part in parts:
            assert str(part) in str(error), f"{part!r} is not in: {error}"
    else:
        raise AssertionError("was not refused")


def same_state(one, other):
    assert one.keys() == other.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], other[key], err_msg=key)


# Every part.


def has_defaults(cls):
    for parameter in cls.parameters().values():
        assert parameter.default is not inspect.Parameter.empty, parameter
    cls()


def stores_arguments_verbatim(cls):
    part = cls()
    for name, parameter in cls.parameters().items():
        assert getattr(part, name) is parameter.default


def repr_shows_parameters(cls):
    for name, parameter in cls.parameters().items():
        assert f"{name}={parameter.default!r}" in repr(cls())


def spec_leads_back(cls):
    part = cls()
    assert part.spec == part.name
    for kind, package in registry.KINDS.items():
        if type(part).__module__.startswith(package):
            assert registry.build(kind, part.spec).arguments() == part.arguments()


# Poolings.


def pooling_inputs_untouched(cls):
    for pool in (cls().pool, cls().pool_for_learning):
        given = frames()
        pool(given)
        np.testing.assert_array_equal(given, frames())


def pooling_deterministic(cls):
    np.testing.assert_array_equal(cls().pool(frames()), cls().pool(frames()))
    learned = [cls().pool_for_learning(frames()) for _ in range(2)]
    np.testing.assert_array_equal(*learned)


def pooling_one_frame(cls):
    pooled = cls().with_length(9).pool(frames(t=1))
    assert pooled.shape == (4, cls().with_length(9).dim(D)) and np.isfinite(pooled).all()


def pooling_constant_frames(cls):
    for value in (0.0, 0.1, -3e4):
        assert np.isfinite(cls().pool(np.full((5, D), value))).all()


def pooling_dim(cls):
    for b, t in ((1, 9), (3, 9), (2, 4)):
        pooled = cls().with_length(9).pool(frames(b, t))
        assert pooled.shape == (b, cls().with_length(9).dim(D))
        assert pooled.dtype == np.float32


def pooling_takes_a_length_where_it_needs_one(cls):
    part = cls()
    assert (part.with_length(9) is part) == (not part.needs_length)
    assert part.with_length(9).with_length(4).dim(D) == part.with_length(9).dim(D)


def pooling_batch_equals_alone(cls):
    pooling, batch = cls().with_length(9), frames()
    for pool in (pooling.pool, pooling.pool_for_learning):
        for t in (9, 3, 1):
            together = pool(batch[:, :t])
            alone = [pool(clip[:t]) for clip in batch]
            np.testing.assert_array_equal(together, alone)


def pooling_takes_float64(cls):
    given = frames()
    np.testing.assert_array_equal(cls().pool(given.astype(np.float64)), cls().pool(given))


def pooling_refuses_nan(cls):
    for bad in (np.nan, np.inf):
        given = frames()
        given[1, 2, 3] = bad
        refused(lambda given=given: cls().pool(given), "NaN")


def pooling_refuses_shapes(cls):
    refused(lambda: cls().pool(np.zeros(5)), "(5,)")
    refused(lambda: cls().pool(np.zeros((0, 5))), "(0, 5)")


# Learners.


def learner_inputs_untouched(cls):
    X, words = samples()
    learner = cls()
    learner.learn_many(X, words)
    learner.learn_one(X[0], words[0])
    learner.scores(X)
    np.testing.assert_array_equal(X, samples()[0])


def learner_keeps_no_view(cls):
    """What the caller does to its array later changes nothing."""
    learner, (X, words) = cls(), samples()
    for x, word in zip(X, words, strict=True):
        learner.learn_one(x, word)
    X += 100
    Y = samples(seed=1)[0]
    np.testing.assert_array_equal(learner.scores(Y), taught(cls).scores(Y))


def learner_deterministic(cls):
    Y = samples(seed=1)[0]
    np.testing.assert_array_equal(taught(cls).scores(Y), taught(cls).scores(Y))
    same_state(taught(cls).state(), taught(cls).state())


def learner_cold_start(cls):
    learner = cls()
    assert learner.words == {} and learner.state() == {}
    assert learner.scores(np.zeros((3, D))).shape == (3, 0)
    assert learner.predict(np.zeros((3, D))) == [None] * 3
    assert learner.state_bytes.total == 0
    learner.learn_one(np.ones(D), "first")
    assert learner.predict(np.zeros((2, D))) == ["first"] * 2


def learner_only_taught_words_win(cls):
    learner, (X, words) = cls(), samples()
    seen = set()
    for x, word in zip(X, words, strict=True):
        learner.learn_one(x, word)
        seen.add(word)
        scores = learner.scores(X[:5])
        assert scores.shape == (5, len(seen)) and np.isfinite(scores).all()
        assert set(learner.predict(X[:5])) <= seen
    assert learner.words == {word: words.count(word) for word in dict.fromkeys(words)}


def learner_new_words_at_any_time(cls):
    learner = taught(cls)
    learner.learn_many(np.full((3, D), 30.0), ["late"] * 3)
    assert learner.words["late"] == 3
    assert learner.scores(np.full((1, D), 30.0)).shape == (1, 5)


def learner_many_equals_one(cls):
    for scale in (1e-3, 1, 1e3):
        one, many, (X, words) = cls(), cls(), samples(120)
        X *= np.float32(scale)
        for x, word in zip(X, words, strict=True):
            one.learn_one(x, word)
        for part in (slice(7), slice(7, 7), slice(7, None)):
            many.learn_many(X[part], words[part])
            many.scores(X)
        assert list(one.words.items()) == list(many.words.items())
        if isinstance(one, StatisticsLearner):
            # Sums of a batch are exact, but rounded in another order.
            alike(many.scores(X), one.scores(X))
        else:
            same_state(many.state(), one.state())


def learner_order_does_not_matter_where_it_merges(cls):
    if not cls().mergeable:
        return
    X, words = samples(120)
    wanted = by_word(taught(cls, X, words), X)
    for order in (np.arange(120)[::-1], np.argsort(words, kind="stable")):
        alike(by_word(taught(cls, X[order], [words[i] for i in order]), X), wanted)


def learner_state_round_trip(cls):
    """A learner loaded in mid-stream goes on exactly like the one that never stopped."""
    steady, (X, words) = taught(cls, *samples(60)), samples(90, seed=2)
    steady.forget("word1")
    steady.learn_one(X[0], "word2", negative=True)
    steady.learn_one(X[1], "new")
    loaded = loaded_again(cls, steady)
    for learner in (steady, loaded):
        for x, word in zip(X, words, strict=True):
            learner.learn_one(x, word)
        learner.learn_many(X, words)
    same_state(loaded.state(), steady.state())
    np.testing.assert_array_equal(loaded.scores(X), steady.scores(X))


def learner_state_is_arrays(cls):
    for key, array in taught(cls).state().items():
        assert isinstance(array, np.ndarray) and array.dtype.kind in "fiu", key


def learner_memory_within_bound(cls):
    learner = cls()
    for seed in range(3):
        X, words = samples(400, words=10, seed=seed)
        for x, word in zip(X, words, strict=True):
            learner.learn_one(x, word)
        held = sum(array.nbytes for array in learner.state().values())
        size = learner.state_bytes
        assert held <= size.total, (held, size)
        assert size.total <= size.fixed + size.per_word * len(learner.words)


def learner_refuses_what_is_too_large(cls):
    learner = cls()
    learner.max_gb = 1e-9
    refused(lambda: learner.learn_one(np.ones(D), "word"), D, "max_gb")
    assert learner.words == {}


def learner_takes_float64(cls):
    one, two, (X, words) = cls(), cls(), samples()
    one.learn_many(X, words)
    two.learn_many(X.astype(np.float64), words)
    np.testing.assert_array_equal(one.scores(X.astype(np.float64)), two.scores(X))


def learner_refuses_nan(cls):
    learner = taught(cls)
    for bad in (np.nan, np.inf):
        x = np.ones(D)
        x[2] = bad
        before = {key: array.copy() for key, array in learner.state().items()}
        refused(lambda x=x: learner.learn_one(x, "word0"), "NaN")
        refused(lambda x=x: learner.learn_many(x[None], ["new"]), "NaN")
        refused(lambda x=x: learner.scores(x[None]), "NaN")
        same_state(learner.state(), before)


def learner_refuses_wrong_dimension(cls):
    learner = taught(cls)
    refused(lambda: learner.learn_one(np.ones(D + 1), "word0"), D, D + 1)
    refused(lambda: learner.scores(np.ones((2, D - 1))), D, D - 1)
    refused(lambda: learner.learn_many(np.ones((2, D)), ["word0"]), 2, 1)


def learner_forgets_and_renames(cls):
    learner, (X, words) = taught(cls), samples()
    before = learner.predict(X)
    learner.rename("word1", "renamed")
    assert learner.predict(X) == ["renamed" if word == "word1" else word for word in before]
    learner.forget("renamed")
    assert "renamed" not in learner.words
    assert set(learner.predict(X)) <= set(learner.words)
    learner.learn_one(X[0], "word1")
    assert learner.words["word1"] == 1
    refused(lambda: learner.forget("never"), "never")
    assert learner.scores(X).shape == (len(words), 4)


def learner_of_which_all_is_forgotten_is_new(cls):
    """What words share holds no trace of those that were forgotten, once all are."""
    learner, fresh, (X, words) = taught(cls), cls(), samples()
    for word in list(learner.words):
        learner.forget(word)
    assert learner.state() == {} and learner.rows == [] and learner.state_bytes.total == 0
    for one in (learner, fresh):
        one.learn_many(X[::2], words[::2])
    state = fresh.state()
    for key, array in learner.state().items():
        np.testing.assert_array_equal(array, state[key])


def learner_forgets_to_the_last_byte_or_says_so(cls):
    learner, never = with_negatives(cls), cls()
    if learner.keeps_trace:
        return
    learner.scores(samples()[0])
    learner.forget("word2")
    for x, word, negative in mixed_samples():
        if word != "word2":
            never.learn_one(x, word, negative)
    assert learner.rows == never.rows and learner.words == never.words
    assert {key: array.tobytes() for key, array in learner.state().items()} == {
        key: array.tobytes() for key, array in never.state().items()
    }


def learner_merges_exactly_or_refuses(cls):
    X, words = samples(120)
    # Sovr, made for features that are not negative, has poles among others.
    X = np.abs(X)
    words[-20:] = ["other"] * 20
    left, right = taught(cls, X[:50], words[:50]), taught(cls, X[50:], words[50:])
    left.scores(X)
    if not cls().mergeable:
        refused(lambda: left.merge(right), "cannot merge", "order of samples")
        return
    whole, before = taught(cls, X, words), loaded_again(cls, right)
    left.merge(right)
    same_state(right.state(), before.state())
    assert left.words == whole.words
    alike(by_word(left, X), by_word(whole, X))
    np.testing.assert_array_equal(left.scores(X), loaded_again(cls, left).scores(X))
    empty, before = cls(), loaded_again(cls, left)
    left.merge(empty)
    same_state(left.state(), before.state())
    empty.merge(left)
    assert empty.rows == left.rows
    alike(empty.scores(X), left.scores(X))


# Negatives: sounds taught as not a word.


def mixed_samples():
    """Vectors, words, and whether they are negatives: rows of the two kinds in mixed order."""
    for index, (x, word) in enumerate(zip(*samples(), strict=True)):
        yield x, word, False
        if word in ("word0", "word2") and index % 2:
            yield x + 2, word, True


def with_negatives(cls):
    learner = cls()
    for x, word, negative in mixed_samples():
        learner.learn_one(x, word, negative)
    return learner


def learner_negative_is_a_row_like_that_of_a_word(cls):
    """Its scores are those of the same sounds taught as a word, and only words can win."""
    learner, as_words = with_negatives(cls), cls()
    for x, word, negative in mixed_samples():
        as_words.learn_one(x, f"not {word}" if negative else word)
    X, words = samples()
    names = [f"not {row.word}" if row.negative else row.word for row in learner.rows]
    assert names == list(as_words.words)
    assert learner.words == {word: words.count(word) for word in learner.words}
    assert learner.negatives == {word: as_words.words[f"not {word}"] for word in learner.negatives}
    of_words, of_negatives = learner.all_scores(X)
    wanted = dict(zip(names, as_words.scores(X).T, strict=True))
    for word, scores in zip(learner.words, of_words.T, strict=True):
        np.testing.assert_array_equal(scores, wanted[word])
    for word, scores in zip(learner.negatives, of_negatives.T, strict=True):
        np.testing.assert_array_equal(scores, wanted[f"not {word}"])
    np.testing.assert_array_equal(learner.scores(X), of_words)
    assert set(learner.predict(X + 2)) <= set(words)
    held = sum(array.nbytes for array in learner.state().values())
    assert held <= learner.state_bytes.total
    refused(lambda: learner.learn_one(X[0], "never", negative=True), "never")


def learner_negatives_are_forgotten_and_renamed_with_their_word(cls):
    learner, X = with_negatives(cls), samples()[0]
    before = learner.all_scores(X)
    learner.rename("word2", "renamed")
    assert set(learner.negatives) == {"word0", "renamed"} and len(learner.words) == 4
    for one, other in zip(learner.all_scores(X), before, strict=True):
        np.testing.assert_array_equal(one, other)
    learner.forget("word0")
    assert set(learner.negatives) == {"renamed"} and "word0" not in learner.words
    of_words, of_negatives = learner.all_scores(X)
    assert of_words.shape == (len(X), 3) and of_negatives.shape == (len(X), 1)
    np.testing.assert_array_equal(of_negatives, loaded_again(cls, learner).all_scores(X)[1])


def learner_merges_negatives(cls):
    if not cls().mergeable:
        return
    left, right, X = with_negatives(cls), with_negatives(cls), samples()[0]
    wanted = left.all_scores(X)
    left.forget("word2")
    left.merge(right)
    assert left.words == {word: n if word == "word2" else 2 * n for word, n in right.words.items()}
    assert left.negatives["word2"] == right.negatives["word2"]
    assert left.negatives["word0"] == 2 * right.negatives["word0"]
    assert [scores.shape for scores in left.all_scores(X)] == [scores.shape for scores in wanted]


def learner_loads_rows_in_any_order(cls):
    learner, X = with_negatives(cls), samples()[0]
    loaded = loaded_again(cls, learner)
    for one, other in zip(loaded.all_scores(X), learner.all_scores(X), strict=True):
        np.testing.assert_array_equal(one, other)
    state, words, negatives = learner.state(), learner.words, learner.negatives
    for rows in (learner.rows[:-1], [*learner.rows, Row("never")], [Row("word0")] * 6):
        with pytest.raises(ModelFileError, match="rows"):
            cls().load_state(state, words, negatives, rows)


def learner_keeps_what_it_declares(cls):
    """Thresholds come with directions of length 1, phrases with thresholds, rejection with rows."""
    learner, X = taught(cls), samples()[0]
    if learner.supports_rejection:
        learner.learn_one(X[0], "word0", negative=True)
        assert Row("word0", negative=True) in learner.rows
    else:
        refused(lambda: learner.learn_one(X[0], "word0", negative=True), learner.name)
    if not learner.supports_thresholds:
        assert not learner.supports_phrases
        return
    before = learner.directions()
    assert before.shape == (len(learner.rows), D) and before.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(before, axis=1), 1, rtol=1e-5)
    learner.learn_one(X[0], "word1")
    assert learner.directions() is not before


# Backbones.


def backbone_shapes(cls):
    backbone = cls()
    for seconds in (0.1, 1.0, 2.5):
        blocks = backbone.frames(tone(300, seconds))
        assert [block.shape[1] for block in blocks] == list(backbone.dims)
        for block in blocks:
            assert block.ndim == 2 and len(block) and block.dtype == np.float32
            assert np.isfinite(block).all()
    assert isinstance(backbone.params, int) and backbone.params >= 0


def backbone_inputs_untouched(cls):
    clip = tone(300)
    cls().frames(clip)
    np.testing.assert_array_equal(clip, tone(300))


def backbone_deterministic(cls):
    for one, two in zip(cls().frames(tone(300)), cls().frames(tone(300)), strict=True):
        np.testing.assert_array_equal(one, two)


def backbone_batch_equals_alone(cls):
    clips = [tone(300), tone(400, 0.5), tone(500)]
    backbone = cls()
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        for block, alone in zip(blocks, backbone.frames(clip), strict=True):
            np.testing.assert_allclose(block, alone, atol=1e-3)


def backbone_stream_equals_whole(cls):
    backbone = cls()
    if backbone.hop is None:
        assert not backbone.streams
        refused(backbone.stream, "whole clips")
        return
    count = 48
    sound = tone(300, count * backbone.hop / 16_000)
    sound *= np.linspace(0, 1, len(sound), dtype=np.float32)
    lengths = [backbone.frames(sound[: hops * backbone.hop]) for hops in (26, 25)]
    for hops in (1, 7, 20):
        stream = backbone.stream()
        kept = [np.zeros((0, d), dtype=np.float32) for d in backbone.dims]
        for start in range(0, count, hops):
            until = min(start + hops, count)
            found = stream.advance(sound[start * backbone.hop : until * backbone.hop])
            kept = [np.concatenate(pair) for pair in zip(kept, found, strict=True)]
            if until % 7 and until < count:
                continue
            whole = backbone.frames(sound[: until * backbone.hop])
            for one, rest, wanted in zip(kept, stream.provisional(), whole, strict=True):
                np.testing.assert_allclose(np.concatenate([one, rest]), wanted, atol=5e-4)
            for one, more, fewer in zip(kept, *lengths, strict=True):
                assert len(one) >= (until - backbone.latency) * (len(more) - len(fewer))


def backbone_refuses_nan(cls):
    refused(lambda: cls().frames(np.full(16_000, np.nan, np.float32)), "NaN")
    refused(lambda: cls().frames(np.zeros((2, 16_000), np.float32)), "(2, 16000)")


ANY = [has_defaults, stores_arguments_verbatim, repr_shows_parameters, spec_leads_back]


def checks(prefix):
    return ANY + [value for name, value in globals().items() if name.startswith(prefix + "_")]


class OwnLearner(StatisticsLearner):
    """Cosine to a word's mean, as somebody else may write it, with thresholds."""

    keeps_scatter = False
    needs_whitening = supports_thresholds = supports_phrases = True

    def directions(self):
        return unit(self.statistics.means)

    def _scores(self, X):
        return unit(X) @ self.directions().T


class LearnsNoNegatives(Ncm):
    """A learner that declares that it cannot be told what a word is not."""

    supports_rejection = False


def test_a_learner_that_declares_thresholds_gets_them():
    clips = {word: sorted(CLIPS.joinpath(word).glob("*")) for word in ("coffee", "lamp", "stop")}
    spotter = Spotter(learner=OwnLearner())
    for word in ("coffee", "lamp"):
        spotter.learn_many(clips[word][:-1], [word] * (len(clips[word]) - 1))
    assert spotter.has_thresholds and set(spotter.thresholds()) == {"coffee", "lamp"}
    found = [spotter.predict(clips[word][-1]).word for word in clips]
    assert found == ["coffee", "lamp", None]
    # The best word's cosine less the cohort's score; the others as far behind as the learner says.
    encoded = spotter.encode([clips["coffee"][-1]])
    [scores] = spotter.score_encoded(encoded)
    [own] = spotter.learner.scores(encoded.vectors)
    gap = scores.words["coffee"] - scores.words["lamp"]
    assert 0 < scores.words["coffee"] < own[0] and gap == pytest.approx(own[0] - own[1], abs=1e-5)


def test_a_learner_that_declares_no_rejection_refuses_it():
    learner_keeps_what_it_declares(LearnsNoNegatives)
    spotter = Spotter("logmel", "avg", LearnsNoNegatives())
    spotter.learn(tone(300), "300")
    with pytest.raises(InputError, match="not a word"):
        spotter.reject(tone(900))
    assert spotter.vocabulary.negatives == {}


CASES = (
    [
        pytest.param(cls, check, id=f"{name}-{check.__name__}")
        for kind in registry.KINDS
        for name, cls in registry.classes(kind).items()
        for check in checks(kind[:-1])
    ]
    + [
        pytest.param(
            functools.partial(registry.build, kind, spec), check, id=f"{spec}-{check.__name__}"
        )
        for kind, specs in VARIANTS.items()
        for spec in specs
        for check in checks(kind[:-1])
        if check not in ANY
    ]
    + [pytest.param(OwnLearner, check, id=f"own-{check.__name__}") for check in checks("learner")]
)


@pytest.mark.parametrize(("cls", "check"), CASES)
def test_contract(cls, check, monkeypatch):
    monkeypatch.setattr(checkpoints, "download", refuse_download)
    try:
        check(cls)
    except (MissingExtra, Unavailable) as error:
        pytest.skip(str(error))


def refuse_download(*arguments, **named):
    """Weights that are not on the machine stay away: a test never fetches gigabytes."""
    raise OSError("no network in tests")


# Every check is shown to fail on a part broken for it.

BROKEN = {
    has_defaults: broken_parts.NoDefault,
    stores_arguments_verbatim: broken_parts.Alters,
    repr_shows_parameters: broken_parts.Silent,
    spec_leads_back: broken_parts.OddSpec,
    pooling_inputs_untouched: broken_parts.Writes,
    pooling_deterministic: broken_parts.Random,
    pooling_one_frame: broken_parts.OneFrame,
    pooling_constant_frames: broken_parts.Constant,
    pooling_dim: broken_parts.WrongDim,
    pooling_takes_a_length_where_it_needs_one: broken_parts.NeedsNoLength,
    pooling_batch_equals_alone: broken_parts.BatchMatters,
    pooling_takes_float64: broken_parts.KeepsDouble,
    pooling_refuses_nan: broken_parts.Unchecked,
    pooling_refuses_shapes: broken_parts.Unchecked,
    learner_inputs_untouched: broken_parts.WritesVectors,
    learner_keeps_no_view: broken_parts.KeepsView,
    learner_deterministic: broken_parts.RandomScores,
    learner_cold_start: broken_parts.WarmStart,
    learner_only_taught_words_win: broken_parts.OneTooMany,
    learner_new_words_at_any_time: broken_parts.ClosedSet,
    learner_many_equals_one: broken_parts.BatchForgets,
    learner_order_does_not_matter_where_it_merges: broken_parts.LastSampleWins,
    learner_state_round_trip: broken_parts.LosesCounts,
    learner_state_is_arrays: broken_parts.StateOfLists,
    learner_memory_within_bound: broken_parts.Grows,
    learner_refuses_what_is_too_large: broken_parts.Unlimited,
    learner_takes_float64: broken_parts.DoubleCounts,
    learner_refuses_nan: broken_parts.LearnsNan,
    learner_refuses_wrong_dimension: broken_parts.CutsVectors,
    learner_forgets_and_renames: broken_parts.RemembersForgotten,
    learner_of_which_all_is_forgotten_is_new: broken_parts.StartsFromBefore,
    learner_forgets_to_the_last_byte_or_says_so: broken_parts.HidesItsTrace,
    learner_merges_exactly_or_refuses: broken_parts.MergesCountsOnly,
    learner_negative_is_a_row_like_that_of_a_word: broken_parts.NegativesAreWords,
    learner_negatives_are_forgotten_and_renamed_with_their_word: broken_parts.KeepsNegatives,
    learner_merges_negatives: broken_parts.MergesWordsAlone,
    learner_loads_rows_in_any_order: broken_parts.SortsRows,
    learner_keeps_what_it_declares: broken_parts.LongDirections,
    backbone_shapes: broken_parts.WrongWidth,
    backbone_inputs_untouched: broken_parts.WritesAudio,
    backbone_deterministic: broken_parts.RandomFrames,
    backbone_batch_equals_alone: broken_parts.NormalisesBatch,
    backbone_stream_equals_whole: broken_parts.StreamBeginsAgain,
    backbone_refuses_nan: broken_parts.UncheckedAudio,
}


@pytest.mark.parametrize("check", BROKEN, ids=lambda check: check.__name__)
def test_check_fails_on_a_broken_part(check):
    with pytest.raises((AssertionError, IndexError, TypeError)):
        check(BROKEN[check])


def test_every_check_is_shown_to_fail():
    known = {check for kind in registry.KINDS for check in checks(kind[:-1])}
    assert known == set(BROKEN)
