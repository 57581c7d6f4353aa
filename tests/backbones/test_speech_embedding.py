import importlib.metadata
import sys

import numpy as np
import pytest

from tapword.backbones import speech_embedding
from tapword.backbones.speech_embedding import SpeechEmbedding, weights_path
from tapword.errors import InputError, MissingExtra, ModelFileError
from tapword.support.onnx_sessions import open_session
from tests.conftest import tone

ALL = ("b51", "b64", "emb")


@pytest.mark.parametrize(
    ("seconds", "frames"), [(0.1, (18, 14, 5)), (1.0, (40, 36, 16)), (10.0, (265, 261, 128))]
)
def test_speech_embedding_takes_short_and_long_clips(seconds, frames):
    blocks = SpeechEmbedding(layers=ALL).frames(tone(400, seconds))
    assert [block.shape for block in blocks] == list(
        zip(frames, SpeechEmbedding(layers=ALL).dims, strict=True)
    )
    assert all(block.dtype == np.float32 and np.isfinite(block).all() for block in blocks)


def test_each_output_depends_on_its_own_window_alone():
    """The freed time axis computes what the network computes on 76 frames at a time."""
    rng = np.random.default_rng(0)
    mel = rng.normal(size=(1, 76 + 8 * 9, 32)).astype(np.float32)
    backbone = SpeechEmbedding()
    whole = backbone.from_mel(mel)[0][0]
    assert whole.shape == (10, 96)
    for index in range(10):
        one = backbone.from_mel(mel[:, 8 * index : 8 * index + 76])[0][0, 0]
        np.testing.assert_allclose(whole[index], one, rtol=1e-4, atol=1e-4)


def test_the_original_graph_gives_the_same_outputs():
    session = open_session(weights_path(None))
    rng = np.random.default_rng(1)
    mel = rng.normal(size=(3, 76, 32)).astype(np.float32)
    expected = session.run(None, {"input_1": mel[..., None]})[0].reshape(3, 96)
    np.testing.assert_allclose(SpeechEmbedding().from_mel(mel)[0][:, 0], expected, atol=1e-4)


def test_batches_of_inner_layers_equal_one_by_one():
    backbone = SpeechEmbedding(layers=ALL)
    clips = [tone(200 + 50 * i, 0.3 + 0.1 * (i % 3)) for i in range(7)]
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        for block, alone in zip(blocks, backbone.frames(clip), strict=True):
            np.testing.assert_allclose(block, alone, atol=2e-4)


def test_facts_about_the_network():
    backbone = SpeechEmbedding()
    assert backbone.params == 328_200
    assert backbone.weights_sha256 == (
        "ba754db3cd768a524c655ea90655ee5e6055a43b8dfd29366a11e93716ae9e51"
    )
    again = SpeechEmbedding(layers="b64")
    assert again.network is backbone.network, "one session per process"


def test_weights_elsewhere(tmp_path):
    copy = tmp_path / "model.onnx"
    with open(weights_path(None), "rb") as file:
        copy.write_bytes(file.read())
    backbone = SpeechEmbedding(weights=str(copy))
    np.testing.assert_array_equal(
        backbone.frames(tone(300))[0], SpeechEmbedding().frames(tone(300))[0]
    )
    with pytest.raises(InputError, match="no weight file at"):
        _ = SpeechEmbedding(weights="gone.onnx").params
    copy.write_bytes(b"not a network")
    with pytest.raises(ModelFileError, match="is not the speech embedding"):
        _ = SpeechEmbedding(weights=str(copy.with_name("model.onnx")), threads=2).params


def test_arguments_are_checked():
    with pytest.raises(InputError, match=r"layers must be of b51, b64, emb, got 'b99'"):
        SpeechEmbedding(layers="b99")
    with pytest.raises(InputError, match="threads must be a whole number from 1 to 256, got 0"):
        SpeechEmbedding(threads=0)
    with pytest.raises(InputError, match="float32 of shape"):
        SpeechEmbedding().frames(np.zeros(16_000, np.float64))
    with pytest.raises(InputError, match="0 samples; at least 1 are needed"):
        SpeechEmbedding().frames(np.zeros(0, np.float32))


def test_a_package_without_the_weights_is_named(monkeypatch):
    weights_path.cache_clear()

    def absent(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    with pytest.raises(MissingExtra, match=r"'openwakeword==0\.4\.0', .*\[speech-embedding\]"):
        SpeechEmbedding().frames(tone(300))


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_without_a_package_for_onnx_files_the_extra_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    speech_embedding._read.cache_clear()
    wanted = rf"speech_embedding needs .*'{package}'.*speech-embedding\]"
    with pytest.raises(MissingExtra, match=wanted):
        SpeechEmbedding().frames(tone(300))
