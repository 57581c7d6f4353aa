"""The shared statistic: counts, means and the pooled within-word scatter.

    e = x - mean_k;  S_w += n_k / (n_k + 1) * e e^T;  mean_k += e / (n_k + 1);  n_k += 1

It equals the batch within-word scatter whatever the order, and two of them merge exactly
(Chan, Golub, LeVeque 1983). Of S_w only the packed lower triangle is kept: half the memory, one
pass over it per sample.

"Word" below stands for a row of a learner's state: a word, or the negatives of one.
"""

from typing import Self

import numpy as np

from tapword.errors import ModelFileError
from tapword.learners.base import StateReader
from tapword.learners.packed import Blocks

# Samples that one update of the scatter takes at a time: bounds the copy of a large batch.
CHUNK = 4096
# Samples of a word that a state may claim; sums and products of such counts stay in range.
MOST_SAMPLES = 2**40


class Statistics:
    """Counts (K,), means (K, D) and the packed scatter, or (0,) where it is not wanted.

    Attributes
    ----------
    blocks
        Which numbers of the scatter are kept: D (D + 1) / 2 of all, or of blocks on its diagonal.
    n_scatter
        Samples behind `scatter`; forgetting a word does not lower it, because the word's share
        of the scatter stays.

    Examples
    --------
    >>> statistics = Statistics(dim=1)
    >>> statistics.add_word()
    >>> for value in (1.0, 2.0, 6.0):
    ...     statistics.update(np.array([value], dtype=np.float32), 0)
    >>> statistics.means[0], statistics.scatter
    (array([3.], dtype=float32), array([14.], dtype=float32))
    """

    def __init__(self, dim: int, scatter: bool = True, block: int | None = None):
        self.dim = dim
        self.blocks = Blocks(dim, min(block or dim, dim))
        self.keeps_scatter = scatter
        self.counts = np.zeros(0, dtype=np.int64)
        self.means = np.zeros((0, dim), dtype=np.float32)
        self._room = self.means
        self.scatter = np.zeros(self.blocks.numbers if scatter else 0, dtype=np.float32)
        self.n_scatter = 0

    def add_word(self) -> None:
        """Add a word without samples as the last row."""
        self.counts = np.append(self.counts, 0)
        n = len(self.means)
        # Room for some more words at a time: copying all means for each word takes quadratic time.
        if self.means.base is not self._room or n == len(self._room):
            self._room = np.zeros((n + max(4, n // 4), self.dim), dtype=np.float32)
            self._room[:n] = self.means
        self.means = self._room[: n + 1]

    def update(self, x: np.ndarray, k: int, weight: float | None = None) -> None:
        """Add one sample of word `k`; `weight` replaces n_k / (n_k + 1) in the scatter."""
        n = int(self.counts[k])
        e = x - self.means[k]
        self._add_outer(k, e, n / (n + 1) if weight is None else weight)
        self.means[k] += e / np.float32(n + 1)
        self.counts[k] = n + 1
        self.n_scatter += 1

    def update_many(self, X: np.ndarray, indices: np.ndarray, chunk: int = CHUNK) -> None:
        """Add rows of `X` (n, D) of words `indices` (n,): `update` but for the sums' rounding."""
        for start in range(0, len(X), chunk):
            self._update_chunk(X[start : start + chunk], indices[start : start + chunk])

    def _update_chunk(self, X: np.ndarray, indices: np.ndarray) -> None:
        # One copy of the batch, sorted by word: each word's rows are centred in place on their own
        # mean, and how far the means moved follows as further rows. Every other copy of a large
        # batch would cost a tenth of the product.
        order = np.argsort(indices, kind="stable")
        words, starts, new = np.unique(indices[order], return_index=True, return_counts=True)
        n = len(X)
        rows = np.empty((n + len(words), X.shape[1]), dtype=np.float32)
        np.take(X, order, axis=0, out=rows[:n], mode="clip")
        batch_means = np.empty((len(words), X.shape[1]), dtype=np.float32)
        for mean, start, count in zip(batch_means, starts, new, strict=True):
            part = rows[start : start + count]
            mean[:] = np.mean(part, axis=0, dtype=np.float64)
            part -= mean
        shift, weights = self._shift(words, batch_means, new)
        if self.keeps_scatter:
            np.multiply(shift, np.sqrt(weights)[:, None], out=rows[n:])
            owner = np.append(np.repeat(np.arange(len(words)), new), np.arange(len(words)))
            self._add_rows(words, rows, owner)
        self.n_scatter += n

    def merge(self, other: Self, words: np.ndarray) -> None:
        """Add another's samples; `words` (K_other,) are the rows here of its words."""
        shift, weights = self._shift(words, other.means, other.counts)
        if self.keeps_scatter:
            for k, e, weight in zip(words, shift, weights, strict=True):
                self._add_outer(k, e, float(weight))
            self._add_scatter(other, words)
        self.n_scatter += other.n_scatter

    def remove(self, k: int) -> None:
        """Drop a word's count and mean. Its share of the scatter cannot be taken out."""
        self.counts = np.delete(self.counts, k)
        self.means = np.delete(self.means, k, axis=0)

    def pooled(self) -> np.ndarray:
        """Scatter of all words together, packed."""
        return self.scatter

    def within(self) -> np.ndarray | None:
        """Squares of each feature about its word's mean, summed over the samples, (D,) float64.

        None where no scatter is kept that would tell.
        """
        pooled = self.pooled()
        return pooled[self.blocks.diagonal()].astype(np.float64) if len(pooled) else None

    def variances(self) -> np.ndarray:
        """Variance of each feature over all samples, (D,) float64: within words and between."""
        n = max(int(self.counts.sum()), 1)
        means = self.means.astype(np.float64)
        between = self.counts @ np.square(means - self.counts @ means / n)
        within = self.pooled()[self.blocks.diagonal()].astype(np.float64)
        return within / max(self.n_scatter, 1) + between / n

    def solve(self, share: float, extra: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with share * scatter + diag(extra): rhs (K, D) -> (K, D), float64."""
        covariance = self.pooled() * np.float64(share)
        covariance[self.blocks.diagonal()] += extra
        return self.blocks.solve(covariance, rhs)

    def arrays(self) -> dict[str, np.ndarray]:
        """Give everything by name, without copies."""
        scatter = {"scatter": self.scatter} if self.scatter.size else {}
        n_scatter = np.array([self.n_scatter])
        return {"means": self.means, "counts": self.counts, "n_scatter": n_scatter, **scatter}

    def load(self, state: StateReader, n_rows: int) -> None:
        """Take over what `arrays` of `n_rows` words gave."""
        self.means = state.take("means", (n_rows, self.dim))
        self.counts = state.take("counts", (n_rows,), np.int64)
        self.n_scatter = int(state.take("n_scatter", (1,), np.int64)[0])
        numbers = np.append(self.counts, self.n_scatter)
        if self.counts.min(initial=1) < 1 or self.n_scatter < 0 or numbers.max() > MOST_SAMPLES:
            raise ModelFileError(f"learner {state.name!r}: 'counts' or 'n_scatter' cannot be right")
        if self.scatter.size:
            self.scatter = state.take("scatter", (self.blocks.numbers,))

    def _shift(
        self, words: np.ndarray, means: np.ndarray, new: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move means of `words` by `new` samples each; give the moves and n_a n_b / (n_a + n_b)."""
        old = self.counts[words]
        shift = means - self.means[words]
        total = np.maximum(old + new, 1)
        self.means[words] += shift * (new / total).astype(np.float32)[:, None]
        self.counts[words] += new
        return shift, (old * new / total).astype(np.float32)

    def scatter_of(self, k: int) -> np.ndarray:
        """Packed scatter that samples of word `k` are added to."""
        return self.scatter

    def _add_outer(self, k: int, e: np.ndarray, weight: float) -> None:
        if self.keeps_scatter and weight:
            self.blocks.add_outer(self.scatter_of(k), e, weight)

    def _add_rows(self, words: np.ndarray, residuals: np.ndarray, rows: np.ndarray) -> None:
        """Add the squares of `residuals` (n, D), of which row i belongs to words[rows[i]]."""
        self.scatter += self.blocks.gram(residuals)

    def _add_scatter(self, other: Self, words: np.ndarray) -> None:
        self.scatter += other.scatter


class WordStatistics(Statistics):
    """The same with one scatter per word: K times the memory, and forgetting a word is exact."""

    def __init__(self, dim: int, block: int | None = None):
        super().__init__(dim, scatter=False, block=block)
        self.keeps_scatter = True
        self.scatters: list[np.ndarray] = []

    def add_word(self) -> None:
        """Add a word without samples as the last row."""
        super().add_word()
        self.scatters.append(np.zeros(self.blocks.numbers, dtype=np.float32))

    def remove(self, k: int) -> None:
        """Drop all that word `k` added."""
        self.n_scatter -= int(self.counts[k])
        super().remove(k)
        del self.scatters[k]

    def pooled(self) -> np.ndarray:
        """Scatter of all words together, packed."""
        total = np.zeros(self.blocks.numbers)
        for scatter in self.scatters:
            total += scatter
        return total

    def arrays(self) -> dict[str, np.ndarray]:
        """Give everything by name, without copies."""
        scatters = {f"scatter_{k}": scatter for k, scatter in enumerate(self.scatters)}
        return super().arrays() | scatters

    def load(self, state: StateReader, n_rows: int) -> None:
        """Take over what `arrays` of `n_rows` words gave."""
        super().load(state, n_rows)
        shape = (self.blocks.numbers,)
        self.scatters = [state.take(f"scatter_{k}", shape) for k in range(n_rows)]

    def scatter_of(self, k: int) -> np.ndarray:
        """Packed scatter of word `k`."""
        return self.scatters[k]

    def _add_rows(self, words: np.ndarray, residuals: np.ndarray, rows: np.ndarray) -> None:
        for row, k in enumerate(words):
            self.scatters[k] += self.blocks.gram(residuals[rows == row])

    def _add_scatter(self, other: Self, words: np.ndarray) -> None:
        for k, scatter in zip(words, other.scatters, strict=True):
            self.scatters[k] += scatter


class SketchStatistics(Statistics):
    """The shared statistic with the scatter as diagonal + low rank, by Frequent Directions.

    Rows are collected until 2 * `rank` are there; then their singular values are shrunk so that
    `rank` of them remain (Liberty 2013). The diagonal is kept apart and is exact. `rows^T rows`
    stands for the scatter, with rows (2 * rank, D) of which `used` hold something.
    """

    def __init__(self, dim: int, rank: int):
        super().__init__(dim, block=1)
        self.rank = rank
        self.rows = np.zeros((2 * rank, dim), dtype=np.float32)
        self.used = 0

    def update_many(self, X: np.ndarray, indices: np.ndarray, chunk: int = CHUNK) -> None:
        """Add rows of `X` (n, D) of words `indices` (n,) one by one: their order matters."""
        for x, k in zip(X, indices, strict=True):
            self.update(x, k)

    def arrays(self) -> dict[str, np.ndarray]:
        """Give everything by name, without copies."""
        return super().arrays() | {"rows": self.rows, "used": np.array([self.used])}

    def load(self, state: StateReader, n_rows: int) -> None:
        """Take over what `arrays` of `n_rows` words gave."""
        super().load(state, n_rows)
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
