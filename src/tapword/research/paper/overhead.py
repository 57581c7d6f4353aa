"""Time that TAP adds to learning and predicting, counting every step for one clip."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tapword import registry
from tapword.audio.align import fill
from tapword.backbones.base import Backbone
from tapword.research.datasets.base import Clip
from tapword.research.metrics import mean
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Comparison, Group, Inputs, PaperTable, Reproduced
from tapword.research.paper.results import PaperResults
from tapword.spotter.encoder import block_poolings, pool_clips
from tapword.spotter.vocabulary import CLIP_S
from tapword.support.threads import one_thread

# Every step except learning, which changes the learner, is timed this often; the best time counts.
REPEATS = 3
POOLINGS = ("avg", "tap")
STEPS = ("backbone", "pooling", "learning", "predicting")
# The last step of what the paper times; backbone and pooling come before it.
LAST_STEPS = {"training": "learning", "inference": "predicting"}


def measure(
    results: PaperResults, backbone: Backbone, clips: list[Clip]
) -> dict[tuple[str, str], float]:
    """Median milliseconds of each step for one clip, by pooling and step.

    The poolings take turns on the same frames, so a busy machine slows both.
    """
    sounds = [fill(results.dataset.read(clip), CLIP_S) for clip in clips]
    poolings = {
        name: block_poolings(results.pooling(name, backbone), backbone) for name in POOLINGS
    }
    learners = {name: registry.build("learners", results.learner("SLDA")) for name in POOLINGS}
    vectors: list[dict[str, np.ndarray]] = []
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)

    def timed(name: str, step: str, repeats: int, work: Callable[..., Any], *given: Any) -> Any:
        """Return the result of `work`, and record its least time over some repeats."""
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
                # The first prediction after learning solves the equations for all later ones.
                learners[name].predict(vector)
                timed(name, "predicting", REPEATS, learners[name].predict, vector)
    ms = {key: 1000 * float(np.median(values)) for key, values in spent.items()}
    return ms | {(name, "backbone"): ms["both", "backbone"] for name in POOLINGS}


def overhead(inputs: Inputs) -> Reproduced:
    """Compare the time that TAP adds, in percent, with the paper's averages."""
    every, count = inputs.results.dataset.clips("train"), inputs.results.options.timed_clips
    # Every n-th clip, to cover many words.
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
    for backbone in inputs.backbones:
        ms = measure(inputs.results, backbone, clips)
        for kind, last in LAST_STEPS.items():
            parts = ("backbone", "pooling", last)
            avg, tap = (sum(ms[name, step] for step in parts) for name in POOLINGS)
            added[kind].append(100 * (tap / avg - 1))
        shares.add(backbone.spec, [Cell(added[k][-1], paper.OVERHEAD[k]) for k in LAST_STEPS])
        for pooling in POOLINGS:
            steps.add(f"{backbone.spec}, {pooling}", [Cell(ms[pooling, step]) for step in STEPS])
    if len(inputs.backbones) > 1:
        shares.add("mean of ours", [Cell(mean(added[k]), paper.OVERHEAD[k]) for k in LAST_STEPS])
    note = (
        f"Median over {len(clips)} clips; every step but the update is the best of {REPEATS}. "
        "Training is backbone, pooling and one update; inference is backbone, pooling and one "
        "prediction after the solve. Reading the file is not counted."
    )
    return Reproduced([shares, steps], [note])


TABLE = PaperTable("Time that TAP adds", overhead)
