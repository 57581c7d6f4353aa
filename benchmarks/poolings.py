"""Time of every pooling relative to the bare mean of the same frames.

    python benchmarks/poolings.py [--rounds N] [--json FILE]

Each round times every pooling and, right after it, the bare mean, so a busy machine slows both.
Shown are medians of the CPU time, and median and quartiles of the ratios.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import compared, turns

from tapword import registry
from tapword.poolings.base import Pooling

SHAPES = ((64, 49, 768), (1, 16, 96))
BARE_MEAN = "bare mean"


def measure(shape: tuple[int, int, int], rounds: int) -> list[dict]:
    """One record for each pooling on frames of `shape`, the bare mean first."""
    frames = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    poolings: dict[str, Callable[[], np.ndarray]] = {BARE_MEAN: lambda: frames.mean(axis=1)}
    for name in registry.classes("poolings"):
        pooling: Pooling = registry.build("poolings", name).with_length(shape[1])
        poolings[name] = partial(pooling.pool_for_learning, frames)
    calls: dict[str, Callable[[], np.ndarray]] = {}
    for name, call in poolings.items():
        calls |= {name: call, f"{name} floor": poolings[BARE_MEAN]}
    # One clip takes microseconds, a batch milliseconds: repeat within a round.
    times = turns(calls, rounds, repeats=max(1, 2_000_000 // frames.size))
    return [
        {
            "shape": list(shape),
            "pooling": name,
            "size": call().shape[1],
            **compared(times[name], times[f"{name} floor"]),
        }
        for name, call in poolings.items()
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
            spread = f"{row['ratio']:.1f} ({row['low']:.1f} to {row['high']:.1f})"
            table.add_row(row["pooling"], f"{row['time_ms']:.4g}", spread, f"{row['size']:,}")
        Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
