"""Tables 1 to 7: what each runs, and our numbers beside the paper's."""

from dataclasses import replace

from tapword.backbones.base import Backbone
from tapword.research.metrics import mean
from tapword.research.paper import names
from tapword.research.paper import published as paper
from tapword.research.paper.compare import (
    AccuracyGrid,
    Cell,
    Comparison,
    Group,
    Inputs,
    PaperTable,
    Reproduced,
)
from tapword.research.paper.names import paper_label, paper_name
from tapword.research.paper.results import Run

MEASURES = {"acc": "Acc", "bwt": "BwT", "forg": "Forg", "pla": "Pla", "acc_std": "± Acc"}
# Learners that most of the paper's ablations show.
SHOWN = ("FT", "NCM", "SLDA")
# Runs by the paper's names of learners, methods and poolings.
AVG = {name: Run("avg", name) for name in names.LEARNERS}
TAP = {name: Run("tap", name) for name in names.LEARNERS}
MEASURED = {
    name: run._replace(matrix=True) for name, run in (AVG | {"TAP-SLDA": TAP["SLDA"]}).items()
}
METHODS = {name: run for key in SHOWN for name, run in ((key, AVG[key]), (f"TAP-{key}", TAP[key]))}
MIXED = {name: run._replace(order="iid") for name, run in METHODS.items()}
MOMENTS = {
    (name, R): Run(spec, name) for name in SHOWN for R, spec in enumerate(names.MOMENTS, start=1)
}
POOLINGS = {name: Run(spec, "SLDA") for name, spec in names.POOLINGS.items()}
LONG_POOLINGS = {name: Run(spec, "SLDA") for name, spec in names.LONG_POOLINGS.items()}


def table1(inputs: Inputs) -> Reproduced:
    """Accuracy, transfer, forgetting and plasticity of learners on averaged frames and TAP-SLDA."""
    tables = []
    for one in inputs.backbones:
        groups = [Group(title) for title in MEASURES.values()]
        shown = Comparison(
            f"{one.spec} compared with the paper's {paper_label(one)}", "learner", groups
        )
        for row, run in MEASURED.items():
            theirs = {key: paper.TABLE1[key].at(row, paper_name(one)) for key in MEASURES}
            result = inputs.results.get(one, run)
            shown.add(row, [Cell.of(result, key, value) for key, value in theirs.items()])
        tables.append(shown)
    return Reproduced(tables, inputs.notes())


def table4(inputs: Inputs) -> Reproduced:
    """Accuracy and stored numbers by the highest moment R, mean over backbones."""
    shown = Comparison(
        f"Mean over {len(inputs.backbones)} backbone(s) of ours and the paper's 6",
        "TAP +",
        [Group("Acc"), Group("Δp %", digits=2)],
    )
    for (learner, R), run in MOMENTS.items():
        row = []
        for key, figures in paper.TABLE4.items():
            cells = [Cell.of(inputs.results.get(one, run), key) for one in inputs.backbones]
            text = next((one.text for one in cells if one.text), "")
            row.append(Cell(mean(one.ours for one in cells), figures[learner][R - 1], text))
        shown.add(f"{learner} R={R}", row)
    notes = [
        f"{one.spec} has {one.params:,} parameters, the paper's backbones 64 to 962 million: its "
        "Δp is larger."
        if one.params
        else f"{one.spec} has no parameters, so it has no Δp."
        for one in inputs.backbones
        if paper_name(one) is None
    ]
    return Reproduced([shown], notes + inputs.notes())


def table5(inputs: Inputs) -> Reproduced:
    """Compare each backbone with random and with trained weights."""
    untrained = dict(inputs.untrained)
    trained: dict[str, Backbone] = {}
    for one in inputs.backbones:
        same = untrained if "weights=random" in one.spec else trained
        same[names.trained_name(one)] = one
    tables, others = [], []
    for name in dict.fromkeys([*untrained, *trained]):
        pair = {"random": untrained.get(name), "pretrained": trained.get(name)}
        network = trained.get(name) or untrained[name]
        if paper_name(network) is None:
            others.append(name)
        # The paper shows two backbones here.
        theirs = paper_label(network, among=2)
        groups = [Group(title, f"paper {theirs}") for title in ("random", "trained")]
        shown = Comparison(f"{name} compared with the paper's {theirs}", "method", groups)
        if name in untrained:
            inputs.results.run(untrained[name], METHODS.values())
        for row, run in METHODS.items():
            cells = []
            for weights, either in pair.items():
                ours = Cell.of(inputs.results.get(either, run)) if either else Cell()
                figure = paper.TABLE5[weights].at(row, paper_name(network))
                cells.append(replace(ours, paper=figure))
            shown.add(row, cells)
        tables.append(shown)
    notes = []
    if others:
        notes.append(
            f"{', '.join(others)}: not one of the paper's two backbones, so compared with their "
            "mean. It has no untrained version."
        )
    missing = [name for name in untrained if name not in trained]
    if missing:
        notes.append(
            f"Trained weights were not requested or are unavailable: {', '.join(missing)}."
        )
    return Reproduced(tables, notes)


def table7(inputs: Inputs) -> Reproduced:
    """Poolings that give longer vectors, and how much longer."""
    grid = AccuracyGrid("Acc with SLDA", "pooling", LONG_POOLINGS, paper.TABLE7)
    shown = grid.compare(inputs)
    shown.groups.append(Group("Δfs"))
    for name, cells in shown.rows:
        results = (inputs.results.get(one, LONG_POOLINGS[name]) for one in inputs.backbones)
        lengths = mean(result.delta_fs for result in results)
        cells.append(Cell(lengths, paper.TABLE7_DELTA_FS[name]))
    return Reproduced([shown], inputs.notes())


def _grids(title: str, *grids: AccuracyGrid) -> PaperTable:
    """Make a table of grids alone; it needs the runs of their rows."""
    runs = [run for one in grids for run in (*one.rows.values(), *one.less.values())]

    def make(inputs: Inputs) -> Reproduced:
        return Reproduced([one.compare(inputs) for one in grids], inputs.notes())

    return PaperTable(title, make, runs)


TABLES = {
    "table1": PaperTable("Learners on averaged frames, and TAP-SLDA", table1, [*MEASURED.values()]),
    "table2": _grids(
        "TAP on every learner",
        AccuracyGrid("Acc with TAP", "TAP +", TAP, paper.TABLE2),
        AccuracyGrid("Gain over AVG, in points", "TAP +", TAP, paper.TABLE2_GAIN, AVG),
    ),
    "table3": _grids("Poolings with SLDA", AccuracyGrid("Acc", "pooling", POOLINGS, paper.TABLE3)),
    "table4": PaperTable("Highest moment R and what it costs", table4, [*MOMENTS.values()]),
    "table5": PaperTable("Random weights against trained ones", table5, [*METHODS.values()]),
    "table6": _grids(
        "Samples in random order (IID)",
        AccuracyGrid("Acc, samples in random order", "method", MIXED, paper.TABLE6),
        AccuracyGrid(
            "Random order less class by class, in points",
            "method",
            MIXED,
            paper.TABLE6_CHANGE,
            METHODS,
        ),
    ),
    "table7": PaperTable("Longer vectors with SLDA", table7, [*LONG_POOLINGS.values()]),
}
