"""How much of the covariance a learner keeps: all, blocks, a sketch or the diagonal."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.packed import Blocks
from tapword.learners.sketch import SketchStatistics, sketch_bytes
from tapword.learners.statistics import Statistics, WordStatistics
from tapword.learners.statistics_learner import LinearLearner

FORMS = ("full", "block", "lowrank", "diagonal")
# Words for which a budget must leave room.
ROOM = 30


class CovarianceLearner(LinearLearner):
    """A linear learner whose covariance comes in several sizes.

    Attributes
    ----------
    covariance, block, rank, max_kb
        Which of `FORMS` is kept, and how large; each learner says what they mean to its users.
    """

    covariance: str
    block: int
    rank: int
    max_kb: float | None

    def _check_covariance(self) -> None:
        if self.covariance not in FORMS:
            raise InputError(
                f"{self.name}: covariance must be one of {', '.join(FORMS)}, "
                f"got {self.covariance!r}"
            )
        for key in ("block", "rank"):
            if not isinstance(getattr(self, key), int) or getattr(self, key) < 1:
                raise InputError(
                    f"{self.name}: {key} must be a whole number of at least 1, "
                    f"got {getattr(self, key)!r}"
                )
        if self.max_kb is not None and not self.max_kb > 0:
            raise InputError(f"{self.name}: max_kb must be above 0 or none, got {self.max_kb}")
        self.mergeable = self.mergeable and self.covariance != "lowrank"

    def form(self, dim: int) -> str:
        """Which of the forms is kept for vectors of `dim` numbers within `max_kb`."""
        forms = (self.covariance, *[name for name in ("block", "diagonal") if self._below(name)])
        for name in forms:
            if self.max_kb is None or self._bytes(name, dim, ROOM) <= 1000 * self.max_kb:
                return name
        return forms[-1]

    def _below(self, name: str) -> bool:
        return self.covariance == "full" or (name == "diagonal" and self.covariance == "block")

    def _bytes(self, form: str, dim: int, n_words: int) -> int:
        fixed, each = self._size_of(form, dim)
        return fixed + n_words * each

    def _size_of(self, form: str, dim: int) -> tuple[int, int]:
        if form == "lowrank":
            scatter = sketch_bytes(dim, self.rank)
        else:
            scatter = 4 * Blocks(dim, self._rows(form, dim)).numbers
        fixed, each = (0, scatter) if self.per_word else (scatter, 0)
        return fixed + 8, each + 4 * dim + 8

    def _rows(self, form: str, dim: int) -> int:
        return min(dim, {"full": dim, "block": self.block, "diagonal": 1}[form])

    def _size(self, dim: int) -> tuple[int, int]:
        return self._size_of(self.form(dim), dim)

    def _check_size(self, dim: int, n_words: int) -> None:
        super()._check_size(dim, n_words)
        kilobytes = self._bytes(self.form(dim), dim, n_words) / 1000
        if self.max_kb is not None and kilobytes > self.max_kb:
            raise InputError(
                f"{self.name} with {dim} numbers a vector and {n_words} words needs "
                f"{kilobytes:.0f} kB; max_kb is {self.max_kb:g}: forget a word, or raise it"
            )

    def _empty(self, dim: int) -> Statistics:
        form = self.form(dim)
        if form == "lowrank":
            return SketchStatistics(dim, self.rank)
        block = self._rows(form, dim)
        return WordStatistics(dim, block) if self.per_word else Statistics(dim, block=block)

    def _solve_covariance(self, share: float, extra: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Solve with share * scatter + diag(extra): rhs (K, D) -> (K, D), float64."""
        statistics = self._statistics
        if isinstance(statistics, SketchStatistics):
            return statistics.solve(share, extra, rhs)
        covariance = statistics.pooled() * np.float64(share)
        covariance[statistics.blocks.diagonal()] += extra
        return statistics.blocks.solve(covariance, rhs)
