"""Command that measures how well a model hears its words in a stream."""

import functools
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tapword import report
from tapword.alarms import miss_rate_at
from tapword.cli.app import app, cell, err, out, printable, progress_steps
from tapword.cli.outputs import check_outputs, write_outputs
from tapword.cli.teach import Model
from tapword.evaluate_stream import evaluate_stream as measure
from tapword.report.stream_page import write_stream_html
from tapword.spotter import Spotter


@app.command("evaluate-stream")
def evaluate_stream(
    model: Model,
    positives: Annotated[Path, typer.Option(metavar="DIR", help="DIR/<word>/* say <word>.")],
    negatives: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Long recording without the words; repeat for several."),
    ],
    noise: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Noise to add to everything; repeat for several."),
    ] = None,
    snr: Annotated[
        float | None, typer.Option(metavar="DB", help="With --noise: speech over noise.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Fixes where the clips come.")] = 0,
    every_s: Annotated[
        float | None,
        typer.Option(help="Mean time between clips. [default: as lets all of them in]"),
    ] = None,
    false_alarms_per_hour: Annotated[
        float, typer.Option(help="How many are acceptable; fewer cost more misses.")
    ] = 0.5,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE")] = None,
) -> None:
    """Measure how well MODEL hears its words: misses, false alarms per hour, latency.

    Clips of the words are put into long recordings that hold none of them, at seeded times, and
    the whole is listened to once. docs/protocols.md says how events are counted.

        tapword evaluate-stream home.tap --positives clips/ --negatives radio.flac
            --noise kitchen.wav --snr 10 --html report.html
    """
    check_outputs((json_file, html_file))
    with progress_steps() as step:
        records = measure(
            Spotter.load(model),
            positives,
            negatives,
            noise=noise or (),
            snr_db=snr,
            seed=seed,
            every_s=every_s,
            false_alarms_per_hour=false_alarms_per_hour,
            progress=step,
        )
    records["config"]["command"] = shlex.join(["tapword", *sys.argv[1:]])
    for note in records["config"]["notes"]:
        err.print(printable(note), style="yellow", soft_wrap=True)
    _show(records)
    write_outputs(
        (functools.partial(write, records), path)
        for write, path in ((report.write_json, json_file), (write_stream_html, html_file))
    )


def _show(records: dict[str, Any]) -> None:
    table = Table("word", "clips", "missed", "false alarms", "taken for it", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for word, row in records["per_word"].items():
        rate = f"{row['misses']} ({row['miss_rate']:.1f}%)" if row["positives"] else ""
        numbers = row["positives"], rate, row["false_alarms"], row["confusions"]
        table.add_row(cell(word), *map(str, numbers))
    out.print(table)
    low, high = records["false_alarms_ci"]
    out.print(
        f"{records['miss_rate']:.1f}% of {records['config']['positives']} clips missed, "
        f"{records['confusions']} taken for another word\n"
        f"{records['false_alarms_per_hour']:.2f} false alarms per hour (95%: {low:.2f} to "
        f"{high:.2f}; {records['false_alarms']} in {60 * records['hours']:.0f} min)"
    )
    late = records["latency_s"]
    if late["median"] is not None:
        out.print(f"heard {late['median']:.2f} s after a word's end (95%: {late['p95']:.2f} s)")
    points = ((rate, miss_rate_at(records["det"], rate)) for rate in (0.5, 3.0))
    told = [f"{missed:.1f}% at {rate:g}" for rate, missed in points if missed is not None]
    if told:
        out.print(f"missed with the best threshold: {', '.join(told)} false alarms per hour")
    out.print(f"{records['speed']:.0f} times real time")
