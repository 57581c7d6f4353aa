"""A scatter remembered by its strongest directions: a sketch that never grows."""

import numpy as np

from tapword.learners.base import StateReader
from tapword.learners.packed import Blocks
from tapword.learners.statistics import Statistics


class SketchStatistics(Statistics):
    """The shared statistic with the scatter as diagonal + low rank, by Frequent Directions.

    Rows are collected until 2 * `rank` are there; then their singular values are shrunk so that
    `rank` of them remain (Liberty 2013). The diagonal is kept apart and is exact.

    Attributes
    ----------
    rows
        Shape (2 * rank, D): rows^T rows stands for the scatter.
    used
        How many of the rows hold something.
    """

    def __init__(self, dim: int, rank: int):
        super().__init__(dim, block=1)
        self.rank = rank
        self.rows = np.zeros((2 * rank, dim), dtype=np.float32)
        self.used = 0

    def update_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        """Add rows of `X` (n, D) of words `indices` (n,) one by one: their order matters."""
        for x, k in zip(X, indices, strict=True):
            self.update(x, k)

    def arrays(self) -> dict[str, np.ndarray]:
        """Give everything by name, without copies."""
        return super().arrays() | {"rows": self.rows, "used": np.array([self.used])}

    def load(self, state: StateReader, n_words: int) -> None:
        """Take over what `arrays` of `n_words` words gave."""
        super().load(state, n_words)
        self.rows = state.take("rows", self.rows.shape)
        self.used = int(np.clip(state.take("used", (1,), np.int64)[0], 0, len(self.rows)))

    def solve(self, share: float, extra: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with share * scatter + diag(extra): rhs (K, D) -> (K, D), by Woodbury's formula."""
        rows = self.rows[: self.used].astype(np.float64)
        beyond = np.maximum(self.scatter - np.einsum("rd,rd->d", rows, rows), 0)
        rows *= np.sqrt(share)
        scaled = rows / (share * beyond + extra)
        small = np.eye(len(rows)) + scaled @ rows.T
        first = rhs / (share * beyond + extra)
        return first - np.linalg.solve(small, rows @ first.T).T @ scaled

    def _add_outer(self, k: int, e: np.ndarray, weight: float) -> None:
        super()._add_outer(k, e, weight)
        if not weight:
            return
        if self.used == len(self.rows):
            _, values, directions = np.linalg.svd(self.rows, full_matrices=False)
            # Vectors of no more numbers than `rank` have no direction to give up.
            shrink = values[self.rank] ** 2 if len(values) > self.rank else 0
            kept = np.sqrt(np.maximum(values**2 - shrink, 0)[: self.rank])
            self.rows[:] = 0
            self.rows[: len(kept)] = kept[:, None] * directions[: len(kept)]
            self.used = len(kept)
        self.rows[self.used] = np.sqrt(np.float32(weight)) * e
        self.used += 1


def sketch_bytes(dim: int, rank: int) -> int:
    """Bytes of the rows and the diagonal."""
    return 4 * (2 * rank * dim + Blocks(dim, 1).numbers) + 8
