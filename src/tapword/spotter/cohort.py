"""Score normalisation against a cohort: windows of running speech.

The learner says which word a sound is, in the metric of how the taught words vary. Whether it is a
word at all is another question. It is answered by how much nearer the sound is to the word's mean
than to the nearest windows of running speech. That depends neither on the number of samples nor on
the other words. Speaker verification calls this S-norm.
"""

import functools

import numpy as np

from tapword.learners.base import Learner
from tapword.spotter.vocabulary import CLIP_S

# Windows that count as the nearest, and how much of their mean cosine is subtracted from a word's,
# unless a whitening says otherwise: training/cohort.py prints what others would give.
NEAREST, WEIGHT = 3, 0.75
# Windows that are compared with all others at a time.
AT_ONCE = 128


class Windows:
    """Windows of running speech as vectors.

    Parameters
    ----------
    vectors
        Shape (n, D) with n more than `nearest`, of any length; (n, r) if they are projected.
    projection
        Directions, (r, D): sounds are compared with the windows in these alone.
    weight, nearest
        How much of a sound's mean cosine to the nearest windows is subtracted from a word's, and
        how many windows these are.

    Examples
    --------
    >>> Windows(np.eye(4), weight=0.5).cohort_score(np.array([[2.0, 0.0, 0.0, 0.0]])).round(3)
    array([0.167], dtype=float32)
    """

    def __init__(
        self,
        vectors: np.ndarray,
        projection: np.ndarray | None = None,
        weight: float = WEIGHT,
        nearest: int = NEAREST,
    ):
        self.vectors = unit(vectors)
        self.projection = projection
        self.weight, self.nearest = weight, nearest

    def cohort_score(self, X: np.ndarray) -> np.ndarray:
        """Return what is subtracted from the cosines of vectors (n, D), (n,)."""
        return self._cohort_score(self._project(X) @ self.vectors.T)

    def scores(self, directions: np.ndarray) -> np.ndarray:
        """Score the windows themselves for words of unit vectors (K, D): (n, K)."""
        return self.vectors @ self._project(directions).T - self.own_scores[:, None]

    def _project(self, X: np.ndarray) -> np.ndarray:
        """Return vectors (n, D) as windows are compared with them, of length 1."""
        return unit(X if self.projection is None else X @ self.projection.T)

    @functools.cached_property
    def own_scores(self) -> np.ndarray:
        """Cohort score of each window among the others, (n,)."""
        result = np.empty(len(self.vectors), dtype=np.float32)
        # All pairs at once would take as much memory as the windows.
        for start in range(0, len(result), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            cosines = self.vectors[rows] @ self.vectors.T
            np.fill_diagonal(cosines[:, start:], -1.0)
            result[rows] = self._cohort_score(cosines)
        return result

    def _cohort_score(self, cosines: np.ndarray) -> np.ndarray:
        nearest = np.partition(cosines, -self.nearest, axis=1)[:, -self.nearest :]
        return self.weight * nearest.mean(axis=1)


class Cohort:
    """Running speech in windows of one second, for words, and in longer ones, for phrases.

    Parameters
    ----------
    words, phrases
        Shapes (n, D) and (m, D), as for `Windows`. Without phrases, words serve for both.
    projection, weight, nearest
        As for `Windows`.
    """

    def __init__(
        self,
        words: np.ndarray,
        phrases: np.ndarray | None = None,
        projection: np.ndarray | None = None,
        weight: float = WEIGHT,
        nearest: int = NEAREST,
    ):
        how = projection, weight, nearest
        self.words = Windows(words, *how)
        self.phrases = self.words if phrases is None else Windows(phrases, *how)

    def first(self, dim: int) -> "Cohort":
        """Return the same windows by the first `dim` numbers of their vectors."""
        if self.words.projection is not None or dim == self.words.vectors.shape[1]:
            return self  # of one backbone, whose numbers are all of them
        words, phrases = (one.vectors[:, :dim] for one in (self.words, self.phrases))
        return Cohort(words, phrases, None, self.words.weight, self.words.nearest)

    def score(self, X: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Return cohort scores (n,) of vectors (n, D) of clips with lengths (n,) in seconds."""
        result, long = np.empty(len(X), dtype=np.float32), seconds > CLIP_S
        for rows, windows in ((~long, self.words), (long, self.phrases)):
            if rows.any():
                result[rows] = windows.cohort_score(X[rows])
        return result


def normalize(
    learner: Learner,
    X: np.ndarray,
    words: np.ndarray,
    negatives: np.ndarray,
    cohort_score: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Normalise a learner's scores for words and negatives.

    The best word's score becomes its cosine less the cohort score. The others stay as far behind.

    Parameters
    ----------
    learner
        One that supports thresholds.
    X
        Vectors, (n, D).
    words, negatives
        The learner's scores, (n, K) with K at least 1, and (n, M).
    cohort_score
        Of the vectors, (n,).
    """
    directions = learner.directions()[[not row.negative for row in learner.rows]]
    best, rows = words.argmax(axis=1), np.arange(len(X))
    cosines = np.einsum("nd,nd->n", unit(X), directions[best])
    offset = (cosines - cohort_score - words[rows, best])[:, None]
    return words + offset, negatives + offset


def unit(X: np.ndarray) -> np.ndarray:
    """Scale vectors (n, D) to length 1, float32."""
    # The norm of all rows at once would take a copy of them.
    lengths = np.sqrt(np.einsum("nd,nd->n", X, X))[:, None]
    return (X / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)
