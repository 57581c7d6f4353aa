"""Files like those of Kokoro, but small: a network of the same inputs, and 54 styles."""

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np

from tapword.voices.kokoro_files import STYLE_BYTES, STYLE_SHAPE, Download

NAMES = [
    f"{letter}{sex}_{name}" for letter in "abefhijpz" for sex in "fm" for name in ("x", "y", "z")
]


def network():
    """A graph with Kokoro's inputs: a tone for each sign, longer where it is slower."""
    import onnx
    from onnx import TensorProto, helper

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    def constant(name, array):
        return onnx.numpy_helper.from_array(np.asarray(array), name)

    nodes = [
        helper.make_node("Cast", ["tokens"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["style"], ["level"], keepdims=0),
        helper.make_node("Unsqueeze", ["ids", "axis"], ["column"]),
        helper.make_node("Mul", ["column", "time"], ["phase"]),
        helper.make_node("Sin", ["phase"], ["wave"]),
        helper.make_node("Mul", ["wave", "level"], ["loud"]),
        helper.make_node("Reshape", ["loud", "flat"], ["audio"]),
    ]
    graph = helper.make_graph(
        nodes,
        "kokoro",
        [
            value("tokens", TensorProto.INT64, [1, "n"]),
            value("style", TensorProto.FLOAT, [1, 256]),
            value("speed", TensorProto.FLOAT, [1]),
        ],
        [value("audio", TensorProto.FLOAT, ["m"])],
        [
            constant("axis", np.array([2])),
            constant("time", (np.arange(2400, dtype=np.float32) / 100)),
            constant("flat", np.array([-1])),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def style(number):
    """Styles that differ by speaker and by number of phonemes."""
    rows = 0.1 + 0.005 * number + 0.0005 * np.arange(STYLE_SHAPE[0], dtype="<f4")
    return np.repeat(rows[:, None], STYLE_SHAPE[1], axis=1).astype("<f4")


def offer(folder: Path) -> tuple[Download, Download]:
    """Write the files as they are offered; return their descriptions, without addresses."""
    (folder / "kokoro-v1.0.int8.onnx").write_bytes(network())
    with tarfile.open(folder / "kokoro-js-1.2.1.tgz", "w:gz") as packed:
        members = {f"package/voices/{name}.bin": style(k).tobytes() for k, name in enumerate(NAMES)}
        members["package/voices/../../escape.bin"] = b"x" * STYLE_BYTES
        members["package/voices/af_short.bin"] = b"x"
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    found = []
    for name in ("kokoro-v1.0.int8.onnx", "kokoro-js-1.2.1.tgz"):
        content = (folder / name).read_bytes()
        found.append(Download("", name, hashlib.sha256(content).hexdigest(), len(content)))
    return found[0], found[1]
