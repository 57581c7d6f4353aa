"""Tables 1 to 7: what each runs, and ours beside the paper's."""

from dataclasses import replace

from tapword.backbones.base import Backbone
from tapword.research.paper import names
from tapword.research.paper import published as paper
from tapword.research.paper.bench import Need
from tapword.research.paper.comparison import Cell, Comparison, Group, Reproduced, mean
from tapword.research.paper.context import Context, Grid, Table
from tapword.research.paper.names import beside, column

MEASURES = {"acc": "Acc", "bwt": "BwT", "forg": "Forg", "pla": "Pla", "acc_std": "± Acc"}
# Learners that most of the paper's ablations show.
SHOWN = ("FT", "NCM", "SLDA")
# What is run, by the paper's names of learners, methods and poolings.
AVG = {name: Need("avg", name) for name in names.LEARNERS}
TAP = {name: Need("tap", name) for name in names.LEARNERS}
MEASURED = {
    name: need._replace(matrix=True) for name, need in (AVG | {"TAP-SLDA": TAP["SLDA"]}).items()
}
METHODS = {
    name: need for key in SHOWN for name, need in ((key, AVG[key]), (f"TAP-{key}", TAP[key]))
}
MIXED = {name: need._replace(order="iid") for name, need in METHODS.items()}
MOMENTS = {
    (name, R): Need(spec, name) for name in SHOWN for R, spec in enumerate(names.MOMENTS, start=1)
}
POOLINGS = {name: Need(spec, "SLDA") for name, spec in names.POOLINGS.items()}
LONG_POOLINGS = {name: Need(spec, "SLDA") for name, spec in names.LONG_POOLINGS.items()}


def table1(context: Context) -> Reproduced:
    """Learners on averaged frames, and TAP-SLDA: accuracy, transfer, forgetting, plasticity."""
    tables = []
    for one in context.backbones:
        groups = [Group(title) for title in MEASURES.values()]
        shown = Comparison(f"{one.spec} beside the paper's {beside(one)}", "learner", groups)
        for row, need in MEASURED.items():
            theirs = {key: paper.TABLE1[key].at(row, column(one)) for key in MEASURES}
            result = context.bench.get(one, need)
            shown.add(row, [Cell.of(result, key, value) for key, value in theirs.items()])
        tables.append(shown)
    return Reproduced(tables, context.notes())


def table4(context: Context) -> Reproduced:
    """Highest moment R, mean over backbones, with the numbers that are stored."""
    shown = Comparison(
        f"Mean over {len(context.backbones)} backbone(s) of ours and the paper's 6",
        "TAP +",
        [Group("Acc"), Group("Δp %", digits=2)],
    )
    for (learner, R), need in MOMENTS.items():
        row = []
        for key, figures in paper.TABLE4.items():
            cells = [Cell.of(context.bench.get(one, need), key) for one in context.backbones]
            text = next((one.text for one in cells if one.text), "")
            row.append(Cell(mean(one.ours for one in cells), figures[learner][R - 1], text))
        shown.add(f"{learner} R={R}", row)
    notes = [
        f"{one.spec} has {one.params:,} parameters, the paper's 64 to 962 million: its Δp is "
        "larger by that alone."
        if one.params
        else f"{one.spec} has no parameters to compare with."
        for one in context.backbones
        if column(one) is None
    ]
    return Reproduced([shown], notes + context.notes())


def table5(context: Context) -> Reproduced:
    """Run each backbone that can be had untrained without and with its training."""
    untrained = dict(context.untrained)
    trained: dict[str, Backbone] = {}
    for one in context.backbones:
        same = untrained if "weights=random" in one.spec else trained
        same[names.trained_name(one)] = one
    tables, strangers = [], []
    for name in dict.fromkeys([*untrained, *trained]):
        pair = {"random": untrained.get(name), "pretrained": trained.get(name)}
        network = trained.get(name) or untrained[name]
        if column(network) is None:
            strangers.append(name)
        # The paper shows two backbones here.
        theirs = beside(network, among=2)
        groups = [Group(title, f"paper {theirs}") for title in ("random", "trained")]
        shown = Comparison(f"{name} beside the paper's {theirs}", "method", groups)
        if name in untrained:
            context.bench.run(untrained[name], METHODS.values())
        for row, need in METHODS.items():
            cells = []
            for weights, either in pair.items():
                ours = Cell.of(context.bench.get(either, need)) if either else Cell()
                figure = paper.TABLE5[weights].at(row, column(network))
                cells.append(replace(ours, paper=figure))
            shown.add(row, cells)
        tables.append(shown)
    notes = []
    if strangers:
        notes.append(
            f"{', '.join(strangers)}: beside it stands the paper's mean over its two; it cannot be "
            "had without training."
        )
    missing = [name for name in untrained if name not in trained]
    if missing:
        notes.append(
            f"Trained weights were not asked for or cannot be had here: {', '.join(missing)}."
        )
    return Reproduced(tables, notes)


def table7(context: Context) -> Reproduced:
    """Poolings that make longer vectors, and how long these are."""
    grid = Grid("Acc with SLDA", "pooling", LONG_POOLINGS, paper.TABLE7)
    shown = grid.compare(context)
    shown.groups.append(Group("Δfs"))
    for name, cells in shown.rows:
        results = (context.bench.get(one, LONG_POOLINGS[name]) for one in context.backbones)
        lengths = mean(result.delta_fs for result in results)
        cells.append(Cell(lengths, paper.TABLE7_DELTA_FS[name]))
    return Reproduced([shown], context.notes())


def _grids(title: str, *grids: Grid) -> Table:
    """Make a table of nothing but grids, whose rows are what it needs."""
    needs = [need for one in grids for need in (*one.rows.values(), *one.less.values())]

    def make(context: Context) -> Reproduced:
        return Reproduced([one.compare(context) for one in grids], context.notes())

    return Table(title, make, needs)


TABLES = {
    "table1": Table("Learners on averaged frames, and TAP-SLDA", table1, [*MEASURED.values()]),
    "table2": _grids(
        "TAP on every learner",
        Grid("Acc with TAP", "TAP +", TAP, paper.TABLE2),
        Grid("Gain over AVG, in points", "TAP +", TAP, paper.TABLE2_GAIN, AVG),
    ),
    "table3": _grids("Poolings with SLDA", Grid("Acc", "pooling", POOLINGS, paper.TABLE3)),
    "table4": Table("Highest moment R and what it costs", table4, [*MOMENTS.values()]),
    "table5": Table("Random weights against trained ones", table5, [*METHODS.values()]),
    "table6": _grids(
        "Samples in random order (IID)",
        Grid("Acc, samples in random order", "method", MIXED, paper.TABLE6),
        Grid(
            "Random order less class by class, in points",
            "method",
            MIXED,
            paper.TABLE6_CHANGE,
            METHODS,
        ),
    ),
    "table7": Table("Longer vectors with SLDA", table7, [*LONG_POOLINGS.values()]),
}
