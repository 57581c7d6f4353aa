"""Dataset + stream + spotter -> records: the paper's protocol.

A record holds accuracies in percent, one entry per backbone, pooling, learner and number of shots,
averaged over seeded orderings (or draws) of the stream.
"""

import functools
import os
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapword import features, metrics, registry
from tapword import sizes as sizes_room
from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.front import BACKBONE, POOLING
from tapword.passes import Split
from tapword.poolings.base import Pooling
from tapword.priors.prior import Prior, group_lengths, join, side
from tapword.runs import Progress, run_all
from tapword.spotter import LEARNER, Spotter
from tapword.version import __version__


class Plan(NamedTuple):
    """What is run: backbones, each with its pooling, side by side, and learners on top."""

    size: str | None
    sides: list[tuple[Backbone, Pooling]]
    learners: Sequence[str]
    align: bool
    priors: list[Prior]

    def names(self) -> dict[str, Any]:
        """Describe the vectors."""
        return {
            "backbone": " | ".join(backbone.spec for backbone, _ in self.sides),
            "pooling": " | ".join(pooling.spec for _, pooling in self.sides),
            "align": self.align,
            "prior": "; ".join(dict.fromkeys(prior.source for prior in self.priors)) or None,
        }


def evaluate(
    dataset: Dataset,
    backbones: Sequence[str] = (),
    poolings: Sequence[str] = (),
    learners: Sequence[str] = (),
    sizes: Sequence[str] = (),
    *,
    align: bool = False,
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
    plans = _plans(backbones, poolings, learners, sizes, align, prior)
    stored = _store(dataset, plans, cache, jobs, strict, progress, store)
    extract_s = time.perf_counter() - start
    results: list[dict[str, Any]] = []
    skipped, counts = 0, (0, 0, 0)
    for plan in plans:
        train, test = (
            [
                stored[backbone.spec, pooling.spec, plan.align, name].load()
                for backbone, pooling in plan.sides
            ]
            for name in ("train", "test")
        )
        split = Split(
            join([side.vectors for side in train], plan.priors),
            train[0].words,
            join([side.vectors for side in test], plan.priors),
            test[0].words,
        )
        skipped = max(skipped, train[0].skipped + test[0].skipped)
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
    config = {
        "dataset": _where(dataset),
        "notes": dataset.notes,
        "skipped": skipped,
        "extract_s": round(extract_s, 3),
        # The words' accuracies are flattered where the prior was computed from the same words.
        "prior_of_same_data": any(
            prior.about.get("dataset") == _where(dataset) for plan in plans for prior in plan.priors
        ),
    }
    return _records(config, counts, results, stream, start)


def _plans(
    backbones: Sequence[str],
    poolings: Sequence[str],
    learners: Sequence[str],
    names: Sequence[str],
    align: bool,
    prior: str | Sequence[Prior] | None,
) -> list[Plan]:
    """Make every part once, so that a wrong name is said before hours of audio are read."""
    if not (backbones or poolings or learners or names):
        names = [sizes_room.DEFAULT]
    plans = []
    for name in names:
        spotter = Spotter(size=name, prior=prior)
        plans.append(Plan(name, *_parts(spotter, [sizes_room.size(name).learner])))
    made = [registry.build("poolings", name) for name in poolings or [POOLING]]
    if not (backbones or poolings or learners):
        return plans
    for backbone in [registry.build("backbones", name) for name in backbones or [BACKBONE]]:
        for pooling in made:
            # Unless a prior is given, only learners that ask for one see whitened vectors.
            by_priors: dict[bool, list[str]] = {}
            for learner in learners or [LEARNER]:
                spotter = Spotter(backbone, pooling, learner, align=align, prior=prior)
                by_priors.setdefault(bool(spotter.priors), []).append(learner)
            for group in by_priors.values():
                spotter = Spotter(backbone, pooling, group[0], align=align, prior=prior)
                plans.append(Plan(None, *_parts(spotter, group)))
    return plans


def _parts(spotter: Spotter, learners: Sequence[str]) -> tuple:
    return spotter.front.sides, learners, spotter.align, spotter.priors


def _store(
    dataset: Dataset,
    plans: list[Plan],
    cache: features.Cache,
    jobs: int,
    strict: bool,
    progress: Progress | None,
    store: Callable[..., list[features.Stored]],
) -> dict[tuple[str, str, bool, str], features.Stored]:
    """Pass the audio through each backbone once, for all poolings that any plan takes from it."""
    wanted: dict[tuple[str, bool], tuple[Backbone, dict[str, Pooling]]] = {}
    for plan in plans:
        for backbone, pooling in plan.sides:
            _, known = wanted.setdefault((backbone.spec, plan.align), (backbone, {}))
            known[pooling.spec] = pooling
    stored = {}
    for (_, align), (backbone, known) in wanted.items():
        for name in ("train", "test"):
            what = f"{backbone.spec}, {name} clips"
            step = functools.partial(progress, what) if progress else None
            poolings = list(known.values())
            made = store(dataset, name, backbone, poolings, cache, jobs, strict, step, align)
            for spec, one in zip(known, made, strict=True):
                stored[backbone.spec, spec, align, name] = one
    return stored


def _where(dataset: Dataset) -> str:
    """Name a data set; where it lies on this machine says nothing to a reader elsewhere."""
    return type(dataset)(**(dataset.arguments() | {"root": ""})).spec


def fit_priors(
    dataset: Dataset,
    spotter: Spotter,
    source: str,
    cache: features.Cache | None = None,
    jobs: int | None = None,
) -> list[Prior]:
    """Compute a prior for each backbone of a spotter from a data set's training clips.

    Parameters
    ----------
    dataset
        Words that will not be taught: other words, best of another language.
    spotter
        Whose backbones, poolings and alignment.
    source
        What readers of results are told about the data.
    cache
        Where vectors are kept between runs.
    jobs
        Processes; None: one per core.
    """
    cache = cache or features.Cache()
    priors = []
    for backbone, pooling in spotter.front.sides:
        [stored] = features.store(
            dataset,
            "train",
            backbone,
            [pooling],
            cache,
            jobs or os.cpu_count() or 1,
            align=spotter.align,
        )
        found = stored.load()
        about = side(backbone, pooling, spotter.align)
        about |= {"source": source, "dataset": _where(dataset)}
        groups = group_lengths(backbone, pooling)
        priors.append(Prior.fit(found.vectors, found.words, groups, about))
    return priors


def evaluate_vectors(split: Split, learners: Sequence[str], **stream: Any) -> dict[str, Any]:
    """Run learners on ready-made vectors; otherwise as `evaluate`."""
    start = time.perf_counter()
    nothing = dict.fromkeys(("size", "params", "delta_p", "delta_fs"))
    names = {"backbone": "vectors", "pooling": "none", "align": None, "prior": None}
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
