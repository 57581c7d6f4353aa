"""Commands that teach and ask a model."""

import glob
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tapword import audio, demo, scale
from tapword.cli.app import AsJson, app, cell, err, out, print_json, printable, progress_bar
from tapword.cli.engines import Address, EngineName, open_engine
from tapword.cli.record import TAKES, record, warn_if_close
from tapword.errors import InputError
from tapword.front import BACKBONE, POOLING
from tapword.spotter import LEARNER, Prediction, Spotter, clean_word

BATCH = 32

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.", show_default=False)]
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILES...", help="Sound files, folders or globs.", show_default=False),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip files that cannot be used, and say which.")
]
Backbones = Annotated[
    list[str] | None,
    typer.Option(
        "--backbone",
        help=f"For a new model; repeat for several. [default: {BACKBONE}] For a model that exists: "
        "its own backbones as they are to be had here, with weights=PATH or device=cuda, say.",
    ),
]
Poolings = Annotated[
    list[str] | None,
    typer.Option(
        "--pooling",
        help=f"For a new model; one for all backbones, or repeat for each. [default: {POOLING}]",
    ),
]
LearnerName = Annotated[
    str | None, typer.Option("--learner", help=f"For a new model. [default: {LEARNER}]")
]
SizeName = Annotated[
    str | None,
    typer.Option("--size", help="For a new model, instead of parts: small, medium or large."),
]


@app.command()
def learn(
    model: Model,
    word: Annotated[str, typer.Argument(help="What is said.", show_default=False)],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES...]", help="Sound files, folders or globs.", show_default=False
        ),
    ] = None,
    mic: Annotated[
        bool, typer.Option("--mic", help="Record by microphone instead of FILES.")
    ] = False,
    takes: Annotated[
        int | None,
        typer.Option(help=f"With --mic: how often to say it. [default: {TAKES}]", min=1),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="With --mic: name or number of the microphone.")
    ] = None,
    backbone: Backbones = None,
    pooling: Poolings = None,
    learner: LearnerName = None,
    size: SizeName = None,
    skip_bad: SkipBad = False,
) -> None:
    """Teach MODEL a word from sound files or by microphone; MODEL is made if there is none."""
    word = clean_word(word)
    if mic == bool(files):
        raise InputError("give either sound files or --mic to record them")
    if not mic and (takes is not None or device is not None):
        raise InputError("--takes and --device go with --mic")
    parts = _parts(model, backbone, pooling, learner, size)
    if mic:
        _teach_takes(model, word, parts, TAKES if takes is None else takes, device)
    else:
        _teach(model, [(path, word) for path in expand(files or [])], parts, skip_bad)


@app.command()
def learn_folder(
    model: Model,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="DIR/<word>/* are clips of <word>.")
    ],
    backbone: Backbones = None,
    pooling: Poolings = None,
    learner: LearnerName = None,
    size: SizeName = None,
    skip_bad: SkipBad = False,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Teach MODEL every word that has a folder in DIR."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    clips = _walk(folder)
    first = next(clips, None)
    if first is None:
        raise InputError(f"{folder} has no sound files in folders named by their word")
    clips = itertools.chain([first], clips)
    parts = _parts(model, backbone, pooling, learner, size)
    with open_engine(engine, address) as cluster:
        if cluster is None:
            _teach(model, list(clips), parts, skip_bad)
        else:
            _teach_on(cluster, model, clips, parts, skip_bad)


@app.command()
def predict(
    model: Model,
    files: Files,
    as_json: AsJson = False,
    skip_bad: SkipBad = False,
    backbone: Annotated[
        list[str] | None,
        typer.Option("--backbone", help="MODEL's backbones as they are to be had here."),
    ] = None,
    reject: Annotated[
        bool, typer.Option("--reject", help="A file may be none of the words: then say -.")
    ] = False,
) -> None:
    """Say which taught word each file is."""
    spotter = Spotter.load(model, backbone)
    answers: list[tuple[Path, Prediction]] = []
    for paths, vectors in _extract(spotter, expand(files), skip_bad):
        answers.extend(zip(paths, spotter.predict_vectors(vectors, reject), strict=True))
    if as_json:
        print_json(
            [
                {
                    "file": str(path),
                    "word": answer.word,
                    "score": answer.score,
                    "probabilities": answer.probabilities,
                }
                for path, answer in answers
            ]
        )
        return
    if not spotter.words:
        out.print(f"{model} has no words yet; teach it with: tapword learn {model} WORD FILES...")
        return
    table = Table("file", "word", "share", "next best")
    for path, answer in answers:
        shares = list(answer.probabilities.items())
        second = f"{shares[1][0]} {shares[1][1]:.1%}" if len(shares) > 1 else ""
        word = "-" if answer.word is None else answer.word
        table.add_row(cell(path), cell(word), f"{shares[0][1]:.1%}", cell(second))
    out.print(table)


@app.command(name="demo")
def run_demo(
    seed: Annotated[int, typer.Option(help="Order of words and choice of voices.")] = 0,
) -> None:
    """Teach synthetic words one sample at a time and watch them stay known."""
    demo.show(out, seed)


def _parts(
    model: Path,
    backbone: list[str] | None,
    pooling: list[str] | None,
    learner: str | None,
    size: str | None,
) -> dict[str, Any]:
    given = {"backbone": backbone, "pooling": pooling, "learner": learner, "size": size}
    given = {name: value for name, value in given.items() if value}
    fixed = [name for name in given if name != "backbone"]
    if fixed and model.exists():
        options = ", ".join(f"--{name}" for name in fixed)
        raise InputError(f"{options} only for a new model; {model} exists and keeps its parts")
    return given


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Clips of every word that has a folder, one folder at a time."""
    for sub in sorted(folder.iterdir()):
        if sub.is_dir() and not sub.name.startswith((".", "_")):
            word = clean_word(sub.name)
            for path in audio.find(sub):
                yield path, word


def expand(patterns: Iterable[str]) -> list[Path]:
    """Files of paths, folders and globs, in order; an empty folder or glob is an error."""
    found: list[Path] = []
    for pattern in patterns:
        literal = Path(pattern).exists() or not glob.has_magic(pattern)
        matches = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
        files = [file for match in matches for file in audio.find(match)]
        if not files:
            raise InputError(f"{pattern}: no sound files there")
        found.extend(files)
    return found


def _extract(
    spotter: Spotter, paths: list[Path], skip_bad: bool, learning: bool = False
) -> Iterator[tuple[list[Path], Any]]:
    """Vectors of files, a batch at a time, with a progress bar."""
    with progress_bar() as progress:
        task = progress.add_task("listening", total=len(paths))
        for start in range(0, len(paths), BATCH):
            clips, kept = [], []
            for path in paths[start : start + BATCH]:
                try:
                    clips.append(audio.read(path))
                    kept.append(path)
                except InputError as error:
                    if not skip_bad:
                        raise
                    err.print(f"skipped: {printable(error)}", soft_wrap=True)
            if kept:
                vectors = spotter.vectors(clips, learning=learning)
                if learning:
                    warn_of_noise(kept, spotter.front.is_noise(vectors))
                yield kept, vectors
            progress.advance(task, min(BATCH, len(paths) - start))


def warn_of_noise(paths: Iterable[Path], noise: Iterable[bool]) -> None:
    """Say which files will be taught although no word is to be heard in them."""
    for path in itertools.compress(paths, noise):
        err.print(
            f"warning: {printable(path)} sounds like noise alone, which is never taken for a word "
            "when listening",
            style="yellow",
            soft_wrap=True,
        )


def _teach(
    model: Path, clips: list[tuple[Path, str]], parts: dict[str, Any], skip_bad: bool
) -> None:
    """Teach sound files, each with its word."""
    backbones, listener = _listener(model, parts)
    word_of = dict(clips)
    batches = list(_extract(listener, [path for path, _ in clips], skip_bad, learning=True))

    def teach(spotter: Spotter) -> None:
        for paths, vectors in batches:
            spotter.learn_vectors(vectors, [word_of[path] for path in paths])

    lesson = scale.Lesson(sum(len(paths) for paths, _ in batches), teach)
    _write(model, listener, backbones, parts, lesson)


def _teach_on(
    cluster: scale.Cluster,
    model: Path,
    clips: Iterable[tuple[Path, str]],
    parts: dict[str, Any],
    skip_bad: bool,
) -> None:
    """Teach sound files, each with its word; the workers of a cluster listen."""
    backbones, listener = _listener(model, parts)

    def skipped(message: str) -> None:
        err.print(f"skipped: {printable(message)}", soft_wrap=True)

    with progress_bar() as progress:
        task = progress.add_task("listening", total=None)
        with cluster.listen(
            listener,
            clips,
            skip_bad,
            skipped,
            lambda done: progress.update(task, completed=done),
        ) as lesson:
            _write(model, listener, backbones, parts, lesson)


def _teach_takes(
    model: Path, word: str, parts: dict[str, Any], count: int, device: str | None
) -> None:
    """Teach a word from takes recorded now."""
    backbones, listener = _listener(model, parts)
    clips = record(word, count, device)
    vectors = listener.vectors(clips, learning=True)
    warn_if_close(listener, vectors, word)
    words = [word] * len(clips)
    lesson = scale.Lesson(len(clips), lambda spotter: spotter.learn_vectors(vectors, words))
    _write(model, listener, backbones, parts, lesson)


def _listener(model: Path, parts: dict[str, Any]) -> tuple[list[str] | None, Spotter]:
    """Backbones of a model that exists, taken out of `parts`, and a spotter to listen with."""
    backbones = parts.pop("backbone", None) if model.exists() else None
    return backbones, Spotter.load(model, backbones) if model.exists() else Spotter(**parts)


def _write(
    model: Path,
    listener: Spotter,
    backbones: list[str] | None,
    parts: dict[str, Any],
    lesson: scale.Lesson,
) -> None:
    """Lock the model only for the moment of learning what was listened to before."""
    if not lesson.clips:
        raise InputError("none of the files could be used; nothing was taught")
    with Spotter.edit(model, backbones, **parts) as spotter:
        # Somebody may have replaced the model while we listened.
        spotter.require_same_parts(listener)
        lesson.teach(spotter)
    out.print(f"learned {lesson.clips} clips")
    report_model(model, spotter)


def report_model(model: Path, spotter: Spotter) -> None:
    """Say what a model knows after it was written."""
    samples = sum(spotter.words.values())
    out.print(
        f"{model}: {len(spotter.words)} words, {samples} samples, "
        f"{spotter.learner.state_bytes.total:,} bytes of statistics"
    )
