"""The command that evaluates a model on a stream."""

from pathlib import Path
from typing import Annotated

from rich.table import Table

from tapword.cli.app import command, command_line, option
from tapword.cli.console import cell, err, out, print_json, progress_steps
from tapword.cli.options import Backbones, Model, Output, PerHour, Refractory
from tapword.listening.decider import REFRACTORY_S
from tapword.research import stream_eval
from tapword.research.records import as_json
from tapword.research.report.stream_page import STREAM_WRITERS
from tapword.research.stream_eval import StreamReport, miss_rate_at
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR
from tapword.support.text import counted, printable

# False alarms per hour at which the miss rate of the curve is shown.
RATES = (0.5, 3.0)


@command("evaluate-stream")
def evaluate_stream(
    model: Model,
    positives: Annotated[Path, option("DIR", "Clips of each word in DIR/WORD/.")],
    negatives: Annotated[
        list[Path], option("FILE", "Long recording without the words; repeat for several.")
    ],
    noise: Annotated[list[Path] | None, option("FILE", "Noise to add; repeat for several.")] = None,
    snr: Annotated[float | None, option("DB", "With --noise: signal-to-noise ratio.")] = None,
    seed: Annotated[int, option("N", "Fixes the order and times of clips.", min=0)] = 0,
    every_s: Annotated[
        float | None, option("S", "Mean time between clips. [default: so that all fit]")
    ] = None,
    false_alarms_per_hour: PerHour = FALSE_ALARMS_PER_HOUR,
    refractory: Refractory = REFRACTORY_S,
    backbone: Backbones = None,
    *,
    output: Output,
) -> None:
    """Measure missed words, false alarms per hour and latency of MODEL in a stream.

    Clips of the words are inserted into long recordings without them, at seeded times.
    docs/protocols.md explains how events are counted. Results go to --out FILE: .html or .json.

        tapword evaluate-stream home.tap --positives clips/ --negatives radio.flac
            --noise kitchen.wav --snr 10 --out report.html
    """
    output.check(STREAM_WRITERS)
    with progress_steps(output.quiet) as step:
        found = stream_eval.evaluate_stream(
            Spotter.load(model, backbone),
            positives,
            negatives,
            noise=noise or (),
            snr_db=snr,
            seed=seed,
            every_s=every_s,
            false_alarms_per_hour=false_alarms_per_hour,
            refractory_s=refractory,
            progress=step,
        )
    found.config.command = command_line()
    for note in found.config.notes:
        err.print(printable(note), style="yellow", soft_wrap=True)
    if output.as_json:
        print_json(as_json(found))
    else:
        _show_stream(found)
    output.write(found, STREAM_WRITERS)


def _show_stream(found: StreamReport) -> None:
    table = Table("word", "clips", "missed (95%)", "false alarms", "confused", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for word, row in found.per_word.items():
        rate = ""
        if row.miss_rate_ci is not None:
            low, high = row.miss_rate_ci
            rate = f"{row.misses} ({row.miss_rate:.1f}%, {low:.1f} to {high:.1f})"
        numbers = row.positives, rate, row.false_alarms, row.confusions
        table.add_row(cell(word), *map(str, numbers))
    out.print(table)
    low, high = found.false_alarms_ci
    fewest, most = found.miss_rate_ci
    out.print(
        f"{found.miss_rate:.1f}% of {counted(found.config.positives, 'clip')} missed "
        f"(95%: {fewest:.1f} to {most:.1f}%), "
        f"{found.confusions} confused with another word\n"
        f"{found.false_alarms_per_hour:.2f} false alarms per hour (95%: {low:.2f} to "
        f"{high:.2f}; {found.false_alarms} in {60 * found.hours:.0f} min)"
    )
    late = found.latency_s
    if late.median is not None:
        out.print(f"Words are reported {late.median:.2f} s after they end (95%: {late.p95:.2f} s)")
    points = ((rate, miss_rate_at(found.det, rate)) for rate in RATES)
    rates = [f"{missed:.1f}% at {rate:g}" for rate, missed in points if missed is not None]
    if rates:
        out.print(f"Missed at other thresholds: {', '.join(rates)} false alarms per hour")
    out.print(f"{found.speed:.0f} times real time")
