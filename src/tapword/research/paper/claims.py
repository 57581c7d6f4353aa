"""The relative gains the paper's text states, recomputed: from its own tables and from ours."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tapword.backbones.base import Backbone
from tapword.research.datasets.mswc import Mswc
from tapword.research.paper import figure3
from tapword.research.paper import published as paper
from tapword.research.paper.bench import Bench, Need
from tapword.research.paper.comparison import (
    Cell,
    Comparison,
    Group,
    Reproduced,
    mean,
    relative_gain,
)
from tapword.research.paper.context import Context, Table
from tapword.research.paper.names import column
from tapword.research.paper.tables import AVG, MIXED, POOLINGS, TAP

# What is run -> accuracy in percent.
Accuracy = Callable[[Need], float | None]


class Source(NamedTuple):
    """Accuracies that claims can be checked on: those of each backbone, and their average."""

    each: Sequence[Accuracy]
    average: Accuracy

    def gain(self, before: Need, after: Need) -> float | None:
        """Relative gain of one method over another, in percent."""
        return relative_gain(self.average(before), self.average(after))

    def over_the_best(self) -> float | None:
        """Relative gain of TAP-SLDA over the best of all other learners and poolings."""
        others = {*AVG.values(), *POOLINGS.values()} - {TAP["SLDA"]}
        known = [value for need in others if (value := self.average(need)) is not None]
        return relative_gain(max(known), self.average(TAP["SLDA"])) if known else None

    def exceptions(self) -> float | None:
        """Share of learners and backbones that TAP makes worse, in percent."""
        pairs = [(one(AVG[name]), one(TAP[name])) for one in self.each for name in TAP]
        worse = [tap < avg for avg, tap in pairs if avg is not None and tap is not None]
        return 100 * sum(worse) / len(worse) if worse else None


class Claim(NamedTuple):
    """One claim: what it says, the paper's figure, how it is recomputed, and on which backbone."""

    text: str
    figure: float
    recompute: Callable[[Source], float | None]
    only: str | None = None


def _over(before: Need, after: Need = TAP["SLDA"]) -> Callable[[Source], float | None]:
    return lambda source: source.gain(before, after)


SAID = paper.CLAIMS
CLAIMS = [
    Claim("abstract: over competitors, average", SAID["abstract"], Source.over_the_best),
    Claim("introduction: over the best competitor", SAID["introduction"], Source.over_the_best),
    Claim("TAP-SLDA over SLDA", SAID["slda"], _over(AVG["SLDA"])),
    Claim("the same on Emf-B over SQDA", SAID["emf-b over sqda"], _over(AVG["SQDA"]), "Emf-B"),
    Claim("the same on Emf-B over SLDA", SAID["emf-b over slda"], _over(AVG["SLDA"]), "Emf-B"),
    Claim("TAP over AVG pooling", SAID["avg"], _over(POOLINGS["AVG"])),
    Claim("TAP over AVGMAX", SAID["avgmax"], _over(POOLINGS["AVGMAX"])),
    Claim("TAP over TSTP", SAID["tstp"], _over(POOLINGS["TSTP"])),
    Claim("TAP-FT over FT, IID", SAID["iid"], _over(MIXED["FT"], MIXED["TAP-FT"])),
    Claim("cases that TAP makes worse, % of all", paper.EXCEPTIONS, Source.exceptions),
    Claim("iCaRL's average Acc", paper.ICARL_AVERAGE, lambda source: source.average(AVG["iCaRL"])),
]
NEEDS = [*AVG.values(), *TAP.values(), *POOLINGS.values(), MIXED["FT"], MIXED["TAP-FT"]]
# What is run -> the paper's figures and the row of it there; what two tables give is taken from the
# later one here.
_PRINTED = {
    **{need: (paper.TABLE3, name) for name, need in POOLINGS.items()},
    **{need: (paper.TABLE2, name) for name, need in TAP.items()},
    **{need: (paper.TABLE1["acc"], name) for name, need in AVG.items()},
    **{need: (paper.TABLE6, name) for name, need in MIXED.items()},
}


def paper_source(only: str | None = None) -> Source:
    """Take the paper's tables: of one of its backbones, or of all with the averages it prints."""

    def printed(backbone: str | None, need: Need) -> float | None:
        figures, row = _PRINTED[need]
        return figures.at(row, backbone)

    each = [partial(printed, one) for one in ([only] if only else paper.COLUMNS)]
    return Source(each, partial(printed, only))


def our_source(bench: Bench, backbones: Sequence[Backbone]) -> Source:
    """Take our results with some backbones."""
    each = [partial(bench.accuracy, one) for one in backbones]
    return Source(each, lambda need: mean(one(need) for one in each))


def claims(context: Context) -> Reproduced:
    """Each claim: recomputed from the paper's tables, and from our results."""
    columns = {one.spec: [one] for one in context.backbones}
    if len(columns) > 1:
        columns["mean of ours"] = context.backbones
    shown = Comparison(
        "Relative gains (and two other claims) in percent, beside what the text says",
        "claim",
        [
            Group("paper's tables", "paper's text", ours="give"),
            *(Group(title, "paper's text") for title in columns),
        ],
    )
    for claim in CLAIMS:
        values = [claim.recompute(paper_source(claim.only))]
        for backbones in columns.values():
            meant = claim.only is None or [claim.only] == [column(one) for one in backbones]
            source = our_source(context.bench, backbones)
            values.append(claim.recompute(source) if meant else None)
        shown.add(claim.text, [Cell(value, claim.figure) for value in values])
    figure3.run(context)
    mswc = {key: one for key, one in context.micro_sets.items() if isinstance(one.dataset, Mswc)}
    largest = max(paper.FIGURE3_WORDS)
    for text, figure, sizes in (
        ("TAP-SLDA over SLDA on MSWC", SAID["mswc"], {size for _, size in mswc}),
        (f"the same, {largest} words", SAID["mswc, 100 words"], {largest}),
    ):
        benches = [bench for (_, size), bench in mswc.items() if size in sizes]
        gains = [
            mean(figure3.gain(bench, one) for bench in benches for one in backbones)
            for backbones in columns.values()
        ]
        shown.add(text, [Cell(value, figure) for value in (None, *gains)])
    missing = [] if context.micro_sets else ["Claims on MSWC need its folder: --mswc DIR."]
    return Reproduced([shown], missing + context.absent)


TABLE = Table("What the text claims", claims, NEEDS)
