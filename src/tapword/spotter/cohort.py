"""The cohort: windows of running speech, which scores and thresholds are measured against.

Which word a sound is, the learner says, in the metric of how the taught words vary. Whether it is a
word at all is another question: what counts is how much nearer the sound is to the word's mean than
to the nearest windows of running speech. That depends neither on how many samples were taught nor
on the other words.
"""

import functools

import numpy as np

from tapword.learners.base import Learner
from tapword.spotter.lengths import CLIP_S

# How many windows are the nearest: a choice, so that no single one decides. How much of their
# cosine is taken off a word's, where a whitening does not say: training/cohort.py prints what
# other shares would give.
NEAREST, SHARE = 3, 0.75


class Windows:
    """Windows of running speech as vectors.

    Parameters
    ----------
    vectors
        Shape (n, D), more than `NEAREST`, of any length; (n, r) where they are seen in r
        directions.
    sight
        These directions, (r, D): sounds are compared with the windows in them alone.
    share
        How much of a sound's cosine to the nearest windows is taken off a word's.

    Examples
    --------
    >>> Windows(np.eye(4), share=0.5).level(np.array([[2.0, 0.0, 0.0, 0.0]])).round(3)
    array([0.167], dtype=float32)
    """

    def __init__(self, vectors: np.ndarray, sight: np.ndarray | None = None, share: float = SHARE):
        self.vectors = unit(vectors)
        self.sight = sight
        self.share = share

    def level(self, X: np.ndarray) -> np.ndarray:
        """Give what is taken off the cosines of vectors (n, D), (n,)."""
        return self._level(self._seen(X) @ self.vectors.T)

    def scores(self, directions: np.ndarray) -> np.ndarray:
        """Score the windows themselves for words of unit vectors (K, D): (n, K)."""
        return self.vectors @ self._seen(directions).T - self.levels[:, None]

    def _seen(self, X: np.ndarray) -> np.ndarray:
        """Give vectors (n, D) as windows are compared with them, of length 1."""
        return unit(X if self.sight is None else X @ self.sight.T)

    @functools.cached_property
    def levels(self) -> np.ndarray:
        """What is taken off the cosines of the windows themselves, each among the others, (n,)."""
        cosines = self.vectors @ self.vectors.T
        np.fill_diagonal(cosines, -1.0)
        return self._level(cosines)

    def _level(self, cosines: np.ndarray) -> np.ndarray:
        return self.share * np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)


class Cohort:
    """Running speech in windows of a second, for words, and in longer ones, for phrases.

    Parameters
    ----------
    words, phrases
        Shapes (n, D) and (m, D), as for `Windows`. Without the second, phrases are measured as
        words are.
    sight, share
        As for `Windows`.
    """

    def __init__(
        self,
        words: np.ndarray,
        phrases: np.ndarray | None = None,
        sight: np.ndarray | None = None,
        share: float = SHARE,
    ):
        self.words = Windows(words, sight, share)
        self.phrases = self.words if phrases is None else Windows(phrases, sight, share)

    def first(self, dim: int) -> "Cohort":
        """Give the same windows by the first `dim` numbers of their vectors."""
        if self.words.sight is not None:
            return self  # of one backbone, whose numbers are all of them
        words, phrases = (one.vectors[:, :dim] for one in (self.words, self.phrases))
        return Cohort(words, phrases, share=self.words.share)

    def level(self, X: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Give what is taken off the cosines of vectors (n, D) of sounds so long (n,): (n,)."""
        result, long = np.empty(len(X), dtype=np.float32), seconds > CLIP_S
        for rows, windows in ((~long, self.words), (long, self.phrases)):
            if rows.any():
                result[rows] = windows.level(X[rows])
        return result


def measured(learner: Learner) -> Learner | None:
    """Give a learner whose scores are measured against the cohort."""
    return learner if learner.supports_thresholds else None


def shift(learner: Learner, X: np.ndarray, scores: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Give what is to be added to all of a learner's scores, (n,).

    The best word's score becomes its cosine less the level; the others stay as far behind it.

    Parameters
    ----------
    learner
        Whose words.
    X, scores
        Vectors (n, D), and the learner's scores of the words, (n, K) with K at least 1.
    level
        What the cohort takes off, (n,).
    """
    words = learner.directions()[[not row.negative for row in learner.rows]]
    best, rows = scores.argmax(axis=1), np.arange(len(X))
    cosines = np.einsum("nd,nd->n", unit(X), words[best])
    return cosines - level - scores[rows, best]


def unit(X: np.ndarray) -> np.ndarray:
    """Bring vectors (n, D) to length 1, float32."""
    lengths = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return (X / lengths).astype(np.float32)
