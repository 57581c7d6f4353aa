"""Table 5: backbones with random weights against trained ones."""

from tapword.backbones.base import Backbone
from tapword.reproduce import paper
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced
from tapword.reproduce.context import Context, Table, cell, column, heading, notes
from tapword.reproduce.names import untrained_name
from tapword.reproduce.tables import PAIR_NEEDS, PAIRS, TAP_ON_BASE

TITLE = "Random weights against trained ones"


def table5(context: Context, name: str, title: str) -> Reproduced:
    """Run each backbone that can be had untrained without and with its training."""
    untrained = dict(context.backbones.random)
    trained: dict[str, Backbone] = {}
    for one in context.usable:
        same = untrained if "weights=random" in one.spec else trained
        same[untrained_name(one.spec)] = one
    tables, strangers = [], []
    for key in dict.fromkeys([*untrained, *trained]):
        pair = {"random": untrained.get(key), "pretrained": trained.get(key)}
        known = trained.get(key) or untrained[key]
        beside = heading(known, among=2)
        if column(known) is None:
            strangers.append(key)
        shown = Comparison(
            f"{key} beside the {heading(known, among=2, said=True)}",
            "method",
            [Group("random", beside), Group("trained", beside)],
        )
        if pair["random"] is not None:
            context.bench.run(pair["random"], PAIR_NEEDS)
        for row, parts in PAIRS.items():
            cells = []
            for kind, backbone in pair.items():
                theirs = paper.figure(paper.TABLE5[kind], row, column(known))
                if backbone is None:
                    cells.append(Cell(None, theirs))
                else:
                    cells.append(cell(context.bench.get(backbone, *parts), "acc", theirs))
            shown.add(row, cells)
        tables.append(shown)
    said = [TAP_ON_BASE]
    if strangers:
        said.append(
            f"{', '.join(strangers)}: beside it stands the paper's mean over its two; it cannot be "
            "had without training."
        )
    missing = [key for key in untrained if key not in trained]
    if missing:
        said.append(
            f"Trained weights were not asked for or cannot be had here: {', '.join(missing)}."
        )
    said += notes(context, PAIR_NEEDS, strangers=False)
    return Reproduced(name, title, tables, said)


TABLE = Table(TITLE, PAIR_NEEDS, table5)
