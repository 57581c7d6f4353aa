"""Audio -> frames as ONNX nodes: the clip around its sound, log-mel energies, the backbone."""

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
from tapword.export.onnx.graph import Graph


def fill(graph: Graph, audio: str) -> str:
    """Put silence behind a clip (n,) shorter than 1 s."""
    missing = graph.add("Sub", graph.ints(CLIP), graph.length(audio))
    missing = graph.add("Max", missing, graph.ints(0))
    return graph.add("Pad", audio, graph.add("Concat", graph.ints(0), missing, axis=0))


def cut(graph: Graph, audio: str) -> tuple[str, str]:
    """Cut a clip (n,) around its sound, as `spotter.encoder.prepare` does.

    Returns
    -------
    tuple of str
        The clip (m,); and whether the sound is longer than a phrase can be, (1,) bool.
    """
    samples = graph.length(audio)
    rest = graph.add("Mod", graph.add("Neg", samples), graph.ints(HOP))
    audio = graph.add("Pad", audio, graph.add("Concat", graph.ints(0), rest, axis=0))
    exact = graph.cast(graph.reshape(audio, -1, HOP), np.float64)
    energy = graph.sum(graph.add("Mul", exact, exact), axis=1, keep=False)
    first, behind = _extent(graph, energy)
    first, behind = (graph.add("Mul", step, graph.ints(HOP)) for step in (first, behind))
    behind = graph.add("Min", behind, samples)
    extent = graph.add("Sub", behind, first)
    short = graph.add("Less", extent, graph.ints(CLIP))
    short = graph.add("Or", short, _at_most(graph, samples, graph.ints(CLIP)))
    # However long a sound is, the network hears no more of it than of a phrase.
    length = graph.add("Min", extent, graph.ints(MAX))
    length = graph.add("Add", length, graph.ints(2 * MARGIN))
    length = graph.add("Where", short, graph.ints(CLIP), length)
    middle = graph.add("Div", graph.add("Add", first, behind), graph.ints(2))
    centre = graph.add("Mul", _centre(graph, energy), graph.ints(HOP))
    middle = graph.add("Where", short, centre, middle)
    # Half a second of silence on either side is more than any clip takes of it.
    start = graph.add("Sub", middle, graph.add("Div", length, graph.ints(2)))
    start = graph.add("Add", start, graph.ints(CLIP // 2))
    padded = graph.add("Pad", audio, graph.ints(CLIP // 2, CLIP // 2))
    clip = graph.slice(padded, start, graph.add("Add", start, length))
    return clip, graph.add("Greater", extent, graph.ints(MAX))


def _extent(graph: Graph, energy: str) -> tuple[str, str]:
    """Where the loudest sound begins, and the step behind it, each (1,): see `audio.align`."""
    count = graph.length(energy)
    points = graph.points(count)
    power = _between(graph, _sums(graph, energy), points, SMOOTH // 2, SMOOTH // 2 + 1)
    power = graph.add("Div", power, graph.constant(SMOOTH * HOP, np.float64))
    power = graph.add("Add", power, graph.constant(SILENCE, np.float64))
    most = graph.add("ReduceMax", power, axes=[0])
    some = graph.add("Greater", power, graph.constant(NOTHING, np.float64))
    some = graph.sum(graph.cast(some, np.int64), axis=0)
    tenth = graph.add("Sub", graph.add("Div", some, graph.ints(10)), some)
    tenth = graph.add("Add", graph.add("Add", tenth, count), graph.ints(1))
    tenth = graph.add("Min", tenth, count)
    quiet = graph.add("TopK", power, tenth, unused=1, axis=0, largest=0)
    quiet = graph.add("ReduceMax", quiet, axes=[0])

    def times(value: str, ratio: float) -> str:
        return graph.add("Mul", value, graph.constant(ratio, np.float64))

    least = graph.add("Min", times(quiet, ABOVE), times(most, LEAST))
    least = graph.add("Max", least, times(most, DEEPEST))
    sounding = graph.add("Not", graph.add("Less", power, least))
    sums = _sums(graph, graph.cast(sounding, np.float64))

    def alone(before: int, after: int) -> str:
        found = _between(graph, sums, points, before, after)
        only = graph.add("Equal", found, graph.constant(1.0, np.float64))
        return graph.add("And", sounding, only)

    # A step that sounds ends the sound where none does within a pause behind it.
    loudest = graph.add("ArgMax", power, axis=0, keepdims=1)
    begins = graph.add("And", alone(PAUSE, 1), _at_most(graph, points, loudest))
    ends = graph.add("And", alone(0, PAUSE + 1), _at_most(graph, loudest, points))
    first = graph.add("Where", begins, points, graph.constant(0))
    last = graph.add("Where", ends, points, count)
    first = graph.add("ReduceMax", first, axes=[0], keepdims=1)
    last = graph.add("ReduceMin", last, axes=[0], keepdims=1)
    return first, graph.add("Add", last, graph.ints(1))


def _centre(graph: Graph, energy: str) -> str:
    """Point between steps around which a short sound lies, (1,): see `audio.align.align`."""
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
    return graph.add("Where", graph.add("Gather", pulls, loudest), right, left)


def _centring(graph: Graph, energy: str) -> tuple[str, str]:
    """Loudness around each point and where its centre lies: (t,) -> twice (t + 1,) float64."""
    count = graph.length(energy)
    points = graph.points(graph.add("Add", count, graph.ints(1)))
    steps = graph.cast(graph.points(count), np.float64)
    half = graph.constant(0.5, np.float64)
    moment = graph.add("Mul", energy, graph.add("Add", steps, half))
    around, moments = (
        _between(graph, _sums(graph, values), points, HALF_WINDOW, HALF_WINDOW)
        for values in (energy, moment)
    )
    zero, one = (graph.constant(value, np.float64) for value in (0.0, 1.0))
    loud = graph.add("Greater", around, zero)
    centres = graph.add("Div", moments, graph.add("Where", loud, around, one))
    offsets = graph.add("Sub", centres, graph.cast(points, np.float64))
    return around, graph.add("Where", loud, offsets, zero)


def _sums(graph: Graph, values: str) -> str:
    """Sum up what lies before each point: (t,) -> (t + 1,) float64."""
    sums = graph.add("CumSum", values, graph.constant(0))
    return graph.add("Concat", graph.constant([0.0], np.float64), sums, axis=0)


def _between(graph: Graph, sums: str, points: str, before: int, after: int) -> str:
    """Sum up what lies from so many steps before each of some points to so many after it."""
    end = graph.add("Sub", graph.length(sums), graph.ints(1))
    first = graph.add("Max", graph.add("Sub", points, graph.ints(before)), graph.ints(0))
    last = graph.add("Min", graph.add("Add", points, graph.ints(after)), end)
    return graph.add("Sub", graph.add("Gather", sums, last), graph.add("Gather", sums, first))


def _at_most(graph: Graph, one: str, other: str) -> str:
    """Say whether whole numbers are at most as large as others."""
    return graph.add("Not", graph.add("Greater", one, other))


def log_mel(graph: Graph, audio: str, front: FrontEnd) -> str:
    """Log-mel energies of a clip (n,) as a backbone hears it: (1, t, bands).

    A convolution with windowed sines and cosines is the Fourier transform at the frequencies that
    the bands use; every runtime has it and runs it fast.
    """
    window, bands = logmel.tables(*front.mel)
    weights = bands.toarray()
    used = np.flatnonzero(weights.any(axis=0))
    # 2 * 512 numbers and where each kernel finds its own take less room than all kernels.
    turn = 2 * np.pi * np.arange(logmel.FFT) / logmel.FFT
    place = graph.add("Mul", graph.constant(used[:, None]), graph.constant(range(logmel.WINDOW)))
    place = graph.add("Mod", place, graph.ints(logmel.FFT))
    kernels = graph.add("Gather", graph.floats([np.cos(turn), np.sin(turn)]), place, axis=1)
    kernels = graph.add("Mul", kernels, graph.floats(window))
    waves = graph.reshape(kernels, -1, 1, logmel.WINDOW)
    rest = graph.add("Mod", graph.add("Neg", graph.length(audio)), graph.ints(front.hop))
    after = graph.add("Add", rest, graph.ints(front.after))
    around = graph.add("Concat", graph.ints(front.before), after, axis=0)
    padded = graph.reshape(graph.add("Pad", audio, around), 1, 1, -1)
    turned = graph.add("Conv", padded, waves, strides=[logmel.STEP])
    squares = graph.reshape(graph.add("Mul", turned, turned), 2, len(used), -1)
    magnitude = graph.add("Sqrt", graph.sum(squares, axis=0))
    energy = graph.add("MatMul", graph.floats(weights[:, used]), magnitude)
    levels = graph.add("Log", graph.add("Add", energy, graph.floats(logmel.FLOOR)))
    return graph.add("Transpose", levels, perm=[0, 2, 1])


def blocks(graph: Graph, backbone: Any, mel: str) -> list[str]:
    """Frames (t_i, d_i) of each block of a backbone, from log-mel energies (1, t, bands)."""
    if backbone.name == "logmel":
        return [graph.reshape(mel, -1, logmel.BANDS)]
    return (_ear_blocks if backbone.name == "tapword_ear" else _embedding_blocks)(
        graph, backbone, mel
    )


def _ear_blocks(graph: Graph, backbone: Any, mel: str) -> list[str]:
    import onnx

    heard = graph.add("Add", mel, graph.floats(tapword_ear.SHIFT))
    heard = graph.add("Div", heard, graph.floats(tapword_ear.SCALE))
    heard = graph.add("Unsqueeze", graph.add("Transpose", heard, perm=[0, 2, 1]), graph.ints(1))
    inputs = {"mel": heard}
    for index, kept in enumerate(backbone.network.initial_state(1)):
        inputs[f"before_{index}"] = graph.floats(kept)
    model = onnx.load_model_from_string(backbone.network.graph())
    [frames] = graph.include(model, inputs, ["frames"])
    # (1, 101, 1, t) -> (t, 101), without the first, which are of nothing.
    frames = graph.add("Transpose", graph.reshape(frames, *backbone.dims, -1), perm=[1, 0])
    return [graph.slice(frames, graph.ints(tapword_ear.LATENCY_FRAMES), graph.length(frames))]


def _embedding_blocks(graph: Graph, backbone: Any, mel: str) -> list[str]:
    import onnx

    path = Path(speech_embedding.weights_path(backbone.weights))
    model = onnx.load_model_from_string(path.read_bytes())
    speech_embedding.free_time_axis(model)
    image = graph.reshape(mel, 1, -1, logmel.BANDS, 1)
    # A block may be named twice, to be pooled in two ways.
    wanted = {name: speech_embedding.BLOCKS[name] for name in backbone.names}
    tensors = graph.include(model, {"input_1": image}, [inner for inner, _ in wanted.values()])
    found = {}
    for (name, (_, width)), tensor in zip(wanted.items(), tensors, strict=True):
        # (1, channels, t, bands) -> (t, channels * bands)
        ordered = graph.add("Transpose", tensor, perm=[0, 2, 1, 3])
        found[name] = graph.reshape(ordered, -1, width)
    return [found[name] for name in backbone.names]
