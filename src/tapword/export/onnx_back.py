"""Frames -> scores as ONNX nodes: poolings, the prior, the learner's rule as it is now."""

import numpy as np

from tapword.errors import InputError
from tapword.export.graph import Graph
from tapword.learners.base import Learner
from tapword.learners.ncm import Ncm
from tapword.learners.statistics_learner import LinearLearner
from tapword.poolings.avg import Avg
from tapword.poolings.avgmax import Avgmax
from tapword.poolings.base import Pooling
from tapword.poolings.max import Max
from tapword.poolings.middle import Middle
from tapword.poolings.mix import Mix
from tapword.poolings.tap import _CONSTANT, Tap
from tapword.poolings.tsdp import Tsdp
from tapword.poolings.tstp import Tstp
from tapword.priors.prior import Prior

# Learners beside those on the statistic whose scores are linear in the vector.
LINEAR = ("perceptron", "finetune")


def pool(graph: Graph, pooling: Pooling, frames: str) -> str:
    """Pool one block's frames (t, d) into a vector (1, D)."""
    if isinstance(pooling, Tap | Tstp | Tsdp | Avg):
        order = pooling.R if isinstance(pooling, Tap) else 1 if isinstance(pooling, Avg) else 2
        parts = _moments(graph, frames, order)
        parts = parts[1:] if isinstance(pooling, Tsdp) else parts
        return graph.add("Concat", *parts, axis=1)
    if isinstance(pooling, Middle):
        return _middle(graph, frames, pooling.n)
    if isinstance(pooling, Max | Avgmax | Mix):
        largest = graph.add("ReduceMax", frames, axes=[0])
        mean = graph.add("ReduceMean", frames, axes=[0])
        if isinstance(pooling, Avgmax):
            return graph.add("Concat", mean, largest, axis=1)
        alpha = pooling.alpha if isinstance(pooling, Mix) else 1.0
        parts = [
            graph.add("Mul", part, graph.floats(share))
            for part, share in ((largest, alpha), (mean, 1 - alpha))
        ]
        return graph.add("Add", *parts) if isinstance(pooling, Mix) else largest
    raise InputError(
        f"pooling {pooling.name} cannot be exported as ONNX; avg, avgmax, blocks, max, middle, "
        "mix, tap, tsdp and tstp can"
    )


def _moments(graph: Graph, frames: str, order: int) -> list[str]:
    """Mean, standard deviation and standardised moments, each (1, d), as `poolings.tap` has it."""
    first = graph.slice(frames, graph.ints(0), graph.ints(1))
    z = graph.add("Sub", frames, first)
    mean = graph.add("ReduceMean", z, axes=[0])
    z = graph.add("Sub", z, mean)
    mean = graph.add("Add", mean, first)
    if order == 1:
        return [mean]
    power = graph.add("Mul", z, z)
    std = graph.add("Sqrt", graph.add("ReduceMean", power, axes=[0]))
    limit = graph.add("Mul", graph.add("Abs", mean), graph.floats(_CONSTANT))
    varies = graph.add("Greater", std, limit)
    zero = graph.floats(0.0)
    result = [mean, graph.add("Where", varies, std, zero)]
    if order > 2:
        inverse = graph.add("Where", varies, graph.add("Reciprocal", std), zero)
        z = graph.add("Mul", z, inverse)
        power = graph.add("Mul", z, z)
    for _ in range(2, order):
        power = graph.add("Mul", power, z)
        result.append(graph.add("ReduceMean", power, axes=[0]))
    return result


def _middle(graph: Graph, frames: str, n: int) -> str:
    count = graph.length(frames)
    # Whole-number division rounds towards 0 in ONNX, downwards in Python: keep it positive.
    start = graph.add("Div", graph.add("Add", count, graph.ints(n)), graph.ints(2))
    window = graph.add("Add", start, graph.constant(np.arange(-n, 0)))
    last = graph.add("Sub", count, graph.ints(1))
    window = graph.add("Min", graph.add("Max", window, graph.ints(0)), last)
    return graph.reshape(graph.add("Gather", frames, window), 1, -1)


def whiten(graph: Graph, prior: Prior, weight: float, vector: str) -> str:
    """Whiten a vector (1, D) as `prior` does, times its weight."""
    groups, block = prior.about["groups"], prior.about["block"]
    centred = graph.add("Sub", vector, graph.floats(prior.mean))
    parts, start = [], 0
    for length, maps in zip(groups, prior._blocks, strict=True):
        part = graph.slice(centred, graph.ints(start), graph.ints(start + length), axis=1)
        missing = -length % block
        if missing:
            part = graph.add("Pad", part, graph.ints(0, 0, 0, missing))
        # The prior's own precision: nothing is lost.
        stacked = np.zeros((len(maps), block, block), dtype=np.float16)
        for whole, (_, matrix) in zip(stacked, maps, strict=True):
            whole[: len(matrix), : len(matrix)] = matrix
        matrices = graph.cast(graph.constant(stacked, np.float16), np.float32)
        turned = graph.add("MatMul", graph.reshape(part, -1, 1, block), matrices)
        turned = graph.reshape(turned, 1, -1)
        size = graph.add("ReduceL2", turned, axes=[1])
        size = graph.add("Max", size, graph.floats(1e-6))
        scaled = graph.add("Mul", graph.add("Div", turned, size), graph.floats(weight))
        parts.append(graph.slice(scaled, graph.ints(0), graph.ints(length), axis=1))
        start += length
    return graph.add("Concat", *parts, axis=1)


def score(graph: Graph, learner: Learner, columns: list[int], vector: str) -> str:
    """Scores (K,) of a vector (1, D), in the order of `columns`."""
    if isinstance(learner, Ncm):
        means = learner.state()["means"][columns]
        distance = graph.add("Sub", graph.floats(means), vector)
        squares = graph.sum(graph.add("Mul", distance, distance), axis=1, keep=False)
        return graph.add("Neg", squares)
    weights, biases = linear(learner)
    product = graph.add("MatMul", vector, graph.floats(weights[columns].T))
    return graph.reshape(graph.add("Add", product, graph.floats(biases[columns])), -1)


def linear(learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """Weights (K, D) and biases (K,) of a learner whose scores are linear."""
    if isinstance(learner, LinearLearner):
        return learner.linear()
    if learner.name not in LINEAR or learner.dim is None:
        raise InputError(
            f"learner {learner.name} cannot be exported as ONNX: its scores are not linear; "
            f"cosine, ridge, slda, ncm, {' and '.join(LINEAR)} can"
        )
    biases = learner.scores(np.zeros((1, learner.dim), dtype=np.float32))[0]
    weights = learner.scores(np.eye(learner.dim, dtype=np.float32)).T - biases[:, None]
    return weights, biases
