"""What must hold for any input, searched by hypothesis: files, sound, and the learners' algebra.

`HYPOTHESIS_PROFILE=soak` searches longer.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import soundfile
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tapword import Spotter, audio, modelfile, modelheader, registry
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import _LARGEST
from tapword.spotter import clean_word
from tests.conftest import tone

settings.register_profile(
    "quick", max_examples=60, stateful_step_count=12, deadline=None, derandomize=True, database=None
)
settings.register_profile(
    "soak",
    max_examples=1000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SEARCH = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
# The same for each learner.
SEARCH_EACH = settings(SEARCH, max_examples=SEARCH.max_examples // 5)

LEARNERS = list(registry.classes("learners"))
VARIANTS = ["slda:scatter=per-word", "slda:prior=diagonal", "sqda:enough=0"]
MERGEABLE = [spec for spec in LEARNERS + VARIANTS if registry.build("learners", spec).mergeable]
IN_ORDER = [spec for spec in LEARNERS if spec not in MERGEABLE]
WORDS = ["lamp", "café", "ラジオ", "🙂"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("properties")


def build(spec):
    return registry.build("learners", spec)


# Model files.


def cleans(text):
    try:
        return clean_word(text) == text
    except InputError:
        return False


words = st.text(min_size=1, max_size=20).filter(cleans)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
arrays = st.sampled_from(["f4", "f8", "i8", "u8", "u1", "i4"]).flatmap(
    lambda dtype: hnp.arrays(dtype, shapes)
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PARTS = {
    "backbones": [{"name": "logmel", "arguments": {}}],
    "poolings": [{"name": "avg", "arguments": {}}],
    "learner": {"name": "ncm", "arguments": {}},
}


@SEARCH
@given(
    st.dictionaries(words, st.integers(0, 2**63 - 1), max_size=6),
    st.dictionaries(names.filter(lambda name: name != "__metadata__"), arrays, max_size=4),
)
def test_any_words_and_arrays_come_back(folder, words, arrays):
    path = folder / "model.tap"
    written = modelfile.write(path, PARTS | {"words": words}, arrays)
    header, read = modelfile.read(path)
    assert header == written and list(header["words"].items()) == list(words.items())
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()


@SEARCH
@given(
    st.sampled_from(LEARNERS),
    st.lists(words, min_size=1, max_size=8),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_any_taught_spotter_comes_back(folder, learner, said, order, seed):
    path = folder / "model.tap"
    vectors = np.random.default_rng(seed).normal(size=(len(said), 32 * order))
    spotter = Spotter(backbone="logmel", pooling=f"tap:R={order}", learner=learner)
    spotter.learn_vectors(vectors, said)
    spotter.save(path, overwrite=True)
    loaded = Spotter.load(path)
    assert list(loaded.words.items()) == list(spotter.words.items())
    same(loaded.learner, spotter.learner)
    np.testing.assert_array_equal(loaded.learner.scores(vectors), spotter.learner.scores(vectors))


@pytest.fixture(scope="module")
def models(folder):
    """One file of each learner: its bytes, its words in order and its state."""
    path = folder / "damaged.tap"
    made = []
    for learner in LEARNERS:
        spotter = Spotter(backbone="logmel", pooling="avg", learner=learner)
        for number, word in enumerate(WORDS):
            spotter.learn(tone(300 * (number + 1), 0.2), word)
        spotter.save(path, overwrite=True)
        made.append((path.read_bytes(), Spotter.load(path)))
    return path, made


def refused_or_same(path, content, spotter):
    """Assert that a damaged file is refused, or that the damage changed nothing."""
    path.write_bytes(content)
    try:
        loaded = Spotter.load(path)
    except ModelFileError as error:
        return str(error)
    assert list(loaded.words.items()) == list(spotter.words.items())
    assert loaded.learner.arguments() == spotter.learner.arguments()
    same(loaded.learner, spotter.learner)
    return None


@SEARCH
@given(st.data())
def test_a_flipped_byte_is_noticed_or_changes_nothing(models, data):
    path, made = models
    content, spotter = data.draw(st.sampled_from(made))
    damaged = bytearray(content)
    start = 8 + int.from_bytes(content[:8], "little")
    # Most bytes are numbers; what names them is looked at as often.
    first, last = data.draw(st.sampled_from([(0, start - 1), (start, len(content) - 1)]))
    damaged[data.draw(st.integers(first, last))] ^= data.draw(st.integers(1, 255))
    refused_or_same(path, damaged, spotter)


def test_every_byte_of_a_header_is_guarded(models):
    path, made = models
    content, spotter = made[LEARNERS.index("ncm")]
    start = 8 + int.from_bytes(content[:8], "little")
    for position in range(start):
        damaged = bytearray(content)
        damaged[position] ^= 0x01
        refused_or_same(path, damaged, spotter)
    position = content.index(b"lamp")
    assert "its header was changed" in refused_or_same(
        path, content[:position] + b"lump" + content[position + 4 :], spotter
    )


@SEARCH
@given(st.data())
def test_a_cut_file_is_refused(models, data):
    path, made = models
    content, spotter = data.draw(st.sampled_from(made))
    assert refused_or_same(path, content[: data.draw(st.integers(0, len(content) - 1))], spotter)


@SEARCH
@given(st.data(), st.binary(max_size=20))
def test_bytes_put_in_or_taken_out_are_noticed_or_change_nothing(models, data, extra):
    path, made = models
    content, spotter = data.draw(st.sampled_from(made))
    position = data.draw(st.integers(0, len(content)))
    removed = data.draw(st.integers(0, 20))
    refused_or_same(path, content[:position] + extra + content[position + removed :], spotter)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["name", "arguments"]), inner)
    ),
    max_leaves=6,
)


@SEARCH
@given(st.data(), json_values, st.sampled_from([None, ["logmel"]]))
def test_headers_that_say_anything_are_refused_or_loaded(models, data, value, backbones):
    path, made = models
    content, _ = data.draw(st.sampled_from(made))
    path.write_bytes(content)
    header, state = modelfile.read(path)
    # Somewhere in the header, any value for the one that is there.
    place, key = header, data.draw(st.sampled_from(sorted(header)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    place[key] = value
    path.write_bytes(safetensors.numpy.save(state, modelheader.metadata(header, state)))
    try:
        loaded = Spotter.load(path, backbones)
    except ModelFileError:
        return
    assert list(loaded.words.items()) == list(header["words"].items())
    loaded.save(path)


# Sound.


@st.composite
def sounds(draw):
    """A way to write a file: format, subtype, rate, channels, frames."""
    kind = draw(st.sampled_from(sorted(set(soundfile.available_formats()) - {"RAW"})))
    subtype = draw(st.sampled_from(sorted(soundfile.available_subtypes(kind))))
    rate = draw(
        st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
        | st.integers(1, 2**31 - 1)
    )
    # Above that rate the process dies of libsndfile's Vorbis encoder, which tapword never calls.
    assume(subtype != "VORBIS" or rate <= 192_000)
    return kind, subtype, rate, draw(st.integers(1, 9)), draw(st.integers(0, 9_000))


@SEARCH
@given(sounds(), st.floats(0, 1.0), st.integers(0, 2**32 - 1))
def test_any_sound_file_reads_or_is_refused(folder, sound, peak, seed):
    kind, subtype, rate, channels, frames = sound
    path = folder / "clip"
    samples = np.random.default_rng(seed).uniform(-peak, peak, (frames, channels))
    try:
        soundfile.write(path, samples, rate, format=kind, subtype=subtype)
    except (soundfile.SoundFileError, ValueError, TypeError, AssertionError):
        assume(False)
    assert_sound(lambda: audio.read(path))


@SEARCH
@given(st.sampled_from(["WAV", "FLAC", "OGG", "MP3"]), st.data())
def test_damaged_sound_files_read_or_are_refused(folder, kind, data):
    path = folder / "clip"
    soundfile.write(path, tone(300, 0.3), 16_000, format=kind)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # Headers, which say how to read the rest, lie in front.
        last = data.draw(st.sampled_from([60, len(content) - 1]))
        content[data.draw(st.integers(0, last))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    assert_sound(lambda: audio.read(path))


@SEARCH
@given(
    hnp.arrays(
        hnp.scalar_dtypes() | st.sampled_from([np.dtype(kind) for kind in ("f4", "f8", "i2")]),
        st.integers(0, 4_000) | hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    st.sampled_from([8_000, 16_000, 48_000])
    | st.integers()
    | st.floats()
    | st.fractions()
    | st.none()
    | st.text(max_size=3),
)
def test_any_array_is_heard_or_refused(samples, rate):
    before = samples.tobytes()
    assert_sound(lambda: audio.check(samples, rate))
    assert samples.tobytes() == before


def assert_sound(call):
    try:
        heard = call()
    except InputError:
        return
    assert heard.dtype == np.float32 and heard.ndim == 1 and len(heard)
    assert np.isfinite(heard).all()
    assert len(heard) <= audio.MAX_S * audio.SAMPLE_RATE + 1


# Learners.


def same(one, other):
    """Assert that two learners hold the same, bit for bit."""
    assert one.state().keys() == other.state().keys()
    for key, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[key], err_msg=key)


def alike(one, other, size):
    """Assert that two learners hold the same but for rounding of numbers up to `size`."""
    assert list(one.words.items()) == list(other.words.items())
    assert one.state().keys() == other.state().keys()
    n = sum(one.words.values())
    for key, array in one.state().items():
        power = 0 if "count" in key or key == "n_scatter" else 1 if key == "means" else 2
        tolerance = 2e-6 * n * size**power if power else 0
        np.testing.assert_allclose(array, other.state()[key], rtol=0, atol=tolerance, err_msg=key)


def fresh(learner):
    """Load what a learner holds into a new one, which has solved nothing yet."""
    other = build(learner.spec)
    state = {key: array.copy() for key, array in learner.state().items()}
    other.load_state(state, learner.words)
    return other


def assert_solved_anew(learner, X):
    np.testing.assert_array_equal(learner.scores(X), fresh(learner).scores(X))


DIM = 4
# Every word first, so that rows stand in one order whatever comes later.
FIRST = np.random.default_rng(7).normal(size=(len(WORDS), DIM)).astype(np.float32)
numbers = st.integers(-64, 64).map(lambda number: number / 16)
scales = st.sampled_from([1e-3, 1.0, 1e3])


@st.composite
def lessons(draw, most=12):
    """Vectors (n, D) and their words."""
    n = draw(st.integers(0, most))
    X = draw(hnp.arrays(np.float32, (n, DIM), elements=numbers))
    return X, [draw(st.sampled_from(WORDS)) for _ in range(n)]


def taught(spec, *parts, scale=1.0):
    learner = build(spec)
    learner.learn_many(FIRST * scale, WORDS)
    for X, said in parts:
        # Solved in between, so that what was solved must be dropped.
        learner.scores(FIRST)
        for x, word in zip(X * np.float32(scale), said, strict=True):
            learner.learn_one(x, word)
    return learner


@pytest.mark.parametrize("spec", MERGEABLE)
@SEARCH_EACH
@given(lesson=lessons(), scale=scales, random=st.randoms(use_true_random=False))
def test_order_does_not_matter(spec, lesson, scale, random):
    X, said = lesson
    order = list(range(len(X)))
    random.shuffle(order)
    mixed = X[order], [said[i] for i in order]
    one, other = taught(spec, lesson, scale=scale), taught(spec, mixed, scale=scale)
    alike(one, other, 5 * scale)


@pytest.mark.parametrize("spec", MERGEABLE)
@SEARCH_EACH
@given(a=lessons(), b=lessons(), c=lessons(), scale=scales)
def test_merging_is_adding(spec, a, b, c, scale):
    def one(*parts):
        return taught(spec, *parts, scale=scale)

    def sum_of(left, right):
        left.scores(FIRST)
        right_before = fresh(right)
        left.merge(right)
        same(right, right_before)
        assert_solved_anew(left, FIRST)
        return left

    # Taught together, the first samples of the others come too.
    whole = one(a, (FIRST, WORDS), b)
    alike(sum_of(one(a), one(b)), whole, 5 * scale)
    alike(sum_of(one(b), one(a)), whole, 5 * scale)
    left = sum_of(sum_of(one(a), one(b)), one(c))
    alike(left, sum_of(one(a), sum_of(one(b), one(c))), 5 * scale)
    before = fresh(left)
    left.merge(build(spec))
    same(left, before)
    empty = build(spec)
    empty.merge(left)
    alike(empty, left, 5 * scale)


@pytest.mark.parametrize("spec", LEARNERS + VARIANTS)
@SEARCH_EACH
@given(a=lessons(), b=lessons(), scale=scales)
def test_many_at_once_are_one_by_one(spec, a, b, scale):
    one, many = taught(spec, a, b, scale=scale), taught(spec, scale=scale)
    for X, said in (a, b):
        many.learn_many(X * np.float32(scale), said)
        many.scores(FIRST)
    if spec in IN_ORDER:
        same(one, many)
    else:
        alike(one, many, 5 * scale)
    assert_solved_anew(many, FIRST)


@pytest.mark.parametrize("spec", LEARNERS)
@SEARCH_EACH
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
            assert not np.abs(x).max() <= _LARGEST
            same(learner, before)
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
    """A learner taught, saved, merged and changed in any order, beside a plain count of words."""

    @initialize(spec=st.sampled_from(LEARNERS + VARIANTS))
    def begin(self, spec):
        self.spec = spec
        self.learner = build(spec)
        self.counts = {}

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
    @rule(data=st.data())
    def forget(self, data):
        word = data.draw(st.sampled_from(sorted(self.counts)))
        self.learner.forget(word)
        del self.counts[word]

    @precondition(lambda self: self.counts)
    @rule(data=st.data(), new=st.sampled_from([*WORDS, "neu", ""]))
    def rename(self, data, new):
        old = data.draw(st.sampled_from(sorted(self.counts)))
        before = self.learner.scores(FIRST)
        if not new or (new in self.counts and new != old):
            with pytest.raises(InputError):
                self.learner.rename(old, new)
        else:
            self.learner.rename(old, new)
            self.counts = {new if word == old else word: n for word, n in self.counts.items()}
        np.testing.assert_array_equal(self.learner.scores(FIRST), before)

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
        scores = self.learner.scores(FIRST)
        assert scores.shape == (len(FIRST), len(self.counts)) and np.isfinite(scores).all()
        np.testing.assert_array_equal(scores, fresh(self.learner).scores(FIRST))
        held = sum(array.nbytes for array in self.learner.state().values())
        assert held <= self.learner.state_bytes.total


Life.TestCase.settings = SEARCH
test_a_learner_lives_through_anything = Life.TestCase


@pytest.mark.soak
def test_the_same_searched_longer():
    if os.environ.get("HYPOTHESIS_PROFILE") == "soak":
        pytest.skip("this is the longer search")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    subprocess.run(command, env=os.environ | {"HYPOTHESIS_PROFILE": "soak"}, check=True)
