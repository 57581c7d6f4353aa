"""Dataset + stream + spotter -> records: the paper's protocol.

A record holds accuracies in percent, one entry per backbone, pooling, learner and number of shots,
averaged over seeded orderings (or draws) of the stream.
"""

import os
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapword import features, metrics, plans
from tapword.datasets.base import Dataset
from tapword.passes import Split
from tapword.priors.prior import Prior
from tapword.runs import Progress, run_all
from tapword.vectors import Hearing
from tapword.version import __version__


def evaluate(
    dataset: Dataset,
    backbones: Sequence[str] = (),
    poolings: Sequence[str] = (),
    learners: Sequence[str] = (),
    sizes: Sequence[str] = (),
    *,
    align: bool = False,
    copies: bool = False,
    prior: str | Sequence[Prior] | None = None,
    cache: features.Cache | None = None,
    strict: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    store: Callable[..., list[features.Stored]] = features.store,
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
    align
        Whether clips are centred on their speech; sizes have their own choice.
    copies
        Whether samples are taught together with copies of them; sizes have their own choice.
    prior
        As for `Spotter`. Words that a prior was computed from should not be evaluated with it.
    cache
        Where vectors are kept between runs.
    strict
        Raise on a clip that cannot be read, instead of skipping and counting it.
    jobs
        Processes; None: one per core.
    progress
        Called with (what, done, all).
    store
        What puts vectors into the cache: `features.store`, or the same on a cluster.
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
    chosen = plans.make(backbones, poolings, learners, sizes, Hearing(align, copies), prior)
    stored = plans.extract(dataset, chosen, cache, jobs, strict, progress, store)
    extract_s = time.perf_counter() - start
    results: list[dict[str, Any]] = []
    skipped, counts = 0, (0, 0, 0)
    for plan in chosen:
        split, unusable = plan.split(stored)
        skipped = max(skipped, unusable)
        counts = len(set(split.train_words)), len(split.train_words), len(split.test_words)
        params = sum(backbone.params for backbone, _ in plan.sides)
        numbers = sum(sum(backbone.dims) for backbone, _ in plan.sides)
        for result in run_all(split, plan.learners, jobs=jobs, progress=progress, **stream):
            cost = {
                "size": plan.size,
                "params": params,
                "delta_p": _delta_p(result, params),
                "delta_fs": metrics.delta_fs(split.train.shape[1], numbers),
            }
            results.append(plan.names() | result | cost)
    cache.trim(keep=[one.key for one in stored.values()])
    config = plans.data_config(dataset, chosen, skipped) | {"extract_s": round(extract_s, 3)}
    return _records(config, counts, results, stream, start)


def evaluate_vectors(split: Split, learners: Sequence[str], **stream: Any) -> dict[str, Any]:
    """Run learners on ready-made vectors; otherwise as `evaluate`."""
    start = time.perf_counter()
    nothing = dict.fromkeys(("size", "params", "delta_p", "delta_fs"))
    names = {"backbone": "vectors", "pooling": "none", "align": None, "copies": None, "prior": None}
    results = [names | result | nothing for result in run_all(split, learners, **stream)]
    stream = {key: value for key, value in stream.items() if key not in ("jobs", "progress")}
    sizes = len(set(split.train_words)), len(split.train_words), len(split.test_words)
    return _records({"dataset": "vectors", "skipped": 0}, sizes, results, stream, start)


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
        "tapword": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "seconds": round(time.perf_counter() - start, 3),
    }
