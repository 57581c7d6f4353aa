"""Dataset + stream + spotter -> records: the paper's protocol.

A record holds accuracies in percent, one entry per backbone, pooling, learner and number of shots,
averaged over seeded orderings (or draws) of the stream.
"""

import functools
import importlib
import itertools
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import tapword
from tapword import features, metrics, offline, registry
from tapword.datasets.base import Dataset
from tapword.errors import InputError
from tapword.passes import Run, Split, run, summarise
from tapword.spotter import BACKBONE, LEARNER, POOLING

Progress = Callable[[str, int, int], None]

# The vectors of this process, where it is one of several.
_shared: Split


def evaluate(
    dataset: Dataset,
    backbones: Sequence[str] = (BACKBONE,),
    poolings: Sequence[str] = (POOLING,),
    learners: Sequence[str] = (LEARNER,),
    *,
    cache: features.Cache | None = None,
    strict: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    **stream: Any,
) -> dict[str, Any]:
    """Run every combination of parts on a data set.

    Parameters
    ----------
    dataset
        Taught from its train split, asked on its test split.
    backbones, poolings, learners
        Names with arguments; every combination is run.
    cache
        Where vectors are kept between runs.
    strict
        Raise on a clip that cannot be read, instead of skipping and counting it.
    jobs
        Processes; None: one per core.
    progress
        Called with (what, done, all).
    stream
        `order`, `orderings`, `shots`, `draws`, `classes_per_task`, `upper_bound`, `matrix`: see
        `run_all`.

    Returns
    -------
    dict
        {"config", "results", "environment"}, ready for JSON.
    """
    start = time.perf_counter()
    jobs = jobs or os.cpu_count() or 1
    cache = cache or features.Cache()
    # Names are checked before hours of audio are read.
    made_poolings = [registry.build("poolings", name) for name in poolings]
    for name in learners:
        registry.build("learners", name)
    made_backbones = [registry.build("backbones", name) for name in backbones]
    results: list[dict[str, Any]] = []
    skipped, extract_s, sizes = 0, 0.0, (0, 0, 0)
    for backbone in made_backbones:
        before = time.perf_counter()
        parts = []
        for name in ("train", "test"):
            what = f"{backbone.spec}, {name} clips"
            step = functools.partial(progress, what) if progress else None
            parts.append(
                features.extract(dataset, name, backbone, made_poolings, cache, jobs, strict, step)
            )
        extract_s += time.perf_counter() - before
        for pooling, train, test in zip(made_poolings, *parts, strict=True):
            split = Split(train.vectors, train.words, test.vectors, test.words)
            skipped = max(skipped, train.skipped + test.skipped)
            sizes = len(set(train.words)), len(train.words), len(test.words)
            for result in run_all(split, learners, jobs=jobs, progress=progress, **stream):
                cost = {
                    "params": backbone.params,
                    "delta_p": _delta_p(result, backbone.params),
                    "delta_fs": split.train.shape[1] / sum(backbone.dims),
                }
                names = {"backbone": backbone.spec, "pooling": pooling.spec}
                results.append(names | result | cost)
    config = {
        # Where the data lies on this machine says nothing to a reader elsewhere.
        "dataset": type(dataset)(**(dataset.arguments() | {"root": ""})).spec,
        "notes": dataset.notes,
        "skipped": skipped,
        "extract_s": round(extract_s, 3),
    }
    return _records(config, sizes, results, stream, start)


def evaluate_vectors(split: Split, learners: Sequence[str], **stream: Any) -> dict[str, Any]:
    """Run learners on ready-made vectors; otherwise as `evaluate`."""
    start = time.perf_counter()
    nothing = dict.fromkeys(("params", "delta_p", "delta_fs"))
    names = {"backbone": "vectors", "pooling": "none"}
    results = [names | result | nothing for result in run_all(split, learners, **stream)]
    stream = {key: value for key, value in stream.items() if key not in ("jobs", "progress")}
    sizes = len(set(split.train_words)), len(split.train_words), len(split.test_words)
    return _records({"dataset": "vectors", "skipped": 0}, sizes, results, stream, start)


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


def _delta_p(result: dict[str, Any], params: int) -> float | None:
    """Numbers stored, of 4 bytes each, over the backbone's parameters."""
    size = result["state_bytes"]
    return metrics.delta_p(size / 4, params) if size is not None and params else None


def _records(
    config: dict[str, Any], sizes: tuple, results: list, stream: dict[str, Any], start: float
) -> dict[str, Any]:
    shots = list(stream.get("shots") or ())
    n_words, n_train, n_test = sizes
    return {
        "config": config
        | {
            "order": "few-shot" if shots else stream.get("order", "class-iid"),
            "orderings": stream.get("orderings", 5),
            "shots": shots or None,
            "draws": stream.get("draws", 10) if shots else None,
            "classes_per_task": stream.get("classes_per_task", 1),
            "n_words": n_words,
            "n_train": n_train,
            "n_test": n_test,
        },
        "results": results,
        "environment": environment(start),
    }


def environment(start: float) -> dict[str, Any]:
    """Say where records were made, and in how many seconds since `start`."""
    return {
        "tapword": tapword.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "seconds": round(time.perf_counter() - start, 3),
    }
