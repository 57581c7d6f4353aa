"""Which taught words are close: distances between their means, and a picture of them."""

from typing import NamedTuple

import numpy as np

from tapword.learners.base import Row
from tapword.learners.statistics import Statistics
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.spotter.spotter import Spotter
from tapword.support.threads import one_blas_thread

# Distances in units of what two takes of one word differ by. Below the first, words are easily
# mixed up, below the second they are close; both were set by hand.
MIXED_UP, CLOSE = 0.7, 1.0
# A spread known from few takes may be near 0 by chance: that over all words counts for so many.
PRIOR_TAKES = 4
# Beyond so many words neither a picture nor a table of them helps anybody.
MOST_WORDS = 200


class Point(NamedTuple):
    """A word on the map: its place in [-1, 1], how far the nearest word is, what that means."""

    word: str
    x: float
    y: float
    nearest: str
    distance: float
    verdict: str


@one_blas_thread
def word_map(spotter: Spotter) -> list[Point]:
    """Lay the words out, in their order, so that what is close on the map sounds close.

    Empty where there are no two words, too many, or no means of them.
    """
    words, learner = spotter.words, spotter.learner
    if not isinstance(learner, StatisticsLearner) or not 2 <= len(words) <= MOST_WORDS:
        return []
    means = learner.statistics.means[[learner.rows.index(Row(word)) for word in words]]
    apart = distances(means, np.array(list(words.values())), _within(learner.statistics))
    places = layout(apart).round(4).tolist()
    np.fill_diagonal(apart, np.inf)
    names = list(words)
    return [
        Point(word, x, y, names[row.argmin()], round(float(row.min()), 2), _verdict(row.min()))
        for word, (x, y), row in zip(words, places, apart, strict=True)
    ]


def distances(means: np.ndarray, counts: np.ndarray, variances: np.ndarray | None) -> np.ndarray:
    """Distances (K, K) of words, in units of what two takes of one word differ by.

    Of means (K, D) over counts (K,) of takes. Where the variances (D,) within a word are not known,
    words are measured against the spread of all of them.

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
    told = variances > 0
    scaled = means[:, told] / np.sqrt(variances[told])
    squares = np.array([np.square(scaled - one).sum(axis=1) for one in scaled])
    squares /= 2 * max(int(told.sum()), 1)
    # A mean of few takes lies off its place: what that adds to every distance is taken out.
    squares -= (noise[:, None] + noise[None, :]) / 2
    np.fill_diagonal(squares, 0)
    return np.sqrt(np.maximum(squares, 0))


def layout(apart: np.ndarray) -> np.ndarray:
    """Places (K, 2) in [-1, 1] whose distances are as near to `apart` (K, K) as a plane allows.

    Classical scaling: the two leading axes of the doubly centred squares.

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
    # An axis may point either way; the first word decides, so that a map does not flip about.
    vectors = vectors * np.where(vectors[0] < 0, -1, 1)
    places = vectors * np.sqrt(np.maximum(values, 0))
    return places / (np.abs(places).max() or 1.0)


def _within(statistics: Statistics) -> np.ndarray | None:
    """Variance of each feature (D,) within a word; None where too little is known of it."""
    squares, n_rows = statistics.within(), len(statistics.means)
    free = statistics.n_scatter - n_rows
    if squares is None or free < 1:
        return None
    over_all = squares / (free + n_rows) + statistics.means.astype(np.float64).var(axis=0)
    variances = (squares + PRIOR_TAKES * over_all) / (free + PRIOR_TAKES)
    return variances if (variances > 0).any() else None


def _verdict(distance: float) -> str:
    if distance < MIXED_UP:
        return "easily mixed up"
    return "close" if distance < CLOSE else "well apart"
