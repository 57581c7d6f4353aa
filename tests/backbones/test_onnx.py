"""Any ONNX file as a backbone: small graphs of every way to be fed, written on the spot."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tapword import Spotter, registry
from tapword.backbones.base import Unavailable
from tapword.backbones.logmel import log_mel
from tapword.backbones.onnx import Onnx, read_feed
from tapword.errors import InputError, ModelFileError
from tests.conftest import tone

WIDTH = 6
KERNEL = np.random.default_rng(0).normal(size=(WIDTH, 1, 400)).astype(np.float32) / 20


def save(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return str(path)


def waveform(path, shape=("b", "n"), features_first=False, extra=(), kind=TensorProto.FLOAT):
    """Six convolutions every 160 samples; `extra` inputs are multiplied in."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    weights = [
        ("kernel", KERNEL.astype(dtype)),
        ("shape", np.array([-1 if len(shape) > 1 else 1, 1, shape[-1]]))
        if isinstance(shape[-1], int)
        else ("shape", np.array([0, 1, -1] if len(shape) == 3 else [1, 1, -1])),
        ("axis", np.array([1])),
    ]
    first = helper.make_node("Unsqueeze", ["audio", "axis"], ["clips"])
    if len(shape) != 2:
        first = helper.make_node("Reshape", ["audio", "shape"], ["clips"])
    nodes = [first, helper.make_node("Conv", ["clips", "kernel"], ["maps"], strides=[160])]
    last = "maps"
    for name, _, _ in extra:
        # A mask of ones or a length as such: its mean is what it is.
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_cast"], to=kind),
            helper.make_node("ReduceMean", [f"{name}_cast"], [f"{name}_mean"], keepdims=0),
            helper.make_node("Mul", [last, f"{name}_mean"], [f"{name}_out"]),
        ]
        last = f"{name}_out"
    nodes.append(
        helper.make_node("Identity", [last], ["frames"])
        if features_first
        else helper.make_node("Transpose", [last], ["frames"], perm=[0, 2, 1])
    )
    inputs = [("audio", kind, list(shape)), *extra]
    return save(path, nodes, inputs, [("frames", kind, [None] * 3)], weights)


def expected(clip):
    windows = np.lib.stride_tricks.sliding_window_view(clip, 400)[::160]
    return windows @ KERNEL[:, 0].T


@pytest.mark.parametrize("shape", [("n",), ("b", "n"), (1, "n"), ("b", 1, "n"), ("b", 16_000)])
@pytest.mark.parametrize("features_first", [False, True])
def test_waveforms_in_every_shape(tmp_path, shape, features_first):
    path = waveform(tmp_path / "net.onnx", shape, features_first)
    # Where the length is fixed nothing grows, and the layout must be said.
    layout = ("bdt" if features_first else "btd") if shape[-1] == 16_000 else "auto"
    backbone = Onnx(file=path, layout=layout)
    assert backbone.dims == (WIDTH,) and backbone.params == KERNEL.size
    clips = [tone(300), tone(700)]
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        assert len(blocks) == 1 and blocks[0].dtype == np.float32
        np.testing.assert_allclose(blocks[0], expected(clip), atol=1e-5)
    if shape[-1] == 16_000:
        with pytest.raises(InputError, match="cannot tell time from features in frames"):
            Onnx(file=path).frames(tone(300))
        with pytest.raises(InputError, match="takes 16000 samples, the clip has 8000"):
            backbone.frames(tone(300, 0.5))
    else:
        np.testing.assert_allclose(
            backbone.frames(tone(300, 0.4))[0], expected(tone(300, 0.4)), atol=1e-5
        )


@pytest.mark.parametrize(
    ("extra", "factor"),
    [
        (("mask", TensorProto.INT64, ["b", "n"]), 1),
        (("mask", TensorProto.BOOL, ["b", "n"]), 1),
        (("lengths", TensorProto.INT32, ["b"]), 16_000),
    ],
)
def test_masks_and_lengths_are_fed(tmp_path, extra, factor):
    backbone = Onnx(file=waveform(tmp_path / "net.onnx", extra=[extra]))
    given = backbone.frames(tone(300))[0]
    np.testing.assert_allclose(given, expected(tone(300)) * factor, rtol=1e-4, atol=1e-4 * factor)


def test_half_precision_graphs_are_fed_what_they_take(tmp_path):
    backbone = Onnx(file=waveform(tmp_path / "net.onnx", kind=TensorProto.FLOAT16))
    given = backbone.frames(tone(300))[0]
    assert given.dtype == np.float32
    np.testing.assert_allclose(given, expected(tone(300)), atol=0.01)


@pytest.mark.parametrize("bands", [32, 40])
@pytest.mark.parametrize(
    "shape",
    [("b", "t", 0), ("b", 0, "t"), ("b", 1, "t", 0), ("b", "t", 0, 1), ("b", 1, 0, "t"), ("t", 0)],
)
def test_log_mel_inputs_in_every_shape(tmp_path, shape, bands):
    shape = [bands if size == 0 else size for size in shape]
    path = save(
        tmp_path / "net.onnx",
        [helper.make_node("Squeeze", ["mel", "axis"], ["frames"])]
        if len(shape) == 4
        else [helper.make_node("Identity", ["mel"], ["frames"])],
        [("mel", TensorProto.FLOAT, shape)],
        [("frames", TensorProto.FLOAT, [None] * min(len(shape), 3))],
        [("axis", np.array([shape.index(1)]))] if len(shape) == 4 else [],
    )
    backbone = Onnx(file=path, input="logmel", high_hz=7600.0)
    assert backbone.dims == (bands,)
    mel = log_mel(tone(300), bands, high_hz=7600.0)
    np.testing.assert_allclose(backbone.frames(tone(300))[0], mel, atol=1e-5)
    assert backbone.frames_many([tone(300), tone(500)])[1][0].shape == (98, bands)


def test_auto_tells_waveforms_from_log_mel():
    assert read_feed(["b", "n"], "auto", "").bands is None
    assert read_feed(["b", 1, "n"], "auto", "").extra_axis == 1
    assert read_feed(["b", "t", 32], "auto", "")[:2] == (32, False)
    assert read_feed(["b", 32, "t"], "auto", "")[:2] == (32, True)
    for shape in (["b", "t", "d"], ["b", 76, 32, 1], ["b", "c", "t", "d", "e"], []):
        with pytest.raises(InputError, match="takes no log-mel frames"):
            read_feed(shape, "logmel", "")
    with pytest.raises(InputError, match="is no waveform"):
        read_feed(["b", "t", 32], "waveform", "")


def test_outputs_are_chosen_by_name_or_by_shape(tmp_path):
    nodes = [
        helper.make_node("ReduceMean", ["mel"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("Shape", ["mel"], ["size"]),
        helper.make_node("Identity", ["mel"], ["first"]),
        helper.make_node("Neg", ["mel"], ["second"]),
    ]
    kinds = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT]
    outputs = [
        (name, kind, [None] * rank)
        for name, kind, rank in zip(
            ("mean", "size", "first", "second"), kinds, (2, 1, 3, 3), strict=True
        )
    ]
    path = save(tmp_path / "net.onnx", nodes, [("mel", TensorProto.FLOAT, ["b", "t", 32])], outputs)
    mel = log_mel(tone(300))
    np.testing.assert_allclose(Onnx(file=path).frames(tone(300))[0], mel, atol=1e-5)
    second = registry.build("backbones", f"onnx:file={path},output=second")
    np.testing.assert_allclose(second.frames(tone(300))[0], -mel, atol=1e-5)
    with pytest.raises(InputError, match="no output 'third'; it has: mean, size, first, second"):
        Onnx(file=path, output="third").frames(tone(300))
    with pytest.raises(InputError, match=r"gives no frames \(b, t, d\); its outputs: mean"):
        Onnx(file=path, output="mean").frames(tone(300))


def test_rounding_graphs_take_clips_one_by_one(tmp_path):
    """They scale by the largest number they see: in a batch, neighbours would change a clip."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["mel"], ["q", "scale", "zero"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["frames"]),
    ]
    path = save(
        tmp_path / "net.onnx",
        nodes,
        [("mel", TensorProto.FLOAT, ["b", "t", 32])],
        [("frames", TensorProto.FLOAT, ["b", "t", 32])],
    )
    backbone = Onnx(file=path)
    clips = [tone(300), tone(500) * 3]
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        np.testing.assert_array_equal(blocks[0], backbone.frames(clip)[0])


def test_weights_beside_the_file_belong_to_its_hash(tmp_path):
    path = waveform(tmp_path / "net.onnx")
    inside = Onnx(file=path).frames(tone(300))[0]
    hashes = {Onnx(file=path).weights_sha256}
    for name, factor in (("one", 1.0), ("two", 2.0)):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            if tensor.name == "kernel":
                tensor.CopyFrom(numpy_helper.from_array(KERNEL * np.float32(factor), "kernel"))
        (tmp_path / name).mkdir()
        onnx.save(
            model,
            tmp_path / name / "net.onnx",
            save_as_external_data=True,
            location="net.data",
            size_threshold=100,
        )
        outside = Onnx(file=str(tmp_path / name / "net.onnx"))
        np.testing.assert_allclose(outside.frames(tone(300))[0], inside * factor, atol=1e-5)
        hashes.add(outside.weights_sha256)
    assert len(hashes) == 3


def test_a_spotter_is_loaded_with_its_file_given_again(tmp_path):
    backbone = Onnx(file=waveform(tmp_path / "net.onnx"))
    spotter = Spotter(backbone, "tap", "ncm")
    spotter.learn_many([tone(200), tone(1500)], ["low", "high"])
    spotter.save(tmp_path / "model.tapword")
    loaded = Spotter.load(tmp_path / "model.tapword", backbones=[backbone])
    assert loaded.predict(tone(1500)).word == "high"
    with pytest.raises(ModelFileError, match=r"give the backbone .* --backbone onnx:file=\.\.\."):
        Spotter.load(tmp_path / "model.tapword")


def test_another_network_than_the_model_s_is_refused_before_it_is_opened(tmp_path, monkeypatch):
    spotter = Spotter(Onnx(file=waveform(tmp_path / "net.onnx")), "tap", "ncm")
    spotter.learn(tone(200), "low")
    spotter.save(tmp_path / "model.tap")
    other = waveform(tmp_path / "other.onnx")
    changed = onnx.load(other)
    changed.doc_string = "not the one"
    onnx.save(changed, other)
    monkeypatch.setattr("tapword.backbones.onnx.open_session", pytest.fail)
    with pytest.raises(ModelFileError, match=r"taught with weights .* the weights here are"):
        Spotter.load(tmp_path / "model.tap", [f"onnx:file={other}"])


def test_foreign_files_and_arguments_are_refused(tmp_path, capfd):
    with pytest.raises(Unavailable, match="say which file: onnx:file=PATH"):
        Onnx().frames(tone(300))
    with pytest.raises(InputError, match="no file at"):
        Onnx(file="gone.onnx").frames(tone(300))
    (tmp_path / "text.onnx").write_text("not a network")
    with pytest.raises(ModelFileError, match="is not an ONNX network"):
        _ = Onnx(file=str(tmp_path / "text.onnx")).params
    tokens = save(
        tmp_path / "tokens.onnx",
        [helper.make_node("Cast", ["tokens"], ["frames"], to=TensorProto.FLOAT)],
        [("tokens", TensorProto.INT64, ["b", "n"])],
        [("frames", TensorProto.FLOAT, ["b", "n"])],
    )
    with pytest.raises(InputError, match="does not begin with audio; its inputs: tokens tensor"):
        Onnx(file=tokens).frames(tone(300))
    with pytest.raises(InputError, match="cannot take a clip of 100 samples"):
        Onnx(file=waveform(tmp_path / "net.onnx")).frames(tone(300)[:100])
    for arguments, message in (
        ({"input": "mp3"}, "input must be one of auto, waveform, logmel, got 'mp3'"),
        ({"layout": "dbt"}, "layout must be one of auto, btd, bdt, got 'dbt'"),
        ({"threads": 0}, "threads must be a whole number from 1 to 256, got 0"),
        ({"low_hz": 9000.0}, "no bands between 9000.0 and 3800.0"),
    ):
        with pytest.raises(InputError, match=message):
            Onnx(**arguments)
    assert capfd.readouterr() == ("", ""), "nothing is printed"
