"""One run of `tapword reproduce`: the tables that were asked for, beside the paper's."""

import time
from dataclasses import dataclass
from typing import Any

from tapword import registry
from tapword.errors import InputError
from tapword.research.datasets.base import Dataset
from tapword.research.datasets.speech_commands import WORDS
from tapword.research.experiment import describe
from tapword.research.paper import claims, figure3, names, overhead, wasserstein
from tapword.research.paper import published as paper
from tapword.research.paper.bench import Bench, Settings
from tapword.research.paper.comparison import Reproduced
from tapword.research.paper.context import Context, Table
from tapword.research.paper.tables import TABLES as NUMBERED
from tapword.research.records import Environment, as_json

TABLES: dict[str, Table] = {
    **NUMBERED,
    "figure3": figure3.TABLE,
    "claims": claims.TABLE,
    "overhead": overhead.TABLE,
    "wasserstein": wasserstein.TABLE,
}
ALL = "all"


@dataclass
class Outcome:
    """What a run gives.

    Attributes
    ----------
    banner
        Sentences that must be read before the tables.
    config, records
        What was run and on what, and every data set with its results, as plain values.
    lacking
        Backbones that could not be had: name -> why.
    """

    banner: list[str]
    config: dict[str, Any]
    lacking: dict[str, str]
    tables: list[Reproduced]
    records: list[dict[str, Any]]
    environment: Environment
    command: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Give everything as plain values that strict JSON can write."""
        return as_json(
            {
                "banner": self.banner,
                "config": self.config | {"lacking": self.lacking, "command": self.command},
                "tables": [table.as_json() for table in self.tables],
                "records": self.records,
                "environment": self.environment,
            }
        )


def reproduce(table: str, settings: Settings) -> Outcome:
    """Run one of the paper's tables, a key of `TABLES`, or "all" of them."""
    start = time.perf_counter()
    wanted = check(table)
    micro_root = settings.mswc or settings.data
    dataset: Dataset | None = None
    if wanted != ["figure3"] or settings.mswc:
        # A wrong folder is told before weights are looked for.
        dataset = registry.build("datasets", settings.dataset, root=str(settings.data))
        dataset.clips("test")
    micro: dict[tuple[str, int], Bench] = {}
    absent: list[str] = []
    if {"figure3", "claims"} & set(wanted):
        beside = dataset if "figure3" in wanted and settings.mswc else None
        micro, absent = figure3.micro_sets(micro_root, settings, beside)
    if table == ALL and not micro:
        wanted.remove("figure3")
        absent.append("figure3 is left out: no languages of MSWC there; give --mswc DIR")
    elif table == "figure3" and not micro:
        there = f"{micro_root} has no <language>_splits.csv in it or in a language's folder"
        raise InputError(f"figure3 needs MSWC: {'; '.join(absent) or there}")
    untrained = "table5" in wanted
    found = names.find_backbones(settings.backbones, settings.weights, untrained, settings.progress)
    bench = Bench(dataset, settings) if dataset else next(iter(micro.values()))
    context = Context(bench, found.usable, found.untrained, micro, absent)
    needs = [need for name in wanted for need in TABLES[name].needs]
    for backbone in found.usable:
        bench.run(backbone, needs)
    tables = [TABLES[name].reproduce(name, context) for name in wanted]
    said = [banner(bench)] if dataset else []
    if micro:
        said.append(figure3.banner(micro))
    config = {
        "table": table,
        **(bench.facts() if dataset else {}),
        "backbones": [one.spec for one in found.usable],
        "learners": "right rules (--exact)" if settings.exact else "as the paper's code",
    }
    return Outcome(
        banner=said + (absent if table == ALL else []),
        config=config,
        lacking=found.lacking,
        tables=tables,
        records=[one.as_json() for one in dict.fromkeys([bench, *micro.values()]) if one.results],
        environment=Environment.since(start),
    )


def check(table: str) -> list[str]:
    """Names of the tables to run; refuse one that is not known."""
    if table != ALL and table not in TABLES:
        raise InputError(f"no table named {table!r}; known: {', '.join([*TABLES, ALL])}")
    return list(TABLES) if table == ALL else [table]


def banner(bench: Bench) -> str:
    """Say above everything which data ours are from."""
    dataset, words = bench.dataset, bench.dataset.words
    n_train, n_test = len(dataset.clips("train")), len(dataset.clips("test"))
    ours = (
        f"{describe(dataset)}: {len(words)} words, {n_train:,} training and {n_test:,} test clips, "
        f"{bench.settings.orderings} orderings"
    )
    if set(words) == WORDS["v0.02"] and (n_train, n_test) == (paper.N_TRAIN, paper.N_TEST):
        return f"{ours}: the paper's data set, Speech Commands v2 with {paper.N_WORDS} words."
    return (
        f"NOT THE PAPER'S DATA. Ours: {ours}. The paper's: the whole of Speech Commands v2, "
        f"{paper.N_WORDS} words, {paper.N_TRAIN:,} training and {paper.N_TEST:,} test clips. "
        "Differences below are of data and backbones before they are of methods."
    )
