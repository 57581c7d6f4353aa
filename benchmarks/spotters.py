"""Time of the sizes relative to the bare network, solve and disk (floor).

    python benchmarks/spotters.py [--rounds N] [--clips N] [--json FILE]

Each size learns 30 words (the demo's, some under two names) from the demo's clips of 1 s. In every
round take turns: encoding clips and the bare networks on the same input; learning a clip, the first
prediction after it and a later one; saving and loading the model, and a plain write and read of as
many bytes. Time is CPU time on one core; clock time for two cores and the disk.
"""

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import threadpoolctl
from networks import bare_runs
from scipy.linalg import lapack
from timing import alternate, compared, turns

from tapword.assets import CLIPS
from tapword.audio import files as audio
from tapword.audio.augment import augmented
from tapword.errors import InputError
from tapword.spotter import presets
from tapword.spotter.spotter import Spotter

WORDS = 30
BATCH = 12


def demo_clips(n: int) -> tuple[list[np.ndarray], list[str]]:
    """Clips and their words, voice by voice."""
    folders = sorted(path for path in CLIPS.iterdir() if path.is_dir())
    files = [sorted(folder.glob("*.ogg")) for folder in folders]
    every = [(path, path.parent.name) for row in zip(*files, strict=False) for path in row]
    return [audio.read(path) for path, _ in every[:n]], [word for _, word in every[:n]]


def taught(size: str, sounds: list[np.ndarray], words: list[str]) -> Spotter:
    """Teach a spotter 30 words, at least two samples each."""
    spotter = Spotter(size=size)
    spotter.learn_many(sounds, words)
    again = [f"{word} again" for word in dict.fromkeys(words)][: WORDS - len(spotter.words)]
    for new in again:
        old = new.removesuffix(" again")
        chosen = [sound for sound, word in zip(sounds, words, strict=True) if word == old]
        spotter.learn_many(chosen[::-1], [new] * len(chosen))
    return spotter


def first_predict(spotter: Spotter, sound: np.ndarray, word: str, into: list[float]) -> None:
    """Learn, then time the prediction that has to solve again."""
    spotter.learn(sound, word)
    before = time.process_time()
    spotter.predict(sound)
    into.append(1000 * (time.process_time() - before))


def solve_call(dim: int) -> Callable[[], object]:
    """One Cholesky factorisation and solve for all words, float64: the cost of a new solution."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((2 * dim, dim))
    covariance = np.asfortranarray(samples.T @ samples / len(samples))
    means = np.asfortranarray(rng.standard_normal((dim, WORDS)))

    def solve() -> None:
        lower, _ = lapack.dpotrf(covariance, lower=1, clean=0)
        lapack.dpotrs(lower, means, lower=1)

    return solve


def measure(size: str, clips: int, rounds: int) -> dict:
    """Time one size; a record of all figures."""
    sounds, words = demo_clips(clips)
    spotter = taught(size, sounds, words)
    batches = [sounds[start : start + BATCH] for start in range(0, len(sounds), BATCH)]
    dim = spotter.encoder.dim()
    triangle = np.zeros(dim * (dim + 1) // 2, dtype=np.float32)
    one, solve = bare_runs(spotter.encoder, sounds[:1]), solve_call(dim)
    # A sample is learned with its augmented copies.
    four = bare_runs(spotter.encoder, [sounds[0], *augmented(sounds[0])])
    whole = [bare_runs(spotter.encoder, batch) for batch in batches]
    first: list[float] = []
    times = turns(
        {
            "extract": lambda: [spotter.encode(batch) for batch in batches],
            "extract floor": lambda: [run() for run in whole],
            "learn": lambda: spotter.learn(sounds[0], words[0]),
            "learn floor": lambda: (four(), np.add(triangle, 1e-9, out=triangle)),
            "first predict": lambda: first_predict(spotter, sounds[0], words[0], first),
            "first predict floor": lambda: (one(), solve()),
            "later predict": lambda: spotter.predict(sounds[0]),
            "later predict floor": one,
        },
        rounds,
    )
    # The first round warms up.
    times["first predict"] = first[1:]
    with ThreadPoolExecutor(2) as threads:
        cores = alternate(
            {
                "one": lambda: [spotter.encode(batch) for batch in batches],
                "two": lambda: list(threads.map(spotter.encode, batches)),
            },
            rounds,
            time.perf_counter,
        )
    content, files = _file_times(spotter, 3 * rounds)
    times |= files
    names = [name for name in times if f"{name} floor" in times]
    beside = {name: compared(times[name], times[f"{name} floor"]) for name in names}
    return {
        "size": size,
        "dim": dim,
        "beside_floor": beside,
        "file_bytes": content,
        "one_core": 1000 * len(sounds) / beside["extract"]["time_ms"],
        "two_cores_gain": cores["one"] / cores["two"],
        "state_bytes": spotter.learner.state_bytes.total,
    }


def _file_times(spotter: Spotter, rounds: int) -> tuple[int, dict[str, list[float]]]:
    """Bytes of a model file, and milliseconds by round of saving and loading it."""
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder) / "model.tap", Path(folder) / "plain"
        spotter.save(path)
        content = path.read_bytes()

        def write() -> None:
            with plain.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            plain.replace(Path(folder) / "written")

        calls: dict[str, Callable[[], object]] = {
            "save": lambda: spotter.save(path),
            "save floor": write,
            "load": lambda: Spotter.load(path),
            "load floor": lambda: hashlib.sha256(path.read_bytes()).digest(),
        }
        return len(content), turns(calls, rounds, time.perf_counter)


def every_size(clips: int, rounds: int) -> list[dict]:
    """Measure the sizes, or report the missing package."""
    records = []
    with threadpoolctl.threadpool_limits(1):
        for size in presets.PRESETS:
            try:
                records.append(measure(size, clips, rounds))
            except (InputError, ImportError) as error:
                records.append({"size": size, "missing": str(error)})
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clips", type=int, default=48)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    options = parser.parse_args()
    records = json.dumps(every_size(options.clips, options.rounds), indent=2)
    print(records)
    if options.json:
        options.json.write_text(records)


if __name__ == "__main__":
    main()
