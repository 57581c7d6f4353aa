"""One run of `tapword reproduce`: our tables beside the paper's."""

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
from tapword.research.paper.compare import Inputs, PaperTable, Reproduced
from tapword.research.paper.results import PaperResults, ReproduceOptions
from tapword.research.paper.tables import TABLES as NUMBERED
from tapword.research.records import Environment, as_json

TABLES: dict[str, PaperTable] = {
    **NUMBERED,
    "figure3": figure3.TABLE,
    "claims": claims.TABLE,
    "overhead": overhead.TABLE,
    "wasserstein": wasserstein.TABLE,
}
ALL = "all"


@dataclass
class Reproduction:
    """What a run gives.

    Attributes
    ----------
    banner
        Sentences to read before the tables.
    config, records
        What was run, and every data set with its results, as plain values.
    unavailable
        Name -> reason of backbones that could not be used.
    """

    banner: list[str]
    config: dict[str, Any]
    unavailable: dict[str, str]
    tables: list[Reproduced]
    records: list[dict[str, Any]]
    environment: Environment
    command: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Give everything as plain values that strict JSON can write."""
        return as_json(
            {
                "banner": self.banner,
                "config": self.config | {"unavailable": self.unavailable, "command": self.command},
                "tables": [table.as_json() for table in self.tables],
                "records": self.records,
                "environment": self.environment,
            }
        )


def reproduce(table: str, options: ReproduceOptions) -> Reproduction:
    """Run one of the paper's tables, a key of `TABLES`, or "all" of them."""
    start = time.perf_counter()
    wanted = check(table)
    micro_root = options.mswc or options.data
    dataset: Dataset | None = None
    if wanted != ["figure3"] or options.mswc:
        # Report a wrong folder before searching for weights.
        dataset = registry.build("datasets", options.dataset, root=str(options.data))
        dataset.clips("test")
    micro: dict[tuple[str, int], PaperResults] = {}
    missing: list[str] = []
    if {"figure3", "claims"} & set(wanted):
        also = dataset if "figure3" in wanted and options.mswc else None
        micro, missing = figure3.micro_sets(micro_root, options, also)
    if table == ALL and not micro:
        wanted.remove("figure3")
        missing.append("figure3 is left out: it needs a folder of MSWC; give --mswc DIR")
    elif table == "figure3" and not micro:
        there = f"{micro_root} has no <language>_splits.csv in it or in a language's folder"
        raise InputError(f"figure3 needs MSWC: {'; '.join(missing) or there}")
    untrained = "table5" in wanted
    found = names.find_backbones(options.backbones, options.weights, untrained, options.progress)
    results = PaperResults(dataset, options) if dataset else next(iter(micro.values()))
    inputs = Inputs(results, found.usable, found.untrained, micro, missing)
    runs = [run for name in wanted for run in TABLES[name].runs]
    for backbone in found.usable:
        results.run(backbone, runs)
    tables = [TABLES[name].reproduce(name, inputs) for name in wanted]
    banners = [banner(results)] if dataset else []
    if micro:
        banners.append(figure3.banner(micro))
    config = {
        "table": table,
        **(results.facts() if dataset else {}),
        "backbones": [one.spec for one in found.usable],
        "learners": "correct rules (--exact)" if options.exact else "as the paper's code",
    }
    return Reproduction(
        banner=banners + (missing if table == ALL else []),
        config=config,
        unavailable=found.unavailable,
        tables=tables,
        records=[one.as_json() for one in dict.fromkeys([results, *micro.values()]) if one.by_run],
        environment=Environment.since(start),
    )


def check(table: str) -> list[str]:
    """Names of the tables to run; refuse an unknown one."""
    if table != ALL and table not in TABLES:
        raise InputError(f"no table named {table!r}; known: {', '.join([*TABLES, ALL])}")
    return list(TABLES) if table == ALL else [table]


def banner(results: PaperResults) -> str:
    """Describe our data beside the paper's."""
    dataset, words = results.dataset, results.dataset.words
    n_train, n_test = len(dataset.clips("train")), len(dataset.clips("test"))
    ours = (
        f"{describe(dataset)}: {len(words)} words, {n_train:,} training and {n_test:,} test clips, "
        f"{results.options.orderings} orderings"
    )
    if set(words) == WORDS["v0.02"] and (n_train, n_test) == (paper.N_TRAIN, paper.N_TEST):
        return f"{ours}: the paper's data set, Speech Commands v2 with {paper.N_WORDS} words."
    return (
        f"NOT THE PAPER'S DATA. Ours: {ours}. The paper's: the whole of Speech Commands v2, "
        f"{paper.N_WORDS} words, {paper.N_TRAIN:,} training and {paper.N_TEST:,} test clips. "
        "Differences below come from data and backbones first, then from methods."
    )
