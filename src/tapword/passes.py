"""One pass over one ordering of a stream, and the mean of several passes."""

import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from tapword import metrics, offline, registry, streams
from tapword.errors import InputError
from tapword.learners.base import Learner

# Samples of the last task that are learned one at a time to be timed.
TIMED = 32
CONFUSIONS = 20


class Split(NamedTuple):
    """Vectors to learn from and to ask: (n, D) float32 and the word of each."""

    train: np.ndarray
    train_words: list[str]
    test: np.ndarray
    test_words: list[str]


class Run(NamedTuple):
    """One pass over one ordering of the stream."""

    seed: int
    tasks: list[list[str]]
    matrix: np.ndarray | None
    curve: list[float | None]
    predicted: list[str | None]
    state_bytes: int
    learn_ms: float
    predict_ms: float


def run(
    split: Split,
    name: str,
    order: str,
    seed: int,
    shots: int | None,
    classes_per_task: int,
    matrix: bool = True,
) -> Run | str:
    """One ordering of one learner; a refusal (a state too large) is returned as its message."""
    tasks = streams.make(order, split.train_words, seed, shots, classes_per_task)
    try:
        if name in offline.NAMES:
            return _run_offline(split, name, seed, tasks)
        fill_matrix = matrix and order != "iid"
        return _run_stream(split, registry.build("learners", name), seed, tasks, fill_matrix)
    except InputError as error:
        return str(error)


def _run_stream(
    split: Split, learner: Learner, seed: int, tasks: list[streams.Task], fill_matrix: bool
) -> Run:
    test_words = np.array(split.test_words)
    columns = [np.flatnonzero(np.isin(test_words, task.words)) for task in tasks]
    matrix = np.full((len(tasks), len(tasks)), np.nan)
    curve: list[float | None] = []
    learn_s, predict_s = [], []
    for i, task in enumerate(tasks):
        words = [split.train_words[index] for index in task.indices]
        # The batch form equals one at a time; the last few are fed singly to be timed.
        last = i == len(tasks) - 1
        single = min(TIMED, len(words)) if last else 0
        bulk = len(words) - single
        if bulk:
            learner.learn_many(split.train[task.indices[:bulk]], words[:bulk])
        for index, word in zip(task.indices[bulk:], words[bulk:], strict=True):
            start = time.perf_counter()
            learner.learn_one(split.train[index], word)
            learn_s.append(time.perf_counter() - start)
        if not last and not fill_matrix:
            continue
        seen = np.concatenate(columns[: i + 1])
        # A word may have no test clips; then there is nothing to ask yet, or not of its task.
        predicted = np.array(learner.predict(split.test[seen]), dtype=object)
        right = predicted == test_words[seen]
        curve.append(metrics.accuracy(right) if len(right) else None)
        for j, part in enumerate(np.split(right, np.cumsum([len(c) for c in columns[:i]]))):
            matrix[i, j] = metrics.accuracy(part) if len(part) else np.nan
    for x in split.test[:TIMED]:
        start = time.perf_counter()
        learner.predict(x[None])
        predict_s.append(time.perf_counter() - start)
    answers: list[str | None] = [None] * len(test_words)
    for index, word in zip(seen, predicted, strict=True):
        answers[index] = word
    return Run(
        seed,
        [list(task.words) for task in tasks],
        matrix if fill_matrix else None,
        curve,
        answers,
        learner.state_bytes.total,
        1000 * float(np.median(learn_s)),
        1000 * float(np.median(predict_s)),
    )


def _run_offline(split: Split, name: str, seed: int, tasks: list[streams.Task]) -> Run:
    rows = np.concatenate([task.indices for task in tasks])
    words = [split.train_words[index] for index in rows]
    start = time.perf_counter()
    try:
        model = offline.fit(name, split.train[rows], words)
    except (ValueError, IndexError) as error:
        # One class, or one sample a class: scikit-learn's classifiers have no answer for these.
        raise InputError(f"{name}: {error}") from error
    fit_ms = 1000 * (time.perf_counter() - start) / len(rows)
    start = time.perf_counter()
    predicted = [str(word) for word in model.predict(split.test)]
    predict_ms = 1000 * (time.perf_counter() - start) / len(predicted)
    right = np.array(predicted) == np.array(split.test_words)
    everything = split.train[rows].nbytes
    names = [list(task.words) for task in tasks]
    curve: list[float | None] = [metrics.accuracy(right)]
    return Run(seed, names, None, curve, list(predicted), everything, fit_ms, predict_ms)


def summarise(split: Split, runs: list[Run | str]) -> dict[str, Any]:
    """Mean over orderings, as one entry of the results."""
    entry: dict[str, Any] = {"dim": split.train.shape[1]}
    good = [run for run in runs if isinstance(run, Run)]
    keys = ("acc", "acc_balanced", "bwt", "bwt_signed", "forg", "pla")
    if len(good) < len(runs):
        message = next(run for run in runs if isinstance(run, str))
        unknown = dict.fromkeys([*keys, "acc_std", "state_bytes", "learn_ms", "predict_ms"])
        nothing: dict[str, Any] = {
            "orderings": [],
            "matrix": None,
            "confusion": [],
            "error": message,
        }
        return entry | unknown | nothing
    orderings: list[dict[str, Any]] = []
    confused: Counter[tuple[str, str | None]] = Counter()
    for run in good:
        values: dict[str, Any] = {
            "acc": metrics.accuracy(np.array(run.predicted) == np.array(split.test_words)),
            "acc_balanced": metrics.balanced_accuracy(split.test_words, run.predicted),
        }
        for key, function in (
            ("bwt", metrics.backward_accuracy),
            ("bwt_signed", metrics.backward_transfer),
            ("forg", metrics.forgetting),
            ("pla", metrics.plasticity),
        ):
            values[key] = None if run.matrix is None else function(run.matrix)
        orderings.append({"seed": run.seed, **values, "tasks": run.tasks, "curve": run.curve})
        pairs = zip(split.test_words, run.predicted, strict=True)
        confused.update(pair for pair in pairs if pair[0] != pair[1])
    for key in keys:
        numbers = [ordering[key] for ordering in orderings]
        entry[key] = None if None in numbers else float(np.mean(numbers))
    entry["acc_std"] = float(np.std([ordering["acc"] for ordering in orderings]))
    entry["state_bytes"] = good[-1].state_bytes
    entry["learn_ms"] = float(np.median([run.learn_ms for run in good]))
    entry["predict_ms"] = float(np.median([run.predict_ms for run in good]))
    matrices = [run.matrix for run in good if run.matrix is not None]
    entry["orderings"] = orderings
    entry["matrix"] = _nullable(np.mean(matrices, axis=0)) if matrices else None
    entry["confusion"] = [[*pair, count] for pair, count in confused.most_common(CONFUSIONS)]
    return entry


def _nullable(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]
