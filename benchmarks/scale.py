"""Time of each step of teaching on a cluster, on one core.

    python benchmarks/scale.py FOLDER [--clips 192] [--rounds 7] [--ray] [--json FILE]

FOLDER/<word>/* are clips. Every round times every step once; shown are the median, the slowest and
the fastest round. Time is CPU time, and clock time for the disk. --ray adds the time of the main
process on a cluster, whose workers return a ready-made statistic at once.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from tapword import registry
from tapword.audio import files as audio
from tapword.research import cache as features
from tapword.research import cluster as engine
from tapword.spotter import presets
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import Vocabulary
from tapword.spotter.whitening import Whitening
from tapword.support.threads import one_thread

TASK, WORDS = 2048, 10
SIZES, DIMS = ("small", "medium"), (672, 1248)
PARCEL = engine.pack(learners=[registry.build("learners", "ridge")])


def samples(dim: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Vectors of one task, with as many words as usually come together."""
    rng = np.random.default_rng(seed)
    words = [f"word{index % WORDS}" for index in range(TASK)]
    return rng.standard_normal((TASK, dim), dtype=np.float32), words


def statistic(vectors: np.ndarray, words: list[str]) -> engine.State:
    """State of a ridge learner after one task."""
    learner = registry.build("learners", "ridge")
    learner.learn_many(vectors, words)
    return learner.words, learner.state()


def steps(folder: Path, clips: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Step -> number of clips or statistics of one call, and the call."""
    every = audio.find(folder)
    paths = [str(path) for path in every[:: max(1, len(every) // clips)][:clips]]
    sounds = [audio.read(path) for path in paths]
    found: dict[str, tuple[int, Callable[[], object]]] = {
        "list files": (len(every), lambda: audio.find(folder)),
        "decode and resample": (len(paths), lambda: [audio.read(path) for path in paths]),
    }
    for size in SIZES:
        chosen = presets.preset(size)
        parts = chosen.backbones, chosen.poolings, "ridge"
        spotter = Spotter(*parts, align=chosen.align, augment=chosen.augment)
        dim = spotter.encoder.dim()

        def extract(spotter: Spotter = spotter) -> None:
            for start in range(0, len(sounds), engine.CLIPS_AT_ONCE):
                spotter.encode(sounds[start : start + engine.CLIPS_AT_ONCE], learning=True)

        found[f"extract to learn, size {size} (D = {dim})"] = (len(sounds), extract)
    for dim in DIMS:
        vectors, words = samples(dim, 0)
        states = [statistic(*samples(dim, seed)) for seed in range(2)]

        def learn(vectors: np.ndarray = vectors, words: list[str] = words) -> None:
            statistic(vectors, words)

        def merge(states: list[engine.State] = states) -> None:
            engine.merge(PARCEL, *states)

        size_bytes = sum(array.nbytes for array in states[0][1].values())
        found[f"learn, D = {dim}"] = (TASK, learn)
        found[f"merge, D = {dim}, {size_bytes:,} bytes each"] = (2, merge)
    shard = Encoded.one_second(np.zeros((features.SHARD, DIMS[-1]), dtype=np.float32))

    def put() -> None:
        with tempfile.TemporaryDirectory() as place:
            for number in range(20):
                features.Cache(place).put("0" * 32, number, shard, np.arange(features.SHARD))

    found[f"write to the cache, D = {DIMS[-1]}"] = (20 * features.SHARD, put)
    return found


def giving_out(cluster: engine.Cluster, number: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Time the main process without the workers' part."""
    ready = statistic(*samples(DIMS[-1], 0))

    def answer(
        parcel: engine.Parcel,
        whitenings: Sequence[Whitening],
        clips: list[engine.LabelledClip],
        keep_noise: bool,
        skip_bad: bool,
        split: bool | None,
    ) -> tuple[engine.Outcome, engine.State]:
        return engine.Outcome([word for _, word in clips], [], [], [], Vocabulary()), ready

    engine.learn = answer

    def listen() -> None:
        # New paths each time: a path that was serialised before is faster.
        words = (f"word{index // 70}" for index in range(number))
        clips = ((Path(f"/data/clips/{word}/{id(word)}.opus"), word) for word in words)
        cluster.learn(Spotter("logmel", "avg", "ridge"), clips)

    return {f"make paths, give them out, add up, D = {DIMS[-1]}": (number, listen)}


def measure(calls: dict[str, tuple[int, Callable[[], object]]], rounds: int) -> list[dict]:
    """Time every step once a round; return its clips or statistics per second."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, (_, call) in calls.items():
            clock = time.perf_counter if name.startswith("write") else time.process_time
            start = clock()
            call()
            taken[name].append(clock() - start)
    rows = []
    for name, (number, _) in calls.items():
        # The first round warms up.
        rates = sorted(number / seconds for seconds in taken[name][1:])
        rows.append({"step": name, "median": median(rates), "rates": rates})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with one_thread(), contextlib.ExitStack() as stack:
        calls = steps(options.folder, options.clips)
        if options.ray:
            cluster = stack.enter_context(engine.connect())
            calls |= giving_out(cluster, 300_000)
        rows = measure(calls, options.rounds)
    table = Table("step, on one core", "a second", "slowest", "fastest", "µs each")
    for row in rows:
        numbers = (row["median"], row["rates"][0], row["rates"][-1], 1e6 / row["median"])
        table.add_row(row["step"], *(f"{value:,.0f}" for value in numbers))
    Console().print(f"{os.cpu_count()} cores, {options.rounds} rounds", table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
