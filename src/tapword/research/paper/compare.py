"""Reproduced tables: our numbers beside the paper's, and how each table is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from tapword.backbones.base import Backbone
from tapword.research.metrics import mean
from tapword.research.paper.names import paper_label, paper_name
from tapword.research.paper.published import Figures, notes_on
from tapword.research.paper.results import PaperResults, Run, TooLarge
from tapword.research.records import Result

NONE = "—"


@dataclass(frozen=True)
class Cell:
    """Our number, the paper's, and the text shown where ours is missing."""

    ours: float | None = None
    paper: float | None = None
    text: str = ""

    @classmethod
    def of(cls, result: Result, measure: str = "acc", paper: float | None = None) -> Self:
        """Put a measure of a result beside the paper's."""
        refusal = "too large" if isinstance(result, TooLarge) else "refused"
        return cls(getattr(result, measure), paper, refusal if result.error else "")

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Group:
    """Columns of one backbone or measure: ours, the paper's and the difference.

    `paper` and `ours` are headings; an empty `paper` hides it and the difference. Numbers have
    `digits` decimals, and a plus sign where they are `signed`.
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
        # Adding 0 removes the sign of a rounded -0.
        return f"{round(value, self.digits) + 0.0:{'+' if signed else ''}.{self.digits}f}"


@dataclass
class Comparison:
    """One table: a title, and rows with a name (column `corner`) and a cell for each group."""

    title: str
    corner: str
    groups: list[Group]
    rows: list[tuple[str, list[Cell]]] = field(default_factory=list)

    def add(self, name: str, cells: Sequence[Cell]) -> None:
        """Add a row with a cell for each group."""
        if len(cells) != len(self.groups):
            raise ValueError(f"{name}: {len(cells)} cells for {len(self.groups)} groups")
        self.rows.append((name, list(cells)))

    def as_json(self) -> dict[str, Any]:
        """Give plain values, differences included."""

        def plain(cell: Cell) -> dict[str, Any]:
            return asdict(cell) | {"difference": cell.difference}

        rows = [{"name": name, "cells": list(map(plain, cells))} for name, cells in self.rows]
        return asdict(self) | {"rows": rows}


@dataclass
class Reproduced:
    """One of the paper's tables, run here, with notes a reader needs to compare.

    `drawings` are fragments of HTML. `PaperTable.reproduce` sets `name` and `title`.
    """

    comparisons: list[Comparison]
    notes: list[str] = field(default_factory=list)
    drawings: list[str] = field(default_factory=list)
    name: str = ""
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        """Give plain values, without the drawings: the tables have the same numbers."""
        tables = [comparison.as_json() for comparison in self.comparisons]
        return {"name": self.name, "title": self.title, "tables": tables, "notes": self.notes}


@dataclass
class Inputs:
    """What tables are made from: results on one data set, and the backbones that were run."""

    results: PaperResults
    backbones: list[Backbone]
    # For table 5: trained name -> the same network with random weights.
    untrained: dict[str, Backbone]
    # For figure 3: (language, number of words) -> its results; and a note on each missing one.
    micro_sets: dict[tuple[str, int], PaperResults]
    missing: list[str]

    def notes(self) -> list[str]:
        """Explain which of the paper's figures are shown for other networks than the paper's."""
        found = []
        others = [one.spec for one in self.backbones if paper_name(one) is None]
        if others:
            found.append(
                f"{', '.join(others)}: not one of the paper's six backbones, so compared with the "
                "paper's mean over its six."
            )
        found += [
            f"{one.spec} is untrained, and compared with the trained {paper_name(one)}."
            for one in self.backbones
            if paper_name(one) and "weights=random" in one.spec
        ]
        return found


@dataclass(frozen=True)
class AccuracyGrid:
    """Accuracy of runs (rows) with every backbone (columns), beside one of the paper's tables.

    `rows` and `figures` use the paper's names. With `less`, the accuracy of the run of the same
    name in it is subtracted from each row.
    """

    title: str
    corner: str
    rows: Mapping[str, Run]
    figures: Figures
    less: Mapping[str, Run] = field(default_factory=dict)

    def compare(self, inputs: Inputs) -> Comparison:
        """Put our accuracies beside the paper's; with several backbones, add their mean."""
        signed, several = bool(self.less), len(inputs.backbones) > 1
        titles = [(one.spec, paper_label(one)) for one in inputs.backbones]
        if several:
            titles.append(("mean of ours", paper_label()))
        groups = [Group(title, f"paper {theirs}", signed=signed) for title, theirs in titles]
        shown = Comparison(self.title, self.corner, groups)
        for name, run in self.rows.items():
            cells = []
            for one in inputs.backbones:
                ours = Cell.of(inputs.results.get(one, run))
                if self.less:
                    other = Cell.of(inputs.results.get(one, self.less[name]))
                    gain = replace(ours, paper=other.ours).difference
                    ours = Cell(gain, text=ours.text or other.text)
                cells.append(replace(ours, paper=self.figures.at(name, paper_name(one))))
            if several:
                cells.append(Cell(mean(one.ours for one in cells), self.figures.at(name, None)))
            shown.add(name, cells)
        return shown


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables: its title, how it is made, and the runs it needs."""

    title: str
    make: Callable[[Inputs], Reproduced]
    runs: Sequence[Run] = ()

    def reproduce(self, name: str, inputs: Inputs) -> Reproduced:
        """Make the table from finished runs; note the runs that were refused, and why."""
        made = self.make(inputs)
        refused = [
            f"{backbone.spec} · {run.pooling} · {run.learner}: {result.error}"
            for backbone in inputs.backbones
            for run in self.runs
            if (result := inputs.results.get(backbone, run)).error
        ]
        notes = list(dict.fromkeys([*notes_on(name), *made.notes, *refused]))
        return replace(made, notes=notes, name=name, title=self.title)
