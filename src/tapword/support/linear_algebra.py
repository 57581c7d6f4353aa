"""Linear algebra of learners: by numpy, or by scipy where that is faster.

Symmetric matrices are packed lower triangles by columns, as in BLAS and LAPACK. scipy has routines
for this form, and is optional: learners with long vectors use it if it is installed. Importing it
takes longer than `import tapword`, and 33 MB of memory, so others never do.
"""

import functools
from typing import Any, Protocol

import numpy as np

from tapword.support.threads import one_blas_thread

# From this length of vectors on, scipy is worth its import: a choice, above every preset's blocks.
LARGE = 1024
# Rows that are factored or solved for at a time, and rows up to which a matrix is factored at once
# and the positions of its triangle are stored. Choices; the times differ little.
STEP, SMALL = 48, 128
# Numbers whose differences are computed at a time.
CACHED = 32_768


def packed_size(dim: int) -> int:
    """Numbers in the lower triangle of a (dim, dim) matrix."""
    return dim * (dim + 1) // 2


def packed_dim(size: int) -> int:
    """Rows of a matrix whose lower triangle has `size` numbers."""
    return (int(np.sqrt(8 * size + 1)) - 1) // 2


class Way(Protocol):
    """What is done one way or the other."""

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """Packed rows^T rows: (n, D) float32 -> (D (D + 1) / 2,)."""

    def cholesky(self, packed: np.ndarray) -> np.ndarray | None:
        """Lower Cholesky factor (D, D) of a packed matrix, float64; None if it is indefinite.

        The upper triangle is not always cleared.
        """

    def solve(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the matrix that a factor is of: rhs (K, D) -> (K, D), float64."""

    def solve_lower(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the factor alone: rhs (K, D) -> (K, D), float64."""

    def add_outer(self, packed: np.ndarray, e: np.ndarray, weight: float) -> None:
        """Add weight e e^T, e (D,) float32, in place."""

    def squared_distances(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Squared distances of rows (n, D) and rows (m, D): (n, m) float64.

        By differences: expanded squares lose digits far from the origin.
        """


class ByNumpy:
    """By numpy alone."""

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """Packed rows^T rows."""
        return pack(rows.T @ rows)

    def cholesky(self, packed: np.ndarray) -> np.ndarray | None:
        """Lower Cholesky factor, or None."""
        dim = packed_dim(len(packed))
        upper = np.zeros((dim, dim))
        place = 0
        for row in range(dim):
            upper[row, row:] = packed[place : place + dim - row]
            place += dim - row
        # In place: numpy's own factor of the whole matrix takes two copies of it.
        block = dim if dim <= SMALL else STEP
        for start in range(0, dim, block):
            end = start + block
            upper[start:end, start:] -= upper[:start, start:end].T @ upper[:start, start:]
            try:
                lower = np.linalg.cholesky(upper[start:end, start:end].T)
            except np.linalg.LinAlgError:
                return None
            upper[start:end, start:end] = lower.T
            upper[start:end, end:] = np.linalg.inv(lower) @ upper[start:end, end:]
        return upper.T

    def solve(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the matrix."""
        x = self.solve_lower(lower, rhs)
        for start in reversed(range(0, len(lower), STEP)):
            end = start + STEP
            x[:, start:end] -= x[:, end:] @ lower[end:, start:end]
            x[:, start:end] = np.linalg.solve(lower[start:end, start:end].T, x[:, start:end].T).T
        return x

    def solve_lower(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the factor."""
        x = np.array(rhs, dtype=np.float64)
        for start in range(0, len(lower), STEP):
            end = start + STEP
            x[:, start:end] -= x[:, :start] @ lower[start:end, :start].T
            x[:, start:end] = np.linalg.solve(lower[start:end, start:end], x[:, start:end].T).T
        return x

    def add_outer(self, packed: np.ndarray, e: np.ndarray, weight: float) -> None:
        """Add weight e e^T."""
        weighted = np.float32(weight) * e
        if len(e) <= SMALL:
            rows, columns = _positions(len(e))
            packed += weighted[rows] * e[columns]
            return
        lengths, start = len(e) - np.arange(len(e)), 0
        for first in range(0, len(e), SMALL):
            last = min(first + SMALL, len(e))
            outer = np.concatenate([e[column:] for column in range(first, last)])
            outer *= np.repeat(weighted[first:last], lengths[first:last])
            packed[start : start + len(outer)] += outer
            start += len(outer)

    def squared_distances(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Squared distances of rows, some at a time, which stay in a core's cache."""
        result = np.empty((len(X), len(Y)))
        step = max(1, CACHED // Y.shape[1])
        for start in range(0, len(Y), step):
            some = Y[start : start + step].astype(np.float64)
            difference = np.empty_like(some)
            for row, x in zip(result, X, strict=True):
                np.subtract(some, x, out=difference)
                np.einsum("md,md->m", difference, difference, out=row[start : start + step])
        return result


class ByScipy:
    """By scipy's BLAS and LAPACK."""

    def __init__(self) -> None:
        linalg = one_blas_thread.scipy_linalg()
        self._blas: Any = linalg.blas
        self._lapack: Any = linalg.lapack
        from scipy.spatial.distance import cdist

        self._cdist: Any = cdist

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """Packed rows^T rows."""
        return self._lapack.strttp(self._blas.ssyrk(1.0, rows.T, lower=1), uplo="L")[0]

    def cholesky(self, packed: np.ndarray) -> np.ndarray | None:
        """Lower Cholesky factor in Fortran order, or None; the upper triangle is not cleared."""
        matrix = self._lapack.dtpttr(packed_dim(len(packed)), packed, uplo="L")[0]
        lower, failed = self._lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return None if failed else lower

    def solve(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the matrix."""
        return self._lapack.dpotrs(lower, np.asfortranarray(rhs.T, dtype=np.float64), lower=1)[0].T

    def solve_lower(self, lower: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with the factor."""
        return self._lapack.dtrtrs(lower, np.asfortranarray(rhs.T, dtype=np.float64), lower=1)[0].T

    def add_outer(self, packed: np.ndarray, e: np.ndarray, weight: float) -> None:
        """Add weight e e^T."""
        self._blas.sspr(len(e), weight, e, packed, lower=1, overwrite_ap=1)

    def squared_distances(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Squared distances of rows."""
        distances: np.ndarray = self._cdist(X, Y, "sqeuclidean")
        return distances


_NUMPY = ByNumpy()


def way(dim: int) -> Way:
    """Choose for vectors of `dim` numbers."""
    return _NUMPY if dim < LARGE else _for_large()


@functools.cache
def _for_large() -> Way:
    try:
        return ByScipy()
    except ImportError:
        return _NUMPY


@functools.lru_cache(maxsize=8)
def _positions(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the numbers of a packed triangle."""
    columns, rows = np.triu_indices(dim)
    return rows, columns


def pack(matrix: np.ndarray) -> np.ndarray:
    """Pack a symmetric matrix (D, D)."""
    return np.concatenate([row[start:] for start, row in enumerate(matrix)])
