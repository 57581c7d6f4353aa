"""The command that reproduces the paper's tables."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.text import Text

from tapword.cli.app import argument, command, command_line, flag, option
from tapword.cli.console import err, out, print_json, progress_steps
from tapword.cli.options import CACHE_GB, CacheFolder, CacheSize, DataFolder, Jobs, Output
from tapword.errors import InputError
from tapword.research import paper
from tapword.research.cache import Cache
from tapword.support.text import printable

# Options that `paper.ReproduceOptions` takes as they are.
SAME = ("dataset", "mswc", "weights", "orderings", "exact", "pad_to_s")


@dataclass
class Options:
    """How a table of the paper is run."""

    dataset: Annotated[str, option("KIND", "Kind of data set, with arguments.")] = "speech_commands"
    mswc: Annotated[
        Path | None, option("DIR", "Folder of MSWC, for figure3 and claims. [default: --data]")
    ] = None
    backbones: Annotated[
        list[str] | None,
        option("PARTS", "Comma-separated, or repeat. [default: all available]"),
    ] = None
    weights: Annotated[
        str | None, option("KIND", "random: use the paper's backbones untrained.")
    ] = None
    orderings: Annotated[int, option("N", "Seeded orderings to average.", min=1)] = 5
    exact: Annotated[
        bool, flag("--exact", "Use the correct learning rules, not those of the paper's code.")
    ] = False
    pad_to_s: Annotated[float | None, option("S", "Pad clips with silence to this length.")] = None
    n_words: Annotated[str, option("N,N", "Words of figure3's micro-sets.")] = "25,50,100"
    jobs: Jobs = None
    cache: CacheFolder = None
    cache_gb: CacheSize = CACHE_GB


@command()
def reproduce(
    table: Annotated[str, argument("TABLE", f"{', '.join([*paper.TABLES, paper.ALL])}.")],
    data: DataFolder,
    chosen: Options,
    output: Output,
) -> None:
    """Reproduce a table of the paper: our numbers, the paper's, and the difference.

    Without --backbones, every available one is run: the paper's, downloaded where possible, and
    those that come with Python packages. Unavailable ones are listed with the reason. Results go
    to --out FILE: .html or .json.

        tapword reproduce table2 --data speech_commands_v0.02 --out table2.html
    """
    paper.check(table)
    output.check(paper.WRITERS)
    options = paper.ReproduceOptions(
        data=data,
        backbones=paper.split_specs(chosen.backbones or ()),
        n_words=_numbers(chosen.n_words),
        jobs=chosen.jobs or os.cpu_count() or 1,
        cache=Cache(chosen.cache, chosen.cache_gb),
        **{name: getattr(chosen, name) for name in SAME},
    )
    with progress_steps(output.quiet) as step:
        options.progress = step
        reproduction = paper.reproduce(table, options)
    reproduction.command = command_line()
    for why, names in _by_reason(reproduction.unavailable).items():
        err.print(f"unavailable: {', '.join(names)}: {printable(why)}", soft_wrap=True)
    if output.as_json:
        print_json(reproduction.as_json())
    else:
        _show_outcome(reproduction)
    output.write(reproduction, paper.WRITERS)


def _by_reason(unavailable: dict[str, str]) -> dict[str, list[str]]:
    """Reason, without the name it begins with -> backbones."""
    found: dict[str, list[str]] = {}
    for name, why in unavailable.items():
        reason = why.removeprefix(name.partition(":")[0]).lstrip(": ")
        found.setdefault(reason, []).append(name)
    return found


def _show_outcome(reproduction: paper.Reproduction) -> None:
    for line in reproduction.banner:
        out.print(Text(line, style="bold yellow"))
    for one in reproduction.tables:
        out.print(Text(f"\n{one.name}: {one.title}", style="bold"))
        for comparison in one.comparisons:
            for shown in paper.console_tables(comparison, out.width):
                out.print(shown)
        for note in one.notes:
            out.print(Text(f"- {note}", style="dim"))
    out.print(f"{reproduction.environment.seconds:.1f} s")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise InputError(f"--n-words must be whole numbers, as in 25,50,100; got {text!r}")
    return found
