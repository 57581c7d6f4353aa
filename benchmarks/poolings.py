"""Time of every pooling beside the bare mean of the same frames.

    python benchmarks/poolings.py [--rounds N] [--json FILE]

Each round times every pooling once, the bare mean among them, so that whatever slows the machine
slows them alike; medians over the rounds of the process's own time are shown.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from tapword import registry

SHAPES = ((64, 49, 768), (1, 16, 96))
BARE_MEAN = "bare mean"


def measure(shape: tuple[int, int, int], rounds: int) -> list[dict]:
    """One record for each pooling on frames of `shape`, the bare mean first."""
    frames = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    calls: dict[str, Callable[[], np.ndarray]] = {BARE_MEAN: lambda: frames.mean(axis=1)}
    for name, cls in registry.classes("poolings").items():
        pooling = cls().fixed(shape[1])  # type: ignore[attr-defined]
        calls[name] = lambda pooling=pooling: pooling.pool(frames, learning=True)
    sizes = {name: call().shape[1] for name, call in calls.items()}  # also warms up
    # A clip takes microseconds where the batch takes milliseconds: repeat within a round.
    repeats = max(1, 2_000_000 // frames.size)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            times[name].append((time.process_time() - start) / repeats)
    bare = median(times[BARE_MEAN])
    return [
        {
            "shape": list(shape),
            "pooling": name,
            "time_ms": 1000 * median(taken),
            "ratio": median(taken) / bare,
            "size": sizes[name],
        }
        for name, taken in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    options = parser.parse_args()
    records = []
    for shape in SHAPES:
        found = measure(shape, options.rounds)
        records += found
        table = Table("pooling", title=f"frames {shape}, {options.rounds} rounds")
        for column in ("time (ms)", "x bare mean", "output size"):
            table.add_column(column, justify="right")
        for row in found:
            cells = (f"{row['time_ms']:.4g}", f"{row['ratio']:.1f}", f"{row['size']:,}")
            table.add_row(row["pooling"], *cells)
        Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
