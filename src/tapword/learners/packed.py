"""Symmetric matrices as packed lower triangles, which take half the memory.

They are packed by columns, as in BLAS and LAPACK (`sspr`, `strttp`, `dtpttr`).
"""

from typing import NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.support.linear_algebra import packed_dim, packed_size, way

# Relative increases of a covariance's diagonal, tried in order until it can be factored: 0, then
# from float32's rounding upwards by tens.
RAISES = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def packed_diagonal(dim: int) -> np.ndarray:
    """Positions of the diagonal in a packed lower triangle, shape (dim,)."""
    column = np.arange(dim)
    return column * dim - column * (column - 1) // 2


def gram(rows: np.ndarray) -> np.ndarray:
    """Packed rows^T rows: (n, D) float32 -> (D (D + 1) / 2,)."""
    return way(rows.shape[1]).gram(rows)


def factor(packed: np.ndarray) -> np.ndarray:
    """Cholesky factor of a packed covariance, (D (D + 1) / 2,) float64 -> (D, D).

    Rounding in float32 can make a matrix of nearly dependent features indefinite. Then each
    diagonal entry is raised by the smallest share in `RAISES` that helps. The factor is the lower
    triangle; the upper one is not always cleared.
    """
    dim = packed_dim(len(packed))
    diagonal = packed_diagonal(dim)
    for share in RAISES:
        matrix = packed
        if share:
            matrix = packed.copy()
            matrix[diagonal] *= 1 + share
        lower = way(dim).cholesky(matrix)
        if lower is not None:
            return lower
    raise InputError("the features are too nearly dependent for a covariance to be inverted")


def solve(lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve with a result of `factor`: rhs (K, D) -> (K, D), float64."""
    return way(len(lower)).solve(lower, rhs)


def whiten(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Solve with the triangle alone: rows (n, D) -> (n, D), whose norms are Mahalanobis."""
    return way(len(lower)).solve_lower(lower, rows)


class PackedBlocks(NamedTuple):
    """Layout of a symmetric (dim, dim) matrix with only blocks on its diagonal, each packed.

    A block has `size` rows; the last may have fewer. `size` = `dim` keeps the whole matrix, 1 the
    diagonal.
    """

    dim: int
    size: int

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        whole, rest = divmod(self.dim, self.size)
        return whole * packed_size(self.size) + packed_size(rest)

    def parts(self) -> list[tuple[slice, slice]]:
        """Rows of each block, and the position of its triangle."""
        result, start = [], 0
        for row in range(0, self.dim, self.size):
            rows = slice(row, min(row + self.size, self.dim))
            end = start + packed_size(rows.stop - row)
            result.append((rows, slice(start, end)))
            start = end
        return result

    def diagonal(self) -> np.ndarray:
        """Positions of the diagonal, shape (dim,)."""
        if self.size == 1:
            return np.arange(self.dim)
        parts = self.parts()
        return np.concatenate([at.start + packed_diagonal(r.stop - r.start) for r, at in parts])

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """PackedBlocks of rows^T rows: (n, dim) float32 -> (n_entries,)."""
        if self.size == 1:
            return np.einsum("nd,nd->d", rows, rows)
        if self.size >= self.dim:
            return gram(rows)
        blocks = [np.ascontiguousarray(rows[:, part]) for part, _ in self.parts()]
        return np.concatenate([gram(block) for block in blocks])

    def add_outer(self, packed: np.ndarray, e: np.ndarray, weight: float) -> None:
        """Add weight e e^T, e (dim,), to the blocks in place."""
        if self.size == 1:
            packed += np.float32(weight) * e * e
            return
        for rows, kept in self.parts():
            way(self.size).add_outer(packed[kept], e[rows], weight)

    def stays_definite(
        self, packed: np.ndarray, e: np.ndarray, weight: float, slack: np.ndarray
    ) -> bool:
        """Whether every block of the matrix + diag(slack) - weight e e^T is positive definite.

        A - weight e e^T is, for positive definite A, while weight e.A^-1.e is below 1.
        """
        raised = packed.astype(np.float64)
        raised[self.diagonal()] += slack
        found = self.solve(raised, e[None].astype(np.float64))[0] * e
        blocks = found if self.size == 1 else [found[rows].sum() for rows, _ in self.parts()]
        return bool((weight * np.asarray(blocks) <= 1).all())

    def solve(self, packed: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the matrix (n_entries,) float64: rhs (K, dim) -> (K, dim), float64."""
        if self.size == 1:
            return rhs / packed
        result = np.empty(rhs.shape)
        for rows, kept in self.parts():
            result[:, rows] = solve(factor(packed[kept]), rhs[:, rows])
        return result
