"""In what order samples come; indices only, so that it serves clips and vectors alike."""

import collections
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError

ORDERS = ("class-iid", "iid", "few-shot")


class Task(NamedTuple):
    """A stretch of the stream.

    Attributes
    ----------
    words
        Words that are new in this task.
    indices
        Shape (n,), int64: samples in the order they come.
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
    """Make a stream by the name of its order.

    Parameters
    ----------
    order
        "class-iid", "iid" or "few-shot".
    words
        Length n: the word of each sample.
    seed
        Fixes the order.
    shots
        Samples of each word; for "few-shot", and only there.
    classes_per_task
        New words in each task; not for "iid", which is a single task.

    Examples
    --------
    >>> [task.words for task in make("class-iid", ["on", "off", "on"], seed=3)]
    [('on',), ('off',)]
    >>> make("sorted", ["on"])
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no order named 'sorted'; known: class-iid, iid, few-shot
    """
    if order not in ORDERS:
        raise InputError(f"no order named {order!r}; known: {', '.join(ORDERS)}")
    if (shots is not None) != (order == "few-shot"):
        raise InputError(f"shots must be given for few-shot, and only there; got {shots}, {order}")
    if order == "iid":
        if classes_per_task != 1:
            raise InputError(f"iid is one task; classes_per_task={classes_per_task} says nothing")
        return iid(words, seed)
    return _by_class(words, seed, classes_per_task, shots)


def class_iid(words: Sequence[str], seed: int = 0, classes_per_task: int = 1) -> list[Task]:
    """One class after another, shuffled inside: the paper's order.

    Parameters
    ----------
    words
        Length n: the word of each sample.
    seed
        Fixes the order of the classes and of the samples of each.
    classes_per_task
        New words in each task, their samples mixed; the last task may have fewer.

    Returns
    -------
    list of Task
        Every index once.

    Examples
    --------
    >>> tasks = class_iid(["up", "up", "go"])
    >>> [(task.words, sorted(task.indices.tolist())) for task in tasks]
    [(('go',), [2]), (('up',), [0, 1])]
    """
    return _by_class(words, seed, classes_per_task, None)


def iid(words: Sequence[str], seed: int = 0) -> list[Task]:
    """All samples shuffled, as one task with every index once.

    Examples
    --------
    >>> [task] = iid(["up", "up", "go"])
    >>> task.words, sorted(task.indices.tolist())
    (('go', 'up'), [0, 1, 2])
    """
    names = tuple(_positions(words))
    return [Task(names, np.random.default_rng(_checked(seed)).permutation(len(words)))]


def few_shot(
    words: Sequence[str], shots: int, seed: int = 0, classes_per_task: int = 1
) -> list[Task]:
    """Draw a few samples of each word, which then come one class after another.

    Parameters
    ----------
    words
        Length n: the word of each sample.
    shots
        Samples of each word. A word with fewer is refused: a result "with 10 samples" must not
        hide words taught from 7.
    seed
        Fixes the draw and the order.
    classes_per_task
        New words in each task, their samples mixed.

    Notes
    -----
    For one seed the draw of k samples is the beginning of the draw of k + 1, and classes come in
    the same order as in `class_iid`: numbers of samples are compared on the same samples.

    Examples
    --------
    >>> words = ["up", "go"] * 10
    >>> one, two = few_shot(words, 1), few_shot(words, 2)
    >>> all(a.words == b.words and a.indices[0] == b.indices[0] for a, b in zip(one, two))
    True
    """
    return _by_class(words, seed, classes_per_task, shots)


def _by_class(
    words: Sequence[str], seed: int, classes_per_task: int, shots: int | None
) -> list[Task]:
    positions = _positions(words)
    seed = _checked(seed)
    if classes_per_task < 1:
        raise InputError(f"classes_per_task must be at least 1, got {classes_per_task}")
    if shots is not None:
        _require_enough(positions, shots)
    names = list(positions)
    order = np.random.default_rng(seed).permutation(len(names))
    tasks: list[Task] = []
    for start in range(0, len(names), classes_per_task):
        taught = tuple(names[index] for index in order[start : start + classes_per_task])
        drawn = [_draw(positions[word], word, seed)[:shots] for word in taught]
        indices = np.concatenate(drawn)
        if len(drawn) > 1:
            np.random.default_rng([seed, len(tasks)]).shuffle(indices)
        tasks.append(Task(taught, indices))
    return tasks


def _draw(positions: list[int], word: str, seed: int) -> np.ndarray:
    # Each word has a generator of its own, so that its draw does not hang on the other words.
    return np.random.default_rng([seed, *word.encode()]).permutation(positions)


def _positions(words: Sequence[str]) -> dict[str, list[int]]:
    """Word -> its indices, words sorted."""
    if not len(words):
        raise InputError("a stream needs at least one sample")
    found: dict[str, list[int]] = collections.defaultdict(list)
    for index, word in enumerate(words):
        found[str(word)].append(index)
    return dict(sorted(found.items()))


def _require_enough(positions: dict[str, list[int]], shots: int) -> None:
    if shots < 1:
        raise InputError(f"shots must be at least 1, got {shots}")
    short = {word: len(found) for word, found in positions.items() if len(found) < shots}
    if short:
        listed = ", ".join(f"{word!r} {count}" for word, count in list(short.items())[:5])
        raise InputError(
            f"few-shot with {shots} samples of each word: {len(short)} of {len(positions)} words "
            f"have fewer ({listed}); lower shots or leave those words out"
        )


def _checked(seed: int) -> int:
    if seed < 0:
        raise InputError(f"seed must be at least 0, got {seed}")
    return int(seed)
