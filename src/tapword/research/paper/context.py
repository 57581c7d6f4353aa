"""How tables are made: of results with some backbones, beside the paper's figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tapword.backbones.base import Backbone
from tapword.research.paper.bench import Bench, Need
from tapword.research.paper.comparison import Cell, Comparison, Group, Reproduced, mean
from tapword.research.paper.names import beside, column
from tapword.research.paper.published import Figures, notes_on


@dataclass
class Context:
    """What tables are made from: results on one data set, and the backbones that were run."""

    bench: Bench
    backbones: list[Backbone]
    # For table 5: trained name -> the same network with random weights.
    untrained: dict[str, Backbone]
    # For figure 3: (language, number of words) -> its results; and sentences on what is not there.
    micro_sets: dict[tuple[str, int], Bench]
    absent: list[str]

    def notes(self) -> list[str]:
        """Say whose figures stand beside ours, where they are not those of the same network."""
        found = []
        others = [one.spec for one in self.backbones if column(one) is None]
        if others:
            found.append(
                f"{', '.join(others)}: not among the paper's six backbones; beside it stands the "
                "paper's mean over its six."
            )
        found += [
            f"{one.spec} is untrained; beside it stands the trained {column(one)}."
            for one in self.backbones
            if column(one) and "weights=random" in one.spec
        ]
        return found


@dataclass(frozen=True)
class Grid:
    """Accuracy of results (rows) with every backbone (columns), beside a table of the paper's.

    `rows` and `figures` go by the paper's names. What `less` has for a name is subtracted from its
    row: the grid shows differences then.
    """

    title: str
    corner: str
    rows: Mapping[str, Need]
    figures: Figures
    less: Mapping[str, Need] = field(default_factory=dict)

    def compare(self, context: Context) -> Comparison:
        """Put our accuracies beside the paper's; several backbones have their mean behind them."""
        signed, several = bool(self.less), len(context.backbones) > 1
        titles = [(one.spec, beside(one)) for one in context.backbones]
        if several:
            titles.append(("mean of ours", beside()))
        groups = [Group(title, f"paper {theirs}", signed=signed) for title, theirs in titles]
        shown = Comparison(self.title, self.corner, groups)
        for name, need in self.rows.items():
            cells = []
            for one in context.backbones:
                ours = Cell.of(context.bench.get(one, need))
                if self.less:
                    other = Cell.of(context.bench.get(one, self.less[name]))
                    gain = replace(ours, paper=other.ours).difference
                    ours = Cell(gain, text=ours.text or other.text)
                cells.append(replace(ours, paper=self.figures.at(name, column(one))))
            if several:
                cells.append(Cell(mean(one.ours for one in cells), self.figures.at(name, None)))
            shown.add(name, cells)
        return shown


@dataclass(frozen=True)
class Table:
    """One of the paper's tables: what it shows, how it is made, and what must be run before."""

    title: str
    make: Callable[[Context], Reproduced]
    needs: Sequence[Need] = ()

    def reproduce(self, name: str, context: Context) -> Reproduced:
        """Make the table from results that were run; say what was not run, and why."""
        made = self.make(context)
        refused = [
            f"{backbone.spec} · {need.pooling} · {need.learner}: {result.error}"
            for backbone in context.backbones
            for need in self.needs
            if (result := context.bench.get(backbone, need)).error
        ]
        notes = list(dict.fromkeys([*notes_on(name), *made.notes, *refused]))
        return replace(made, notes=notes, name=name, title=self.title)
