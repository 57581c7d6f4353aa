"""Audio -> frames as ONNX nodes: cut the clip, log-mel energies, backbone."""

from pathlib import Path
from typing import Any

import numpy as np

from tapword.audio.align import HALF_WINDOW, HOP, PAUSE, SMOOTH
from tapword.backbones import logmel, speech_embedding, tapword_ear
from tapword.export.layout import (
    ABOVE,
    CLIP,
    DEEPEST,
    LEAST,
    MARGIN,
    MAX,
    NOTHING,
    SILENCE,
    FrontEnd,
)
from tapword.export.onnx.ear_graph import EarGraph
from tapword.export.onnx.graph_builder import GraphBuilder


def fill(graph: GraphBuilder, audio: str) -> str:
    """Pad a clip (n,) with silence to at least 1 s."""
    missing = graph.node("Sub", graph.ints(CLIP), graph.length(audio))
    missing = graph.node("Max", missing, graph.ints(0))
    return graph.node("Pad", audio, graph.node("Concat", graph.ints(0), missing, axis=0))


def cut(graph: GraphBuilder, audio: str) -> tuple[str, str]:
    """Cut a clip (n,) around its sound, as `spotter.encoder.prepare` does.

    Returns
    -------
    tuple of str
        The clip (m,); and whether the sound is longer than a phrase can be, (1,) bool.
    """
    samples = graph.length(audio)
    rest = graph.node("Mod", graph.node("Neg", samples), graph.ints(HOP))
    audio = graph.node("Pad", audio, graph.node("Concat", graph.ints(0), rest, axis=0))
    exact = graph.cast(graph.reshape(audio, -1, HOP), np.float64)
    energy = graph.sum(graph.node("Mul", exact, exact), axis=1, keep=False)
    first, behind = _extent(graph, energy)
    first, behind = (graph.node("Mul", step, graph.ints(HOP)) for step in (first, behind))
    behind = graph.node("Min", behind, samples)
    extent = graph.node("Sub", behind, first)
    short = graph.node("Less", extent, graph.ints(CLIP))
    short = graph.node("Or", short, _at_most(graph, samples, graph.ints(CLIP)))
    # A sound longer than a phrase is cut: its scores become NaN anyway.
    length = graph.node("Min", extent, graph.ints(MAX))
    length = graph.node("Add", length, graph.ints(2 * MARGIN))
    length = graph.node("Where", short, graph.ints(CLIP), length)
    middle = graph.node("Div", graph.node("Add", first, behind), graph.ints(2))
    centre = graph.node("Mul", _centre(graph, energy), graph.ints(HOP))
    middle = graph.node("Where", short, centre, middle)
    # Half a second of silence on either side is more than any clip needs.
    start = graph.node("Sub", middle, graph.node("Div", length, graph.ints(2)))
    start = graph.node("Add", start, graph.ints(CLIP // 2))
    padded = graph.node("Pad", audio, graph.ints(CLIP // 2, CLIP // 2))
    clip = graph.slice(padded, start, graph.node("Add", start, length))
    return clip, graph.node("Greater", extent, graph.ints(MAX))


def _extent(graph: GraphBuilder, energy: str) -> tuple[str, str]:
    """First step of the loudest sound and the step after its last, (1,) each: see `audio.align`."""
    count = graph.length(energy)
    points = graph.arange(count)
    power = _between(graph, _sums(graph, energy), points, SMOOTH // 2, SMOOTH // 2 + 1)
    power = graph.node("Div", power, graph.constant(SMOOTH * HOP, np.float64))
    power = graph.node("Add", power, graph.constant(SILENCE, np.float64))
    most = graph.node("ReduceMax", power, axes=[0])
    some = graph.node("Greater", power, graph.constant(NOTHING, np.float64))
    some = graph.sum(graph.cast(some, np.int64), axis=0)
    tenth = graph.node("Sub", graph.node("Div", some, graph.ints(10)), some)
    tenth = graph.node("Add", graph.node("Add", tenth, count), graph.ints(1))
    tenth = graph.node("Min", tenth, count)
    quiet = graph.node("TopK", power, tenth, unused=1, axis=0, largest=0)
    quiet = graph.node("ReduceMax", quiet, axes=[0])

    def times(value: str, ratio: float) -> str:
        return graph.node("Mul", value, graph.constant(ratio, np.float64))

    least = graph.node("Min", times(quiet, ABOVE), times(most, LEAST))
    least = graph.node("Max", least, times(most, DEEPEST))
    sounding = graph.node("Not", graph.node("Less", power, least))
    sums = _sums(graph, graph.cast(sounding, np.float64))

    def alone(before: int, after: int) -> str:
        found = _between(graph, sums, points, before, after)
        only = graph.node("Equal", found, graph.constant(1.0, np.float64))
        return graph.node("And", sounding, only)

    # A loud step ends the sound if none follows within a pause.
    loudest = graph.node("ArgMax", power, axis=0, keepdims=1)
    begins = graph.node("And", alone(PAUSE, 1), _at_most(graph, points, loudest))
    ends = graph.node("And", alone(0, PAUSE + 1), _at_most(graph, loudest, points))
    first = graph.node("Where", begins, points, graph.constant(0))
    last = graph.node("Where", ends, points, count)
    first = graph.node("ReduceMax", first, axes=[0], keepdims=1)
    last = graph.node("ReduceMin", last, axes=[0], keepdims=1)
    return first, graph.node("Add", last, graph.ints(1))


def _centre(graph: GraphBuilder, energy: str) -> str:
    """Centre of a short sound as a point between steps, (1,): see `audio.align.align`."""
    around, offsets = _centring(graph, energy)
    loudest = graph.node("ArgMax", around, axis=0, keepdims=1)
    # The walk of `audio.align` ends at the first point from the loudest on whose centroid is not
    # to the right, or after the last point before it whose centroid is.
    points = graph.arange(graph.length(around))
    centroid_right = graph.node("Greater", offsets, graph.constant(0.0, np.float64))
    before = graph.node("Less", points, loudest)
    stops = graph.node("Not", graph.node("Or", before, centroid_right))
    far = graph.constant(np.iinfo(np.int64).max)
    right = graph.node("ReduceMin", graph.node("Where", stops, points, far), axes=[0], keepdims=1)
    behind = graph.node("Add", points, graph.constant(1))
    left = graph.node("Where", graph.node("And", before, centroid_right), behind, graph.constant(0))
    left = graph.node("ReduceMax", left, axes=[0], keepdims=1)
    return graph.node("Where", graph.node("Gather", centroid_right, loudest), right, left)


def _centring(graph: GraphBuilder, energy: str) -> tuple[str, str]:
    """Energy around each point and the offset of its centroid: (t,) -> two (t + 1,) float64."""
    count = graph.length(energy)
    points = graph.arange(graph.node("Add", count, graph.ints(1)))
    steps = graph.cast(graph.arange(count), np.float64)
    half = graph.constant(0.5, np.float64)
    moment = graph.node("Mul", energy, graph.node("Add", steps, half))
    around, moments = (
        _between(graph, _sums(graph, values), points, HALF_WINDOW, HALF_WINDOW)
        for values in (energy, moment)
    )
    zero, one = (graph.constant(value, np.float64) for value in (0.0, 1.0))
    loud = graph.node("Greater", around, zero)
    centres = graph.node("Div", moments, graph.node("Where", loud, around, one))
    offsets = graph.node("Sub", centres, graph.cast(points, np.float64))
    return around, graph.node("Where", loud, offsets, zero)


def _sums(graph: GraphBuilder, values: str) -> str:
    """Cumulative sums before each point: (t,) -> (t + 1,) float64."""
    sums = graph.node("CumSum", values, graph.constant(0))
    return graph.node("Concat", graph.constant([0.0], np.float64), sums, axis=0)


def _between(graph: GraphBuilder, sums: str, points: str, before: int, after: int) -> str:
    """Add up from `before` steps before each point to `after` steps after it."""
    end = graph.node("Sub", graph.length(sums), graph.ints(1))
    first = graph.node("Max", graph.node("Sub", points, graph.ints(before)), graph.ints(0))
    last = graph.node("Min", graph.node("Add", points, graph.ints(after)), end)
    return graph.node("Sub", graph.node("Gather", sums, last), graph.node("Gather", sums, first))


def _at_most(graph: GraphBuilder, one: str, other: str) -> str:
    """Whether integers are at most others."""
    return graph.node("Not", graph.node("Greater", one, other))


def log_mel(graph: GraphBuilder, audio: str, front: FrontEnd) -> str:
    """Log-mel energies of a clip (n,) for a backbone: (1, t, bands).

    The Fourier transform is a convolution with windowed sines and cosines, at the frequencies that
    the bands use: every runtime has a fast convolution.
    """
    window, weights = logmel.tables(*front.mel)
    used = np.flatnonzero(weights.any(axis=0))
    # Two tables of 512 numbers and indices into them are smaller than all kernels.
    turn = 2 * np.pi * np.arange(logmel.FFT) / logmel.FFT
    place = graph.node("Mul", graph.constant(used[:, None]), graph.constant(range(logmel.WINDOW)))
    place = graph.node("Mod", place, graph.ints(logmel.FFT))
    kernels = graph.node("Gather", graph.floats([np.cos(turn), np.sin(turn)]), place, axis=1)
    kernels = graph.node("Mul", kernels, graph.floats(window))
    waves = graph.reshape(kernels, -1, 1, logmel.WINDOW)
    rest = graph.node("Mod", graph.node("Neg", graph.length(audio)), graph.ints(front.hop))
    after = graph.node("Add", rest, graph.ints(front.after))
    around = graph.node("Concat", graph.ints(front.before), after, axis=0)
    padded = graph.reshape(graph.node("Pad", audio, around), 1, 1, -1)
    turned = graph.node("Conv", padded, waves, strides=[logmel.STEP])
    squares = graph.reshape(graph.node("Mul", turned, turned), 2, len(used), -1)
    magnitude = graph.node("Sqrt", graph.sum(squares, axis=0))
    energy = graph.node("MatMul", graph.floats(weights[:, used]), magnitude)
    levels = graph.node("Log", graph.node("Add", energy, graph.floats(logmel.FLOOR)))
    return graph.node("Transpose", levels, perm=[0, 2, 1])


def blocks(graph: GraphBuilder, backbone: Any, mel: str) -> list[str]:
    """Frames (t_i, d_i) of each block of a backbone, from log-mel energies (1, t, bands)."""
    if backbone.name == "logmel":
        return [graph.reshape(mel, -1, logmel.BANDS)]
    is_ear = isinstance(backbone, tapword_ear.TapwordEar)
    return (_ear_blocks if is_ear else _embedding_blocks)(graph, backbone, mel)


def _ear_blocks(graph: GraphBuilder, backbone: Any, mel: str) -> list[str]:
    import onnx

    scaled = graph.node("Add", mel, graph.floats(tapword_ear.SHIFT))
    scaled = graph.node("Div", scaled, graph.floats(tapword_ear.SCALE))
    scaled = graph.node("Unsqueeze", graph.node("Transpose", scaled, perm=[0, 2, 1]), graph.ints(1))
    inputs = {"mel": scaled}
    network = EarGraph(backbone.network.arrays)
    state = backbone.network.initial_state(1, backbone.silence_before)
    for index, (one, (channels, bands, time)) in enumerate(zip(state, network.states, strict=True)):
        before = one.reshape(1, time, bands, channels).transpose(0, 3, 2, 1)
        inputs[f"before_{index}"] = graph.floats(before)
    model = onnx.load_model_from_string(network.content())
    [frames] = graph.include(model, inputs, ["frames"])
    # (1, 101, 1, t) -> (t, 101), without the first frames, which precede the clip.
    frames = graph.node("Transpose", graph.reshape(frames, *backbone.dims, -1), perm=[1, 0])
    return [graph.slice(frames, graph.ints(tapword_ear.LATENCY_FRAMES), graph.length(frames))]


def _embedding_blocks(graph: GraphBuilder, backbone: Any, mel: str) -> list[str]:
    import onnx

    path = Path(speech_embedding.weights_path(backbone.weights))
    model = onnx.load_model_from_string(path.read_bytes())
    speech_embedding.free_time_axis(model)
    image = graph.reshape(mel, 1, -1, logmel.BANDS, 1)
    # A block may be named twice, for two poolings.
    wanted = {name: speech_embedding.BLOCKS[name] for name in backbone.names}
    tensors = graph.include(model, {"input_1": image}, [inner for inner, _ in wanted.values()])
    found = {}
    for (name, (_, width)), tensor in zip(wanted.items(), tensors, strict=True):
        # (1, channels, t, bands) -> (t, channels * bands)
        ordered = graph.node("Transpose", tensor, perm=[0, 2, 1, 3])
        found[name] = graph.reshape(ordered, -1, width)
    return [found[name] for name in backbone.names]
