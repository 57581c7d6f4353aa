"""A map of the words: distances between their means, and positions in a plane."""

from typing import NamedTuple

import numpy as np

from tapword.learners.base import Row
from tapword.learners.statistics import Statistics
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.spotter.spotter import Spotter
from tapword.support.threads import one_blas_thread

# Distances in units of the typical distance between two takes of one word: below the first, words
# are easily confused, below the second they are close. Both were set by hand.
CONFUSABLE, CLOSE = 0.7, 1.0
# The variance of a few takes may be near 0 by chance: that of all words counts as this many takes.
PRIOR_TAKES = 4
# Words drawn closer than this lie on each other: their dots are 0.05 wide.
OVERLAP = 0.1
# With more words, neither a map nor a table helps.
MAX_WORDS = 200


class Point(NamedTuple):
    """A word on the map: position in [-1, 1], nearest word, its distance and what that means."""

    word: str
    x: float
    y: float
    nearest: str
    distance: float
    verdict: str


class WordMap(NamedTuple):
    """The points, and pairs of words that are distinct although their points nearly coincide."""

    points: list[Point]
    overlaps: list[tuple[str, str]]


@one_blas_thread
def word_map(spotter: Spotter) -> WordMap:
    """Place the words, in their order, so that words close on the map sound alike.

    Empty with fewer than two words, too many words, or a learner without means.
    """
    words, learner = spotter.words, spotter.learner
    if not isinstance(learner, StatisticsLearner) or not 2 <= len(words) <= MAX_WORDS:
        return WordMap([], [])
    statistics, rows = learner.effective, [learner.rows.index(Row(word)) for word in words]
    apart = distances(statistics.means[rows], statistics.counts[rows], _within(statistics))
    places = layout(apart).round(4)
    np.fill_diagonal(apart, np.inf)
    names = list(words)
    points = [
        Point(word, x, y, names[row.argmin()], round(float(row.min()), 2), _verdict(row.min()))
        for word, (x, y), row in zip(words, places.tolist(), apart, strict=True)
    ]
    return WordMap(points, [(names[i], names[j]) for i, j in overlaps(apart, places)])


def distances(means: np.ndarray, counts: np.ndarray, variances: np.ndarray | None) -> np.ndarray:
    """Distances (K, K) of words, in units of the typical distance of two takes of one word.

    `means` is (K, D), `counts` the takes (K,) of each, `variances` (D,) those within a word.
    Without them, the variance of all words is the unit.

    Examples
    --------
    >>> means = np.array([[0.0], [3.0]])
    >>> distances(means, np.array([1000, 1000]), np.array([1.0])).round(2).tolist()
    [[0.0, 2.12], [2.12, 0.0]]
    """
    means = means.astype(np.float64)
    noise = 1 / np.maximum(counts, 1)
    if variances is None:
        variances, noise = means.var(axis=0) * 2, np.zeros(len(means))
    varies = variances > 0
    scaled = means[:, varies] / np.sqrt(variances[varies])
    squares = np.array([np.square(scaled - one).sum(axis=1) for one in scaled])
    squares /= 2 * max(int(varies.sum()), 1)
    # A mean of few takes is noisy: subtract what the noise adds to every distance.
    squares -= (noise[:, None] + noise[None, :]) / 2
    np.fill_diagonal(squares, 0)
    return np.sqrt(np.maximum(squares, 0))


def layout(apart: np.ndarray) -> np.ndarray:
    """Positions (K, 2) in [-1, 1] that approximate the distances `apart` (K, K).

    Classical multidimensional scaling: the two leading axes of the doubly centred squares.

    Examples
    --------
    >>> places = layout(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]))
    >>> np.abs(places.round(6)).tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    """
    squares = apart**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
    # The sign of an axis is arbitrary; the first word fixes it, so that the map does not flip.
    vectors = vectors * np.where(vectors[0] < 0, -1, 1)
    places = vectors * np.sqrt(np.maximum(values, 0))
    return places / (np.abs(places).max() or 1.0)


def overlaps(apart: np.ndarray, places: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of distinct words, by their distances (K, K), whose places (K, 2) nearly coincide.

    Examples
    --------
    >>> overlaps(np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([[0.5, 0.5], [0.5, 0.55]]))
    [(0, 1)]
    """
    drawn = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    pairs = np.argwhere(np.triu((drawn < OVERLAP) & (apart >= CLOSE), 1))
    return [(i, j) for i, j in pairs.tolist()]


def _within(statistics: Statistics) -> np.ndarray | None:
    """Variance of each feature (D,) within a word; None with too few takes."""
    squares, n_rows = statistics.within(), len(statistics.means)
    free = statistics.n_scatter - n_rows
    if squares is None or free < 1:
        return None
    over_all = squares / (free + n_rows) + statistics.means.astype(np.float64).var(axis=0)
    variances = (squares + PRIOR_TAKES * over_all) / (free + PRIOR_TAKES)
    return variances if (variances > 0).any() else None


def _verdict(distance: float) -> str:
    if distance < CONFUSABLE:
        return "confusable"
    return "close" if distance < CLOSE else "distinct"
