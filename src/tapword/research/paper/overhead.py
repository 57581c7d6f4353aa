"""What TAP adds to the time of learning and of predicting, all steps for one clip counted."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tapword import registry
from tapword.audio.align import fill
from tapword.backbones.base import Backbone
from tapword.learners.packed import one_thread
from tapword.research.datasets.base import Clip
from tapword.research.paper import published as paper
from tapword.research.paper.bench import Bench
from tapword.research.paper.comparison import Cell, Comparison, Group, Reproduced, mean
from tapword.research.paper.context import Context, Table
from tapword.spotter.encoder import block_poolings, pool_clips
from tapword.spotter.lengths import CLIP_S

# Each step but learning, which changes the learner, is timed so often and the best time counts.
REPEATS = 3
POOLINGS = ("avg", "tap")
STEPS = ("backbone", "pooling", "learning", "predicting")
# The last step of what the paper times; backbone and pooling come before it.
LAST_STEPS = {"training": "learning", "inference": "predicting"}


def measure(bench: Bench, backbone: Backbone, clips: list[Clip]) -> dict[tuple[str, str], float]:
    """Median milliseconds of each step for one clip, by pooling and step.

    Both poolings are timed on the same frames, turn by turn, so that a busy machine slows both.
    """
    sounds = [fill(bench.dataset.read(clip), CLIP_S) for clip in clips]
    poolings = {name: block_poolings(bench.pooling(name, backbone), backbone) for name in POOLINGS}
    learners = {name: registry.build("learners", bench.learner("SLDA")) for name in POOLINGS}
    vectors: list[dict[str, np.ndarray]] = []
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)

    def timed(name: str, step: str, repeats: int, work: Callable[..., Any], *given: Any) -> Any:
        """Do `work`, note the least seconds of some repeats, and give its result."""
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            result = work(*given)
            seconds.append(time.perf_counter() - start)
        spent[name, step].append(min(seconds))
        return result

    # One clip at a time on one core, as on a device.
    with one_thread():
        backbone.frames(sounds[0])
        for sound, clip in zip(sounds, clips, strict=True):
            frames = timed("both", "backbone", REPEATS, backbone.frames, sound)
            pooled = {}
            for name, pooling in poolings.items():
                pooled[name] = timed(name, "pooling", REPEATS, pool_clips, pooling, [frames], True)
                timed(name, "learning", 1, learners[name].learn_one, pooled[name][0], clip.word)
            vectors.append(pooled)
        for pooled in vectors:
            for name, vector in pooled.items():
                # The first prediction after learning solves for all that follow.
                learners[name].predict(vector)
                timed(name, "predicting", REPEATS, learners[name].predict, vector)
    ms = {key: 1000 * float(np.median(values)) for key, values in spent.items()}
    return ms | {(name, "backbone"): ms["both", "backbone"] for name in POOLINGS}


def overhead(context: Context) -> Reproduced:
    """Ratios of one run, beside the paper's averages."""
    every, count = context.bench.dataset.clips("train"), context.bench.settings.timed_clips
    # Clips of many words: every n-th.
    clips = every[:: max(1, len(every) // count)][:count]
    shares = Comparison(
        "Time that TAP adds over AVG, in percent, with SLDA",
        "backbone",
        [Group(f"{kind} +%", digits=2) for kind in LAST_STEPS],
    )
    steps = Comparison(
        "Milliseconds a clip, one clip at a time on one core",
        "backbone, pooling",
        [Group(step, "", 3) for step in STEPS],
    )
    added: dict[str, list[float]] = {kind: [] for kind in LAST_STEPS}
    for backbone in context.backbones:
        ms = measure(context.bench, backbone, clips)
        for kind, last in LAST_STEPS.items():
            parts = ("backbone", "pooling", last)
            avg, tap = (sum(ms[name, step] for step in parts) for name in POOLINGS)
            added[kind].append(100 * (tap / avg - 1))
        shares.add(backbone.spec, [Cell(added[k][-1], paper.OVERHEAD[k]) for k in LAST_STEPS])
        for pooling in POOLINGS:
            steps.add(f"{backbone.spec}, {pooling}", [Cell(ms[pooling, step]) for step in STEPS])
    if len(context.backbones) > 1:
        shares.add("mean of ours", [Cell(mean(added[k]), paper.OVERHEAD[k]) for k in LAST_STEPS])
    note = (
        f"Median over {len(clips)} clips; all but updates are the best of {REPEATS}. Training = "
        "backbone + pooling + one update; inference = backbone + pooling + one prediction after "
        "the solve. Reading the file is not counted."
    )
    return Reproduced([shares, steps], [note])


TABLE = Table("Time that TAP adds", overhead)
