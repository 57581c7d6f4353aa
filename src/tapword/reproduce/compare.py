"""Ours beside the paper's: cells, the tables made of them, and how a console shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.containers import Renderables
from rich.table import Table
from rich.text import Text

NONE = "—"


@dataclass(frozen=True)
class Cell:
    """A number of ours, the paper's, and what stands there where ours is missing."""

    ours: float | None = None
    paper: float | None = None
    text: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Group:
    """Columns that belong together: ours, the paper's and the difference.

    Attributes
    ----------
    title
        Whose numbers ours are, or what they count.
    paper
        Whose numbers the paper's are; "" leaves its column and the difference out.
    digits
        Behind the point.
    signed
        Whether numbers are differences themselves.
    ours
        What the first column is called.
    """

    title: str
    paper: str = "paper"
    digits: int = 1
    signed: bool = False
    ours: str = "ours"

    def write(self, value: float | None, signed: bool | None = None) -> str:
        """Write a number of this group."""
        if value is None:
            return NONE
        signed = self.signed if signed is None else signed
        # Adding 0 takes the sign off a rounded -0.
        return f"{round(value, self.digits) + 0.0:{'+' if signed else ''}.{self.digits}f}"

    def columns(self) -> list[str]:
        """Headings below the title."""
        return [self.ours, self.paper, "diff"] if self.paper else [self.ours]

    def cells(self, cell: Cell) -> list[str]:
        """Write a cell, a text for each of `columns`."""
        ours = cell.text or self.write(cell.ours)
        if not self.paper:
            return [ours]
        return [ours, self.write(cell.paper), self.write(cell.difference, signed=True)]


@dataclass
class Comparison:
    """One table: rows by name, a cell for each group of columns."""

    title: str
    corner: str
    groups: list[Group]
    rows: list[tuple[str, list[Cell]]] = field(default_factory=list)

    def add(self, name: str, cells: Sequence[Cell]) -> None:
        """Add a row, a cell for each group."""
        if len(cells) != len(self.groups):
            raise ValueError(f"{name}: {len(cells)} cells for {len(self.groups)} groups")
        self.rows.append((name, list(cells)))

    def cell(self, row: str, group: int | str = 0) -> Cell:
        """Look a cell up by the names of its row and group."""
        titles = [one.title for one in self.groups]
        index = titles.index(group) if isinstance(group, str) else group
        return dict(self.rows)[row][index]

    def as_json(self) -> dict[str, Any]:
        """Give plain values, differences included."""
        return {
            "title": self.title,
            "corner": self.corner,
            "groups": [asdict(group) for group in self.groups],
            "rows": [
                {
                    "name": name,
                    "cells": [asdict(cell) | {"difference": cell.difference} for cell in cells],
                }
                for name, cells in self.rows
            ],
        }


@dataclass
class Reproduced:
    """One of the paper's tables, run.

    Attributes
    ----------
    name, title
        As the command line calls it, and what it shows.
    comparisons
        Tables of ours beside the paper's.
    notes
        What a reader must know to compare.
    drawings
        Charts as fragments of HTML.
    """

    name: str
    title: str
    comparisons: list[Comparison]
    notes: list[str] = field(default_factory=list)
    drawings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Give plain values; charts are left out, their numbers are in the tables."""
        tables = [comparison.as_json() for comparison in self.comparisons]
        return {"name": self.name, "title": self.title, "tables": tables, "notes": self.notes}


def console_tables(comparison: Comparison, width: int = 100) -> Iterator[RenderableType]:
    """Tables for a console, as many groups side by side as its width holds."""
    for start, end in _chunks(comparison, width):
        title = comparison.title + (" (continued)" if start else "")
        shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        shown.add_column(Text(f"\n{comparison.corner}"), no_wrap=True)
        for group in comparison.groups[start:end]:
            first, *rest = group.columns()
            shown.add_column(Text(f"{group.title}\n{first}"), justify="right", no_wrap=True)
            for heading in rest:
                lines = heading if " " in heading else f" {heading}"
                label = Text(lines.replace(" ", "\n", 1))
                shown.add_column(label, justify="right", no_wrap=True, style="dim")
        for name, cells in comparison.rows:
            texts: list[Text] = []
            for group, cell in zip(comparison.groups[start:end], cells[start:end], strict=True):
                texts += map(Text, group.cells(cell))
            shown.add_row(Text(name), *texts)
        yield Renderables([Text(f"\n{title}", style="italic"), shown])


def _chunks(comparison: Comparison, room: int) -> Iterator[tuple[int, int]]:
    """Find groups, from and to, that fit on a console."""
    names = [comparison.corner, *(name for name, _ in comparison.rows)]
    # Beside each column stand a space of padding and one of the box; the box has two edges.
    first = max(map(len, names)) + 2 + 2
    start, width = 0, first
    for index, group in enumerate(comparison.groups):
        headings = [heading.partition(" ")[2] or heading for heading in group.columns()]
        headings[0] = max(headings[0], group.title, key=len)
        rows = [headings, *(group.cells(cells[index]) for _, cells in comparison.rows)]
        own = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
        if index > start and width + own > room:
            yield start, index
            start, width = index, first
        width += own
    if comparison.groups:
        yield start, len(comparison.groups)
