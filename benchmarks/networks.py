"""Multiply-adds of networks for 1 s of audio, counted from the shapes of their tensors."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tapword.assets import CLIPS
from tapword.backbones import tapword_ear
from tapword.backbones.base import Backbone
from tapword.backbones.onnx_files import package_file
from tapword.backbones.pip_encoders import PipEncoder
from tapword.export.onnx.ear_graph import EarGraph
from tapword.spotter.encoder import Encoder
from tapword.support.onnx_sessions import open_session

MEASURE_MEMORY = """
import sys
from tapword import Spotter
from tapword.assets import CLIPS
clip = next(iter(sorted(CLIPS.glob("*/*.ogg"))))
spotter = Spotter(size=sys.argv[1])
spotter.learn(clip, "word")
spotter.predict(clip)
[peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak.split()[1])
"""


def bare_runs(encoder: Encoder, sounds: Sequence[np.ndarray]) -> Callable[[], object]:
    """Run only the networks of an encoder on a batch of clips."""
    clips = np.stack([encoder.prepare(sound) for sound in sounds])
    runs = []
    for backbone in encoder.backbones:
        for start in range(0, len(clips), backbone.max_batch):
            feed = _feed(backbone, clips[start : start + backbone.max_batch])
            runs.append((_session(backbone), feed))
    return lambda: [session.run(None, feed) for session, feed in runs]


def multiply_adds(backbone: Backbone) -> int:
    """Multiply-adds of one clip of 1 s: convolutions and matrix products, by their shapes."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = f"{folder}/profile"
        session = onnxruntime.InferenceSession(
            _model(backbone), options, providers=["CPUExecutionProvider"]
        )
        session.run(None, _feed(backbone, np.full((1, 16_000), 0.1, dtype=np.float32)))
        events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [event["args"] for event in events if "output_type_shape" in event.get("args", {})]
    return sum(map(_node, nodes))


def _node(node: dict[str, Any]) -> int:
    kind = node["op_name"]
    inputs = [shape for one in node["input_type_shape"] for shape in one.values()]
    [result, *_] = [shape for one in node["output_type_shape"] for shape in one.values()] or [[]]
    if "Conv" in kind:
        return prod(result) * prod(inputs[1][1:])
    if "MatMul" in kind or "Gemm" in kind:
        return prod(result) * inputs[0][-1]
    return 0


def peak_bytes(size: str) -> int | None:
    """Peak memory of a process that learns and predicts one clip; None where it is unavailable."""
    command = [sys.executable, "-c", MEASURE_MEMORY, size]
    done = subprocess.run(command, capture_output=True, text=True)
    return int(done.stdout) * 1024 if not done.returncode else None


def weight_bytes(backbone: Backbone) -> int:
    return _path(backbone).stat().st_size


def _path(backbone: Backbone) -> Path:
    if isinstance(backbone, PipEncoder):
        place = (backbone.package, backbone.version, backbone.file, backbone.extra)
        return package_file(backbone.name, *place)
    return CLIPS.parent / "tapword_ear.safetensors"


def _model(backbone: Any) -> bytes:
    if isinstance(backbone, PipEncoder):
        return _path(backbone).read_bytes()
    return EarGraph(backbone.network.arrays).content()


def _session(backbone: Any) -> Any:
    if isinstance(backbone, PipEncoder):
        return backbone.session
    return open_session(EarGraph(backbone.network.arrays).content(), backbone.threads)


def _feed(backbone: Any, clips: np.ndarray) -> dict[str, np.ndarray]:
    if isinstance(backbone, PipEncoder):
        first, *rest = _session(backbone).get_inputs()
        masks = {one.name: np.ones(clips.shape, dtype=np.int64) for one in rest}
        return {first.name: clips} | masks
    late = tapword_ear.LATENCY_FRAMES * tapword_ear.HOP
    sound = np.pad(clips, ((0, 0), (tapword_ear.OVERLAP, late)))
    mel = np.ascontiguousarray(tapword_ear.mel_features(sound).transpose(0, 2, 1)[:, None])
    shapes = EarGraph(backbone.network.arrays).states
    kept = (np.zeros((len(clips), *shape), dtype=np.float32) for shape in shapes)
    return {"mel": mel} | {f"before_{index}": one for index, one in enumerate(kept)}
