"""What every table is made from, and the columns of backbones that most tables have."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.reproduce import names, paper
from tapword.reproduce.bench import Bench, Need, Result
from tapword.reproduce.compare import Cell, Group, Reproduced


@dataclass
class Context:
    """One run of `tapword reproduce`.

    Attributes
    ----------
    bench
        Runs on the data set of the tables.
    backbones
        Those that were found, and those that were not.
    micro_sets
        Language and number of words -> its bench, for figure 3.
    absent
        What of figure 3 cannot be had here, in sentences.
    """

    bench: Bench
    backbones: names.Backbones
    micro_sets: dict[tuple[str, int], Bench]
    absent: list[str]

    @property
    def usable(self) -> list[Backbone]:
        """Backbones to run."""
        return self.backbones.usable

    @property
    def dataset(self) -> Dataset:
        """Data set of the tables."""
        return self.bench.dataset


class Table(NamedTuple):
    """One of the paper's tables: its title, what it runs, and how it is put together."""

    title: str
    needs: list[Need]
    make: Callable[[Context, str, str], Reproduced]


def column(backbone: Backbone) -> str | None:
    """Give the paper's name of a backbone; None for one that it does not have."""
    return names.BACKBONES.get(backbone.name)


def heading(backbone: Backbone, among: int = len(paper.COLUMNS), said: bool = False) -> str:
    """Whose figure of the paper stands beside a backbone's, in a heading or in a sentence."""
    return ("paper's " if said else "paper ") + (column(backbone) or f"mean of {among}")


def cell(result: Result, key: str = "acc", theirs: float | None = None) -> Cell:
    """Put a number of a result beside the paper's; say why where there is none."""
    error = result.get("error")
    text = ("too large" if "max_gb" in error else "refused") if error else ""
    return Cell(result.get(key), theirs, text)


def groups(context: Context, signed: bool = False) -> list[Group]:
    """Make a group for each backbone, and for their mean where there are several."""
    found = [Group(one.spec, heading(one), signed=signed) for one in context.usable]
    if len(found) > 1:
        found.append(Group("mean of ours", "paper mean of 6", signed=signed))
    return found


def accuracies(
    context: Context, pooling: str, learner: str, order: str = "class-iid"
) -> list[Cell]:
    """Accuracy of each backbone, with nothing beside it yet."""
    return [cell(context.bench.get(one, pooling, learner, order)) for one in context.usable]


def less(ones: Iterable[Cell], others: Iterable[Cell]) -> list[Cell]:
    """Differences of cells, one by one."""
    return [
        Cell(Cell(one.ours, other.ours).difference, None, one.text or other.text)
        for one, other in zip(ones, others, strict=True)
    ]


def beside(
    context: Context,
    ours: Sequence[Cell],
    row: str,
    rows: paper.Rows,
    printed: Mapping[str, float] | None = None,
) -> list[Cell]:
    """Cells of a row for `groups`: ours of each backbone beside a table of the paper's."""
    theirs = [paper.figure(rows, row, column(one), printed) for one in context.usable]
    cells = [replace(one, paper=value) for one, value in zip(ours, theirs, strict=True)]
    if len(cells) > 1:
        theirs_mean = paper.figure(rows, row, None, printed)
        cells.append(Cell(mean(one.ours for one in cells), theirs_mean))
    return cells


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of numbers; None where there are none or one is missing."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return statistics.fmean(known) if known and len(known) == len(numbers) else None


def notes(context: Context, needs: Iterable[Need], strangers: bool = True) -> list[str]:
    """Say what holds for any table: whose figures are compared, and what was too large."""
    found = []
    others = [one.spec for one in context.usable if column(one) is None]
    if others and strangers:
        found.append(
            f"{', '.join(others)}: not among the paper's six backbones; beside it stands the "
            "paper's mean over its six."
        )
    for one in context.usable:
        if column(one) and "weights=random" in one.spec:
            found.append(f"{one.spec} is untrained; beside it stands the trained {column(one)}.")
    for backbone in context.usable:
        for need in needs:
            result = context.bench.get(backbone, need.pooling, need.learner, need.order)
            if result.get("error"):
                name = f"{backbone.spec} · {need.pooling} · {need.learner}"
                found.append(f"{name}: {result['error']}")
    return list(dict.fromkeys(found))
