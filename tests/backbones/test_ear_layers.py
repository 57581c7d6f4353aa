"""The ear by numpy against its ONNX graph, for any number of channels and blocks."""

import numpy as np
import pytest
import safetensors.numpy

from tapword.backbones import tapword_ear
from tapword.backbones.tapword_ear import BAND_BLOCKS, BANDS, EarNetwork, TapwordEar
from tapword.export.onnx.ear_graph import EarGraph
from tapword.support.onnx_sessions import open_session
from tests.conftest import tone
from tests.sounds import speech


def onnx_frames(arrays, mel):
    graph = EarGraph(arrays)
    state = (np.zeros((len(mel), *shape), dtype=np.float32) for shape in graph.states)
    given = {f"before_{index}": one for index, one in enumerate(state)}
    given["mel"] = np.ascontiguousarray(mel.transpose(0, 2, 1)[:, None])
    return open_session(graph.content()).run(["frames"], given)[0][:, :, 0].transpose(0, 2, 1)


def other_size(rng, channels=(8, 8, 12, 16, 16, 24, 24), width=40, n_blocks=7, out=37):
    """Random weights of another network of the family."""
    arrays = {}

    def layer(name, out, inputs, bands=1, time=1):
        weight = rng.normal(size=(out, inputs, bands, time)) / np.sqrt(inputs * bands * time)
        arrays[f"{name}.weight"] = weight.astype(np.float16)
        arrays[f"{name}.bias"] = (0.1 * rng.normal(size=out)).astype(np.float16)

    def block(name, inputs, out, wide, bands, time):
        layer(f"{name}.widen", wide, inputs)
        layer(f"{name}.look", wide, 1, bands, time)
        layer(f"{name}.narrow", out, wide)

    layer("first", channels[0], 1, 5, 5)
    for index in range(len(BAND_BLOCKS)):
        block(f"bands.{index}", channels[index], channels[index + 1], 3 * channels[index], 3, 3)
    layer("flat", width, channels[-1] * BANDS // 8)
    for index in range(n_blocks):
        block(f"time.{index}", width, width, 2 * width, 1, 7)
    layer("out", out, width)
    return arrays


@pytest.mark.parametrize("seconds", [0.1, 1.0, 11.0])
def test_frames_are_those_of_onnxruntime(rng, seconds):
    network = TapwordEar().network
    audio = rng.normal(0, 0.05, (2, round(16_000 * seconds))).astype(np.float32)
    mel = tapword_ear.mel_features(audio)[:, : 4 * round(25 * seconds - 1)]
    frames, _ = network(mel, network.initial_state(2))
    np.testing.assert_allclose(frames, onnx_frames(network.arrays, mel), rtol=1e-5, atol=3e-5)


def test_another_size_of_the_family_needs_only_its_weights(rng, tmp_path):
    arrays, path = other_size(rng), tmp_path / "other.safetensors"
    safetensors.numpy.save_file(arrays, path)
    network = EarNetwork(path)
    mel = tapword_ear.mel_features(speech("lamp", "espeak-en-f4")[None])[:, :52]
    frames, _ = network(mel, network.initial_state(1))
    assert frames.shape == (1, 13, 37)
    np.testing.assert_allclose(frames, onnx_frames(arrays, mel), rtol=1e-5, atol=2e-5)


def test_pieces_of_a_long_clip_give_the_frames_of_the_whole(monkeypatch):
    clip = np.tile(speech("coffee", "espeak-en-m2"), 3)[:40_000]
    [whole] = TapwordEar().frames(clip)
    monkeypatch.setattr(tapword_ear, "AT_ONCE", 32)
    np.testing.assert_allclose(TapwordEar().frames(clip)[0], whole, rtol=1e-5, atol=2e-5)


def test_threads_share_the_clips_of_a_batch():
    clips = [tone(200 + 40 * i, 1.0) for i in range(11)]
    one, two = (TapwordEar(threads=n).frames_many(clips) for n in (1, 2))
    for [a], [b] in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_observer_is_given_the_input_of_every_convolution():
    network, inputs = TapwordEar().network, {}
    mel = tapword_ear.mel_features(tone(300, 1.0)[None])[:, :64]
    network(mel, network.initial_state(1), lambda name, x: inputs.update({name: x}))
    assert {f"{name}.weight" for name in inputs} == {
        name for name in network.arrays if name.endswith("weight")
    }
    narrow = inputs["bands.0.narrow"]
    assert narrow.min() == 0 and narrow.shape[-1] == 20 * 48
