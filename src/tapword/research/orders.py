"""The order in which samples are learned, as indices of clips or vectors."""

import collections
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError

ORDERS = ("class-iid", "iid", "few-shot")


class Task(NamedTuple):
    """Samples learned between two measurements.

    `words` are the new ones; `indices` (n,) int64 are the samples in learning order.
    """

    words: tuple[str, ...]
    indices: np.ndarray


def make(
    order: str,
    words: Sequence[str],
    seed: int = 0,
    shots: int | None = None,
    classes_per_task: int = 1,
) -> list[Task]:
    """Make an order by its name.

    Parameters
    ----------
    order
        "class-iid": word by word, the samples of each shuffled (the paper's order). "iid": all
        samples shuffled, as one task. "few-shot": "class-iid" with only a few samples of each word.
    words
        Length n: the word of each sample.
    seed
        Fixes the order of words and samples, and which samples are drawn.
    shots
        Samples of each word, only for "few-shot". A word with fewer is refused: a result "with 10
        samples" must not hide words taught from 7.
    classes_per_task
        New words in each task, their samples mixed; the last task may have fewer. Not for "iid".

    Notes
    -----
    For one seed, the draw of k samples is the start of the draw of k + 1, and words are ordered as
    in "class-iid", so counts of samples are compared on the same samples.

    Examples
    --------
    >>> [(task.words, task.indices.tolist()) for task in make("class-iid", ["on", "off", "on"])]
    [(('off',), [1]), (('on',), [2, 0])]
    >>> [task.words for task in make("iid", ["on", "off", "on"])]
    [('off', 'on')]
    >>> make("sorted", ["on"])
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no order named 'sorted'; known: class-iid, iid, few-shot
    """
    if order not in ORDERS:
        raise InputError(f"no order named {order!r}; known: {', '.join(ORDERS)}")
    if (shots is not None) != (order == "few-shot"):
        raise InputError(f"shots go with few-shot, and only with it; got {shots}, {order}")
    if shots is not None and shots < 1:
        raise InputError(f"shots must be at least 1, got {shots}")
    if order == "iid" and classes_per_task != 1:
        raise InputError(f"iid is one task and takes no classes_per_task; got {classes_per_task}")
    if classes_per_task < 1:
        raise InputError(f"classes_per_task must be at least 1, got {classes_per_task}")
    if seed < 0:
        raise InputError(f"seed must be at least 0, got {seed}")
    if not len(words):
        raise InputError("a stream needs at least one sample")
    positions: dict[str, list[int]] = collections.defaultdict(list)
    for index, word in enumerate(words):
        positions[str(word)].append(index)
    names = sorted(positions)
    if order == "iid":
        return [Task(tuple(names), np.random.default_rng(seed).permutation(len(words)))]
    short = [
        f"{word!r} {len(positions[word])}" for word in names if len(positions[word]) < (shots or 0)
    ]
    if short:
        raise InputError(
            f"few-shot with {shots} samples of each word: {len(short)} of {len(names)} words "
            f"have fewer ({', '.join(short[:5])}); lower shots or leave those words out"
        )
    shuffled = np.random.default_rng(seed).permutation(len(names))
    tasks: list[Task] = []
    for start in range(0, len(names), classes_per_task):
        taught = tuple(names[index] for index in shuffled[start : start + classes_per_task])
        drawn = [
            # A generator for each word: its draw does not depend on the other words.
            np.random.default_rng([seed, *word.encode()]).permutation(positions[word])[:shots]
            for word in taught
        ]
        indices = np.concatenate(drawn)
        if len(drawn) > 1:
            np.random.default_rng([seed, len(tasks)]).shuffle(indices)
        tasks.append(Task(taught, indices))
    return tasks
