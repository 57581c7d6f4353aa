"""Commands that say what is none of the words: by a sound, or by long recordings without them."""

from typing import Annotated

import typer
from rich.table import Table

from tapword import audio
from tapword.calibration import Calibration
from tapword.calibration import calibrate as measure
from tapword.cli.app import AsJson, app, cell, out, print_json
from tapword.cli.teach import Files, Model, expand
from tapword.errors import InputError
from tapword.spotter import Spotter

BLOCK_S = 10.0

PerHour = Annotated[
    float,
    typer.Option("--false-alarms-per-hour", help="How many are acceptable, of all words together."),
]


@app.command()
def reject(model: Model, files: Files) -> None:
    """Teach MODEL that each file was none of its words.

    Whatever was taken for a word by mistake: a sound like it will not be taken for it again.
    """
    if not model.exists():
        raise InputError(f"no model file: {model} does not exist")
    paths = expand(files)
    clips = [audio.read(path) for path in paths]
    with Spotter.edit(model) as spotter:
        if not spotter.words:
            raise InputError(f"{model} has no words yet, so nothing is taken for one")
        vectors = spotter.vectors(clips)
        before = spotter.predict_vectors(vectors, _limits(spotter))
        nearest = [spotter.reject(clip) for clip in clips]
        after = spotter.predict_vectors(vectors, _limits(spotter))
    table = Table("file", "nearest to", "taken for, before", "now")
    for path, word, old, new in zip(paths, nearest, before, after, strict=True):
        table.add_row(cell(path), cell(word), cell(old.word or "-"), cell(new.word or "-"))
    out.print(table)


def _limits(spotter: Spotter) -> dict[str, float]:
    """Thresholds; none where they are not known for the model's parts."""
    try:
        return spotter.thresholds()
    except InputError:
        return {}


@app.command()
def calibrate(
    model: Model,
    negatives: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NEGATIVES...]",
            help="Long recordings without the words: files, folders or globs.",
            show_default=False,
        ),
    ] = None,
    false_alarms_per_hour: PerHour = 0.5,
    as_json: AsJson = False,
) -> None:
    """Set the thresholds of MODEL so that recordings without its words give few false alarms.

    Without recordings, show the thresholds. A calibration replaces the one before, so give all
    recordings at once.
    """
    if not model.exists():
        raise InputError(f"no model file: {model} does not exist")
    spotter = Spotter.load(model)
    if not negatives:
        _show_thresholds(spotter, false_alarms_per_hour, as_json)
        return
    recordings = (audio.blocks(path, BLOCK_S) for path in expand(negatives))
    found = measure(spotter, recordings, false_alarms_per_hour)
    with Spotter.edit(model, spotter.backbones) as edited:
        edited.require_same_parts(spotter)
        edited.calibrated = {
            word: limit
            for word, limit in found.after.items()
            if limit > found.before[word] and word in edited.words
        }
    if as_json:
        print_json(found._asdict())
    else:
        _show_calibration(found, false_alarms_per_hour)


def _show_thresholds(spotter: Spotter, false_alarms_per_hour: float, as_json: bool) -> None:
    limits = spotter.thresholds(false_alarms_per_hour)
    if as_json:
        print_json(limits)
        return
    table = Table("word", "threshold", "from")
    for word, limit in limits.items():
        source = "calibration" if word in spotter.calibrated else "other words"
        table.add_row(cell(word), f"{limit:.3f}", source)
    out.print(table if limits else "no words yet")


def _show_calibration(found: Calibration, false_alarms_per_hour: float) -> None:
    table = Table("word", "threshold", "now", "highest heard", "false alarms", "now")
    for word, limit in found.before.items():
        highest = found.highest[word]
        table.add_row(
            cell(word),
            f"{limit:.3f}",
            f"{found.after[word]:.3f}",
            "" if highest is None else f"{highest:.3f}",
            str(found.alarms_before[word]),
            str(found.alarms_after[word]),
        )
    out.print(table)
    allowed = int(false_alarms_per_hour * found.hours)
    out.print(
        f"{found.hours * 60:.1f} minutes were heard; {false_alarms_per_hour:g} an hour allow "
        f"{allowed} false alarms in them.\n"
        f"{sum(found.alarms_after.values())} in that time show a rate below "
        f"{found.at_most_per_hour:.2g} an hour (upper end of the 95% interval), in sound like this."
    )
    if found.at_most_per_hour > false_alarms_per_hour:
        out.print(
            "To show the wanted rate takes at least "
            f"{found.at_most_per_hour * found.hours / false_alarms_per_hour:.1f} hours."
        )
