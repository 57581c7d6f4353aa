"""Commands that inspect and change model files, and list the available parts."""

import textwrap
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from tapword import registry
from tapword.cli.app import argument, command, flag, option
from tapword.cli.complete import LISTED
from tapword.cli.console import cell, out, print_json
from tapword.cli.options import AsJson, Backbones, Model, PerHour
from tapword.cli.teach import report_model, words_and_clips
from tapword.errors import InputError
from tapword.spotter import store
from tapword.spotter.presets import PRESETS
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, check_rate
from tapword.spotter.vocabulary import SENSITIVITY, clean_word
from tapword.support.text import counted, printable

Word = Annotated[str, argument("WORD", "A word of MODEL.")]
ARGUMENTS_WIDTH = 30


@command()
def info(
    model: Model,
    verbose: Annotated[bool, flag("--verbose", "Also show its parts and what it stores.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the words of MODEL."""
    # Backbones are not created: their weights may not be on this machine.
    read = store.read(model)
    header, learner = read.header, store.load_learner(model, read)
    size = learner.state_bytes
    words, negatives, spoken = header["words"], header["negatives"], header["synthetic"]
    common, own = header["sensitivity"], header["sensitivities"]
    facts = {
        "file": str(model),
        "words": words,
        "negatives": negatives,
        "synthetic": spoken,
        "voices": header["voices"],
        "sensitivity": common,
        "sensitivities": own,
        "align": bool(header.get("align")),
        "augment": bool(header.get("augment")),
        "whitening": header.get("whitening") or [],
        "backbones": header["backbones"],
        "poolings": header["poolings"],
        "learner": header["learner"],
        "dim": header.get("dim"),
        "state_bytes": size._asdict(),
        "file_bytes": model.stat().st_size,
        "keeps_vectors": learner.keeps_vectors,
        "keeps_trace": learner.keeps_trace,
        "format": header["format"],
        "version": header.get("version"),
        "generation": header.get("generation"),
    }
    if as_json:
        print_json(facts)
        return
    columns = {"samples": {word: str(n) for word, n in words.items()}}
    # Most models have none of these.
    if spoken:
        voices = header["voices"]
        columns["synthetic"] = {
            word: " by ".join(filter(None, (str(spoken[word]), ", ".join(voices.get(word, ())))))
            for word in spoken
        }
    if negatives:
        columns["negatives"] = {word: str(negatives.get(word, 0)) for word in words}
    if own or common != SENSITIVITY:
        columns["sensitivity"] = {word: f"{own.get(word, common):.2f}" for word in words}
    table = Table("word", *columns)
    for word in words:
        table.add_row(cell(word), *(column.get(word, "") for column in columns.values()))
    out.print(table if words else "no words yet")
    if not verbose:
        out.print(
            f"{words_and_clips(words, spoken)}. --verbose shows the parts of the model and what it "
            "stores."
        )
        return
    backbones = registry.describe("backbones", *header["backbones"])
    for part in header["backbones"]:
        if part.get("weights_sha256"):
            backbones += f"\n           weights {part['weights_sha256']}"
    poolings = registry.describe("poolings", *header["poolings"])
    clips = "cut around the sound" if facts["align"] else "not cut"
    if facts["augment"]:
        clips += "; taught with augmented copies"
    whitening = "statistics of other words" if facts["whitening"] else "none"
    kept = "feature vectors of some clips" if learner.keeps_vectors else "statistics only"
    written = counted(header.get("generation", 0), "time")
    trace = "its share of the statistics of all words" if learner.keeps_trace else "nothing"
    out.print(
        f"clips      {clips}\n"
        f"backbone   {backbones}\n"
        f"pooling    {poolings}, {header.get('dim')} numbers a clip\n"
        f"whitening  {whitening}\n"
        f"learner    {registry.describe('learners', header['learner'])}\n"
        f"state      {size.total:,} bytes: {size.fixed:,} fixed and {size.per_word:,} a word\n"
        f"keeps      {kept}, never a recording; of a forgotten word {trace}\n"
        f"written    {written}, last by tapword {header.get('version')}"
    )


@command()
def sensitivity(
    model: Model,
    value: Annotated[
        float | None,
        argument("VALUE", f"0 to 1; {SENSITIVITY} unless it was changed."),
    ] = None,
    word: Annotated[
        list[str] | None,
        option("WORD", "Only this word; repeat for several. [default: all words]"),
    ] = None,
    false_alarms_per_hour: PerHour = FALSE_ALARMS_PER_HOUR,
    as_json: AsJson = False,
    backbone: Backbones = None,
) -> None:
    """Show the sensitivity of MODEL's words, or set it to VALUE.

    A higher sensitivity means fewer misses and more false alarms: 2.5 times as many for each 0.1.
    Without --word, it applies to all words, including those taught later. The thresholds shown are
    those for --false-alarms-per-hour.
    """
    store.require_file(model)
    wanted = [clean_word(one) for one in word or ()]
    check_rate(false_alarms_per_hour)
    if value is None:
        spotter = Spotter.load(model, backbone)
        for one in wanted:
            spotter.learner.require_taught(one)
        _show_sensitivities(spotter, wanted or list(spotter.words), false_alarms_per_hour, as_json)
        return
    step = f"sensitivity {value:g} of {', '.join(wanted) or 'all words'}"
    with Spotter.edit(model, backbone, step) as spotter:
        before = {one: spotter.vocabulary.sensitivity_of(one) for one in spotter.words}
        if not wanted:
            spotter.set_sensitivity(value)
        for one in wanted:
            spotter.set_sensitivity(value, one)
    if as_json:
        _show_sensitivities(spotter, wanted or list(spotter.words), false_alarms_per_hour, as_json)
        return
    for one in wanted or before:
        out.print(sensitivity_change(one, before[one], value), soft_wrap=True)
    if not wanted:
        out.print(f"words taught later: sensitivity {value:.2f}")


def sensitivity_change(word: str, before: float, now: float) -> str:
    """Describe how the sensitivity of a word changed."""
    shown, old = f"{now:.2f}", f"{before:.2f}"
    effect = "fewer misses" if now > before else "fewer false alarms"
    effect = "unchanged" if shown == old else effect
    return f"{printable(word)}: sensitivity {old} -> {shown}, {effect}"


def _show_sensitivities(
    spotter: Spotter, words: list[str], false_alarms_per_hour: float, as_json: bool
) -> None:
    thresholds, vocabulary = spotter.thresholds(false_alarms_per_hour), spotter.vocabulary
    facts = {
        word: {"sensitivity": vocabulary.sensitivity_of(word), "threshold": thresholds[word]}
        for word in words
    }
    if as_json:
        print_json(facts)
        return
    table = Table("word", "sensitivity", "threshold")
    for word, fact in facts.items():
        table.add_row(cell(word), f"{fact['sensitivity']:.2f}", f"{fact['threshold']:.3f}")
    out.print(table if facts else "no words yet")
    out.print(
        f"Words taught later: {vocabulary.sensitivity:.2f}. At sensitivity {SENSITIVITY:g}, all "
        f"words together raise {false_alarms_per_hour:g} false alarms an hour."
    )


@command()
def forget(
    model: Model,
    word: Word,
    erase: Annotated[bool, flag("--erase", "Keep nothing of it: it cannot be undone.")] = False,
    backbone: Backbones = None,
) -> None:
    """Remove a word from MODEL.

    `tapword undo` restores it for 30 days. --erase also removes the backup and the undo file.
    """
    store.require_file(model)
    word = clean_word(word)
    if erase and word not in Spotter.load(model, backbone).words and store.erase(model):
        out.print(f"{model}: erased the backup and the undo file; {word!r} is not in the model")
        return
    with Spotter.edit(model, backbone, None if erase else f"forget {word}") as spotter:
        spotter.forget(word)
    out.print(f"{model}: forgot {word!r}, {counted(len(spotter.words), 'word')} left")


@command()
def undo(
    model: Model,
    steps: Annotated[int, option("N", "How many changes to undo.", min=1)] = 1,
    show: Annotated[bool, flag("--list", "List the changes that can be undone.")] = False,
) -> None:
    """Undo the last change to MODEL by a command.

    learn, forget, rename, reject, merge, import, sensitivity and calibrate can be undone: the
    last 10 changes of the last 30 days. MODEL.undo keeps the model as it was before each.
    """
    if show:
        found = store.undoable(model)
        table = Table("undo", "change", "when")
        for number, step in enumerate(found, 1):
            when = datetime.fromtimestamp(step.time).strftime("%Y-%m-%d %H:%M")
            table.add_row(str(number), cell(step.what), when)
        out.print(table if found else "nothing to undo")
        return
    for step in store.take_back(model, steps):
        out.print(f"undone: {printable(step.what)}", soft_wrap=True)
    if not model.exists():
        out.print(f"{model}: removed, as it was created by this")
        return
    header = store.read(model).header
    out.print(f"{model}: {words_and_clips(header['words'], header['synthetic'])}")


@command()
def rename(
    model: Model,
    old: Word,
    new: Annotated[str, argument("NEW", "Its new name.")],
    backbone: Backbones = None,
) -> None:
    """Rename a word of MODEL."""
    store.require_file(model)
    with Spotter.edit(model, backbone, f"rename {old} to {new}") as spotter:
        spotter.rename(old, new)
    out.print(f"{model}: {old!r} is now {new!r}")


@command()
def merge(
    model: Annotated[Path, argument("MODEL", "Model file to create.")],
    models: Annotated[list[Path], argument("MODELS", "Models to merge, each taught separately.")],
    force: Annotated[bool, flag("--force", "Replace MODEL if it exists.")] = False,
    backbone: Backbones = None,
) -> None:
    """Merge models that were taught separately, as if one had been taught everything.

    Samples that two of them share, such as a model and a copy of it, count twice.

        tapword merge both.tap kitchen.tap bedroom.tap
    """
    if model.exists() and not force:
        raise InputError(f"{model} exists; give a new file, or --force to replace it")
    _require_different(models)
    spotter = Spotter.load(models[0], backbone)
    for path in models[1:]:
        spotter.merge(Spotter.load(path, backbone))
    step = f"merge {', '.join(str(path) for path in models)}"
    spotter.save(model, overwrite=force, step=step)
    report_model(model, spotter)


def _require_different(models: list[Path]) -> None:
    """Refuse a model that is given twice, or a copy of another: its samples would count twice."""
    first: dict[str, Path] = {}
    for path in models:
        revision = store.revision(path)
        same = first.setdefault(str(path.resolve()) if revision is None else revision, path)
        if same is not path:
            raise InputError(
                f"{path} is the same model as {same}: its samples would count twice; give it once"
            )


@command("list")
def list_parts(
    kind: Annotated[
        str | None, argument("KIND", f"{', '.join(LISTED)}. [default: all of them]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the available parts with their arguments, and the sizes."""
    if kind not in (None, *LISTED):
        raise InputError(f"no kind of part named {kind!r}; known: {', '.join(LISTED)}")
    parts = {name: _parts(name) for name in ([kind] if kind else LISTED)}
    if as_json:
        print_json(parts[kind] if kind else parts)
        return
    for name, rows in parts.items():
        if kind is None:
            out.print(name, style="bold")
        _show_parts(rows)


def _parts(kind: str) -> list[dict[str, Any]]:
    if kind == "sizes":
        return [
            {
                "name": name,
                "arguments": {},
                "summary": " -> ".join(
                    [" + ".join(one.backbones), " + ".join(one.poolings), one.learner]
                ),
            }
            for name, one in PRESETS.items()
        ]
    return [
        {
            "name": name,
            "arguments": {key: p.default for key, p in cls.parameters().items()},
            "summary": registry.summary(cls),
        }
        for name, cls in registry.classes(kind).items()
    ]


def _show_parts(parts: list[dict[str, Any]]) -> None:
    shown = [_wrap(part["arguments"]) for part in parts]
    # Summaries are wrapped first: a name or value cut in two cannot be typed.
    widest = max(len(line) for text in shown for line in text.split("\n"))
    table = Table()
    table.add_column("name", no_wrap=True)
    if any(shown):
        table.add_column("arguments", overflow="fold", min_width=widest)
    table.add_column("description", overflow="fold")
    for part, arguments in zip(parts, shown, strict=True):
        table.add_row(part["name"], *([arguments] if any(shown) else []), part["summary"])
    out.print(table)


def _wrap(arguments: dict[str, Any]) -> str:
    """Write arguments as they are typed, wrapped after commas."""
    text = ", ".join(f"{key}={registry.as_typed(value)}" for key, value in arguments.items())
    lines = textwrap.wrap(text, ARGUMENTS_WIDTH, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace(", ", ",")
