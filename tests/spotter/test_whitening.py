"""How words vary, learned from others: fitted, kept, found, and tied to what was taught with it."""

import itertools
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from tapword import Spotter, registry
from tapword.errors import InputError, ModelFileError
from tapword.spotter import presets, store
from tapword.spotter.encoder import group_lengths
from tapword.spotter.spotter import require_same_parts
from tapword.spotter.whitening import BLOCK, Whitening, choose, join, shipped, vector_kind
from tests.conftest import ROOT, shared, tone

GROUPS = [100, 7, 30]
DIM = sum(GROUPS)
ABOUT = {"source": "made up"}
EARS = ("ear_s", "tapword_ear")


@pytest.fixture(scope="module")
def world():
    """How words vary in a made-up world: a mixing of features, and their scales and offsets."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(DIM, DIM)) + 3 * np.eye(DIM)
    return mixing * np.logspace(-2, 2, DIM), rng.normal(scale=50, size=DIM)


def draw(world, words, n, seed):
    mixing, offset = world
    rng = np.random.default_rng(seed)
    index = np.arange(words * n) % words
    noise = rng.normal(size=(words * n, DIM)) @ mixing
    centres = 0.5 * rng.normal(size=(words, DIM)) @ mixing
    return (offset + centres[index] + noise).astype(np.float32), [f"word{k}" for k in index]


@pytest.fixture(scope="module")
def whitening(world):
    return Whitening.fit(*draw(world, 40, 100, seed=1), GROUPS, ABOUT)


def residuals(X, words):
    X, words = X.astype(np.float64), np.array(words)
    for word in np.unique(words):
        X[words == word] -= X[words == word].mean(axis=0)
    return X * np.sqrt(len(X) / (len(X) - len(np.unique(words))))


def blocks_of(groups):
    start = 0
    for group in groups:
        for row in range(start, start + group, BLOCK):
            yield slice(row, min(row + BLOCK, start + group))
        start += group


# Fitting.


def test_numbers_are_those_of_plain_numpy(whitening, world):
    X, words = draw(world, 40, 100, seed=1)
    E = residuals(X, words)
    Y = draw(world, 3, 4, seed=3)[0]
    wanted = (Y - X.mean(axis=0, dtype=float)).astype(float)
    for rows in blocks_of(GROUPS):
        covariance = E[:, rows].T @ E[:, rows] / len(E)
        covariance += np.diag(np.diag(covariance))
        wanted[:, rows] = wanted[:, rows] @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    for group in np.split(np.arange(DIM), np.cumsum(GROUPS)[:-1]):
        wanted[:, group] /= np.linalg.norm(wanted[:, group], axis=1, keepdims=True)
    np.testing.assert_allclose(whitening(Y), wanted, atol=5e-3)


def test_scaled_numbers_are_signed_roots_of_those_of_plain_numpy(world):
    X, words = draw(world, 40, 100, seed=1)
    scaled = Whitening.scale(X, words, GROUPS, ABOUT)
    Y = draw(world, 3, 4, seed=3)[0]
    wanted = (Y - X.mean(axis=0, dtype=float)) / X.std(axis=0, dtype=float)
    wanted = np.sign(wanted) * np.abs(wanted) ** 0.5
    for group in np.split(np.arange(DIM), np.cumsum(GROUPS)[:-1]):
        wanted[:, group] /= np.linalg.norm(wanted[:, group], axis=1, keepdims=True)
    np.testing.assert_allclose(scaled(Y), wanted, atol=5e-3)


def test_every_group_has_length_one(whitening, world):
    Z = whitening(draw(world, 3, 5, seed=4)[0])
    assert Z.dtype == np.float32
    squares = np.add.reduceat(np.square(Z), np.cumsum([0, *GROUPS[:-1]]), axis=1)
    np.testing.assert_allclose(squares, 1, rtol=1e-5)
    assert np.isfinite(whitening(whitening.mean[None])).all(), "a vector at the mean has no length"


def test_within_is_what_words_vary_by_after_it(whitening, world):
    X, words = draw(world, 30, 100, seed=5)
    E = residuals(whitening(X), words)
    found = np.add.reduceat(np.square(E).mean(axis=0), np.cumsum([0, *GROUPS[:-1]]))
    np.testing.assert_allclose(whitening.within, found, rtol=0.1)
    Z = join([X], [whitening])
    assert np.square(residuals(Z, words)).mean() == pytest.approx(1, rel=0.1)


def test_sides_weigh_alike_whatever_their_length(world):
    X, words = draw(world, 30, 20, seed=6)
    short = Whitening.fit(X[:, :7], words, [7], ABOUT)
    long = Whitening.fit(X[:, 7:], words, [30, DIM - 37], ABOUT)
    Z = join([X[:, :7], X[:, 7:]], [short, long])
    assert Z.shape == X.shape and Z.dtype == np.float32
    lengths = np.square(Z[:, :7]).sum(axis=1), np.square(Z[:, 7:]).sum(axis=1)
    np.testing.assert_allclose(*lengths, rtol=1e-4)
    assert np.square(residuals(Z, words)).mean() == pytest.approx(1, rel=1e-3)
    np.testing.assert_array_equal(join([X[:, :7], X[:, 7:]], []), X)


def test_fitting_needs_several_clips_a_word(world):
    X, words = draw(world, 10, 1, seed=7)
    with pytest.raises(InputError, match="several clips a word, got 10 of 10 words"):
        Whitening.fit(X, words, GROUPS, ABOUT)


def test_features_that_never_vary_are_left_out(world):
    """Neither a feature that is constant nor one that tells words apart alone may break it."""
    X, words = draw(world, 30, 20, seed=8)
    X[:, 3] = 7.5
    X[:, 105] = [float(word[4:]) for word in words]
    made = Whitening.fit(X, words, GROUPS, ABOUT)
    Z = made(X)
    assert np.isfinite(made.maps).all() and np.isfinite(Z).all()
    assert not Z[:, 3].any() and not Z[:, 105].any()


def test_features_too_small_for_the_file_are_refused(world):
    X, words = draw(world, 30, 20, seed=9)
    with pytest.raises(InputError, match="vary by at least about 1e-4"):
        Whitening.fit(1e-7 * X, words, GROUPS, ABOUT)


# Files.


def test_a_file_brings_back_the_same_whitening(whitening, world, tmp_path):
    whitening.save(tmp_path / "p.safetensors")
    loaded = Whitening.load(tmp_path / "p.safetensors")
    assert loaded.sha256 == whitening.sha256 and loaded.about == whitening.about
    assert loaded.source == "made up"
    X = draw(world, 3, 2, seed=10)[0]
    np.testing.assert_array_equal(loaded(X), whitening(X))


def test_the_hash_is_that_of_the_numbers(whitening):
    other = Whitening(
        whitening.about | {"source": "elsewhere"}, whitening.mean, whitening.maps, whitening.within
    )
    assert other.sha256 == whitening.sha256
    for name in ("mean", "maps", "within"):
        arrays = {key: getattr(whitening, key).copy() for key in ("mean", "maps", "within")}
        arrays[name][0] += 1
        assert Whitening(whitening.about, **arrays).sha256 != whitening.sha256
    arrays = {key: getattr(whitening, key) for key in ("mean", "maps", "within")}
    assert Whitening(whitening.about | {"roots": True}, **arrays).sha256 != whitening.sha256


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"share": 1.5}, "cohort weight"),
        ({"nearest": 0}, "nearest must be"),
        ({"share": "much"}, "read"),
        ({"reach": [0.1, 0.0]}, "slope"),
        ({"reach": [0.1, 0.1, 1.1]}, "share and quantiles"),
        ({"reach": [0.1, 0.1, 1.0, 0.02, 0.01]}, "share and quantiles"),
        ({"reach": [0.1, 0.1, 0.1, 0.1, 0.2, 0.1]}, "read"),
    ],
)
def test_what_a_file_says_of_scores_is_checked(whitening, change, said, tmp_path):
    arrays = {key: getattr(whitening, key) for key in ("mean", "maps", "within")}
    about = whitening.about | change
    save_file(arrays, tmp_path / "p", {"tapword_prior": json.dumps(about)})
    with pytest.raises(InputError, match=said):
        Whitening.load(tmp_path / "p")


def test_files_that_are_no_whitening_are_refused(whitening, tmp_path):
    path = tmp_path / "p.safetensors"
    with pytest.raises(InputError, match="does not exist"):
        Whitening.load(path)
    path.write_text("no whitening")
    with pytest.raises(InputError, match="is not a whitening that can be read"):
        Whitening.load(path)
    save_file({"mean": whitening.mean}, path)
    with pytest.raises(InputError, match="is not a whitening that can be read"):
        Whitening.load(path)
    save_file({"mean": whitening.mean}, path, {"tapword_prior": "{"})
    with pytest.raises(InputError, match="is not a whitening that can be read"):
        Whitening.load(path)
    Spotter("logmel", "avg", "ncm").save(tmp_path / "model.tap")
    with pytest.raises(InputError, match="is not a whitening that can be read"):
        Whitening.load(tmp_path / "model.tap")
    with pytest.raises(InputError, match="is not a whitening that can be read"):
        Whitening.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"groups": [100, 7, 31]},
        {"groups": [100, 7]},
        {"groups": []},
        {"block": 50},
    ],
)
def test_arrays_that_do_not_fit_are_refused(whitening, change, tmp_path):
    about = whitening.about | change
    arrays = {"mean": whitening.mean, "maps": whitening.maps, "within": whitening.within}
    with pytest.raises(InputError, match="do not fit"):
        Whitening(about, **arrays)
    save_file(arrays, tmp_path / "p", {"tapword_prior": json.dumps(about)})
    with pytest.raises(InputError, match=r"is not a whitening that can be read: .*do not fit"):
        Whitening.load(tmp_path / "p")


@pytest.mark.parametrize("name", ["mean", "maps", "within"])
def test_arrays_cut_short_are_refused(whitening, name):
    arrays = {"mean": whitening.mean, "maps": whitening.maps, "within": whitening.within}
    with pytest.raises(InputError, match="do not fit"):
        Whitening(whitening.about, **arrays | {name: arrays[name][:-1]})


# Which whitening is for which vectors.


def made_for(*parts, align=True, seed=0, **about):
    """A whitening for parts, from tones: enough to whiten by."""
    raw = Spotter(*parts, "ncm", align=align)
    [backbone], [pooling] = raw.encoder.backbones, raw.encoder.poolings
    rng = np.random.default_rng(seed)
    words = ["low", "mid", "high"] * 5
    pitch = {"low": 200, "mid": 500, "high": 900}
    noise = 0.01 * rng.normal(size=(len(words), 16_000))
    sounds = [
        (tone(pitch[word] * rng.uniform(0.8, 1.2)) + hiss).astype(np.float32)
        for word, hiss in zip(words, noise, strict=True)
    ]
    about = {"source": "tones", "dataset": "tones"} | about | vector_kind(backbone, pooling, align)
    vectors = raw.encode(sounds).vectors
    return Whitening.fit(vectors, words, group_lengths(backbone, pooling), about)


PARTS = ("logmel", "tap:R=2")


def test_a_whitening_is_chosen_by_all_that_vectors_hang_on():
    backbone, pooling = registry.build("backbones", "logmel"), registry.build("poolings", "tap:R=2")
    right, unaligned = made_for(*PARTS), made_for(*PARTS, align=False)
    other = made_for("logmel", "avg")
    assert choose([unaligned, other, right], backbone, pooling, True) is right
    assert choose([unaligned, other], backbone, pooling, True) is None
    assert choose([right], registry.build("backbones", "logmel:pad_s=0.5"), pooling, True) is None
    strange = Whitening(right.about | {"weights_sha256": "0"}, right.mean, right.maps, right.within)
    assert choose([strange], backbone, pooling, True) is None


@pytest.mark.parametrize("size", presets.PRESETS)
def test_every_size_finds_its_shipped_whitening(size):
    """By its parts' own words: encoders that are not installed here are checked too."""
    chosen = presets.preset(size)
    for name, pooling in zip(chosen.backbones, chosen.poolings, strict=True):
        found = shipped(registry.build("backbones", name).name)
        assert found is not None, f"no whitening is shipped for {name}"
        backbone = registry.build("backbones", name)
        stored = json.loads(json.dumps(registry.store(backbone, skip=backbone.machine_arguments)))
        assert found.about["backbone"] == stored
        stored = registry.store(registry.build("poolings", pooling))
        assert found.about["pooling"] == json.loads(json.dumps(stored))
        assert found.about["align"] is chosen.align
        assert "speechocean762" in found.source and "CC BY 4.0" in found.source
        windows = (1600, 900) if name == "ear_s" else (1000, 600)
        assert (len(found.cohort), len(found.phrases)) == windows


@pytest.mark.parametrize("ear", EARS)
def test_the_ears_whiten_by_the_shipped_whitening(ear):
    spotter = Spotter(ear)
    assert [one.sha256 for one in spotter.encoder.whitenings] == [shipped(ear).sha256]
    assert "align -> " in repr(spotter) and "whitening -> cosine" in repr(spotter)
    [vector] = spotter.encode([tone(300)]).vectors
    lengths = [np.square(part).sum() for part in np.split(vector, [192])]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-4)
    raw = Spotter(spotter.encoder.backbones, spotter.encoder.poolings, "ncm", align=True)
    np.testing.assert_allclose(
        vector,
        join([raw.encode([tone(300)]).vectors], spotter.encoder.whitenings)[0],
    )


def test_other_parts_have_no_whitening_and_say_so():
    for parts in (
        {"learner": "cosine:prior=shipped"},
        {"backbone": "logmel", "learner": "slda:prior=shipped"},
        {"whitening": "shipped"},
    ):
        with pytest.raises(InputError, match=r"no whitening for .*`tapword whitening` makes one"):
            Spotter(**{"pooling": "avg"} | parts)
    small = presets.preset("small")
    with pytest.raises(InputError, match="no whitening for ear_s"):
        Spotter(small.backbones, small.poolings, small.learner, align=False)
    assert Spotter(small.backbones, small.poolings, small.learner, align=True).encoder.whitenings


def test_what_a_spotter_is_told_about_whitening():
    with pytest.raises(InputError, match="needs a whitening, got whitening='none'"):
        Spotter(size="small", whitening="none")
    with pytest.raises(InputError, match=r"whitening must be shipped, none .* got 'ours'"):
        Spotter(*PARTS, "ncm", whitening="ours")
    with pytest.raises(InputError, match="no whitening for"):
        Spotter(*PARTS, "ncm", whitening=[made_for(*PARTS, align=True)])
    own = made_for(*PARTS)
    assert Spotter(*PARTS, "ncm", align=True, whitening=[own]).encoder.whitenings == [own]
    assert Spotter(
        *PARTS, "cosine:prior=shipped", align=True, whitening=[own]
    ).encoder.whitenings == [own]
    assert Spotter(*PARTS, "cosine", align=True).encoder.whitenings == []


# Models taught with a whitening.


def taught(**options):
    spotter = Spotter(*PARTS, "cosine:prior=shipped", align=True, **options)
    for take in (0.9, 1.0, 1.1):
        spotter.learn(tone(300 * take), "low")
        spotter.learn(tone(1200 * take), "high")
    return spotter


def test_a_model_file_names_its_whitening_and_alignment(tmp_path):
    own, other = made_for(*PARTS), made_for(*PARTS, seed=1)
    spotter = taught(whitening=[own])
    path = tmp_path / "model.tap"
    spotter.save(path)
    header, _ = store.read(path)
    assert header["whitening"] == [own.sha256] and header["align"] is True
    loaded = Spotter.load(path, whitening=[own])
    assert loaded.encoder.preparation.align and loaded.encoder.whitenings == [own]
    assert loaded.predict(tone(310)) == spotter.predict(tone(310))
    with pytest.raises(ModelFileError, match="taught with another whitening"):
        Spotter.load(path, whitening=[other])
    with pytest.raises(ModelFileError, match="no whitening for"):
        Spotter.load(path)
    with Spotter.edit(path, whitening=[own]) as same:
        same.rename("low", "deep")
    assert "deep" in Spotter.load(path, whitening=[own]).words


def test_the_default_goes_through_a_file(tmp_path):
    spotter = Spotter()
    spotter.learn(tone(300), "low")
    spotter.learn(tone(1200), "high")
    spotter.save(tmp_path / "model.tap")
    loaded = Spotter.load(tmp_path / "model.tap")
    assert repr(loaded) == repr(spotter)
    assert loaded.encoder.poolings[0].spec == "attentive"
    assert loaded.predict(tone(310)) == spotter.predict(tone(310))


def test_models_of_another_whitening_or_alignment_are_not_merged():
    own, other = made_for(*PARTS), made_for(*PARTS, seed=1)
    with pytest.raises(InputError, match="different whitening: .*" + own.sha256):
        taught(whitening=[own]).merge(taught(whitening=[other]))
    one = Spotter(*PARTS, "ncm", align=True)
    with pytest.raises(InputError, match="different align: True and False"):
        require_same_parts(one, Spotter(*PARTS, "ncm"))
    with pytest.raises(InputError, match="different whitening"):
        require_same_parts(one, Spotter(*PARTS, "ncm", align=True, whitening=[own]))
    both = taught(whitening=[own])
    both.merge(taught(whitening=[own]))
    assert both.words == {"low": 6, "high": 6}


@pytest.mark.parametrize("ear", EARS)
def test_the_shipped_whitening_is_of_the_words_it_names(monkeypatch, ear):
    """Words of speechocean762 vary, whitened, as the shipped file says of all of them."""
    root = shared("data", "training", "speechocean762")
    monkeypatch.syspath_prepend(str(ROOT / "training"))
    from places import encode
    from speechocean import tokens

    found: dict[str, list] = {}
    for token in itertools.islice(tokens(root), 1200):
        clips = found.setdefault(token.word, [])
        if len(clips) < 2 * 12:
            clips += [token.alone, token.among]
    spotter, whitening = Spotter(ear, learner="ncm"), shipped(ear)
    squares, spare = np.zeros(len(whitening.within)), 0
    for clips in [clips for clips in found.values() if len(clips) >= 2 * 3]:
        Z = whitening(encode(spotter, clips))
        starts = np.cumsum([0, *whitening.about["groups"][:-1]])
        squares += np.add.reduceat(np.square(Z - Z.mean(axis=0)).sum(axis=0), starts)
        spare += len(clips) - 1
    assert spare > 150
    np.testing.assert_allclose(squares / spare, whitening.within, rtol=0.15)
