"""Audio -> frames as ONNX nodes: the second around the speech, log-mel energies, the backbone."""

from pathlib import Path
from typing import Any

import numpy as np

from tapword.audio import HOP, REACH, SAMPLE_RATE
from tapword.backbones import logmel, speech_embedding
from tapword.backbones.base import Backbone
from tapword.backbones.logmel import Logmel
from tapword.backbones.speech_embedding import SpeechEmbedding
from tapword.errors import InputError
from tapword.export.graph import Graph
from tapword.vectors import CLIP_S

CLIP = round(CLIP_S * SAMPLE_RATE)


def fill(graph: Graph, audio: str) -> str:
    """Put silence behind a clip (n,) shorter than 1 s."""
    missing = graph.add("Sub", graph.ints(CLIP), graph.length(audio))
    missing = graph.add("Max", missing, graph.ints(0))
    return graph.add("Pad", audio, graph.add("Concat", graph.ints(0), missing, axis=0))


def align(graph: Graph, audio: str) -> str:
    """Cut out 1 s around the middle of the loudest sound: (n,) -> (16000,), as `audio.align`."""
    rest = graph.add("Mod", graph.add("Neg", graph.length(audio)), graph.ints(HOP))
    audio = graph.add("Pad", audio, graph.add("Concat", graph.ints(0), rest, axis=0))
    exact = graph.cast(graph.reshape(audio, -1, HOP), np.float64)
    energy = graph.sum(graph.add("Mul", exact, exact), axis=1, keep=False)
    around, offsets = _centring(graph, energy)
    loudest = graph.add("ArgMax", around, axis=0, keepdims=1)
    # Where the walk of `audio.align` ends is the first point from the loudest on that does not
    # pull to the right, or the one behind the last before it that does.
    points = graph.points(graph.length(around))
    pulls = graph.add("Greater", offsets, graph.constant(0.0, np.float64))
    before = graph.add("Less", points, loudest)
    stops = graph.add("Not", graph.add("Or", before, pulls))
    far = graph.constant(np.iinfo(np.int64).max)
    right = graph.add("ReduceMin", graph.add("Where", stops, points, far), axes=[0], keepdims=1)
    behind = graph.add("Add", points, graph.constant(1))
    left = graph.add("Where", graph.add("And", before, pulls), behind, graph.constant(0))
    left = graph.add("ReduceMax", left, axes=[0], keepdims=1)
    middle = graph.add("Where", graph.add("Gather", pulls, loudest), right, left)
    start = graph.add("Mul", middle, graph.ints(HOP))
    padded = graph.add("Pad", audio, graph.ints(CLIP // 2, CLIP // 2))
    cut = graph.slice(padded, start, graph.add("Add", start, graph.ints(CLIP)))
    return graph.reshape(cut, CLIP)


def _centring(graph: Graph, energy: str) -> tuple[str, str]:
    """Loudness around each point and where its centre lies: (t,) -> twice (t + 1,) float64."""
    count = graph.length(energy)
    points = graph.points(graph.add("Add", count, graph.ints(1)))
    steps = graph.cast(graph.points(count), np.float64)
    half = graph.constant(0.5, np.float64)
    moment = graph.add("Mul", energy, graph.add("Add", steps, half))
    reach = graph.ints(REACH)
    first = graph.add("Max", graph.add("Sub", points, reach), graph.ints(0))
    last = graph.add("Min", graph.add("Add", points, reach), count)

    def between(values: str) -> str:
        sums = graph.add("CumSum", values, graph.constant(0))
        sums = graph.add("Concat", graph.constant([0.0], np.float64), sums, axis=0)
        return graph.add("Sub", graph.add("Gather", sums, last), graph.add("Gather", sums, first))

    around, moments = between(energy), between(moment)
    zero, one = (graph.constant(value, np.float64) for value in (0.0, 1.0))
    loud = graph.add("Greater", around, zero)
    centres = graph.add("Div", moments, graph.add("Where", loud, around, one))
    offsets = graph.add("Sub", centres, graph.cast(points, np.float64))
    return around, graph.add("Where", loud, offsets, zero)


def log_mel(graph: Graph, audio: str, pad: int) -> str:
    """Log-mel energies of a clip (n,) with `pad` zeros on either side: (1, t, 32).

    A convolution with windowed sines and cosines is the Fourier transform at the 120 frequencies
    that the bands use; every runtime has it and runs it fast.
    """
    window, bands = logmel._tables(logmel.BANDS, logmel.LOW_HZ, logmel.HIGH_HZ)
    weights = bands.toarray()
    used = np.flatnonzero(weights.any(axis=0))
    # 2 * 512 numbers and where each kernel finds its own take less room than all kernels.
    turn = 2 * np.pi * np.arange(logmel.FFT) / logmel.FFT
    place = graph.add("Mul", graph.constant(used[:, None]), graph.constant(range(logmel.WINDOW)))
    place = graph.add("Mod", place, graph.ints(logmel.FFT))
    kernels = graph.add("Gather", graph.floats([np.cos(turn), np.sin(turn)]), place, axis=1)
    kernels = graph.add("Mul", kernels, graph.floats(window))
    waves = graph.reshape(kernels, -1, 1, logmel.WINDOW)
    padded = graph.add("Pad", audio, graph.ints(pad, pad)) if pad else audio
    padded = graph.reshape(padded, 1, 1, -1)
    turned = graph.add("Conv", padded, waves, strides=[logmel.STEP])
    squares = graph.reshape(graph.add("Mul", turned, turned), 2, len(used), -1)
    magnitude = graph.add("Sqrt", graph.sum(squares, axis=0))
    energy = graph.add("MatMul", graph.floats(weights[:, used]), magnitude)
    levels = graph.add("Log", graph.add("Add", energy, graph.floats(logmel.FLOOR)))
    return graph.add("Transpose", levels, perm=[0, 2, 1])


def padding(backbone: Backbone) -> int:
    """Zeros that a backbone puts on either side of a clip; refuse one that cannot be exported."""
    if isinstance(backbone, SpeechEmbedding):
        return speech_embedding.PAD
    if isinstance(backbone, Logmel):
        return round(backbone.pad_s * backbone.sample_rate)
    raise InputError(
        f"backbone {backbone.name} cannot be exported; speech_embedding (size small) and logmel can"
    )


def blocks(graph: Graph, backbone: Backbone, mel: str) -> list[str]:
    """Frames (t_i, d_i) of each of a backbone's blocks, from log-mel energies (1, t, 32)."""
    if not isinstance(backbone, SpeechEmbedding):
        return [graph.reshape(mel, -1, logmel.BANDS)]
    model = _network(backbone)
    names = [speech_embedding.BLOCKS[name][0] for name in backbone._names]
    image = graph.reshape(mel, 1, -1, logmel.BANDS, 1)
    found: dict[str, str] = {}
    tensors = graph.include(model, {"input_1": image}, list(dict.fromkeys(names)))
    for name, tensor in zip(dict.fromkeys(names), tensors, strict=True):
        # (1, channels, t, bands) -> (t, channels * bands)
        ordered = graph.add("Transpose", tensor, perm=[0, 2, 1, 3])
        width = next(d for known, d in speech_embedding.BLOCKS.values() if known == name)
        found[name] = graph.reshape(ordered, -1, width)
    return [found[name] for name in names]


def _network(backbone: SpeechEmbedding) -> Any:
    """Graph of the speech embedding that takes any number of log-mel frames."""
    import onnx

    path = speech_embedding._weights_path(backbone.weights)
    model = onnx.load_model_from_string(Path(path).read_bytes())
    speech_embedding._free_time_axis(model)
    return model
