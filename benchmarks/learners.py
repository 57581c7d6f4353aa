"""Time of every learner, and of slda relative to the least time of its arithmetic (floor).

    python benchmarks/learners.py [--rounds N] [--dims 480 3840] [--json FILE]

Floors are timed in the same rounds: one in-place pass over the packed lower triangle for
`learn_one`, one Cholesky factorisation and solve for the first `predict` after it, one `ssyrk` for
`learn_many`. Shown are medians of the CPU time on one core, and median and quartiles of the ratios.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import threadpoolctl
from rich.console import Console
from rich.table import Table
from scipy.linalg import blas, lapack
from timing import compared, turns

from tapword import registry
from tapword.errors import InputError

WORDS = 35
BATCH = 2_000


def samples(dim: int) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((BATCH, dim), dtype=np.float32), [
        f"word{index % WORDS}" for index in range(BATCH)
    ]


def beside_the_floor(dim: int, rounds: int) -> list[dict]:
    """Time slda's three operations, their floors and the ratios."""
    X, words = samples(dim)
    learner = registry.build("learners", "slda")
    learner.learn_many(X, words)
    triangle = np.zeros(dim * (dim + 1) // 2, dtype=np.float32)
    covariance = np.asfortranarray(np.cov(X.T) + 1e-4 * np.eye(dim))
    means = np.asfortranarray(X[:WORDS].T, dtype=np.float64)

    def solve() -> None:
        lower, _ = lapack.dpotrf(covariance, lower=1, clean=0)
        lapack.dpotrs(lower, means, lower=1)

    def predict_after_update() -> float:
        learner.learn_one(X[0], words[0])
        start = time.process_time()
        learner.predict(X[:1])
        return time.process_time() - start

    light = turns(
        {
            "learn_one": lambda: learner.learn_one(X[0], words[0]),
            "learn_one floor": lambda: np.add(triangle, 1e-9, out=triangle),
        },
        10 * rounds,
    )
    first: list[float] = []
    heavy = turns(
        {
            "predict": lambda: first.append(1000 * predict_after_update()),
            "predict floor": solve,
            "learn_many": lambda: learner.learn_many(X, words),
            "learn_many floor": lambda: blas.ssyrk(1.0, X.T, lower=1),
        },
        rounds,
    )
    # The first round warms up.
    times = light | heavy | {"predict": first[1:]}
    return [
        {"dim": dim, "operation": name, **compared(times[name], times[f"{name} floor"])}
        for name in ("learn_one", "predict", "learn_many")
    ]


def every_learner(dim: int, rounds: int) -> list[dict]:
    """Time update, first predict and later predict of each learner."""
    X, words = samples(dim)
    records = []
    for name in registry.classes("learners"):
        learner = registry.build("learners", name)
        try:
            learner.learn_many(X[: 10 * WORDS], words[: 10 * WORDS])
        except InputError as error:
            records.append({"dim": dim, "learner": name, "refused": str(error)})
            continue
        taken = []
        for index in range(rounds):
            times = [time.process_time()]
            learner.learn_one(X[index], words[index])
            times.append(time.process_time())
            for _ in range(2):
                learner.predict(X[:1])
                times.append(time.process_time())
            taken.append(1000 * np.diff(times))
        update, first, later = np.median(taken, axis=0).tolist()
        records.append(
            {
                "dim": dim,
                "learner": name,
                "learn_one_ms": update,
                "first_predict_ms": first,
                "predict_ms": later,
                "bytes": learner.state_bytes.total,
                "bytes_per_word": learner.state_bytes.per_word,
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dims", type=int, nargs="+", default=[480, 3840])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    options = parser.parse_args()
    console = Console()
    floors, learners = [], []
    with threadpoolctl.threadpool_limits(1):
        for dim in options.dims:
            floors += beside_the_floor(dim, options.rounds)
            learners += every_learner(dim, options.rounds)
    head = "D", "slda", "ms", "floor ms", "ratio", "from", "to"
    table = Table(*head, title=f"{WORDS} words, {BATCH} samples")
    for record in floors:
        table.add_row(
            str(record["dim"]),
            record["operation"],
            *(f"{record[key]:.3f}" for key in ("time_ms", "floor_ms", "ratio", "low", "high")),
        )
    console.print(table)
    table = Table("D", "learner", "learn ms", "first predict ms", "predict ms", "bytes", "a word")
    for record in learners:
        if "refused" in record:
            table.add_row(str(record["dim"]), record["learner"], record["refused"])
            continue
        table.add_row(
            str(record["dim"]),
            record["learner"],
            *(f"{record[k]:.3f}" for k in ("learn_one_ms", "first_predict_ms", "predict_ms")),
            f"{record['bytes']:,}",
            f"{record['bytes_per_word']:,}",
        )
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"slda": floors, "learners": learners}, indent=2))


if __name__ == "__main__":
    main()
