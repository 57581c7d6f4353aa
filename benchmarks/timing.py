"""What the benchmarks share: calls that take turns, and helpers that run in other environments."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "build" / "peers"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def alternate(
    calls: dict[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median milliseconds of each call, all of them in every round; the first round warms up.

    Time is the process's own on the core unless another clock is given: other programs disturb it
    least, and what they disturb they disturb for all that take turns.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = clock()
            call()
            if number:
                times[name].append(1000 * (clock() - start))
    return {name: median(taken) for name, taken in times.items()}


class Missing(Exception):
    """A peer that cannot be had here; the message says why."""


class Peer:
    """A script of benchmarks/peers, run_NAME.py, that answers lines of JSON in its own environment.

    Parameters
    ----------
    name
        Of the peer; the environment in build/peers has the same one.
    packages
        What the environment holds; installed one after the other where it is not there yet.
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
    """Python of a peer's environment; made once."""
    folder = PEERS / name
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    commands = [[sys.executable, "-m", "venv", folder]]
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
