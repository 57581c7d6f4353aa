"""The ears: the network as written, whole and in pieces."""

import numpy as np
import pytest
import safetensors.numpy

from tapword.backbones import tapword_ear
from tapword.backbones.ear_s import EarS
from tapword.backbones.logmel import log_mel
from tapword.backbones.onnx_files import OnnxWriter
from tapword.backbones.tapword_ear import TapwordEar
from tapword.errors import InputError, ModelFileError
from tapword.support.onnx_sessions import open_session
from tests.conftest import ROOT, tone
from tests.sounds import speech

ASSETS = ROOT / "src" / "tapword" / "assets"
SHIPPED = ASSETS / "tapword_ear.safetensors"
EARS = [EarS, TapwordEar]
NOT_AN_EAR = "does not hold the weights of ear_s or tapword_ear"
AHEAD = {"bands.0": 1, "time.0": 1, "time.1": 1, "time.2": 1}
STRIDES = {"first": (2, 2), "bands.1": (2, 1), "bands.2": (1, 2), "bands.4": (2, 1)}


def convolution(x, weights, name, key=None, relu=True):
    """(channels, bands, t) -> the same, what is before the first step being 0."""
    weight, bias = (weights[f"{name}.{kind}"].astype(np.float64) for kind in ("weight", "bias"))
    out, inner, high, wide = weight.shape
    down, right = STRIDES.get(key or name, (1, 1)) if high > 1 else (1, 1)
    x = np.pad(x, ((0, 0), (high // 2, high // 2), (wide - 1, 0)))
    places = np.lib.stride_tricks.sliding_window_view(x, (high, wide), axis=(1, 2))
    places = places[:, ::down, ::right]
    if inner == 1 and out == len(x):
        y = np.einsum("chtab,cab->cht", places, weight[:, 0])
    else:
        y = np.einsum("ihtab,oiab->oht", places, weight)
    y = y + bias[:, None, None]
    return np.maximum(y, 0) if relu else y


def reference(ear, audio):
    """The frames of a clip, in double precision and by loops."""
    weights = safetensors.numpy.load_file(ASSETS / ear.shipped)
    before = 240 + 640 * ear.silence_before
    mel = log_mel(np.pad(audio, (before, -len(audio) % 640 + 7 * 640)), 40, 60.0, 7600.0)
    x = convolution((mel.astype(np.float64).T[None] + 2) / 3, weights, "first")
    for room, count in (("bands", 6), ("time", 5)):
        if room == "time":
            x = convolution(x.reshape(-1, 1, x.shape[2]), weights, "flat")
        for index in range(count):
            name = f"{room}.{index}"
            y = convolution(x, weights, f"{name}.widen")
            y = convolution(y, weights, f"{name}.look", name)
            y = convolution(y, weights, f"{name}.narrow", relu=False)
            late = AHEAD.get(name, 0)
            x = (
                y + np.pad(x, ((0, 0), (0, 0), (late, 0)))[..., : y.shape[2]]
                if (x.shape == y.shape)
                else y
            )
    return convolution(x, weights, "out", relu=False)[:, 0].T[7 + ear.silence_before :]


@pytest.mark.parametrize("kind", EARS)
def test_frames_are_those_of_the_network_as_written(kind):
    for clip in (speech("lamp", "espeak-en-f4"), tone(300, 0.1)):
        [frames] = kind().frames(clip)
        assert frames.shape == (-(-len(clip) // 640), 101)
        np.testing.assert_allclose(frames, reference(kind, clip), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", EARS)
def test_clips_side_by_side_are_heard_as_alone(kind):
    ear, clips = kind(), [tone(200 + 90 * i, 0.5) for i in range(5)]
    for together, clip in zip(ear.frames_many(clips), clips, strict=True):
        np.testing.assert_allclose(together[0], ear.frames(clip)[0], atol=1e-5)


def test_weights_that_are_not_of_the_ear(tmp_path):
    with pytest.raises(InputError, match="no weight file at"):
        TapwordEar(weights=str(tmp_path / "none")).frames(tone(300))
    path = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match=NOT_AN_EAR):
        TapwordEar(weights=str(path)).frames(tone(300))
    path.write_bytes(b"no weights at all")
    with pytest.raises(ModelFileError, match=NOT_AN_EAR):
        TapwordEar(weights=str(path)).frames(tone(300))
    weights = safetensors.numpy.load_file(SHIPPED)
    for name, bad in (
        ("bands.0.narrow.bias", np.float16(0)),
        ("out.weight", weights["out.weight"][:50]),
        ("time.4.look.weight", weights["time.4.look.weight"][..., :1]),
        ("flat.weight", weights["flat.weight"] * np.float16(np.nan)),
    ):
        safetensors.numpy.save_file(weights | {name: np.asarray(bad)}, path)
        tapword_ear._open.cache_clear()
        with pytest.raises(ModelFileError, match=NOT_AN_EAR):
            TapwordEar(weights=str(path)).frames(tone(300))


def test_what_is_kept_of_the_past_is_as_the_card_says():
    kept = sum(one.size for one in TapwordEar().network.initial_state(1))
    assert f"it keeps {kept:,} numbers" in (ROOT / "docs" / "model_card.md").read_text("utf-8")


def test_weights_are_known_by_their_numbers(tmp_path):
    weights = safetensors.numpy.load_file(SHIPPED)
    path = tmp_path / "same.safetensors"
    safetensors.numpy.save_file(weights, path, {"tapword_ear": "another record"})
    assert TapwordEar(weights=str(path)).weights_sha256 == TapwordEar().weights_sha256
    weights["out.bias"] = weights["out.bias"] + np.float16(1)
    safetensors.numpy.save_file(weights, path)
    tapword_ear._open.cache_clear()
    assert TapwordEar(weights=str(path)).weights_sha256 != TapwordEar().weights_sha256


@pytest.mark.parametrize("kind", EARS)
def test_the_shipped_weights_say_how_they_were_made(kind):
    with safetensors.safe_open(ASSETS / kind.shipped, "numpy") as file:
        record = file.metadata()["tapword_ear"]
    assert (ROOT / "training" / "ear" / "record.json").is_file() and "CC BY 4.0" in record
    assert kind().params < 1_000_000


def test_a_graph_is_an_onnx_file():
    onnx = pytest.importorskip("onnx")
    graph = OnnxWriter()
    x = graph.input("x", ["batch", 300])
    scale = graph.constant(np.linspace(-1, 1, 300, dtype=np.float32))
    graph.output(graph.node("Mul", x, scale), "y", ["batch", 300])
    model = onnx.load_model_from_string(graph.content())
    onnx.checker.check_model(model, full_check=True)
    given = np.arange(600, dtype=np.float32).reshape(2, 300)
    [found] = open_session(graph.content()).run(None, {"x": given})
    np.testing.assert_array_equal(found, given * np.linspace(-1, 1, 300, dtype=np.float32))
