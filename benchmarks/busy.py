"""Learn and predict beside programs that keep the cores busy, with and without one BLAS thread.

    python benchmarks/busy.py [--burners N] [--rounds N]

Without the limit, BLAS threads wait for each other by spinning, while the burners have their cores.
"""

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

from timing import compared, turns

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.support.threads import OneBlasThread

WORDS, SAMPLES = 5, 4


@contextlib.contextmanager
def burning(burners: int) -> Iterator[None]:
    """Keep some cores busy with other processes."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(burners)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def unlimited(call: Callable[[], object]) -> Callable[[], object]:
    """Return a call that leaves the threads of BLAS as they are."""

    def run() -> object:
        with patch.object(OneBlasThread, "_limit"):
            return call()

    return run


def measure(burners: int, rounds: int) -> list[dict]:
    """Wall-clock milliseconds with the limit, and how many times as long it takes without."""
    folders = sorted(path for path in CLIPS.iterdir() if path.is_dir())[:WORDS]
    clips = {
        folder.name: [files.read(path) for path in sorted(folder.glob("*.ogg"))[: SAMPLES + 1]]
        for folder in folders
    }
    spotter = Spotter()
    for word, samples in clips.items():
        spotter.learn_many(samples[:SAMPLES], [word] * SAMPLES)
    word, samples = next(iter(clips.items()))
    encoded = spotter.encode(samples[:1], learning=True)

    def first_predict() -> None:
        spotter.learn_encoded(encoded, [word])
        spotter.predict(samples[-1])

    calls: dict[str, Callable[[], object]] = {
        f"learn {SAMPLES} clips": lambda: spotter.learn_many(samples[:SAMPLES], [word] * SAMPLES),
        "learn a vector and predict": first_predict,
        "predict again": lambda: spotter.predict(samples[-1]),
    }
    without = {f"{name} without": unlimited(call) for name, call in calls.items()}
    with burning(burners):
        taken = turns(calls | without, rounds, time.perf_counter)
    return [{"what": name, **compared(taken[f"{name} without"], taken[name])} for name in calls]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--burners", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for one in measure(options.burners, options.rounds):
        print(
            f"{one['what']}: {one['floor_ms']:.1f} ms; without the limit {one['time_ms']:.1f} ms, "
            f"{one['ratio']:.1f} times as long ({one['low']:.1f} to {one['high']:.1f})"
        )


if __name__ == "__main__":
    main()
