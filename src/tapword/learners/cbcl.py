"""CBCL, centroid-based concept learning."""

import math

import numpy as np

from tapword.errors import ModelFileError
from tapword.learners.base import Learner, StateReader
from tapword.support.linear_algebra import way

# More would make a table of distances of 8 GB.
MAX_CENTROIDS = 30_000


class Cbcl(Learner):
    """Nearest centroid; a word has several if its samples are far apart.

    A sample joins its word's nearest centroid (count-weighted mean) if that is nearer than
    `distance_threshold`; otherwise it becomes a new one. Above `max_centroids` in total, the
    closest pair of centroids of one word is merged.

    score_k = (sum of 1 / distance over those of the `topk` nearest centroids that are k's) / n_k

    Parameters
    ----------
    distance_threshold
        Euclidean distance. Larger than all distances, it makes the learner the same as ncm.
    max_centroids
        Over all words; each word keeps at least one.
    topk
        Number of centroids that vote.
    variant
        "exact", or "reference", as in the method's public code: a sample joins the first centroid
        of its word instead of the nearest, and votes are multiplied by n_k.

    Notes
    -----
    Kept: centroids and their counts; the centroid of a single sample is that sample's vector.
    The model depends on the order of samples and cannot be merged; forgetting a word removes all
    of it (centroids of other words that were merged to make space for it stay merged).

    Examples
    --------
    >>> learner = Cbcl(distance_threshold=3)
    >>> learner.learn_many(np.array([[0.0], [9.0], [5.0], [8.0]]), ["off", "off", "on", "off"])
    >>> learner.predict(np.array([[1.0], [6.0], [8.0]])), learner.state()["centroids"].ravel()
    (['off', 'on', 'off'], array([0. , 8.5, 5. ], dtype=float32))
    """

    _columns = "centroids"

    distance_threshold: float = 70.0
    max_centroids: int = 200
    topk: int = 1
    variant: str = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("distance_threshold", self.distance_threshold >= 0, "at least 0")
        self._require_whole("max_centroids", 1, MAX_CENTROIDS)
        self._require_whole("topk", 1)
        self._require_one_of("variant", "exact", "reference")

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Shares of the votes; equal ones where no word got any."""
        votes = scores.sum(axis=-1, keepdims=True)
        shares = np.full(scores.shape, 1 / max(scores.shape[-1], 1))
        return np.divide(scores, votes, out=shares, where=votes > 0)

    def _size(self, dim: int) -> tuple[int, int]:
        centroid = 4 * dim + 8
        return self.max_centroids * centroid, centroid + 8

    def min_bytes(self, dim: int, n_rows: int) -> int:
        """Fewest bytes of a state's arrays: one centroid for each word."""
        return n_rows * self._size(dim)[1]

    def _start(self, dim: int) -> None:
        self._dim = dim
        self._centroids: list[Centroids] = []

    def _grow(self) -> None:
        self._centroids.append(Centroids(self._dim))

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        centroids = self._centroids[k]
        squares = centroids.squared_distances(x)
        if squares.size and math.sqrt(squares.min()) < self.distance_threshold:
            centroids.join(0 if self.variant == "reference" else int(squares.argmin()), x)
        else:
            centroids.add(x)
        if sum(one.size for one in self._centroids) > self.max_centroids:
            closest = min(self._centroids, key=lambda one: one.closest)
            if closest.size > 1:
                closest.merge_closest()

    def _scores(self, X: np.ndarray) -> np.ndarray:
        table = np.concatenate([one.vectors for one in self._centroids])
        owners = np.repeat(np.arange(len(self._centroids)), [one.size for one in self._centroids])
        distances = np.sqrt(way(self._dim).squared_distances(X, table))
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.topk]
        votes = 1 / np.maximum(np.take_along_axis(distances, nearest, axis=1), 1e-12)
        scores = np.zeros((len(X), len(self._centroids)))
        np.add.at(scores, (np.arange(len(X))[:, None], owners[nearest]), votes)
        n = np.array([one.counts.sum() for one in self._centroids])
        return scores * n if self.variant == "reference" else scores / n

    def _forget(self, k: int) -> None:
        del self._centroids[k]

    def _arrays(self) -> dict[str, np.ndarray]:
        # With an empty one, so that there is something to concatenate.
        every = [Centroids(self._dim), *self._centroids]
        return {
            "centroids": np.concatenate([one.vectors for one in every]),
            "counts": np.concatenate([one.counts for one in every]),
            "sizes": np.array([one.size for one in self._centroids], dtype=np.int64),
        }

    def _load(self, state: StateReader, n_rows: int) -> None:
        sizes = state.take("sizes", (n_rows,), np.int64)
        total = int(sizes.sum())
        vectors = state.take("centroids", (total, self._dim))
        counts = state.take("counts", (total,), np.int64)
        if total > max(self.max_centroids, n_rows) or (sizes < 1).any() or (counts < 1).any():
            raise ModelFileError("learner 'cbcl': 'sizes' or 'counts' cannot be right")
        ends = np.cumsum(sizes)[:-1]
        self._centroids = [
            Centroids(self._dim, *part)
            for part in zip(np.split(vectors, ends), np.split(counts, ends), strict=True)
        ][:n_rows]


class Centroids:
    """Means of groups of samples: `vectors` (m, D) float32 of `counts` (m,) int64 samples each.

    Distances between them are cached. Those of a changed centroid are computed again when the
    closest pair is needed: one pass over the centroids instead of one over all pairs.
    """

    def __init__(
        self, dim: int, vectors: np.ndarray | None = None, counts: np.ndarray | None = None
    ):
        self._vectors = np.zeros((1, dim), dtype=np.float32) if vectors is None else vectors
        self._counts = np.zeros(1, dtype=np.int64) if counts is None else counts
        self.size = 0 if vectors is None else len(vectors)
        self._squares = np.full((1, 1), np.inf)
        self._changed = set(range(self.size))
        self._closest: float | None = None

    @property
    def vectors(self) -> np.ndarray:
        """The centroids (m, D)."""
        return self._vectors[: self.size]

    @property
    def counts(self) -> np.ndarray:
        """Samples behind each, (m,)."""
        return self._counts[: self.size]

    def squared_distances(self, x: np.ndarray) -> np.ndarray:
        """From x (D,) to each centroid: (m,) float64."""
        return way(len(x)).squared_distances(x[None], self.vectors)[0]

    def add(self, x: np.ndarray) -> None:
        """Make x (D,) a new centroid."""
        if self.size == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._vectors[self.size] = x
        self._counts[self.size] = 1
        self.size += 1
        self._touch(self.size - 1)

    def join(self, i: int, x: np.ndarray) -> None:
        """Add x (D,) to centroid i."""
        self._counts[i] += 1
        self._vectors[i] += (x - self._vectors[i]) / np.float32(self._counts[i])
        self._touch(i)

    @property
    def closest(self) -> float:
        """Squared distance of the closest pair; infinite if there is none."""
        if self._closest is None:
            self._closest = float(self._table().min(initial=np.inf))
        return self._closest

    def merge_closest(self) -> None:
        """Merge the closest pair into the later of the two."""
        first, second = map(int, np.unravel_index(self._table().argmin(), (self.size, self.size)))
        n, extra = int(self._counts[second]), int(self._counts[first])
        move = self._vectors[first] - self._vectors[second]
        self._vectors[second] += move * np.float32(extra / (n + extra))
        self._counts[second] += extra
        kept = slice(first, self.size - 1), slice(first + 1, self.size)
        self._vectors[kept[0]] = self._vectors[kept[1]]
        self._counts[kept[0]] = self._counts[kept[1]]
        self._squares[kept[0]] = self._squares[kept[1]]
        self._squares[:, kept[0]] = self._squares[:, kept[1]]
        self.size -= 1
        self._touch(second - 1)

    def _touch(self, i: int) -> None:
        self._changed.add(i)
        self._closest = None

    def _table(self) -> np.ndarray:
        """Squared distances (m, m) of all pairs, infinite on the diagonal."""
        m, capacity = self.size, len(self._squares)
        if m > capacity:
            larger = np.full((len(self._vectors), len(self._vectors)), np.inf)
            larger[:capacity, :capacity] = self._squares
            self._squares = larger
        for i in self._changed:
            squares = self.squared_distances(self._vectors[i])
            squares[i] = np.inf
            self._squares[i, :m] = self._squares[:m, i] = squares
        self._changed.clear()
        return self._squares[:m, :m]
