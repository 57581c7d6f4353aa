"""The shared statistic: counts, means and the pooled within-word scatter.

    e = x - mean_k;  S_w += n_k / (n_k + 1) * e e^T;  mean_k += e / (n_k + 1);  n_k += 1

It equals the batch within-word scatter in any order, and two of them merge exactly (Chan, Golub,
LeVeque 1983). Of S_w only the packed lower triangle is kept: half the memory, one pass per sample.

A saved state is float32. In memory, means are float64 after the first sample, and `KahanSum` gives
the scatter about that precision, so that single samples are not lost to rounding. Scores use the
rounded values, and reading the state rounds what is in memory. So a learner goes on exactly like
one that was loaded from its state.

"Word" means a row of a learner's state here: a word, or the negatives of one.
"""

import copy
from typing import Self

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.learners.base import StateReader
from tapword.learners.packed import PackedBlocks

# Samples in one update of the scatter, which limits the copy of a large batch. Also the number of
# samples summed in float32 one by one: with more, small squares would be lost in a large sum.
CHUNK = 4096
# Largest count of a state; sums and products of such counts do not overflow.
MAX_SAMPLES = 2**40
# Relative tolerance when a sample is unlearned: far above float32's rounding, and below what
# `packed.factor` corrects.
ROUNDING = 1e-4


class KahanSum:
    """A packed sum of squares, float32, to which millions of samples can be added one by one.

    The first `CHUNK` samples go into the sum itself, later ones into a second array. That is added
    to the sum after every `CHUNK` samples, and the rounding error stays in it for the next time
    (Kahan's compensated summation, a batch at a time). Reading changes nothing.
    """

    def __init__(self, values: np.ndarray, samples: int = 0):
        self._values = values
        self._samples = samples
        self._collected: np.ndarray | None = None
        self._waiting = 0

    @property
    def values(self) -> np.ndarray:
        """The sum as a state has it."""
        return self._values if self._collected is None else self._values + self._collected

    def target(self, new: int = 1) -> np.ndarray:
        """Array to add the squares of `new` samples to."""
        self._samples += new
        if self._samples <= CHUNK:
            return self._values
        if self._collected is None:
            self._collected = np.zeros_like(self._values)
        if self._waiting + new > CHUNK:
            total = self.values
            self._collected -= total - self._values
            self._values[:] = total
            self._waiting = 0
        self._waiting += new
        return self._collected

    def rounded(self) -> np.ndarray:
        """Round the sum to float32 and return it."""
        if self._collected is not None:
            self._values += self._collected
            self._collected, self._waiting = None, 0
        return self._values


class Statistics:
    """Counts (K,), means (K, D) and the packed scatter, which is (0,) if it is not wanted.

    Attributes
    ----------
    blocks
        Layout of the scatter: all D (D + 1) / 2 numbers, or blocks on its diagonal.
    centres
        The means (K, D), float32 when loaded, to save memory, and float64 from the next sample on.
    n_scatter
        Samples in the scatter, including those of forgotten words.

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
        self.blocks = PackedBlocks(dim, min(block or dim, dim))
        self.keeps_scatter = self._shares_scatter = scatter
        self.counts = np.zeros(0, dtype=np.int64)
        self.centres = np.zeros((0, dim))
        self._buffer = self.centres
        self._sum = KahanSum(np.zeros(self.blocks.n_entries if scatter else 0, dtype=np.float32))
        self.n_scatter = 0

    @property
    def forgotten(self) -> int:
        """Samples of forgotten words, which stay in the scatter.

        The same number of later samples replace them: they change means and not the scatter.
        Otherwise a word that is forgotten and learned again and again would come to dominate the
        scatter.
        """
        return max(self.n_scatter - int(self.counts.sum()), 0)

    @property
    def means(self) -> np.ndarray:
        """Means (K, D) as a state has them, float32."""
        return self.centres.astype(np.float32, copy=False)

    @property
    def scatter(self) -> np.ndarray:
        """The packed scatter that all words share."""
        return self._sum.values

    def add_word(self) -> None:
        """Add a word without samples as the last row."""
        self.counts = np.append(self.counts, 0)
        n = len(self.centres)
        # Space for several words at a time: a copy for each word would take quadratic time.
        if self.centres.base is not self._buffer or n == len(self._buffer):
            self._buffer = np.zeros((n + max(4, n // 4), self.dim))
            self._buffer[:n] = self.centres
        self.centres = self._buffer[: n + 1]

    def update(self, x: np.ndarray, k: int, weight: float | None = None) -> None:
        """Add one sample of word `k`; `weight` replaces n_k / (n_k + 1) in the scatter."""
        self._use_float64()
        n, centre = int(self.counts[k]), self.centres[k]
        e = x - centre
        if not self.forgotten:
            weight = n / (n + 1) if weight is None else weight
            if self.keeps_scatter and weight:
                self._add_outer(k, e.astype(np.float32), weight)
            self.n_scatter += 1
        e /= n + 1
        centre += e
        self.counts[k] = n + 1

    def unlearn(self, x: np.ndarray, k: int, scattered: bool = True) -> None:
        """Undo `update` of one sample of word `k`, in any order, up to rounding.

        `scattered` says whether it was added to the scatter or replaced a forgotten sample. If
        other samples of its word replaced some, its share is not always known; then it stays in a
        shared scatter like a forgotten word's samples. A sample that cannot have been learned is
        refused where this can be recognised.
        """
        self._use_float64()
        n, centre = int(self.counts[k]), self.centres[k]
        mean = centre + (centre - x) / (n - 1) if n > 1 else np.zeros_like(centre)
        e, weight = (x - mean, (n - 1) / n) if n > 1 else (x - centre, 0.0)
        if n == 1:
            fits = bool(np.abs(e).max() <= ROUNDING * np.abs(x).max())
        elif scattered and self.keeps_scatter:
            held = self.scatter_of(k)
            slack = ROUNDING * (held[self.blocks.diagonal()] + x * x) + np.finfo(np.float32).tiny
            fits = self.blocks.stays_definite(held, e, weight, slack)
        else:
            fits = True
        if not fits and (n == 1 or not self._shares_scatter):
            raise InputError("this sample is not among those that were learned of the word")
        if scattered and fits:
            if self.keeps_scatter and weight:
                self._add_outer(k, e.astype(np.float32), -weight)
                self._clip_diagonal(k)
            self.n_scatter -= 1
        centre[:] = mean
        self.counts[k] = n - 1

    def extract(self, rows: list[int]) -> Self:
        """Copy with only these rows; `merge` restores them after they were removed.

        A shared scatter is copied only with all rows: removing some rows does not change it.
        """
        made = copy.copy(self)
        made.counts = self.counts[rows]
        made.centres = made._buffer = self.centres[rows]
        if not self._shares_scatter:
            made.n_scatter = int(made.counts.sum())
        elif len(rows) < len(self.counts):
            # np.zeros takes no memory until it is written to, unlike zeros_like.
            made._sum = KahanSum(np.zeros(self.scatter.shape, dtype=np.float32))
            made.n_scatter = 0
        else:
            made._sum = KahanSum(self.scatter.copy(), self.n_scatter)
        return made

    def update_many(self, X: np.ndarray, indices: np.ndarray, chunk: int = CHUNK) -> None:
        """Add rows of `X` (n, D) of words `indices` (n,): as `update`, but for rounding."""
        start = 0
        while start < len(X):
            # Samples that replace forgotten ones come first, in their own chunk.
            n = min(chunk, len(X) - start, self.forgotten or chunk)
            self._update_chunk(X[start : start + n], indices[start : start + n])
            start += n

    def _update_chunk(self, X: np.ndarray, indices: np.ndarray) -> None:
        # One copy of the batch, sorted by word: each word's rows are centred in place on their mean
        # and the shifts of the means are further rows. Another copy of a large batch would cost a
        # tenth of the product.
        order = np.argsort(indices, kind="stable")
        words, starts, new = np.unique(indices[order], return_index=True, return_counts=True)
        n = len(X)
        rows = np.empty((n + len(words), X.shape[1]), dtype=np.float32)
        np.take(X, order, axis=0, out=rows[:n], mode="clip")
        batch_means = np.empty((len(words), X.shape[1]))
        for mean, start, count in zip(batch_means, starts, new, strict=True):
            part = rows[start : start + count]
            mean[:] = np.mean(part, axis=0, dtype=np.float64)
            part -= mean.astype(np.float32)
        replaces_forgotten = self.forgotten > 0
        shift, weights = self._shift(words, batch_means, new)
        if replaces_forgotten:
            return
        if self.keeps_scatter:
            np.multiply(shift, np.sqrt(weights)[:, None], out=rows[n:])
            owner = np.append(np.repeat(np.arange(len(words)), new), np.arange(len(words)))
            self._add_rows(words, rows, owner)
        self.n_scatter += n

    def merge(self, other: Self, words: np.ndarray) -> None:
        """Add another's samples; its word i is row `words[i]` here."""
        shift, weights = self._shift(words, other.centres, other.counts)
        if self.keeps_scatter:
            for k, e, weight in zip(words, shift.astype(np.float32), weights, strict=True):
                if weight:
                    self._add_outer(k, e, float(weight))
            self._add_scatter(other, words)
        self.n_scatter += other.n_scatter

    def remove(self, k: int) -> None:
        """Remove a word's count and mean; its share of a shared scatter stays."""
        if not self._shares_scatter:
            self.n_scatter -= int(self.counts[k])
        self.counts = np.delete(self.counts, k)
        self.centres = self._buffer = np.delete(self.centres, k, axis=0)

    def pooled(self) -> np.ndarray:
        """Scatter of all words together, packed."""
        return self.scatter

    def within(self) -> np.ndarray | None:
        """Squares of each feature about its word's mean, summed over the samples, (D,) float64.

        None without a scatter.
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

    def solve(self, scale: float, extra: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with scale * scatter + diag(extra): rhs (K, D) -> (K, D), float64."""
        # Before numpy 2, float32 times a float64 number stays float32.
        covariance = np.multiply(self.pooled(), scale, dtype=np.float64)
        covariance[self.blocks.diagonal()] += extra
        return self.blocks.solve(covariance, rhs)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything by name, rounded as a state is."""
        means = self.means
        self.centres[:] = means
        scatter = {"scatter": self._sum.rounded()} if self._shares_scatter else {}
        n_scatter = np.array([self.n_scatter])
        return {"means": means, "counts": self.counts, "n_scatter": n_scatter, **scatter}

    def load(self, state: StateReader, n_rows: int) -> None:
        """Load what `arrays` of `n_rows` words returned."""
        self.centres = state.take("means", (n_rows, self.dim))
        self.counts = state.take("counts", (n_rows,), np.int64)
        self.n_scatter = int(state.take("n_scatter", (1,), np.int64)[0])
        largest = max(self.n_scatter, int(self.counts.max(initial=0)))
        if self.counts.min(initial=0) < 0 or self.n_scatter < 0 or largest > MAX_SAMPLES:
            raise ModelFileError(f"learner {state.name!r}: 'counts' or 'n_scatter' cannot be right")
        if self._shares_scatter:
            self._sum = KahanSum(state.take("scatter", (self.blocks.n_entries,)), self.n_scatter)
        else:
            self.n_scatter = int(self.counts.sum())

    def _shift(
        self, words: np.ndarray, means: np.ndarray, new: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Update means of `words` by `new` samples each; return shifts, n_a n_b / (n_a + n_b)."""
        self._use_float64()
        old = self.counts[words]
        shift = means - self.centres[words]
        total = np.maximum(old + new, 1)
        self.centres[words] += shift * (new / total)[:, None]
        self.counts[words] += new
        return shift, old * new / total

    def _use_float64(self) -> None:
        if self.centres.dtype != np.float64:
            self.centres = self.centres.astype(np.float64)

    def scatter_of(self, k: int) -> np.ndarray:
        """Packed scatter that samples of word `k` are added to."""
        return self._sum_of(k).values

    def _add_outer(self, k: int, e: np.ndarray, weight: float) -> None:
        self.blocks.add_outer(self._sum_of(k).target(), e, weight)

    def _clip_diagonal(self, k: int) -> None:
        """Raise negative sums of squares, which come from rounding, to 0."""
        scatter = self._sum_of(k).rounded()
        diagonal = self.blocks.diagonal()
        scatter[diagonal] = np.maximum(scatter[diagonal], 0)

    def _sum_of(self, k: int) -> KahanSum:
        return self._sum

    def _add_rows(self, words: np.ndarray, residuals: np.ndarray, rows: np.ndarray) -> None:
        """Add the squares of `residuals` (n, D); row i belongs to words[rows[i]].

        Each word has a row for each of its samples, and one for the shift of its mean.
        """
        target = self._sum.target(len(residuals) - len(words))
        target += self.blocks.gram(residuals)

    def _add_scatter(self, other: Self, words: np.ndarray) -> None:
        target = self._sum.target(other.n_scatter)
        target += other.scatter


class WordStatistics(Statistics):
    """One scatter per word: K times the memory, and forgetting a word is exact."""

    def __init__(self, dim: int, block: int | None = None):
        super().__init__(dim, scatter=False, block=block)
        self.keeps_scatter = True
        self._sums: list[KahanSum] = []

    @property
    def scatters(self) -> list[np.ndarray]:
        """Packed scatter of each word."""
        return [one.values for one in self._sums]

    def add_word(self) -> None:
        """Add a word without samples as the last row."""
        super().add_word()
        self._sums.append(KahanSum(np.zeros(self.blocks.n_entries, dtype=np.float32)))

    def remove(self, k: int) -> None:
        """Remove everything that word `k` added."""
        super().remove(k)
        del self._sums[k]

    def extract(self, rows: list[int]) -> Self:
        """Copy with only these rows; `merge` restores them after they were removed."""
        made = super().extract(rows)
        made._sums = [KahanSum(self._sums[k].values.copy(), int(self.counts[k])) for k in rows]
        return made

    def pooled(self) -> np.ndarray:
        """Scatter of all words together, packed."""
        total = np.zeros(self.blocks.n_entries)
        for scatter in self.scatters:
            total += scatter
        return total

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything by name, rounded as a state is."""
        scatters = {f"scatter_{k}": one.rounded() for k, one in enumerate(self._sums)}
        return super().arrays() | scatters

    def load(self, state: StateReader, n_rows: int) -> None:
        """Load what `arrays` of `n_rows` words returned."""
        super().load(state, n_rows)
        shape = (self.blocks.n_entries,)
        self._sums = [
            KahanSum(state.take(f"scatter_{k}", shape), int(n)) for k, n in enumerate(self.counts)
        ]

    def _sum_of(self, k: int) -> KahanSum:
        return self._sums[k]

    def _add_rows(self, words: np.ndarray, residuals: np.ndarray, rows: np.ndarray) -> None:
        for row, k in enumerate(words):
            own = residuals[rows == row]
            target = self._sums[k].target(len(own) - 1)
            target += self.blocks.gram(own)

    def _add_scatter(self, other: Self, words: np.ndarray) -> None:
        for k, scatter, n in zip(words, other.scatters, other.counts, strict=True):
            target = self._sums[k].target(int(n))
            target += scatter


class SketchStatistics(Statistics):
    """The shared statistic with the scatter as diagonal + low rank, by Frequent Directions.

    Rows are collected up to 2 * `rank`; then their singular values are shrunk so that `rank` of
    them remain (Liberty 2013). The diagonal is stored separately and exact. `rows^T rows`
    approximates the scatter, with rows (2 * rank, D) of which the first `used` are filled.
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
        """Return everything by name, without copies."""
        return super().arrays() | {"rows": self.rows, "used": np.array([self.used])}

    def load(self, state: StateReader, n_rows: int) -> None:
        """Load what `arrays` of `n_rows` words returned."""
        super().load(state, n_rows)
        self.rows = state.take("rows", self.rows.shape)
        self.used = int(np.clip(state.take("used", (1,), np.int64)[0], 0, len(self.rows)))

    def solve(self, scale: float, extra: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with scale * scatter + diag(extra): rhs (K, D) -> (K, D), by Woodbury's formula."""
        rows = self.rows[: self.used].astype(np.float64)
        beyond = np.maximum(self.scatter - np.einsum("rd,rd->d", rows, rows), 0)
        rows *= np.sqrt(scale)
        scaled = rows / (scale * beyond + extra)
        small = np.eye(len(rows)) + scaled @ rows.T
        first = rhs / (scale * beyond + extra)
        return first - np.linalg.solve(small, rows @ first.T).T @ scaled

    def _add_outer(self, k: int, e: np.ndarray, weight: float) -> None:
        super()._add_outer(k, e, weight)
        if self.used == len(self.rows):
            _, values, directions = np.linalg.svd(self.rows, full_matrices=False)
            # Vectors of at most `rank` numbers lose no direction.
            shrink = values[self.rank] ** 2 if len(values) > self.rank else 0
            kept = np.sqrt(np.maximum(values**2 - shrink, 0)[: self.rank])
            self.rows[:] = 0
            self.rows[: len(kept)] = kept[:, None] * directions[: len(kept)]
            self.used = len(kept)
        self.rows[self.used] = np.sqrt(np.float32(weight)) * e
        self.used += 1
