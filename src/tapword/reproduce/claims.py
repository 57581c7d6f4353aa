"""The relative gains the paper's text states, recomputed: from its own tables and from ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tapword import metrics
from tapword.backbones.base import Backbone
from tapword.reproduce import figure3, paper
from tapword.reproduce.bench import Bench, Need
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced
from tapword.reproduce.context import Context, Table, column, mean, notes
from tapword.reproduce.names import LEARNERS, POOLINGS
from tapword.reproduce.tables import AVG_NEEDS, TAP_NEEDS

TITLE = "What the text claims"
# Pooling by the paper's name, learner, order -> accuracy.
Accuracy = Callable[[str, str, str], float | None]


@dataclass(frozen=True)
class Source:
    """Accuracies that claims can be checked on: those of each backbone, and their average."""

    each: list[Accuracy]
    average: Accuracy

    def gain(
        self, before: tuple[str, str], after: tuple[str, str], order: str = "class-iid"
    ) -> float | None:
        """Relative gain of one pooling and learner over another, in percent."""
        one, two = self.average(*before, order), self.average(*after, order)
        return None if one is None or two is None else metrics.relative_gain(one, two)

    def over_the_best(self) -> float | None:
        """Relative gain of TAP-SLDA over the best of all other learners and poolings."""
        others = [("AVG", name) for name in LEARNERS]
        others += [(name, "SLDA") for name in POOLINGS if name != "TAP"]
        found = [(self.average(*parts, "class-iid"), parts) for parts in others]
        known = [(value, parts) for value, parts in found if value is not None]
        return self.gain(max(known)[1], ("TAP", "SLDA")) if known else None

    def exceptions(self) -> float | None:
        """Share of learners and backbones that TAP makes worse, in percent."""
        worse, count = 0, 0
        for accuracy in self.each:
            for name in LEARNERS:
                one, two = (accuracy(pooling, name, "class-iid") for pooling in ("AVG", "TAP"))
                if one is not None and two is not None:
                    worse, count = worse + (two < one), count + 1
        return 100 * worse / count if count else None


class Claim(NamedTuple):
    """One claim: what it says, the paper's figure, and how it is recomputed."""

    text: str
    said: float
    formula: Callable[[Source], float | None]
    only: str | None = None


TAP_SLDA = ("TAP", "SLDA")
SAID = paper.CLAIMS
CLAIMS = [
    Claim("abstract: over competitors, average", SAID["abstract"], Source.over_the_best),
    Claim("introduction: over the best competitor", SAID["introduction"], Source.over_the_best),
    Claim("TAP-SLDA over SLDA", SAID["slda"], lambda s: s.gain(("AVG", "SLDA"), TAP_SLDA)),
    Claim(
        "the same on Emf-B over SQDA",
        SAID["emf-b over sqda"],
        lambda s: s.gain(("AVG", "SQDA"), TAP_SLDA),
        "Emf-B",
    ),
    Claim(
        "the same on Emf-B over SLDA",
        SAID["emf-b over slda"],
        lambda s: s.gain(("AVG", "SLDA"), TAP_SLDA),
        "Emf-B",
    ),
    Claim("TAP over AVG pooling", SAID["avg"], lambda s: s.gain(("AVG", "SLDA"), TAP_SLDA)),
    Claim("TAP over AVGMAX", SAID["avgmax"], lambda s: s.gain(("AVGMAX", "SLDA"), TAP_SLDA)),
    Claim("TAP over TSTP", SAID["tstp"], lambda s: s.gain(("TSTP", "SLDA"), TAP_SLDA)),
    Claim(
        "TAP-FT over FT, IID", SAID["iid"], lambda s: s.gain(("AVG", "FT"), ("TAP", "FT"), "iid")
    ),
    Claim(
        "cases that TAP makes worse, % of all",
        100 * paper.EXCEPTIONS / paper.CASES,
        Source.exceptions,
    ),
    Claim(
        "iCaRL's average Acc", paper.ICARL_AVERAGE, lambda s: s.average("AVG", "iCaRL", "class-iid")
    ),
]
NEEDS = [
    *AVG_NEEDS,
    *TAP_NEEDS,
    *(Need(spec, "SLDA") for spec in POOLINGS.values()),
    *(Need(spec, "FT", "iid") for spec in ("avg", "tap")),
]


def paper_source(name: str | None = None) -> Source:
    """Take the paper's tables: of one of its backbones, or of all with the averages it prints."""

    def accuracy(of: str | None) -> Accuracy:
        def look(pooling: str, learner: str, order: str) -> float | None:
            if order == "iid":
                row = ("TAP-" if pooling == "TAP" else "") + learner
                return paper.figure(paper.TABLE6, row, of, paper.TABLE6_AVERAGE)
            if pooling == "AVG":
                row = "NCM" if learner == "CBCL" else learner
                return paper.figure(paper.TABLE1["acc"], row, of)
            if pooling == "TAP":
                return paper.figure(paper.TABLE2, learner, of, paper.TABLE2_AVERAGE)
            return paper.figure(paper.TABLE3, pooling, of, paper.TABLE3_AVERAGE)

        return look

    each = [accuracy(of) for of in ([name] if name else paper.COLUMNS)]
    return Source(each, accuracy(name))


def our_source(bench: Bench, backbones: list[Backbone]) -> Source:
    """Our records of some backbones."""

    def accuracy(backbone: Backbone) -> Accuracy:
        return lambda pooling, learner, order: bench.get(
            backbone, POOLINGS[pooling], learner, order
        ).get("acc")

    each = [accuracy(backbone) for backbone in backbones]
    return Source(each, lambda *parts: mean(one(*parts) for one in each))


def claims(context: Context, name: str, title: str) -> Reproduced:
    """Each claim: recomputed from the paper's tables, and from our records."""
    lists = [[one] for one in context.usable]
    titles = [one.spec for one in context.usable]
    if len(lists) > 1:
        lists.append(list(context.usable))
        titles.append("mean of ours")
    shown = Comparison(
        "Relative gains (and two other claims) in percent, beside what the text says",
        "claim",
        [
            Group("paper's tables", "paper's text", ours="give"),
            *(Group(title, "paper's text") for title in titles),
        ],
    )
    for claim in CLAIMS:
        cells = [Cell(claim.formula(paper_source(claim.only)), claim.said)]
        for backbones in lists:
            right = claim.only is None or claim.only == column(backbones[0])
            ours = claim.formula(our_source(context.bench, backbones)) if right else None
            cells.append(Cell(ours, claim.said))
        shown.add(claim.text, cells)
    for text, key, size in (
        ("TAP-SLDA over SLDA on MSWC", "mswc", None),
        ("the same, 100 words", "mswc, 100 words", figure3.SIZES[-1]),
    ):
        benches = [b for (_, n), b in context.micro_sets.items() if size in (None, n)]
        cells = [Cell(None, SAID[key])]
        for backbones in lists:
            for backbone in backbones:
                figure3.run(context, backbone)
            gains = [figure3.gain(bench, one) for bench in benches for one in backbones]
            cells.append(Cell(mean(gains), SAID[key]))
        shown.add(text, cells)
    said = [
        "Relative gain: (Acc2 - Acc1) / (100 - Acc1), of accuracies averaged over backbones.",
        "The text does not say how 11.3 and 9.9 come about; they are recomputed as the gain over "
        "the best of all other learners (with AVG) and poolings (with SLDA), which its tables give "
        "as 10.5.",
        '"25.9%" over SLDA on Emf-B is 35.9 by the paper\'s own formula and tables.',
        '"7 exceptions out of 54": its tables give 8. CBCL with AVG is counted as NCM.',
        "Claims on Emf-B are recomputed on emformer_base alone.",
        *([] if context.micro_sets else ["Claims on MSWC need its folder: --mswc DIR."]),
        *context.absent,
    ]
    return Reproduced(name, title, [shown], said + notes(context, NEEDS, strangers=False))


TABLE = Table(TITLE, NEEDS, claims)
