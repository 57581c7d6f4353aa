"""Timing of calls that take turns, and peers in their own environments."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "build" / "peers"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
    repeats: int = 1,
) -> dict[str, list[float]]:
    """Milliseconds of each call in each round; calls take turns, after a round to warm up.

    Time is CPU time unless another clock is given, as other programs disturb it least. Short calls
    are made `repeats` times in a round.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = clock()
            for _ in range(repeats):
                call()
            if number:
                times[name].append(1000 * (clock() - start) / repeats)
    return times


def alternate(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median milliseconds of each call over `turns`."""
    return {name: median(taken) for name, taken in turns(calls, rounds, clock).items()}


def compared(taken: Sequence[float], floor: Sequence[float]) -> dict[str, float]:
    """Compare a call with its floor, both timed in the same rounds.

    `ratio`, `low` and `high` are the median and quartiles of the rounds' ratios.
    """
    ratios = [one / other for one, other in zip(taken, floor, strict=True)]
    low, ratio, high = quantiles(ratios, n=4, method="inclusive")
    return {
        "time_ms": median(taken),
        "floor_ms": median(floor),
        "ratio": ratio,
        "low": low,
        "high": high,
    }


class Missing(Exception):
    """A peer is unavailable; the message has the reason."""


class Peer:
    """A script benchmarks/peers/run_NAME.py that answers lines of JSON in its own environment.

    Parameters
    ----------
    name
        Name of the peer and of its environment in build/peers.
    packages
        Packages of the environment, installed in order if needed.
    """

    def __init__(self, name: str, packages: Sequence[str]):
        python = _environment(name, packages)
        self._process = subprocess.Popen(
            [python, Path(__file__).parent / "peers" / f"run_{name}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD,
        )
        if self._process.stdout is None or self._process.stdout.readline() != "ready\n":
            _, errors = self._process.communicate()
            raise Missing(f"does not start: {_last(errors)}")

    def ask(self, **question: object) -> dict:
        """Ask it, and wait for the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise Missing(f"stopped: {_last(self._process.communicate()[1])}")
        return json.loads(answer)

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def _environment(name: str, packages: Sequence[str]) -> Path:
    """Python of a peer's environment, made once."""
    folder = PEERS / name
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    commands: list[list[str | Path]] = [[sys.executable, "-m", "venv", folder]]
    commands += [[python, "-m", "pip", "install", "--quiet", package] for package in packages]
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            raise Missing("could not be installed within 10 minutes") from None
        if done.returncode:
            raise Missing(f"could not be installed: {_last(done.stderr)}")
    complete.touch()
    return python


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:200]
