"""What a reproduced table is made of: our numbers beside the paper's, in rows and groups."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tapword.research import metrics
from tapword.research.paper.bench import TooLarge
from tapword.research.records import Result

NONE = "—"


@dataclass(frozen=True)
class Cell:
    """Our number, the paper's, and the text that stands where ours is missing."""

    ours: float | None = None
    paper: float | None = None
    text: str = ""

    @classmethod
    def of(cls, result: Result, measure: str = "acc", paper: float | None = None) -> Self:
        """Put a number of a result beside the paper's; say so where it was refused."""
        refusal = "too large" if isinstance(result, TooLarge) else "refused"
        return cls(getattr(result, measure), paper, refusal if result.error else "")

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Group:
    """Columns of one backbone or measure: ours, the paper's and the difference.

    `paper` and `ours` are headings; an empty `paper` leaves it and the difference out. Numbers have
    `digits` behind the point, and a sign where they are `signed`.
    """

    title: str
    paper: str = "paper"
    digits: int = 1
    signed: bool = False
    ours: str = "ours"

    def columns(self) -> list[str]:
        """Headings below the title."""
        return [self.ours, self.paper, "diff"] if self.paper else [self.ours]

    def cells(self, cell: Cell) -> list[str]:
        """Write a cell: a text for each of `columns`."""
        ours = cell.text or self._write(cell.ours, self.signed)
        if not self.paper:
            return [ours]
        return [ours, self._write(cell.paper, self.signed), self._write(cell.difference, True)]

    def _write(self, value: float | None, signed: bool) -> str:
        if value is None:
            return NONE
        # Adding 0 takes the sign off a rounded -0.
        return f"{round(value, self.digits) + 0.0:{'+' if signed else ''}.{self.digits}f}"


@dataclass
class Comparison:
    """One table: below `title`, rows with a name (column `corner`) and a cell for each group."""

    title: str
    corner: str
    groups: list[Group]
    rows: list[tuple[str, list[Cell]]] = field(default_factory=list)

    def add(self, name: str, cells: Sequence[Cell]) -> None:
        """Add a row with a cell for each group."""
        if len(cells) != len(self.groups):
            raise ValueError(f"{name}: {len(cells)} cells for {len(self.groups)} groups")
        self.rows.append((name, list(cells)))

    def cell(self, row: str, group: int | str = 0) -> Cell:
        """Look a cell up by its row's name and its group's number or title."""
        titles = [one.title for one in self.groups]
        index = titles.index(group) if isinstance(group, str) else group
        return dict(self.rows)[row][index]

    def as_json(self) -> dict[str, Any]:
        """Give plain values, differences included."""

        def plain(cell: Cell) -> dict[str, Any]:
            return asdict(cell) | {"difference": cell.difference}

        rows = [{"name": name, "cells": list(map(plain, cells))} for name, cells in self.rows]
        return asdict(self) | {"rows": rows}


@dataclass
class Reproduced:
    """One of the paper's tables, run here, with sentences that a reader must know to compare.

    Drawings are fragments of HTML; `Table.reproduce` fills in name, title and the paper's notes.
    """

    comparisons: list[Comparison]
    notes: list[str] = field(default_factory=list)
    drawings: list[str] = field(default_factory=list)
    name: str = ""
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        """Give plain values; charts are left out, as their numbers stand in the tables."""
        tables = [comparison.as_json() for comparison in self.comparisons]
        return {"name": self.name, "title": self.title, "tables": tables, "notes": self.notes}


def relative_gain(before: float | None, after: float | None) -> float | None:
    """Relative gain of one accuracy over another, in percent; None where one is missing."""
    return None if before is None or after is None else metrics.relative_gain(before, after)


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of numbers; None where there are none or one is missing."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return statistics.fmean(known) if known and len(known) == len(numbers) else None
