"""Which taught words are close: distances between their means, and a picture of them."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from tapword.learners.packed import packed_diagonal, packed_size
from tapword.spotter import Spotter

# Distances in units of what two takes of one word differ by: below, words are easily mixed up.
MIXED_UP, CLOSE = 0.7, 1.0
# A spread known from few takes may be near 0 by chance: that over all words counts for so many.
PRIOR_TAKES = 4
# Beyond so many words neither a picture nor a table of them helps anybody.
MOST_WORDS = 200


def word_map(spotter: Spotter) -> dict[str, Any] | None:
    """Lay the words out so that what is close on the map sounds close to the spotter.

    Parameters
    ----------
    spotter
        Its learner's state must hold a mean for each word.

    Returns
    -------
    dict or None
        `points`: word, x and y in [-1, 1], its nearest word, the distance to it and what that
        means. None where there are no two words, too many, or no means of them.
    """
    state = spotter.learner.state()
    rows, words = list(spotter.learner.words), list(spotter.words)
    means = state.get("means")
    if means is None or len(means) != len(rows) or not 2 <= len(words) <= MOST_WORDS:
        return None
    # The learner has rows for rejected sounds too.
    means = means[[rows.index(word) for word in words]]
    counts = np.array(list(spotter.words.values()))
    apart = distances(means, counts, _within(state, len(rows)))
    places = layout(apart)
    np.fill_diagonal(apart, np.inf)
    nearest = apart.argmin(axis=1)
    return {
        "points": [
            {
                "word": word,
                "x": round(float(x), 4),
                "y": round(float(y), 4),
                "nearest": words[other],
                "distance": round(float(row[other]), 2),
                "verdict": _verdict(row[other]),
            }
            for word, (x, y), other, row in zip(words, places, nearest, apart, strict=True)
        ]
    }


def distances(means: np.ndarray, counts: np.ndarray, variances: np.ndarray | None) -> np.ndarray:
    """Distances (K, K) of words, in units of what two takes of one word differ by.

    Parameters
    ----------
    means
        Shape (K, D).
    counts
        Samples behind each, (K,).
    variances
        Of each feature within a word, (D,); None where nothing is known of it: then words are
        measured against the spread of all of them.

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
    squares = cdist(scaled, scaled, "sqeuclidean") / (2 * max(int(told.sum()), 1))
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


def _within(state: dict[str, np.ndarray], n_words: int) -> np.ndarray | None:
    """Variance of each feature (D,) within a word, from the pooled scatter; None before any."""
    dim = state["means"].shape[1]
    scatter = state.get("scatter")
    free = int(state["n_scatter"][0]) - n_words if "n_scatter" in state else 0
    if scatter is None or scatter.shape != (packed_size(dim),) or free < 1:
        return None
    within = scatter[packed_diagonal(dim)].astype(np.float64)
    over_all = within / (free + n_words) + state["means"].astype(np.float64).var(axis=0)
    variances = (within + PRIOR_TAKES * over_all) / (free + PRIOR_TAKES)
    return variances if (variances > 0).any() else None


def _verdict(distance: float) -> str:
    if distance < MIXED_UP:
        return "easily mixed up"
    return "close" if distance < CLOSE else "well apart"
