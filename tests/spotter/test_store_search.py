"""What must hold for any model file, searched by hypothesis."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tapword import Spotter, registry
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tapword.spotter.vocabulary import clean_word
from tests import hostile
from tests.conftest import tone
from tests.search import SEARCH

LEARNERS = list(registry.classes("learners"))
WORDS = ["lamp", "café", "ラジオ", "🙂"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("search")


def same(one, other):
    """Assert that two learners hold the same, bit for bit."""
    assert one.state().keys() == other.state().keys()
    for key, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[key], err_msg=key)


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
    "format": 2,
    "backbones": [{"name": "logmel", "arguments": {}}],
    "poolings": [{"name": "avg", "arguments": {}}],
    "learner": {"name": "ncm", "arguments": {}},
    "dim": None,
    "negatives": {},
    "synthetic": {},
    "voices": {},
    "rows": None,
    "sensitivity": 0.5,
    "sensitivities": {},
    "lengths": {},
    "revision": "0",
}


@SEARCH
@given(
    st.dictionaries(words, st.integers(1, 2**53 - 1), max_size=6),
    st.dictionaries(names.filter(lambda name: name != "__metadata__"), arrays, max_size=4),
)
def test_any_words_and_arrays_come_back(folder, words, arrays):
    path = folder / "model.tap"
    written = PARTS | {"words": words, "checksum": store.checksum(arrays)}
    path.write_bytes(store.pack(written, arrays))
    header, read = store.read(path)
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
    spotter.learn_encoded(Encoded.one_second(vectors), said)
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
    model = store.read(path)
    header = model.header
    # Somewhere in the header, any value for the one that is there.
    place, key = header, data.draw(st.sampled_from(sorted(header)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    place[key] = value
    path.write_bytes(hostile.forged(model, **header))
    try:
        loaded = Spotter.load(path, backbones)
    except ModelFileError:
        return
    assert list(loaded.words.items()) == list(header["words"].items())
    loaded.save(path)
