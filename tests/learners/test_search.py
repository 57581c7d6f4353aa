"""What must hold for any vectors and any life of a learner, searched by hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tapword import registry
from tapword.errors import InputError
from tapword.learners.base import LARGEST
from tests.search import SEARCH
from tests.test_contracts import VARIANTS, loaded_again, same_state

LEARNERS = list(registry.classes("learners"))
WORDS = ["lamp", "café", "ラジオ", "🙂"]


def build(spec):
    return registry.build("learners", spec)


def fresh(learner):
    """Load what a learner holds into a new one, which has solved nothing yet."""
    return loaded_again(lambda: build(learner.spec), learner)


DIM = 4
ASKED = np.random.default_rng(7).normal(size=(4, DIM)).astype(np.float32)
numbers = st.integers(-64, 64).map(lambda number: number / 16)
vectors = hnp.arrays(np.float32, DIM, elements=numbers)


@st.composite
def lessons(draw, most=12):
    """Vectors (n, D) and their words."""
    n = draw(st.integers(0, most))
    X = draw(hnp.arrays(np.float32, (n, DIM), elements=numbers))
    return X, [draw(st.sampled_from(WORDS)) for _ in range(n)]


@pytest.mark.parametrize("spec", LEARNERS)
@settings(SEARCH, max_examples=SEARCH.max_examples // 5)
@given(
    X=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.just(3)),
        elements=st.floats(width=32) | st.floats(-10, 10, width=32),
    )
)
def test_numbers_of_any_size_are_refused_or_kept_finite(spec, X):
    learner = build(spec)
    learner.learn_many(np.eye(3), WORDS[:3])
    for number, x in enumerate(X):
        before = fresh(learner)
        try:
            learner.learn_one(x, WORDS[number % 4])
        except InputError:
            assert not np.abs(x).max() <= LARGEST
            same_state(learner.state(), before.state())
            assert learner.words == before.words
    assert all(np.isfinite(array).all() for array in learner.state().values())
    try:
        scores = learner.scores(np.vstack([np.eye(3), np.zeros((1, 3))]))
    except InputError as error:
        assert "too nearly dependent" in str(error)
        return
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(learner.probabilities(scores).sum(axis=1), 1)


class Life(RuleBasedStateMachine):
    """A learner taught, saved, merged and changed in any order, beside plain counts."""

    @initialize(spec=st.sampled_from(LEARNERS + VARIANTS["learners"]))
    def begin(self, spec):
        self.spec = spec
        self.learner = build(spec)
        self.counts = {}
        self.negatives = {}

    @rule(lesson=lessons(6), together=st.booleans())
    def teach(self, lesson, together):
        X, said = lesson
        if together:
            self.learner.learn_many(X, said)
        else:
            for x, word in zip(X, said, strict=True):
                self.learner.learn_one(x, word)
        for word in said:
            self.counts[word] = self.counts.get(word, 0) + 1

    @precondition(lambda self: self.counts)
    @rule(data=st.data(), x=vectors)
    def teach_a_negative(self, data, x):
        word = data.draw(st.sampled_from(sorted(self.counts)))
        self.learner.learn_one(x, word, negative=True)
        self.negatives[word] = self.negatives.get(word, 0) + 1

    @precondition(lambda self: self.counts)
    @rule(data=st.data())
    def forget(self, data):
        word = data.draw(st.sampled_from(sorted(self.counts)))
        self.learner.forget(word)
        del self.counts[word]
        self.negatives.pop(word, None)

    @precondition(lambda self: self.counts)
    @rule(data=st.data(), new=st.sampled_from([*WORDS, "neu", ""]))
    def rename(self, data, new):
        old = data.draw(st.sampled_from(sorted(self.counts)))
        before = self.learner.scores(ASKED)
        if not new or (new in self.counts and new != old):
            with pytest.raises(InputError):
                self.learner.rename(old, new)
        else:
            self.learner.rename(old, new)
            self.counts = {new if word == old else word: n for word, n in self.counts.items()}
            if old in self.negatives:
                self.negatives[new] = self.negatives.pop(old)
        np.testing.assert_array_equal(self.learner.scores(ASKED), before)

    @rule()
    def load(self):
        self.learner = fresh(self.learner)

    @rule(lesson=lessons(6))
    def merge(self, lesson):
        other = build(self.spec)
        other.learn_many(*lesson)
        if not self.learner.mergeable:
            with pytest.raises(InputError, match="cannot merge"):
                self.learner.merge(other)
            return
        self.learner.merge(other)
        for word, count in other.words.items():
            self.counts[word] = self.counts.get(word, 0) + count

    @rule(word=st.sampled_from(["never taught", ""]))
    def ask_for_what_is_not_there(self, word):
        with pytest.raises(InputError):
            self.learner.forget(word)
        with pytest.raises(InputError):
            self.learner.rename(word, "new")

    @invariant()
    def holds_what_it_was_taught(self):
        if not hasattr(self, "learner"):
            return
        assert list(self.learner.words.items()) == list(self.counts.items())
        assert self.learner.negatives == self.negatives
        solved_anew = fresh(self.learner).all_scores(ASKED)
        for scores, again in zip(self.learner.all_scores(ASKED), solved_anew, strict=True):
            assert np.isfinite(scores).all()
            np.testing.assert_array_equal(scores, again)
        assert self.learner.scores(ASKED).shape == (len(ASKED), len(self.counts))
        held = sum(array.nbytes for array in self.learner.state().values())
        assert held <= self.learner.state_bytes.total


Life.TestCase.settings = SEARCH
test_a_learner_lives_through_anything = Life.TestCase
