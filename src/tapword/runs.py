"""Every ordering of a stream for every learner, spread over processes."""

import importlib
import itertools
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from tapword import offline
from tapword.errors import InputError
from tapword.passes import Run, Split, run, summarise

Progress = Callable[[str, int, int], None]
# The vectors of this process, where it is one of several.
_shared: Split


def run_all(
    split: Split,
    learners: Sequence[str],
    *,
    order: str = "class-iid",
    orderings: int = 5,
    shots: Sequence[int] = (),
    draws: int = 10,
    classes_per_task: int = 1,
    upper_bound: bool = False,
    matrix: bool = True,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Run learners over every ordering of a stream of vectors.

    Parameters
    ----------
    split
        The vectors.
    learners
        Names with arguments.
    order
        "class-iid" or "iid"; with `shots`, "few-shot".
    orderings
        Seeded orderings to average over.
    shots
        Samples a word; each count is a row of its own.
    draws
        Seeded draws to average over where `shots` are given.
    classes_per_task
        New words in each task.
    upper_bound
        Add rows of classifiers that see all samples at once.
    matrix
        Ask after every task; False asks once, after the last, where the final accuracy is enough.
    jobs
        Processes.
    progress
        Called with (what, done, all).
    """
    known = set(split.train_words)
    asked = [index for index, word in enumerate(split.test_words) if word in known]
    if not asked:
        raise InputError("no test clip is of a word that is taught")
    if len(asked) < len(split.test_words):
        words = [split.test_words[index] for index in asked]
        split = split._replace(test=split.test[asked], test_words=words)
    names = [*learners, *(offline.NAMES if upper_bound else ())]
    counts: Sequence[int | None] = shots or (None,)
    seeds = range(draws if shots else orderings)
    if not len(seeds):
        raise InputError("at least one ordering or draw is needed")
    if shots:
        order = "few-shot"
    todo = [
        (name, order, seed, count, classes_per_task, matrix)
        for name, count in itertools.product(names, counts)
        for seed in seeds
    ]
    runs: list[Run | str] = []
    for done, one in enumerate(_map(split, todo, jobs), start=1):
        runs.append(one)
        if progress:
            progress("streams", done, len(todo))
    results = []
    for index, (name, count) in enumerate(itertools.product(names, counts)):
        part = runs[index * len(seeds) : (index + 1) * len(seeds)]
        results.append({"learner": name, "shots": count} | summarise(split, part))
    return results


def _map(split: Split, todo: list[tuple], jobs: int) -> Iterator[Run | str]:
    """Run `todo` in order; with several processes the vectors are shared through the disk."""
    if jobs == 1 or len(todo) == 1:
        for item in todo:
            yield run(split, *item)
        return
    with tempfile.TemporaryDirectory(prefix="tapword-") as folder:
        for name in ("train", "test"):
            np.save(Path(folder, name), getattr(split, name))
        words = split.train_words, split.test_words
        with ProcessPoolExecutor(
            min(jobs, len(todo)), multiprocessing.get_context("spawn"), _attach, (folder, *words)
        ) as pool:
            yield from pool.map(_run_shared, todo)


def _attach(folder: str, train_words: list[str], test_words: list[str]) -> None:
    global _shared
    # One process per core is the parallelism; BLAS threads on top would fight for the same cores.
    # scipy brings a BLAS of its own, which must be loaded to be limited.
    importlib.import_module("scipy.linalg")
    threadpoolctl.threadpool_limits(1)
    train, test = (
        np.load(Path(folder, f"{name}.npy"), mmap_mode="r") for name in ("train", "test")
    )
    _shared = Split(train, train_words, test, test_words)


def _run_shared(item: tuple) -> Run | str:
    return run(_shared, *item)
