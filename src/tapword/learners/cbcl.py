"""CBCL, centroid-based concept learning."""

import numpy as np
from scipy.spatial.distance import cdist

from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner, StateReader
from tapword.learners.centroids import Centroids


class Cbcl(Learner):
    """Nearest of several centroids a word, made where samples lie far apart.

    A sample joins its word's nearest centroid (count-weighted mean) if that is nearer than
    `distance_threshold`, else it becomes a new one. Beyond `max_centroids` in all, the two
    closest centroids of one word, of all words the closest, are merged.

    score_k = (sum of 1 / distance over those of the `topk` nearest centroids that are k's) / n_k

    Parameters
    ----------
    distance_threshold
        Euclidean. One larger than any distance makes the rule that of ncm.
    max_centroids
        Over all words; each word keeps one at least.
    topk
        How many centroids vote.
    variant
        "exact", or "reference": as the public code of the method has it, a sample joins the
        first centroid of its word instead of the nearest, and votes are multiplied by n_k.

    Notes
    -----
    Kept: centroids and their counts; the centroid of a single sample is that sample's vector.
    The model depends on the order of samples and cannot be merged; forgetting a word removes all
    of it (centroids of other words that were merged to make room for it stay merged).

    Examples
    --------
    >>> learner = Cbcl(distance_threshold=3)
    >>> learner.learn_many(np.array([[0.0], [9.0], [5.0], [8.0]]), ["off", "off", "on", "off"])
    >>> learner.predict(np.array([[1.0], [6.0], [8.0]])), learner.state()["centroids"].ravel()
    (['off', 'on', 'off'], array([0. , 8.5, 5. ], dtype=float32))
    """

    _columns = "centroids"

    def __init__(
        self,
        distance_threshold: float = 70.0,
        max_centroids: int = 200,
        topk: int = 1,
        variant: str = "exact",
    ):
        super().__init__()
        self.distance_threshold = distance_threshold
        self.max_centroids = max_centroids
        self.topk = topk
        self.variant = variant
        if not distance_threshold >= 0:
            raise InputError(f"cbcl: distance_threshold must be at least 0: {distance_threshold}")
        if max_centroids < 1:
            raise InputError(f"cbcl: max_centroids must be at least 1, got {max_centroids}")
        if topk < 1:
            raise InputError(f"cbcl: topk must be at least 1, got {topk}")
        if variant not in ("exact", "reference"):
            raise InputError(f"cbcl: variant must be exact or reference, got {variant!r}")

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Shares of the votes."""
        return scores / scores.sum(axis=-1, keepdims=True)

    def _size(self, dim: int) -> tuple[int, int]:
        centroid = 4 * dim + 8
        return self.max_centroids * centroid, centroid + 8

    def _start(self, dim: int) -> None:
        self._dim = dim
        self._centroids: list[Centroids] = []
        self._total = 0

    def _grow(self) -> None:
        self._centroids.append(Centroids(self._dim))

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        centroids = self._centroids[k]
        self._total -= centroids.size
        squares = centroids.squared_distances(x)
        if squares.size and squares.min() < self.distance_threshold**2:
            centroids.join(0 if self.variant == "reference" else int(squares.argmin()), x)
        else:
            centroids.add(x)
        self._total += centroids.size
        if self._total > self.max_centroids:
            closest = min(self._centroids, key=lambda one: one.closest)
            if closest.size > 1:
                closest.merge_closest()
                self._total -= 1

    def _scores(self, X: np.ndarray) -> np.ndarray:
        table = np.concatenate([one.vectors for one in self._centroids])
        owners = np.repeat(np.arange(len(self._centroids)), [one.size for one in self._centroids])
        distances = cdist(X, table)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.topk]
        votes = 1 / np.maximum(np.take_along_axis(distances, nearest, axis=1), 1e-12)
        scores = np.zeros((len(X), len(self._centroids)))
        np.add.at(scores, (np.arange(len(X))[:, None], owners[nearest]), votes)
        n = np.array([one.counts.sum() for one in self._centroids])
        return scores * n if self.variant == "reference" else scores / n

    def _forget(self, k: int) -> None:
        self._total -= self._centroids.pop(k).size

    def _arrays(self) -> dict[str, np.ndarray]:
        empty = Centroids(self._dim)
        return {
            "centroids": np.concatenate([empty.vectors, *(one.vectors for one in self._centroids)]),
            "counts": np.concatenate([empty.counts, *(one.counts for one in self._centroids)]),
            "sizes": np.array([one.size for one in self._centroids], dtype=np.int64),
        }

    def _load(self, state: StateReader, n_words: int) -> None:
        sizes = state.take("sizes", (n_words,), np.int64)
        self._total = int(sizes.sum())
        vectors = state.take("centroids", (self._total, self._dim))
        counts = state.take("counts", (self._total,), np.int64)
        if (
            self._total > max(self.max_centroids, n_words)
            or (sizes < 1).any()
            or (counts < 1).any()
        ):
            raise ModelFileError("learner 'cbcl': 'sizes' or 'counts' cannot be right")
        ends = np.cumsum(sizes)[:-1]
        self._centroids = [
            Centroids(self._dim, *part)
            for part in zip(np.split(vectors, ends), np.split(counts, ends), strict=True)
        ][:n_words]
