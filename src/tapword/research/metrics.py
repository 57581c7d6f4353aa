"""Metrics of predictions and accuracy matrices, in percent.

An accuracy matrix R has shape (K, K) for K tasks: R[i, j] is the accuracy on the test samples of
task j's words after learning task i. Values above the diagonal (j > i) are ignored. A task without
test samples is a column of NaN and is left out of every mean.

>>> nan = np.nan
>>> matrix = np.array([[90.0, nan, nan], [95.0, 80.0, nan], [75.0, 70.0, 70.0]])
>>> plasticity(matrix), forgetting(matrix)
(80.0, 15.0)
>>> backward_accuracy(matrix), backward_transfer(matrix)
(80.0, -12.5)
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError

# Bootstrap samples of an interval.
N_BOOTSTRAP = 1000


def accuracy(right: Sequence[bool] | np.ndarray) -> float:
    """Percentage of samples (n,), n >= 1, that are right."""
    right = np.asarray(right)
    if right.ndim != 1 or right.dtype != bool or not len(right):
        raise InputError(
            f"accuracy needs bools of shape (n,), n >= 1; got {right.dtype} {right.shape}"
        )
    return float(100 * right.mean())


def balanced_accuracy(truth: Sequence[str], predicted: Sequence[str | None]) -> float:
    """Mean over words of the accuracy on that word's samples, in percent.

    Examples
    --------
    >>> balanced_accuracy(["up", "up", "up", "up", "go"], ["up", "up", "up", "go", "go"])
    87.5
    """
    if len(truth) != len(predicted) or not len(truth):
        raise InputError(
            f"need one prediction a sample, and at least one; got {len(predicted)} for {len(truth)}"
        )
    right = [a == b for a, b in zip(truth, predicted, strict=True)]
    _, number = np.unique(np.asarray(truth, dtype=object).astype(str), return_inverse=True)
    return float(100 * (np.bincount(number, right) / np.bincount(number)).mean())


def plasticity(matrix: np.ndarray) -> float | None:
    """Pla: mean of R[j, j], the accuracy on each task right after learning it."""
    return _mean(np.diagonal(_checked(matrix)))


def forgetting(matrix: np.ndarray) -> float | None:
    """Forg: mean over all tasks but the last of the best earlier accuracy less the final one.

    None with a single task. Below 0 where later tasks helped earlier ones.
    """
    matrix = _checked(matrix)
    best = np.fmax.reduce(matrix[:-1, :-1], axis=0, initial=np.nan)
    return _mean(best - matrix[-1, :-1])


def backward_accuracy(matrix: np.ndarray) -> float | None:
    """BwT as the paper most likely means it: mean accuracy on earlier tasks, R[i, j] over j < i.

    None with a single task.
    """
    matrix = _checked(matrix)
    return _mean(matrix[np.tril_indices(len(matrix), k=-1)])


def backward_transfer(matrix: np.ndarray) -> float | None:
    """Backward transfer of Lopez-Paz and Ranzato: mean over j < K of R[K, j] - R[j, j], signed.

    None with a single task.
    """
    matrix = _checked(matrix)
    return _mean((matrix[-1] - np.diagonal(matrix))[:-1])


def _checked(matrix: np.ndarray) -> np.ndarray:
    """Float64 with NaN above the diagonal; whole columns below it may be NaN, single cells not."""
    matrix = np.array(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(f"an accuracy matrix has shape (K, K), K >= 1; got {matrix.shape}")
    lower = np.tri(len(matrix), dtype=bool)
    matrix[~lower] = np.nan
    untested = np.isnan(np.diagonal(matrix))
    if (np.isnan(matrix) != (untested | ~lower)).any():
        raise InputError(
            "an accuracy matrix must have a number wherever j <= i, or NaN in a column"
        )
    if np.nanmin(matrix, initial=0) < 0 or np.nanmax(matrix, initial=0) > 100:
        raise InputError("an accuracy matrix must have numbers from 0 to 100")
    return matrix


def _mean(values: np.ndarray) -> float | None:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else None


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of numbers; None where there are none or one is missing."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return float(np.mean(known)) if known and len(known) == len(numbers) else None


def relative_gain(before: float | None, after: float | None) -> float | None:
    """Errors of one accuracy that another removes, in percent; None where there are none."""
    if before is None or after is None or before >= 100:
        return None
    return 100 * (after - before) / (100 - before)


def delta_p(stored: float, parameters: int) -> float:
    """Numbers stored by pooling and learner, in percent of the backbone's parameters."""
    if parameters < 1:
        raise InputError(f"the backbone's parameters must be at least 1, got {parameters}")
    return 100 * stored / parameters


def delta_fs(pooled: int, frame: int) -> float:
    """Length D of a pooled vector over the length d of a frame: 1 for averaging."""
    if frame < 1:
        raise InputError(f"the length of a frame must be at least 1, got {frame}")
    return pooled / frame


class Wasserstein(NamedTuple):
    """Distance between words: mean and standard deviation over pairs of words.

    Of raw features, and of features divided by their standard deviation over all clips.
    """

    raw_mean: float
    raw_std: float
    standardised_mean: float
    standardised_std: float


def wasserstein(vectors: np.ndarray, labels: Sequence[str]) -> Wasserstein:
    """Wasserstein distance between words, averaged over features, then over pairs of words.

    Parameters
    ----------
    vectors
        Shape (n, D): a pooled vector per clip; a constant feature has distance 0.
    labels
        Length n: the word of each, at least two different ones.

    Examples
    --------
    >>> wasserstein(np.array([[0.0], [2.0], [3.0], [5.0]]), ["a", "a", "b", "b"]).raw_mean
    3.0
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or len(vectors) != len(labels) or not vectors.size:
        raise InputError(f"need (n, D) vectors and n labels, got {vectors.shape}, {len(labels)}")
    if not np.isfinite(vectors).all():
        raise InputError("the vectors contain NaN or infinity")
    names, number = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    if len(names) < 2:
        raise InputError(f"distances need at least two words, got {', '.join(names)}")
    spread = vectors.std(axis=0, dtype=np.float64)
    scale = 1 / np.where((vectors == vectors[0]).all(axis=0), np.inf, spread)
    by_word = [np.sort(vectors[number == index], axis=0) for index in range(len(names))]
    distances = [_sorted_distance(one, two) for one, two in itertools.combinations(by_word, 2)]
    raw = [distance.mean() for distance in distances]
    standardised = [(distance * scale).mean() for distance in distances]
    figures = (np.mean(raw), np.std(raw), np.mean(standardised), np.std(standardised))
    return Wasserstein(*map(float, figures))


def wasserstein_by_feature(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Wasserstein distance between samples (n, D) and (m, D) in each feature: (D,).

    In one dimension it is the mean gap between sorted values. Where n and m differ, it is the
    integral of the gap between the quantile functions, which are steps, so it is exact too.
    """
    return _sorted_distance(np.sort(one, axis=0), np.sort(two, axis=0))


def _sorted_distance(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    n, m = len(one), len(two)
    # In units of 1 / (n m), all steps of both quantile functions are whole numbers.
    steps = np.union1d(np.arange(n) * m, np.arange(m) * n)
    widths = np.diff(steps, append=n * m) / (n * m)
    gaps = np.abs(one[steps // m].astype(np.float64) - two[steps // n])
    return widths @ gaps


# Open-set metrics.


def auroc(known: Sequence[float] | np.ndarray, unknown: Sequence[float] | np.ndarray) -> float:
    """Area under the ROC curve of known against unknown samples, in percent.

    Examples
    --------
    >>> auroc([0.9, 0.4], [0.5, 0.1])
    75.0
    """
    known, unknown = _scores(known), _scores(unknown)
    below = np.searchsorted(np.sort(unknown), known, side="left")
    not_above = np.searchsorted(np.sort(unknown), known, side="right")
    return float(100 * (below + not_above).mean() / (2 * len(unknown)))


def threshold_at(unknown: Sequence[float] | np.ndarray, false_accepts: float) -> float:
    """Lowest score that at most `false_accepts` percent of unknown samples exceed.

    Examples
    --------
    >>> threshold_at([0.1, 0.2, 0.3, 0.4], false_accepts=25)
    0.3
    """
    if not 0 <= false_accepts < 100:
        raise InputError(f"false_accepts must be a percentage below 100, got {false_accepts!r}")
    unknown = np.sort(_scores(unknown))[::-1]
    # 5% of 20 is one sample, despite rounding.
    return float(unknown[int(len(unknown) * false_accepts / 100 + 1e-9)])


def speaker_interval(
    right: np.ndarray, speakers: Sequence[str | None], seed: int = 0
) -> tuple[float, float]:
    """95% bootstrap interval of an accuracy over speakers, in percent.

    Parameters
    ----------
    right
        Shape (n,): how often each sample was right, from 0 to 1.
    speakers
        Length n; each sample of an unknown speaker counts as another speaker.

    Notes
    -----
    Speakers are drawn with replacement, each with all of their samples.

    Examples
    --------
    >>> speaker_interval(np.array([1.0, 1.0, 0.0, 0.0]), ["ann", "ann", "bob", "bob"])
    (0.0, 100.0)
    """
    right = np.asarray(right, dtype=np.float64)
    if right.ndim != 1 or len(right) != len(speakers) or not len(right):
        raise InputError(
            f"need (n,) samples, n >= 1, and n speakers; got {right.shape}, {len(speakers)}"
        )
    people = [f"sample {i}" if one is None else f"speaker {one}" for i, one in enumerate(speakers)]
    _, number = np.unique(people, return_inverse=True)
    samples, hits = np.bincount(number), np.bincount(number, right)
    count = len(samples)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), N_BOOTSTRAP)
    low, high = np.quantile(100 * (drawn @ hits) / (drawn @ samples), (0.025, 0.975))
    return float(low), float(high)


def _scores(values: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise InputError(f"need scores of shape (n,), n >= 1, without NaN; got {values.shape}")
    return values
