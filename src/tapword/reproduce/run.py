"""One run of `tapword reproduce`: what is asked for, made, beside the paper's."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapword import evaluate, features, registry, runs
from tapword.datasets.base import Dataset
from tapword.datasets.speech_commands import WORDS
from tapword.errors import InputError
from tapword.reproduce import claims, figure3, names, overhead, paper, table5, wasserstein
from tapword.reproduce.bench import Bench
from tapword.reproduce.compare import Reproduced
from tapword.reproduce.context import Context, Table
from tapword.reproduce.tables import TABLES as NUMBERED

TABLES: dict[str, Table] = dict(sorted({**NUMBERED, "table5": table5.TABLE}.items())) | {
    "figure3": figure3.TABLE,
    "claims": claims.TABLE,
    "overhead": overhead.TABLE,
    "wasserstein": wasserstein.TABLE,
}
ALL = "all"


@dataclass
class Settings:
    """What is run and how; see `tapword reproduce --help`."""

    data: Path
    dataset: str = "speech_commands"
    mswc: Path | None = None
    backbones: tuple[str, ...] = ()
    weights: str | None = None
    orderings: int = 5
    exact: bool = False
    pad_to_s: float | None = None
    n_words: tuple[int, ...] = figure3.SIZES
    jobs: int = 1
    cache: features.Cache | None = None
    progress: runs.Progress | None = None


def reproduce(table: str, settings: Settings) -> tuple[dict[str, Any], list[Reproduced]]:
    """Run one of the paper's tables, or all of them.

    Parameters
    ----------
    table
        Key of `TABLES`, or "all".
    settings
        What on.

    Returns
    -------
    dict
        {"banner", "config", "tables", "records", "environment"}, ready for JSON.
    list of Reproduced
        The tables.
    """
    start = time.perf_counter()
    wanted = check(table)
    micro_root = settings.mswc or settings.data
    alone = wanted == ["figure3"]
    dataset = _dataset(settings, micro_root, alone)
    # A wrong folder is told before weights are looked for.
    dataset.clips("test")
    cache = settings.cache or features.Cache()

    def bench(on: Dataset) -> Bench:
        pad = settings.pad_to_s
        keys = settings.orderings, settings.exact, pad, settings.jobs, settings.progress
        return Bench(on, cache, *keys)

    micro: dict[tuple[str, int], Bench] = {}
    absent: list[str] = []
    if {"figure3", "claims"} & set(wanted):
        micro, absent = figure3.micro_sets(micro_root, settings.n_words, bench)
    if table == ALL and not micro:
        wanted.remove("figure3")
        absent.append("figure3 is left out: no languages of MSWC there; give --mswc DIR")
    found = names.find_backbones(
        names.split_specs(settings.backbones),
        settings.weights,
        "table5" in wanted,
        settings.progress,
    )
    context = Context(bench(dataset), found, micro, absent)
    needs = [need for name in wanted for need in TABLES[name].needs]
    for backbone in found.usable:
        context.bench.run(backbone, needs)
    made = [TABLES[name].make(context, name, TABLES[name].title) for name in wanted]
    benches = ([] if alone else [context.bench]) + list(micro.values())
    records = [one.facts() | {"results": one.results} for one in benches if one.results]
    banner = [] if alone else [_banner(context.bench)]
    if micro:
        banner.append(figure3.banner(micro))
    outcome = {
        "banner": banner + (absent if table == ALL else []),
        "config": {
            "table": table,
            **({} if alone else context.bench.facts()),
            "backbones": [one.spec for one in found.usable],
            "learners": "right rules (--exact)" if settings.exact else "as the paper's code",
            "lacking": found.lacking,
        },
        "tables": [one.as_json() for one in made],
        "records": records,
        "environment": evaluate.environment(start),
    }
    return outcome, made


def check(table: str) -> list[str]:
    """Names of the tables to run; refuse one that is not known."""
    if table != ALL and table not in TABLES:
        raise InputError(f"no table named {table!r}; known: {', '.join([*TABLES, ALL])}")
    return list(TABLES) if table == ALL else [table]


def _dataset(settings: Settings, micro_root: Path, alone: bool) -> Dataset:
    """Make the data set of the tables; figure 3 alone has its own."""
    if alone:
        languages = figure3.languages(micro_root)
        if not languages:
            raise InputError(
                f"figure3 needs MSWC, and {micro_root} has no <language>_splits.csv in it or in a "
                "language's folder"
            )
        return registry.build("datasets", "mswc", root=str(micro_root), language=languages[0])
    return registry.build("datasets", settings.dataset, root=str(settings.data))


def _banner(bench: Bench) -> str:
    """Say above everything which data ours are from."""
    facts = bench.facts()
    ours = (
        f"{facts['dataset']}: {facts['n_words']} words, {facts['n_train']:,} clips to learn, "
        f"{facts['n_test']:,} to ask, {facts['orderings']} orderings"
    )
    whole = set(bench.dataset.words) == WORDS["v0.02"]
    if whole and (facts["n_train"], facts["n_test"]) == (paper.N_TRAIN, paper.N_TEST):
        return f"{ours}: the paper's data set, Speech Commands v2 with {paper.N_WORDS} words."
    return (
        f"NOT THE PAPER'S DATA. Ours: {ours}. The paper's: the whole of Speech Commands v2, "
        f"{paper.N_WORDS} words, {paper.N_TRAIN:,} clips to learn and {paper.N_TEST:,} to ask. "
        "Differences below are of data and backbones before they are of methods."
    )
