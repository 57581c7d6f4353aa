"""Audio -> frames as ONNX nodes: the second around the speech, log-mel energies, the backbone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword.audio.align import HOP, REACH
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones import logmel, speech_embedding
from tapword.backbones.base import Backbone
from tapword.backbones.logmel import BANDS
from tapword.errors import InputError
from tapword.export.onnx.graph import Graph
from tapword.spotter.encoder import CLIP_S

# Samples of the second that an aligned clip is cut to.
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
    window, bands = logmel.tables(BANDS, logmel.LOW_HZ, logmel.HIGH_HZ)
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


class ExportedBackbone(NamedTuple):
    """How a backbone is written: silence in samples on either side of a clip, then its blocks.

    `blocks` makes frames (t_i, d_i) of each block from log-mel energies (1, t, 32); `has_network`
    says whether there is more to it than these energies.
    """

    padding: int
    blocks: Callable[[Graph, str], list[str]]
    has_network: bool


def exported(backbone: Backbone) -> ExportedBackbone:
    """Say how a backbone is written; refuse one that cannot be."""
    if backbone.name not in BACKBONES:
        raise InputError(
            f"backbone {backbone.name} cannot be exported; {' and '.join(BACKBONES)} can (the size "
            "small is of these)"
        )
    return BACKBONES[backbone.name](backbone)


def _speech_embedding(backbone: Any) -> ExportedBackbone:
    def blocks(graph: Graph, mel: str) -> list[str]:
        import onnx

        path = Path(speech_embedding.weights_path(backbone.weights))
        model = onnx.load_model_from_string(path.read_bytes())
        speech_embedding.free_time_axis(model)
        image = graph.reshape(mel, 1, -1, BANDS, 1)
        # A block may be named twice, to be pooled in two ways.
        wanted = {name: speech_embedding.BLOCKS[name] for name in backbone.names}
        tensors = graph.include(model, {"input_1": image}, [inner for inner, _ in wanted.values()])
        found = {}
        for (name, (_, width)), tensor in zip(wanted.items(), tensors, strict=True):
            # (1, channels, t, bands) -> (t, channels * bands)
            ordered = graph.add("Transpose", tensor, perm=[0, 2, 1, 3])
            found[name] = graph.reshape(ordered, -1, width)
        return [found[name] for name in backbone.names]

    return ExportedBackbone(speech_embedding.PAD, blocks, True)


def _logmel(backbone: Any) -> ExportedBackbone:
    padding = round(backbone.pad_s * backbone.sample_rate)
    return ExportedBackbone(padding, lambda graph, mel: [graph.reshape(mel, -1, BANDS)], False)


BACKBONES = {"speech_embedding": _speech_embedding, "logmel": _logmel}
