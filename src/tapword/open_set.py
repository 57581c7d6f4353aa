"""Known words and others: teach a few of a data set's words, then ask about all of them."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapword import features, metrics, plans, registry, streams
from tapword.datasets.base import Dataset
from tapword.errors import InputError
from tapword.evaluate import environment
from tapword.passes import Split
from tapword.priors.prior import Prior
from tapword.runs import Progress
from tapword.vectors import Hearing

# Unknown clips that may be accepted, in percent.
FALSE_ACCEPTS = 5.0
KEYS = ("auroc", "frr", "acc_open")


def evaluate_open_set(
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
    **draws: Any,
) -> dict[str, Any]:
    """Run every combination of parts, and every size, on words known and unknown.

    Parameters
    ----------
    dataset, backbones, poolings, learners, sizes
        As for `evaluate.evaluate`; its train and test split have no speaker in common.
    align, copies, prior, cache, strict, jobs, progress, store
        As there.
    draws
        `known`, `shots`, `draws`: see `run`.

    Returns
    -------
    dict
        {"config", "results", "environment"}, ready for JSON.
    """
    start = time.perf_counter()
    cache = cache or features.Cache()
    chosen = plans.make(backbones, poolings, learners, sizes, Hearing(align, copies), prior)
    jobs = jobs or os.cpu_count() or 1
    stored = plans.extract(dataset, chosen, cache, jobs, strict, progress, store)
    results: list[dict[str, Any]] = []
    skipped = 0
    for plan in chosen:
        split, unusable = plan.split(stored)
        skipped = max(skipped, unusable)
        names = plan.names() | {"size": plan.size}
        results += [names | one for one in run(split, plan.learners, progress=progress, **draws)]
    cache.trim(keep=[one.key for one in stored.values()])
    config = plans.data_config(dataset, chosen, skipped)
    return _records(config, split, results, start)


def evaluate_vectors(split: Split, learners: Sequence[str], **draws: Any) -> dict[str, Any]:
    """Run learners on ready-made vectors; otherwise as `evaluate_open_set`."""
    start = time.perf_counter()
    names = {"backbone": "vectors", "pooling": "none", "size": None}
    results = [names | one for one in run(split, learners, **draws)]
    return _records({"dataset": "vectors", "skipped": 0}, split, results, start)


def run(
    split: Split,
    learners: Sequence[str],
    *,
    known: int = 5,
    shots: Sequence[int] = (5,),
    draws: int = 10,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Teach some words, ask about all; average over seeded draws.

    Parameters
    ----------
    split
        The vectors.
    learners
        Names with arguments.
    known
        Words taught; all others of the split are unknown.
    shots
        Samples a word; each count is a row of its own.
    draws
        Seeded choices of words and samples.
    progress
        Called with (what, done, all).

    Returns
    -------
    list of dict
        One for each learner and count, in percent: `auroc`; `frr`, known clips that are rejected
        where 5% of unknown ones are accepted; `acc_open`, known clips accepted and named right
        there. Means over draws, each with `_std`.
    """
    words = sorted(set(split.train_words))
    if not 1 <= known < len(words):
        raise InputError(
            f"known must leave unknown words: 1 to {len(words) - 1} of the {len(words)} words, "
            f"got {known}"
        )
    if draws < 1:
        raise InputError(f"at least one draw is needed, got {draws}")
    rows = [(name, count) for name in learners for count in shots]
    results = []
    for number, (name, count) in enumerate(rows):
        seen = []
        for seed in range(draws):
            chosen = [words[i] for i in np.random.default_rng(seed).permutation(len(words))[:known]]
            seen.append({"seed": seed, "words": chosen} | _draw(split, name, chosen, count, seed))
            if progress:
                progress("draws", number * draws + seed + 1, len(rows) * draws)
        values = {key: np.array([one[key] for one in seen]) for key in KEYS}
        results.append(
            {"learner": name, "known": known, "shots": count, "dim": split.train.shape[1]}
            | {key: float(value.mean()) for key, value in values.items()}
            | {f"{key}_std": float(value.std()) for key, value in values.items()}
            | {"orderings": seen}
        )
    return results


def _draw(split: Split, name: str, words: list[str], shots: int, seed: int) -> dict[str, float]:
    """Teach these words with seeded samples, ask about every test clip."""
    learner = registry.build("learners", name)
    own = np.flatnonzero(np.isin(split.train_words, words))
    for task in streams.few_shot([split.train_words[i] for i in own], shots, seed):
        rows = own[task.indices]
        learner.learn_many(split.train[rows], [split.train_words[row] for row in rows])
    scores = learner.scores(split.test)
    best = scores.max(axis=1)
    said = np.array(list(learner.words))[scores.argmax(axis=1)]
    asked = np.array(split.test_words)
    taught = np.isin(asked, words)
    if taught.all() or not taught.any():
        raise InputError(
            f"the test clips must be of words taught and of others; those taught: {words}"
        )
    accepted = best > metrics.limit_at(best[~taught], FALSE_ACCEPTS)
    return {
        "auroc": metrics.auroc(best[taught], best[~taught]),
        "frr": 100 - metrics.accuracy(accepted[taught]),
        "acc_open": metrics.accuracy((accepted & (said == asked))[taught]),
    }


def _records(
    config: dict[str, Any], split: Split, results: list[dict[str, Any]], start: float
) -> dict[str, Any]:
    first = results[0]
    return {
        "config": config
        | {
            "order": "open-set",
            "known": first["known"],
            "shots": list(dict.fromkeys(result["shots"] for result in results)),
            "draws": len(first["orderings"]),
            "n_words": len(set(split.train_words)),
            "n_train": len(split.train_words),
            "n_test": len(split.test_words),
        },
        "results": results,
        "environment": environment(start),
    }
