"""What TAP adds to the time of learning and of asking, all steps of one clip counted."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

from tapword import audio, registry
from tapword.backbones.base import Backbone
from tapword.reproduce import paper
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced
from tapword.reproduce.context import Context, Table, mean
from tapword.vectors import CLIP_S, block_poolings, pool_clips

CLIPS = 96
REPEATS = 3
POOLINGS = ("avg", "tap")
STEPS = ("backbone", "pooling", "learning", "asking")
TITLE = "Time that TAP adds"


def measure(context: Context, backbone: Backbone) -> dict[str, dict[str, float]]:
    """Median milliseconds of each step for one clip: pooling -> step -> ms.

    Both poolings are timed on the same frames, turn by turn, so that a busy machine slows both.
    """
    clips = _spread(context)
    sounds = [audio.fill(context.dataset.read(clip), CLIP_S) for clip in clips]
    parts: dict[str, Any] = {}
    for name in POOLINGS:
        pooling = block_poolings(context.bench.pooling(name, backbone), backbone)
        parts[name] = pooling, registry.build("learners", context.bench.learner("SLDA"))
    times: dict[str, dict[str, list[float]]] = {
        name: {step: [] for step in STEPS} for name in POOLINGS
    }
    vectors: dict[str, list[np.ndarray]] = {name: [] for name in POOLINGS}
    # One clip at a time on one core: what a device does.
    with threadpoolctl.threadpool_limits(1):
        backbone.frames(sounds[0])
        for sound, clip in zip(sounds, clips, strict=True):
            frames, spent = _time(REPEATS, backbone.frames, sound)
            for name, (pooling, learner) in parts.items():
                pooled, own = _time(REPEATS, pool_clips, pooling, [frames], True)
                times[name]["backbone"].append(spent)
                times[name]["pooling"].append(own)
                row = pooled[0]
                vectors[name].append(row)
                _, own = _time(1, learner.learn_one, row, clip.word)
                times[name]["learning"].append(own)
        for index in range(len(clips)):
            for name, (_, learner) in parts.items():
                row = vectors[name][index][None]
                # The first question after learning solves for all that follow.
                learner.predict(row)
                _, own = _time(REPEATS, learner.predict, row)
                times[name]["asking"].append(own)
    return {
        name: {step: 1000 * float(np.median(values)) for step, values in steps.items()}
        for name, steps in times.items()
    }


def overhead(context: Context, name: str, title: str) -> Reproduced:
    """Ratios of one run, beside the paper's averages."""
    shares = Comparison(
        "Time that TAP adds over AVG, in percent, with SLDA",
        "backbone",
        [Group(f"{kind} +%", "paper", 2) for kind in paper.OVERHEAD],
    )
    steps = Comparison(
        "Milliseconds a clip, one clip at a time on one core",
        "backbone, pooling",
        [Group(step, "", 3) for step in STEPS],
    )
    found = []
    for backbone in context.usable:
        ms = measure(context, backbone)
        found.append(_added(ms))
        shares.add(backbone.spec, [Cell(*p) for p in zip(found[-1], _theirs(), strict=True)])
        for pooling in POOLINGS:
            steps.add(f"{backbone.spec}, {pooling}", [Cell(ms[pooling][step]) for step in STEPS])
    if len(found) > 1:
        means = [mean(values) for values in zip(*found, strict=True)]
        shares.add("mean of ours", [Cell(*p) for p in zip(means, _theirs(), strict=True)])
    said = [
        f"Median over {len(_spread(context))} clips; all but updates are the best of {REPEATS}. "
        "Training = backbone + pooling + one update; inference = backbone + pooling + one "
        "prediction after the solve. Reading the file is not counted.",
        "The paper averages over its six backbones of 64 to 962 million parameters, beside which "
        "any pooling is small; how it measured is not said.",
    ]
    return Reproduced(name, title, [shares, steps], said)


def _added(ms: dict[str, dict[str, float]]) -> list[float]:
    """Percent that TAP adds to learning and to asking."""
    added = []
    for last in ("learning", "asking"):
        avg, tap = (
            sum(ms[name][step] for step in ("backbone", "pooling", last)) for name in POOLINGS
        )
        added.append(100 * (tap / avg - 1))
    return added


def _theirs() -> list[float]:
    return [paper.OVERHEAD["training"], paper.OVERHEAD["inference"]]


def _spread(context: Context) -> list[Any]:
    """Clips of many words: every n-th."""
    clips = context.dataset.clips("train")
    return clips[:: max(1, len(clips) // CLIPS)][:CLIPS]


def _time(repeats: int, work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Give the result and the best seconds of several calls."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = work(*arguments)
        best = min(best, time.perf_counter() - start)
    return result, best


TABLE = Table(TITLE, [], overhead)
