"""Evaluate parts on a data set by a protocol: encode the clips once, then run learners."""

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.research import cache as vector_cache
from tapword.research import experiment
from tapword.research.cache import Cache, Stored
from tapword.research.datasets.base import Dataset
from tapword.research.experiment import Experiment
from tapword.research.open_set import OpenSet
from tapword.research.own_voice import OwnVoice
from tapword.research.records import AnyResult, Config, Environment, Records
from tapword.research.runner import Progress, Split, Stream
from tapword.spotter.encoder import Encoder, Preparation
from tapword.spotter.whitening import Whitening

Protocol = Stream | OpenSet | OwnVoice
# Stored vectors by backbone, pooling, preparation of clips and split.
Key = tuple[str, str, Preparation, str]


def evaluate(
    dataset: Dataset,
    backbones: Sequence[str] = (),
    poolings: Sequence[str] = (),
    learners: Sequence[str] = (),
    sizes: Sequence[str] = (),
    *,
    align: bool | None = None,
    augment: bool | None = None,
    whitening: str | Sequence[Whitening] | None = None,
    cache: Cache | None = None,
    strict: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    store: Callable[..., list[Stored]] = vector_cache.store,
    protocol: Protocol | None = None,
    **arguments: Any,
) -> Records:
    """Run every combination of parts, and every preset, on a data set.

    Parameters
    ----------
    dataset
        Its train split is learned, its test split is tested.
    backbones, poolings, learners
        Names with arguments; every combination is run. Parts that are not named are the default
        preset's, as for `Spotter`.
    sizes
        Presets; the default one where no part is named.
    align, augment, whitening
        As for `Spotter`. Do not evaluate words that a whitening was learned from.
    cache
        Keeps vectors between runs.
    strict
        Raise on an unreadable clip, instead of skipping and counting it.
    jobs
        Processes; None: one per core.
    progress
        Called with (step, done, total).
    store
        Puts vectors into the cache: `cache.store`, or `Cluster.store`.
    protocol
        What is learned and tested; None: a `runner.Stream`. `arguments` set its fields.
    """
    start = time.perf_counter()
    protocol = replace(protocol or Stream(), **arguments)
    cache, jobs = cache or Cache(), jobs or os.cpu_count() or 1
    experiments = experiment.make(backbones, poolings, learners, sizes, align, augment, whitening)
    source = protocol.clips_of(dataset) if isinstance(protocol, OwnVoice) else dataset
    put = functools.partial(store, source, cache=cache, jobs=jobs, strict=strict)
    stored = _extract(experiments, put, progress)
    extract_s = round(time.perf_counter() - start, 3)
    results: list[AnyResult] = []
    skipped = 0
    for one in experiments:
        split, unusable = _load(one.encoder, stored)
        skipped = max(skipped, unusable)
        results += map(one.described, protocol.run(split, one.learners, jobs, progress))
    cache.trim(keep=[one.key for one in stored.values()])
    name = experiment.describe(dataset)
    whitenings = [found for one in experiments for found in one.encoder.whitenings]
    config = replace(
        protocol.config(),
        dataset=name,
        notes=dataset.notes,
        skipped=skipped,
        whitening_of_same_data=any(one.about.get("dataset") == name for one in whitenings),
        extract_s=extract_s,
    )
    return _records(config, split, results, start)


def evaluate_vectors(
    split: Split,
    learners: Sequence[Any],
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    protocol: Protocol | None = None,
    **arguments: Any,
) -> Records:
    """Run learners on ready-made vectors; otherwise as `evaluate`.

    A `Stream` also takes classifiers of other libraries: see `Stream.run`.
    """
    start = time.perf_counter()
    protocol = replace(protocol or Stream(), **arguments)
    if not isinstance(protocol, Stream):
        for one in learners:
            if not isinstance(one, str):
                raise InputError(f"this protocol needs learners by name, got {one!r}")
    return _records(protocol.config(), split, protocol.run(split, learners, jobs, progress), start)


def _records(config: Config, split: Split, results: Sequence[AnyResult], start: float) -> Records:
    n_words, n_train = len(set(split.train_words)), len(split.train_words)
    config = replace(config, n_words=n_words, n_train=n_train, n_test=len(split.test_words))
    return Records(config, results, Environment.since(start))


def _extract(
    experiments: Sequence[Experiment], put: Callable[..., list[Stored]], progress: Progress | None
) -> dict[Key, Stored]:
    """Encode the clips by each backbone once, for the poolings of all experiments."""
    wanted: dict[tuple[str, Preparation], tuple[Backbone, dict[str, Pooling]]] = {}
    for one in experiments:
        for backbone, pooling in one.encoder.parts:
            key = backbone.spec, one.encoder.preparation
            _, poolings = wanted.setdefault(key, (backbone, {}))
            poolings[pooling.spec] = pooling
    stored = {}
    for (spec, preparation), (backbone, poolings) in wanted.items():
        for name in ("train", "test"):
            step = functools.partial(progress, f"{spec}, {name} clips") if progress else None
            parts = name, backbone, list(poolings.values())
            found = put(*parts, progress=step, preparation=preparation)
            for pooling_spec, place in zip(poolings, found, strict=True):
                stored[spec, pooling_spec, preparation, name] = place
    return stored


def _load(encoder: Encoder, stored: Mapping[Key, Stored]) -> tuple[Split, int]:
    """Vectors of an encoder, and how many clips were unusable."""
    train, test = (
        [stored[b.spec, p.spec, encoder.preparation, name].load() for b, p in encoder.parts]
        for name in ("train", "test")
    )
    learned, tested = (encoder.join([one.encoded for one in part]) for part in (train, test))
    cohort = encoder.cohort
    scores = cohort.score(tested.vectors, tested.seconds) if cohort else None
    words = train[0].words, test[0].words
    split = Split(learned.vectors, words[0], tested.vectors, words[1], test[0].speakers, scores)
    # The same clips may be in both splits.
    same = train[0].words == test[0].words
    return split, train[0].skipped + (0 if same else test[0].skipped)
