"""Relative gains that the paper's text states, recomputed from its own tables and from ours."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tapword.backbones.base import Backbone
from tapword.research.datasets.mswc import Mswc
from tapword.research.metrics import mean, relative_gain
from tapword.research.paper import figure3
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Comparison, Group, Inputs, PaperTable, Reproduced
from tapword.research.paper.names import paper_name
from tapword.research.paper.results import PaperResults, Run
from tapword.research.paper.tables import AVG, MIXED, POOLINGS, TAP

# Run -> accuracy in percent.
Accuracy = Callable[[Run], float | None]


class Accuracies(NamedTuple):
    """Accuracies that claims are checked on: of each backbone, and their average."""

    each: Sequence[Accuracy]
    average: Accuracy

    def gain(self, before: Run, after: Run) -> float | None:
        """Relative gain of one method over another, in percent."""
        return relative_gain(self.average(before), self.average(after))

    def over_the_best(self) -> float | None:
        """Relative gain of TAP-SLDA over the best of all other learners and poolings."""
        others = {*AVG.values(), *POOLINGS.values()} - {TAP["SLDA"]}
        known = [value for run in others if (value := self.average(run)) is not None]
        return relative_gain(max(known), self.average(TAP["SLDA"])) if known else None

    def exceptions(self) -> float | None:
        """Share of learners and backbones that TAP makes worse, in percent."""
        pairs = [(one(AVG[name]), one(TAP[name])) for one in self.each for name in TAP]
        worse = [tap < avg for avg, tap in pairs if avg is not None and tap is not None]
        return 100 * sum(worse) / len(worse) if worse else None


class Claim(NamedTuple):
    """A claim: its text, the stated figure, how to recompute it, and its backbone if only one."""

    text: str
    figure: float
    recompute: Callable[[Accuracies], float | None]
    only: str | None = None


def _over(before: Run, after: Run = TAP["SLDA"]) -> Callable[[Accuracies], float | None]:
    return lambda accuracies: accuracies.gain(before, after)


STATED = paper.CLAIMS
CLAIMS = [
    Claim("abstract: over competitors, average", STATED["abstract"], Accuracies.over_the_best),
    Claim(
        "introduction: over the best competitor", STATED["introduction"], Accuracies.over_the_best
    ),
    Claim("TAP-SLDA over SLDA", STATED["slda"], _over(AVG["SLDA"])),
    Claim("the same on Emf-B over SQDA", STATED["emf-b over sqda"], _over(AVG["SQDA"]), "Emf-B"),
    Claim("the same on Emf-B over SLDA", STATED["emf-b over slda"], _over(AVG["SLDA"]), "Emf-B"),
    Claim("TAP over AVG pooling", STATED["avg"], _over(POOLINGS["AVG"])),
    Claim("TAP over AVGMAX", STATED["avgmax"], _over(POOLINGS["AVGMAX"])),
    Claim("TAP over TSTP", STATED["tstp"], _over(POOLINGS["TSTP"])),
    Claim("TAP-FT over FT, IID", STATED["iid"], _over(MIXED["FT"], MIXED["TAP-FT"])),
    Claim("cases that TAP makes worse, % of all", paper.EXCEPTIONS, Accuracies.exceptions),
    Claim("iCaRL's average Acc", paper.ICARL_AVERAGE, lambda given: given.average(AVG["iCaRL"])),
]
RUNS = [*AVG.values(), *TAP.values(), *POOLINGS.values(), MIXED["FT"], MIXED["TAP-FT"]]
# Run -> the paper's figures and its row there; of two tables that have it, the later one here.
_PRINTED = {
    **{run: (paper.TABLE3, name) for name, run in POOLINGS.items()},
    **{run: (paper.TABLE2, name) for name, run in TAP.items()},
    **{run: (paper.TABLE1["acc"], name) for name, run in AVG.items()},
    **{run: (paper.TABLE6, name) for name, run in MIXED.items()},
}


def paper_accuracies(only: str | None = None) -> Accuracies:
    """Accuracies in the paper's tables: of one backbone, or of all with the printed averages."""

    def printed(backbone: str | None, run: Run) -> float | None:
        figures, row = _PRINTED[run]
        return figures.at(row, backbone)

    each = [partial(printed, one) for one in ([only] if only else paper.COLUMNS)]
    return Accuracies(each, partial(printed, only))


def our_accuracies(results: PaperResults, backbones: Sequence[Backbone]) -> Accuracies:
    """Accuracies of our results with some backbones."""
    each = [partial(results.accuracy, one) for one in backbones]
    return Accuracies(each, lambda run: mean(one(run) for one in each))


def claims(inputs: Inputs) -> Reproduced:
    """Each claim, recomputed from the paper's tables and from our results."""
    columns = {one.spec: [one] for one in inputs.backbones}
    if len(columns) > 1:
        columns["mean of ours"] = inputs.backbones
    shown = Comparison(
        "Relative gains (and two other claims) in percent, compared with the text",
        "claim",
        [
            Group("paper's tables", "paper's text", ours="give"),
            *(Group(title, "paper's text") for title in columns),
        ],
    )
    for claim in CLAIMS:
        values = [claim.recompute(paper_accuracies(claim.only))]
        for backbones in columns.values():
            applies = claim.only is None or [claim.only] == [paper_name(one) for one in backbones]
            given = our_accuracies(inputs.results, backbones)
            values.append(claim.recompute(given) if applies else None)
        shown.add(claim.text, [Cell(value, claim.figure) for value in values])
    figure3.run(inputs)
    mswc = {key: one for key, one in inputs.micro_sets.items() if isinstance(one.dataset, Mswc)}
    largest = max(paper.FIGURE3_WORDS)
    for text, figure, sizes in (
        ("TAP-SLDA over SLDA on MSWC", STATED["mswc"], {size for _, size in mswc}),
        (f"the same, {largest} words", STATED["mswc, 100 words"], {largest}),
    ):
        chosen = [results for (_, size), results in mswc.items() if size in sizes]
        gains = [
            mean(figure3.gain(results, one) for results in chosen for one in backbones)
            for backbones in columns.values()
        ]
        shown.add(text, [Cell(value, figure) for value in (None, *gains)])
    missing = [] if inputs.micro_sets else ["Claims on MSWC need its folder: --mswc DIR."]
    return Reproduced([shown], missing + inputs.missing)


TABLE = PaperTable("What the text claims", claims, RUNS)
