"""Learners whose whole state is the shared statistic, with a covariance of several sizes."""

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner, StateBytes, StateReader
from tapword.learners.packed import PackedBlocks
from tapword.learners.spoken import SpokenStatistics
from tapword.learners.statistics import SketchStatistics, Statistics, WordStatistics
from tapword.support.linear_algebra import packed_size
from tapword.support.text import counted

# Forms of the covariance, and the smaller ones that replace each if memory is short.
SMALLER_FORMS = {
    "full": ("full", "block", "diagonal"),
    "block": ("block", "diagonal"),
    "lowrank": ("lowrank",),
    "diagonal": ("diagonal",),
}
FORMS = tuple(SMALLER_FORMS)
# Number of words that must fit into a memory budget: a choice, more than a household needs.
BUDGET_WORDS = 30


class StatisticsLearner(Learner):
    """A learner whose whole state is `statistics`; a subclass defines `_scores`.

    `keeps_scatter` says whether it needs the scatter or only the means, `per_word` whether it needs
    one scatter for each word.
    """

    mergeable = True
    keeps_scatter = True
    per_word = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.keeps_trace = self.keeps_scatter and not self.per_word

    def _size(self, dim: int) -> tuple[int, int]:
        return self._size_with(dim, 4 * packed_size(dim) if self.keeps_scatter else 0)

    def _size_with(self, dim: int, scatter: int) -> tuple[int, int]:
        """Bytes (fixed, per row) of a statistic whose scatter takes `scatter` bytes."""
        fixed, each = (0, scatter) if self.per_word else (scatter, 0)
        return fixed + 8, each + 4 * dim + 8

    def _start(self, dim: int) -> None:
        self.statistics: Statistics = self._empty(dim)
        # Of synthetic clips, row by row; None until there are any.
        self.spoken_statistics: SpokenStatistics | None = None

    @property
    def effective(self) -> Statistics:
        """Statistic that scores come from: synthetic clips count as a sample of their word.

        The scatter is that of the samples alone. C code goes on from this statistic.
        """
        if self.spoken_statistics is None:
            return self.statistics
        made = copy.copy(self.statistics)
        own, spoken = self.statistics, self.spoken_statistics
        weight = spoken.weight(own)
        made.counts = own.counts + weight
        made.n_scatter = own.n_scatter + int(weight.sum())
        shift = (weight / np.maximum(made.counts, 1))[:, None]
        made.centres = own.centres + shift * (spoken.centres - own.centres)
        made.centres = made.centres.astype(np.float32)
        return made

    def statistics_for(self, dim: int) -> Statistics:
        """Return `effective`; an empty one for vectors of `dim` numbers if nothing is taught."""
        return self._empty(dim) if self.dim is None else self.effective

    @property
    def state_bytes(self) -> StateBytes:
        """Bytes of the state now: in total, fixed, and for each word."""
        found = super().state_bytes
        clips = len(self.synthetic) * 4 * (self.dim or 0)
        return found._replace(total=found.total + clips)

    def _empty(self, dim: int) -> Statistics:
        return WordStatistics(dim) if self.per_word else Statistics(dim, self.keeps_scatter)

    def _grow(self) -> None:
        self.statistics.add_word()
        if self.spoken_statistics is not None:
            self.spoken_statistics.add_word()

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        self.statistics.update(x, k)

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        self.statistics.update_many(X, indices)

    @property
    def forgotten(self) -> int:
        """Samples of forgotten words in the shared scatter; the next samples replace them."""
        return 0 if self.dim is None else self.statistics.forgotten

    def _unlearn_one(self, x: np.ndarray, k: int, scattered: bool) -> None:
        self.statistics.unlearn(x, k, scattered)

    def _learn_synthetic(self, X: np.ndarray, k: int, native: bool) -> None:
        spoken = self._spoken_rows()
        spoken.update_many(X, np.full(len(X), k))
        spoken.foreign[k] += 0 if native else len(X)

    def _unlearn_synthetic(self, x: np.ndarray, k: int, native: bool) -> None:
        assert self.spoken_statistics is not None
        self.spoken_statistics.unlearn(x, k)
        self.spoken_statistics.foreign[k] -= not native
        if not self.spoken_statistics.counts.any():
            self.spoken_statistics = None

    def _load_synthetic(self, state: StateReader, clips: list[int]) -> None:
        counts = np.array(clips)
        self._require_counts(self.statistics.counts + counts)
        spoken = self._spoken_rows()
        spoken.counts[:] = counts
        if "synthetic_foreign" in state:
            foreign = state.take("synthetic_foreign", (sum(counts > 0),), np.int64)
            if foreign.min(initial=0) < 0 or (foreign > counts[counts > 0]).any():
                raise ModelFileError(f"learner {self.name!r}: 'synthetic_foreign' cannot be right")
            spoken.foreign[counts > 0] = foreign
        spoken.centres[counts > 0] = state.take("synthetic_means", (sum(counts > 0), spoken.dim))

    def _spoken_rows(self) -> SpokenStatistics:
        if self.spoken_statistics is None:
            rows = len(self.statistics.counts)
            self.spoken_statistics = SpokenStatistics(self.statistics.dim, rows)
        return self.spoken_statistics

    def _keep_rows(self, indices: list[int]) -> None:
        self.statistics = self.statistics.extract(indices)
        if self.spoken_statistics is not None:
            self.spoken_statistics = self.spoken_statistics.extract(indices)

    def _merge(self, other: "StatisticsLearner", indices: np.ndarray) -> None:
        self.statistics.merge(other.statistics, indices)
        if other.spoken_statistics is not None:
            self._spoken_rows().merge(other.spoken_statistics, indices)

    def _forget(self, k: int) -> None:
        self.statistics.remove(k)
        if self.spoken_statistics is not None:
            self.spoken_statistics.remove(k)
            if not self.spoken_statistics.counts.any():
                self.spoken_statistics = None

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = self.statistics.arrays()
        if self.spoken_statistics is not None:
            spoken = self.spoken_statistics
            means, typed = spoken.means, spoken.counts > 0
            spoken.centres[:] = means
            arrays["synthetic_means"] = means[typed]
            if spoken.foreign.any():
                arrays["synthetic_foreign"] = spoken.foreign[typed]
        return arrays

    def _load(self, state: StateReader, n_rows: int) -> None:
        self.statistics.load(state, n_rows)
        # Only a typed word has no samples.
        if "synthetic_means" not in state:
            self._require_counts(self.statistics.counts)

    def _require_counts(self, counts: np.ndarray) -> None:
        if counts.min(initial=1) < 1:
            raise ModelFileError(f"learner {self.name!r}: 'counts' or 'n_scatter' cannot be right")


class LinearLearner(StatisticsLearner):
    """A learner on the statistic whose scores are X @ weights.T + biases.

    Parameters
    ----------
    scatter
        "shared": one scatter for all words. "per-word": one for each, whose sum is used. The scores
        are the same; it takes K times the memory, and a forgotten word leaves no trace.
    """

    if TYPE_CHECKING:
        scatter: str

    supports_synthetic = True

    def __post_init__(self) -> None:
        self._require_one_of("scatter", "shared", "per-word")
        self.per_word = self.scatter == "per-word"
        super().__post_init__()

    def _changed(self) -> None:
        self._solved: tuple[np.ndarray, np.ndarray] | None = None

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (rows, D) and biases (rows,), float64; computed once after each change."""
        if self._solved is None:
            self._solved = self._solve()
        return self._solved

    def _scores(self, X: np.ndarray) -> np.ndarray:
        weights, biases = self.linear()
        return X @ weights.T + biases

    @abstractmethod
    def _solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases from the current statistic."""


class CovarianceLearner(LinearLearner):
    """A linear learner whose arguments choose the size of its covariance.

    Parameters
    ----------
    covariance
        "full"; "block": blocks of `block` numbers on the diagonal, the rest taken as 0; "lowrank":
        the diagonal and `rank` to 2 * `rank` directions, where the order of samples matters a
        little and two models cannot be merged; "diagonal".
    block, rank
        See `covariance`.
    max_kb
        Largest size of the state in kilobytes. If 30 words do not fit with `covariance`, the next
        smaller of full, block and diagonal is used; a word that no longer fits is refused.
    """

    if TYPE_CHECKING:
        covariance: str
        block: int
        rank: int
        max_kb: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_one_of("covariance", *FORMS)
        self._require_whole("block", 1)
        self._require_whole("rank", 1)
        self._require("max_kb", self.max_kb is None or self.max_kb > 0, "above 0 or none")
        self.mergeable = self.covariance != "lowrank"
        if self.per_word and self.covariance == "lowrank":
            raise InputError(f"{self.name}: scatter per-word cannot go with covariance lowrank")

    def form(self, dim: int) -> str:
        """Form that is used for vectors of `dim` numbers within `max_kb`."""
        forms = SMALLER_FORMS[self.covariance]
        for form in forms:
            fixed, each = self._size_of(form, dim)
            if self.max_kb is None or fixed + BUDGET_WORDS * each <= 1000 * self.max_kb:
                return form
        return forms[-1]

    def block_size(self, form: str, dim: int) -> int:
        """Rows of a block of the covariance in a form other than "lowrank"."""
        return min(dim, {"full": dim, "block": self.block, "diagonal": 1}[form])

    def _size_of(self, form: str, dim: int) -> tuple[int, int]:
        if form == "lowrank":
            # Rows and the diagonal, and the number of used rows.
            return self._size_with(dim, 4 * (2 * self.rank * dim + dim) + 8)
        return self._size_with(dim, 4 * PackedBlocks(dim, self.block_size(form, dim)).n_entries)

    def _size(self, dim: int) -> tuple[int, int]:
        return self._size_of(self.form(dim), dim)

    def _check_size(self, dim: int, n_rows: int) -> None:
        super()._check_size(dim, n_rows)
        kilobytes = self.bytes_for(dim, n_rows) / 1000
        if self.max_kb is not None and kilobytes > self.max_kb:
            raise InputError(
                f"{self.name} with {dim} numbers per vector and {counted(n_rows, 'word')} needs "
                f"{kilobytes:.0f} kB; max_kb is {self.max_kb:g}: forget a word, or raise it"
            )

    def _empty(self, dim: int) -> Statistics:
        form = self.form(dim)
        if form == "lowrank":
            return SketchStatistics(dim, self.rank)
        block = self.block_size(form, dim)
        return WordStatistics(dim, block) if self.per_word else Statistics(dim, block=block)
