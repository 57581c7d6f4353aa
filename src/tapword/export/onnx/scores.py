"""Frames -> scores as ONNX nodes: poolings, whitening and the learner's current rule."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapword.audio.align import MARGIN_S
from tapword.errors import InputError
from tapword.export.onnx.graph_builder import GraphBuilder
from tapword.learners.base import Learner
from tapword.learners.ncm import Ncm
from tapword.poolings import attentive
from tapword.poolings.base import Pooling
from tapword.poolings.tap import CONSTANT
from tapword.spotter.cohort import Cohort, Windows
from tapword.spotter.whitening import Whitening


def pool(graph: GraphBuilder, pooling: Pooling, frames: str) -> str:
    """Pool one block's frames (t, d) into a vector (1, D)."""
    if pooling.name not in POOLINGS:
        known = ", ".join(sorted([*POOLINGS, "blocks"]))
        raise InputError(f"pooling {pooling.name} cannot be exported as ONNX; {known} can")
    return graph.node("Concat", *POOLINGS[pooling.name](graph, frames, pooling), axis=1)


def _moments(graph: GraphBuilder, frames: str, order: int) -> list[str]:
    """Mean, standard deviation and standardised moments, each (1, d), as in `poolings.tap`."""
    first = graph.slice(frames, graph.ints(0), graph.ints(1))
    z = graph.node("Sub", frames, first)
    mean = graph.node("ReduceMean", z, axes=[0])
    z = graph.node("Sub", z, mean)
    mean = graph.node("Add", mean, first)
    if order == 1:
        return [mean]
    power = graph.node("Mul", z, z)
    std = graph.node("Sqrt", graph.node("ReduceMean", power, axes=[0]))
    least = graph.node("Mul", graph.node("Abs", mean), graph.floats(CONSTANT))
    varies = graph.node("Greater", std, least)
    zero = graph.floats(0.0)
    result = [mean, graph.node("Where", varies, std, zero)]
    if order > 2:
        inverse = graph.node("Where", varies, graph.node("Reciprocal", std), zero)
        z = graph.node("Mul", z, inverse)
        power = graph.node("Mul", z, z)
    for _ in range(2, order):
        power = graph.node("Mul", power, z)
        result.append(graph.node("ReduceMean", power, axes=[0]))
    return result


def _middle(graph: GraphBuilder, frames: str, n: int, second: int | None) -> str:
    count = graph.length(frames)
    # Integer division rounds towards 0 in ONNX and down in Python: keep it positive.
    start = graph.node("Div", graph.node("Add", count, graph.ints(n)), graph.ints(2))
    window = graph.node("Add", start, graph.constant(np.arange(-n, 0)))
    last = graph.node("Sub", count, graph.ints(1))
    window = graph.node("Min", graph.node("Max", window, graph.ints(0)), last)
    if second is not None:
        spread = graph.node("Mul", graph.constant(2 * np.arange(n) + 1), count)
        spread = graph.node("Div", spread, graph.ints(2 * n))
        longer = graph.node("Greater", count, graph.ints(second))
        window = graph.node("Where", longer, spread, window)
    return graph.reshape(graph.node("Gather", frames, window), 1, -1)


def _attentive(graph: GraphBuilder, frames: str, pooling: Any) -> list[str]:
    """Mean and deviation of the word (1, d), heads (1, k * d), as in `poolings.attentive`."""

    def doubles(value: Any) -> str:
        return graph.constant(value, np.float64)

    count, k = graph.cast(graph.length(frames), np.float64), len(pooling.centers)
    word = count
    if pooling.frame_rate is not None:
        word = graph.node("Min", count, doubles([attentive.WORD * pooling.frame_rate]))
        rest = graph.node("Sub", count, doubles([2 * MARGIN_S * pooling.frame_rate]))
        longer = graph.node("Greater", count, doubles([pooling.frame_rate]))
        word = graph.node("Where", longer, rest, word)
    half = doubles([0.5])
    first = graph.node("Mul", graph.node("Sub", count, word), half)
    last = graph.node("Add", first, word)
    at = graph.cast(graph.arange(graph.length(frames)), np.float64)
    end = graph.node("Min", last, graph.node("Add", at, doubles([1.0])))
    inside = graph.node("Sub", end, graph.node("Max", first, at))
    inside = graph.node("Min", graph.node("Max", inside, doubles([0.0])), doubles([1.0]))
    inside = graph.node("Div", inside, graph.sum(inside, axis=0))
    inside = graph.reshape(graph.cast(inside, np.float32), 1, -1)
    end = graph.length(frames, axis=1)
    split = graph.node("Sub", end, graph.ints(k))
    logits = graph.slice(frames, split, end, axis=1)
    frames = graph.slice(frames, graph.ints(0), split, axis=1)
    origin = graph.slice(frames, graph.ints(0), graph.ints(1))
    z = graph.node("Sub", frames, origin)
    mean = graph.node("MatMul", inside, z)
    apart = graph.node("Sub", z, mean)
    mean = graph.node("Add", mean, origin)
    variance = graph.node("MatMul", inside, graph.node("Mul", apart, apart))
    deviation = graph.node(
        "Sqrt", graph.node("Add", variance, graph.floats(attentive.VARIANCE_FLOOR))
    )
    position = graph.node("Sub", graph.node("Add", at, half), first)
    position = graph.reshape(graph.node("Div", position, word), -1, 1)
    centers, widths = doubles(pooling.centers), doubles(pooling.widths)
    if pooling.frame_rate is not None:
        evenly = map(doubles, attentive.evenly(k))
        centers, widths = (
            graph.node("Where", longer, even, own)
            for even, own in zip(evenly, (centers, widths), strict=True)
        )
        logits = graph.node("Where", longer, graph.floats(0.0), logits)
    far = graph.node("Div", graph.node("Sub", position, centers), widths)
    far = graph.cast(graph.node("Mul", far, far), np.float32)
    weights = graph.node("Sub", logits, graph.node("Mul", far, graph.floats(0.5)))
    weights = graph.node("Transpose", graph.node("Softmax", weights, axis=0), perm=[1, 0])
    return [mean, deviation, graph.reshape(graph.node("MatMul", weights, frames), 1, -1)]


def _largest(graph: GraphBuilder, frames: str) -> str:
    return graph.node("ReduceMax", frames, axes=[0])


def _mix(graph: GraphBuilder, frames: str, alpha: float) -> str:
    largest = graph.node("Mul", _largest(graph, frames), graph.floats(alpha))
    [mean] = _moments(graph, frames, 1)
    return graph.node("Add", largest, graph.node("Mul", mean, graph.floats(1 - alpha)))


# Pooling -> tensors that are concatenated to its vector.
POOLINGS: dict[str, Callable[[GraphBuilder, str, Any], list[str]]] = {
    "avg": lambda graph, frames, _: _moments(graph, frames, 1),
    "avgmax": lambda graph, frames, _: [*_moments(graph, frames, 1), _largest(graph, frames)],
    "attentive": _attentive,
    "max": lambda graph, frames, _: [_largest(graph, frames)],
    "middle": lambda graph, frames, pooling: [
        _middle(graph, frames, pooling.n, pooling.frame_rate)
    ],
    "mix": lambda graph, frames, pooling: [_mix(graph, frames, pooling.alpha)],
    "tap": lambda graph, frames, pooling: _moments(graph, frames, pooling.R),
    "tsdp": lambda graph, frames, _: _moments(graph, frames, 2)[1:],
    "tstp": lambda graph, frames, _: _moments(graph, frames, 2),
}


def whiten(graph: GraphBuilder, whitening: Whitening, weight: float, vector: str) -> str:
    """Whiten a vector (1, D) and multiply it by `weight`."""
    groups, block = whitening.about["groups"], whitening.about["block"]
    centred = graph.node("Sub", vector, graph.floats(whitening.mean))
    parts, start = [], 0
    for length, maps in zip(groups, whitening.blocks, strict=True):
        part = graph.slice(centred, graph.ints(start), graph.ints(start + length), axis=1)
        missing = -length % block
        if missing:
            part = graph.node("Pad", part, graph.ints(0, 0, 0, missing))
        # The whitening's own precision.
        stacked = np.zeros((len(maps), block, block), dtype=np.float16)
        for whole, (_, matrix) in zip(stacked, maps, strict=True):
            whole[: len(matrix), : len(matrix)] = matrix
        matrices = graph.cast(graph.constant(stacked, np.float16), np.float32)
        turned = graph.node("MatMul", graph.reshape(part, -1, 1, block), matrices)
        turned = graph.reshape(turned, 1, -1)
        if whitening.signed_sqrt:
            root = graph.node("Sqrt", graph.node("Abs", turned))
            turned = graph.node("Mul", graph.node("Sign", turned), root)
        size = graph.node("ReduceL2", turned, axes=[1])
        size = graph.node("Max", size, graph.floats(1e-6))
        scaled = graph.node("Mul", graph.node("Div", turned, size), graph.floats(weight))
        parts.append(graph.slice(scaled, graph.ints(0), graph.ints(length), axis=1))
        start += length
    return graph.node("Concat", *parts, axis=1)


def measure(
    graph: GraphBuilder,
    learner: Learner,
    cohort: Cohort,
    order: list[int],
    vector: str,
    scores: str,
    long: str | None,
) -> str:
    """Normalise scores (K,) by the cohort, as `cohort.normalize` does.

    `order` are the learner's rows in the order of the `scores`, words before negatives. `long`,
    (1,) bool, is true for clips longer than a second; None where clips are not aligned.
    """
    words = [row for row in order if not learner.rows[row].negative]
    length = graph.node("Max", graph.node("ReduceL2", vector, axes=[1]), graph.floats(1e-12))
    turned = graph.node("Div", vector, length)
    level = _level(graph, cohort.words, turned)
    if long is not None and cohort.phrases is not cohort.words:
        level = graph.node("Where", long, _level(graph, cohort.phrases, turned), level)
    cosines = graph.node("MatMul", turned, graph.floats(learner.directions()[words].T))
    own = graph.slice(scores, graph.ints(0), graph.ints(len(words)))
    best = graph.node("ReduceMax", own, axes=[0])
    is_best = graph.node("Equal", own, best)
    cosine = graph.node("Where", is_best, graph.reshape(cosines, -1), graph.floats(-2.0))
    cosine = graph.node("ReduceMax", cosine, axes=[0])
    more = graph.node("Sub", graph.node("Sub", cosine, level), best)
    return graph.node("Add", scores, more)


def _level(graph: GraphBuilder, windows: Windows, turned: str) -> str:
    """Score of the cohort for a unit vector (1, D)."""
    if windows.projection is not None:
        raise InputError("an ONNX file needs the whole cohort; export the model itself")
    # 8-bit integers, as shipped, keep the file small.
    rows = np.rint(windows.vectors * (127 / np.abs(windows.vectors).max()))
    near = graph.node("MatMul", turned, graph.cast(graph.constant(rows.T, np.int8), np.float32))
    near = graph.node("Div", near, graph.floats(np.linalg.norm(rows, axis=1)))
    nearest = graph.node("TopK", near, graph.ints(windows.nearest), unused=1)
    level = graph.node("ReduceMean", nearest, axes=[0, 1], keepdims=0)
    return graph.node("Mul", level, graph.floats(windows.weight))


def score(graph: GraphBuilder, learner: Learner, order: list[int], vector: str) -> str:
    """Scores (K,) of a vector (1, D) for the learner's rows in this order."""
    if isinstance(learner, Ncm):
        means = learner.effective.means[order]
        distance = graph.node("Sub", graph.floats(means), vector)
        squares = graph.sum(graph.node("Mul", distance, distance), axis=1, keep=False)
        return graph.node("Neg", squares)
    rule = learner.linear()
    if rule is None:
        raise InputError(
            f"learner {learner.name} cannot be exported as ONNX; learners with linear scores and "
            "ncm can"
        )
    weights, biases = rule
    product = graph.node("MatMul", vector, graph.floats(weights[order].T))
    return graph.reshape(graph.node("Add", product, graph.floats(biases[order])), -1)
