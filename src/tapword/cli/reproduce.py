"""The command that runs the paper's tables and puts ours beside the paper's."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tapword import features, report
from tapword import reproduce as reproduction
from tapword.cli.app import app, err, out, printable, progress_steps
from tapword.cli.outputs import check_outputs, write_outputs
from tapword.cli.research import CacheFolder
from tapword.errors import InputError
from tapword.report.writers import write_text

KNOWN = ", ".join([*reproduction.TABLES, reproduction.ALL])


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"{KNOWN}.", show_default=False)],
    data: Annotated[Path, typer.Option(help="Folder of the data set.", show_default=False)],
    dataset: Annotated[str, typer.Option(help="Its kind, with arguments.")] = "speech_commands",
    mswc: Annotated[
        Path | None, typer.Option(help="Folder of MSWC, for figure3 and claims. [default: --data]")
    ] = None,
    backbones: Annotated[
        list[str] | None,
        typer.Option(help="Commas between several, or repeat. [default: all that can be had]"),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="random: the paper's backbones without training.")
    ] = None,
    orderings: Annotated[int, typer.Option(min=1, help="Seeded orderings to average.")] = 5,
    exact: Annotated[
        bool, typer.Option("--exact", help="Learners by the right rules, not as the paper's code.")
    ] = False,
    pad_to_s: Annotated[
        float | None, typer.Option(help="Fill clips with silence to this length.")
    ] = None,
    n_words: Annotated[str, typer.Option(help="Words of figure3's micro-sets.")] = "25,50,100",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes. [default: cores]")] = None,
    cache: CacheFolder = None,
    cache_gb: Annotated[float, typer.Option(help="Most the cache may hold.")] = 4.0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE")] = None,
) -> None:
    """Run a table of the paper and print ours beside the paper's, with the difference.

    Without --backbones, those of the paper whose weights can be had (they are fetched where they
    can be) and the encoders that come with packages; the rest is named with the reason.

        tapword reproduce table2 --data speech_commands_v0.02 --html table2.html
    """
    reproduction.check(table)
    check_outputs([json_file, html_file])
    settings = reproduction.Settings(
        data=data,
        dataset=dataset,
        mswc=mswc,
        backbones=tuple(backbones or ()),
        weights=weights,
        orderings=orderings,
        exact=exact,
        pad_to_s=pad_to_s,
        n_words=_numbers(n_words),
        jobs=jobs or os.cpu_count() or 1,
        cache=features.Cache(cache, cache_gb),
    )
    with progress_steps() as step:
        settings.progress = step
        outcome, made = reproduction.reproduce(table, settings)
    outcome["config"]["command"] = shlex.join(["tapword", *sys.argv[1:]])
    for name, why in outcome["config"]["lacking"].items():
        err.print(f"left out {name}: {printable(why)}", soft_wrap=True)
    for line in outcome["banner"]:
        out.print(Text(line, style="bold yellow"))
    for one in made:
        out.print(Text(f"\n{one.name}: {one.title}", style="bold"))
        for comparison in one.comparisons:
            for shown in reproduction.console_tables(comparison, out.width):
                out.print(shown)
        for note in one.notes:
            out.print(Text(f"- {note}", style="dim"))
    out.print(f"{outcome['environment']['seconds']:.1f} s")
    write_outputs(
        [
            (lambda path: report.write_json(outcome, path), json_file),
            (lambda path: write_text(path, reproduction.page(outcome, made)), html_file),
        ]
    )


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise InputError(f"--n-words wants whole numbers such as 25,50,100; got {text!r}")
    return found
