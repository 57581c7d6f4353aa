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
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

import tapword
from tapword import features, metrics, offline, registry
from tapword import sizes as sizes_room
from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.errors import InputError
from tapword.passes import Run, Split, run, summarise
from tapword.poolings.base import Pooling
from tapword.spotter import BACKBONE, LEARNER, POOLING, Spotter

Progress = Callable[[str, int, int], None]

# The vectors of this process, where it is one of several.
_shared: Split


class Plan(NamedTuple):
    """What is run: backbones, each with its pooling, side by side, and learners on top."""

    size: str | None
    sides: list[tuple[Backbone, Pooling]]
    learners: Sequence[str]


def evaluate(
    dataset: Dataset,
    backbones: Sequence[str] = (),
    poolings: Sequence[str] = (),
    learners: Sequence[str] = (),
    sizes: Sequence[str] = (),
    *,
    cache: features.Cache | None = None,
    strict: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    **stream: Any,
) -> dict[str, Any]:
    """Run every combination of parts, and every size, on a data set.

    Parameters
    ----------
    dataset
        Taught from its train split, asked on its test split.
    backbones, poolings, learners
        Names with arguments; every combination is run.
    sizes
        Spotters chosen for you; the default one where nothing else is named.
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
    plans = _plans(backbones, poolings, learners, sizes)
    stored = _store(dataset, plans, cache, jobs, strict, progress)
    extract_s = time.perf_counter() - start
    results: list[dict[str, Any]] = []
    skipped, counts = 0, (0, 0, 0)
    for plan in plans:
        train, test = (
            [stored[backbone.spec, pooling.spec, name].load() for backbone, pooling in plan.sides]
            for name in ("train", "test")
        )
        split = Split(
            np.hstack([side.vectors for side in train]),
            train[0].words,
            np.hstack([side.vectors for side in test]),
            test[0].words,
        )
        skipped = max(skipped, train[0].skipped + test[0].skipped)
        counts = len(set(split.train_words)), len(split.train_words), len(split.test_words)
        params = sum(backbone.params for backbone, _ in plan.sides)
        numbers = sum(sum(backbone.dims) for backbone, _ in plan.sides)
        names = {
            "backbone": " | ".join(backbone.spec for backbone, _ in plan.sides),
            "pooling": " | ".join(pooling.spec for _, pooling in plan.sides),
        }
        for result in run_all(split, plan.learners, jobs=jobs, progress=progress, **stream):
            cost = {
                "size": plan.size,
                "params": params,
                "delta_p": _delta_p(result, params),
                "delta_fs": metrics.delta_fs(split.train.shape[1], numbers),
            }
            results.append(names | result | cost)
    cache.trim(keep=[one.key for one in stored.values()])
    config = {
        # Where the data lies on this machine says nothing to a reader elsewhere.
        "dataset": type(dataset)(**(dataset.arguments() | {"root": ""})).spec,
        "notes": dataset.notes,
        "skipped": skipped,
        "extract_s": round(extract_s, 3),
    }
    return _records(config, counts, results, stream, start)


def _plans(
    backbones: Sequence[str],
    poolings: Sequence[str],
    learners: Sequence[str],
    names: Sequence[str],
) -> list[Plan]:
    """Make every part once, so that a wrong name is said before hours of audio are read."""
    if not (backbones or poolings or learners or names):
        names = [sizes_room.DEFAULT]
    plans = []
    for name in names:
        size = sizes_room.size(name)
        spotter = Spotter(size=name)
        sides = list(zip(spotter.backbones, spotter.poolings, strict=True))
        plans.append(Plan(name, sides, [size.learner]))
    if backbones or poolings or learners:
        made = [registry.build("poolings", name) for name in poolings or [POOLING]]
        for name in learners:
            registry.build("learners", name)
        for backbone in [registry.build("backbones", name) for name in backbones or [BACKBONE]]:
            for pooling in made:
                plans.append(Plan(None, [(backbone, pooling)], learners or [LEARNER]))
    return plans


def _store(
    dataset: Dataset,
    plans: list[Plan],
    cache: features.Cache,
    jobs: int,
    strict: bool,
    progress: Progress | None,
) -> dict[tuple[str, str, str], features.Stored]:
    """Pass the audio through each backbone once, for all poolings that any plan takes from it."""
    wanted: dict[str, tuple[Backbone, dict[str, Pooling]]] = {}
    for plan in plans:
        for backbone, pooling in plan.sides:
            _, known = wanted.setdefault(backbone.spec, (backbone, {}))
            known[pooling.spec] = pooling
    stored = {}
    for backbone, known in wanted.values():
        for name in ("train", "test"):
            what = f"{backbone.spec}, {name} clips"
            step = functools.partial(progress, what) if progress else None
            made = features.store(
                dataset, name, backbone, list(known.values()), cache, jobs, strict, step
            )
            for spec, one in zip(known, made, strict=True):
                stored[backbone.spec, spec, name] = one
    return stored


def evaluate_vectors(split: Split, learners: Sequence[str], **stream: Any) -> dict[str, Any]:
    """Run learners on ready-made vectors; otherwise as `evaluate`."""
    start = time.perf_counter()
    nothing = dict.fromkeys(("size", "params", "delta_p", "delta_fs"))
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
