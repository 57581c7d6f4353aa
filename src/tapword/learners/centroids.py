"""The centroids of one word, which know the closest two among them."""

import numpy as np
from scipy.spatial.distance import cdist


class Centroids:
    """Means of groups of samples, in the order they were made.

    Distances between them are kept too, and a changed centroid's are found again only when
    somebody asks for the closest two: a pass over the centroids, never one over their pairs.

    Parameters
    ----------
    dim
        Numbers per vector.
    vectors, counts
        Centroids (m, D) float32 and how many samples each stands for, (m,) int64.
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
        return cdist(x[None], self.vectors, "sqeuclidean")[0]

    def add(self, x: np.ndarray) -> None:
        """Make x (D,) a centroid of its own."""
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
        """Squared distance of the closest two; infinite where there are no two."""
        if self._closest is None:
            self._closest = float(self._table().min(initial=np.inf))
        return self._closest

    def merge_closest(self) -> None:
        """Make the closest two one, in the place of the later."""
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
        m, room = self.size, len(self._squares)
        if m > room:
            larger = np.full((len(self._vectors), len(self._vectors)), np.inf)
            larger[:room, :room] = self._squares
            self._squares = larger
        for i in self._changed:
            squares = self.squared_distances(self._vectors[i])
            squares[i] = np.inf
            self._squares[i, :m] = self._squares[:m, i] = squares
        self._changed.clear()
        return self._squares[:m, :m]
