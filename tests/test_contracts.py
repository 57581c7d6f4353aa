"""The written contract of each room, checked on every registered part without listing them.

A check takes a class and fails by an assertion. Each one is itself shown to fail, on a part broken
for it (`broken_parts.py`).
"""

import inspect

import numpy as np
import pytest

from tapword import registry
from tapword.backbones import checkpoints
from tapword.backbones.base import Unavailable
from tapword.errors import InputError, MissingExtra
from tests import broken_parts
from tests.conftest import tone

D = 6


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


def taught(cls, **arguments):
    learner = cls(**arguments)
    X, words = samples()
    for x, word in zip(X, words, strict=True):
        learner.learn_one(x, word)
    return learner


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
    room = type(part).__module__.split(".")[1] if "tapword" in type(part).__module__ else None
    assert part.spec == part.name
    if room:
        assert registry.build(room, part.spec).arguments() == part.arguments()


# Poolings.


def pooling_inputs_untouched(cls):
    for learning in (False, True):
        given = frames()
        cls().pool(given, learning=learning)
        np.testing.assert_array_equal(given, frames())


def pooling_deterministic(cls):
    for learning in (False, True):
        np.testing.assert_array_equal(
            cls().pool(frames(), learning=learning), cls().pool(frames(), learning=learning)
        )


def pooling_one_frame(cls):
    pooled = cls().fixed(9).pool(frames(t=1))
    assert pooled.shape == (4, cls().fixed(9).dim(D)) and np.isfinite(pooled).all()


def pooling_constant_frames(cls):
    for value in (0.0, 0.1, -3e4):
        assert np.isfinite(cls().pool(np.full((5, D), value))).all()


def pooling_dim(cls):
    for b, t in ((1, 9), (3, 9), (2, 4)):
        pooled = cls().fixed(9).pool(frames(b, t))
        assert pooled.shape == (b, cls().fixed(9).dim(D))
        assert pooled.dtype == np.float32


def pooling_batch_equals_alone(cls):
    pooling, batch, lengths = cls().fixed(9), frames(), np.array([9, 3, 9, 1])
    for learning in (False, True):
        together = pooling.pool(batch, learning=learning)
        cut = pooling.pool(batch, lengths=lengths, learning=learning)
        for row, length in enumerate(lengths):
            alone = pooling.pool(batch[row], learning=learning)
            np.testing.assert_allclose(together[row], alone, rtol=1e-5, atol=1e-6)
            alone = pooling.pool(batch[row, :length], learning=learning)
            np.testing.assert_allclose(cut[row], alone, rtol=1e-5, atol=1e-6)


def pooling_padding_is_never_looked_at(cls):
    pooling, lengths = cls().fixed(9), np.array([9, 3, 5, 1])
    dirty = frames()
    for row, length in enumerate(lengths):
        dirty[row, length:] = np.nan
    np.testing.assert_array_equal(pooling.pool(dirty, lengths), pooling.pool(frames(), lengths))


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
    refused(lambda: cls().pool(frames(), lengths=np.array([9, 9, 9, 10])), "10")


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
    one, many, (X, words) = cls(), cls(), samples()
    for x, word in zip(X, words, strict=True):
        one.learn_one(x, word)
    many.learn_many(X[:7], words[:7])
    many.learn_many(X[7:], words[7:])
    assert list(one.words.items()) == list(many.words.items())
    Y = samples(seed=1)[0]
    expected = one.scores(Y)
    np.testing.assert_allclose(many.scores(Y), expected, atol=1e-3 * np.ptp(expected))
    assert many.predict(Y) == one.predict(Y)


def learner_state_round_trip(cls):
    """A learner loaded in mid-stream goes on exactly like the one that never stopped."""
    steady, (X, words) = cls(), samples(60)
    for x, word in zip(X[:25], words[:25], strict=True):
        steady.learn_one(x, word)
    loaded = cls()
    loaded.load_state({key: array.copy() for key, array in steady.state().items()}, steady.words)
    same_state(loaded.state(), steady.state())
    for x, word in zip(X[25:], words[25:], strict=True):
        steady.learn_one(x, word)
        loaded.learn_one(x, word)
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
        assert size.total == size.fixed + size.per_word * len(learner.words)


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


def learner_merges_exactly_or_refuses(cls):
    X, words = samples()
    whole, left, right = cls(), cls(), cls()
    if not cls().mergeable:
        refused(lambda: left.merge(right), "cannot merge")
        return
    whole.learn_many(X, words)
    left.learn_many(X[:15], words[:15])
    right.learn_many(X[15:], words[15:])
    left.merge(right)
    assert left.words == whole.words
    order = [list(left.words).index(word) for word in whole.words]
    expected = whole.scores(X)
    np.testing.assert_allclose(left.scores(X)[:, order], expected, atol=1e-3 * np.ptp(expected))


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


def backbone_refuses_nan(cls):
    refused(lambda: cls().frames(np.full(16_000, np.nan, np.float32)), "NaN")
    refused(lambda: cls().frames(np.zeros((2, 16_000), np.float32)), "(2, 16000)")


ANY = [has_defaults, stores_arguments_verbatim, repr_shows_parameters, spec_leads_back]


def checks(prefix):
    return ANY + [value for name, value in globals().items() if name.startswith(prefix + "_")]


CASES = [
    pytest.param(cls, check, id=f"{name}-{check.__name__}")
    for room in registry.ROOMS
    for name, cls in registry.classes(room).items()
    for check in checks(room[:-1])
]


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
    pooling_batch_equals_alone: broken_parts.BatchMatters,
    pooling_padding_is_never_looked_at: broken_parts.LooksAtPadding,
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
    learner_state_round_trip: broken_parts.LosesCounts,
    learner_state_is_arrays: broken_parts.StateOfLists,
    learner_memory_within_bound: broken_parts.Grows,
    learner_refuses_what_is_too_large: broken_parts.Unlimited,
    learner_takes_float64: broken_parts.DoubleCounts,
    learner_refuses_nan: broken_parts.LearnsNan,
    learner_refuses_wrong_dimension: broken_parts.CutsVectors,
    learner_forgets_and_renames: broken_parts.RemembersForgotten,
    learner_merges_exactly_or_refuses: broken_parts.MergesCountsOnly,
    backbone_shapes: broken_parts.WrongWidth,
    backbone_inputs_untouched: broken_parts.WritesAudio,
    backbone_deterministic: broken_parts.RandomFrames,
    backbone_batch_equals_alone: broken_parts.NormalisesBatch,
    backbone_refuses_nan: broken_parts.UncheckedAudio,
}


@pytest.mark.parametrize("check", BROKEN, ids=lambda check: check.__name__)
def test_check_fails_on_a_broken_part(check):
    with pytest.raises((AssertionError, IndexError, TypeError)):
        check(BROKEN[check])


def test_every_check_is_shown_to_fail():
    known = {check for room in registry.ROOMS for check in checks(room[:-1])}
    assert known == set(BROKEN)
