"""The command that runs the paper's tables and puts ours beside the paper's."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.text import Text

from tapword.cli.app import RESEARCH, argument, command, command_line, flag, option
from tapword.cli.console import err, out, print_json, progress_steps
from tapword.cli.options import CACHE_GB, CacheFolder, CacheSize, DataFolder, Jobs, Output
from tapword.errors import InputError
from tapword.research import paper
from tapword.research.cache import Cache
from tapword.support.text import printable


@dataclass
class Reproduction:
    """How a table of the paper is run."""

    dataset: Annotated[str, option("KIND", "Its kind, with arguments.")] = "speech_commands"
    mswc: Annotated[
        Path | None, option("DIR", "Folder of MSWC, for figure3 and claims. [default: --data]")
    ] = None
    backbones: Annotated[
        list[str] | None,
        option("PARTS", "Commas between several, or repeat. [default: all at hand]"),
    ] = None
    weights: Annotated[
        str | None, option("KIND", "random: the paper's backbones without training.")
    ] = None
    orderings: Annotated[int, option("N", "Seeded orderings to average.", min=1)] = 5
    exact: Annotated[
        bool, flag("--exact", "Learners by the right rules, not as the paper's code.")
    ] = False
    pad_to_s: Annotated[float | None, option("S", "Fill clips with silence to this length.")] = None
    n_words: Annotated[str, option("N,N", "Words of figure3's micro-sets.")] = "25,50,100"
    jobs: Jobs = None
    cache: CacheFolder = None
    cache_gb: CacheSize = CACHE_GB


@command(RESEARCH)
def reproduce(
    table: Annotated[str, argument("TABLE", f"{', '.join([*paper.TABLES, paper.ALL])}.")],
    data: DataFolder,
    options: Reproduction,
    output: Output,
) -> None:
    """Run a table of the paper and print ours beside the paper's, with the difference.

    Without --backbones, those of the paper whose weights can be had (they are fetched where they
    can be) and the encoders that come with packages; the rest is named with the reason. Results go
    to --out FILE: .html or .json.

        tapword reproduce table2 --data speech_commands_v0.02 --out table2.html
    """
    paper.check(table)
    output.check(paper.WRITERS)
    settings = paper.Settings(
        data=data,
        dataset=options.dataset,
        mswc=options.mswc,
        backbones=paper.split_specs(options.backbones or ()),
        weights=options.weights,
        orderings=options.orderings,
        exact=options.exact,
        pad_to_s=options.pad_to_s,
        n_words=_numbers(options.n_words),
        jobs=options.jobs or os.cpu_count() or 1,
        cache=Cache(options.cache, options.cache_gb),
    )
    with progress_steps(output.quiet) as step:
        settings.progress = step
        outcome = paper.reproduce(table, settings)
    outcome.command = command_line()
    for name, why in outcome.lacking.items():
        err.print(f"left out {name}: {printable(why)}", soft_wrap=True)
    if output.as_json:
        print_json(outcome.as_json())
    else:
        _show_outcome(outcome)
    output.write(outcome, paper.WRITERS)


def _show_outcome(outcome: paper.Outcome) -> None:
    for line in outcome.banner:
        out.print(Text(line, style="bold yellow"))
    for one in outcome.tables:
        out.print(Text(f"\n{one.name}: {one.title}", style="bold"))
        for comparison in one.comparisons:
            for shown in paper.console_tables(comparison, out.width):
                out.print(shown)
        for note in one.notes:
            out.print(Text(f"- {note}", style="dim"))
    out.print(f"{outcome.environment.seconds:.1f} s")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise InputError(f"--n-words wants whole numbers such as 25,50,100; got {text!r}")
    return found
