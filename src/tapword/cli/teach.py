"""Commands that teach and ask a model."""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tapword import audio, demo
from tapword.cli.app import AsJson, app, cell, err, out, print_json, printable, progress_bar
from tapword.errors import InputError
from tapword.spotter import BACKBONE, LEARNER, POOLING, Prediction, Spotter, clean_word

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
    word: Annotated[str, typer.Argument(help="What is said in the files.", show_default=False)],
    files: Files,
    backbone: Backbones = None,
    pooling: Poolings = None,
    learner: LearnerName = None,
    size: SizeName = None,
    skip_bad: SkipBad = False,
) -> None:
    """Teach MODEL a word from sound files; MODEL is made if there is none."""
    word = clean_word(word)
    clips = [(path, word) for path in _expand(files)]
    _teach(model, clips, _parts(model, backbone, pooling, learner, size), skip_bad)


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
) -> None:
    """Teach MODEL every word that has a folder in DIR."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    clips = [
        (path, clean_word(sub.name))
        for sub in sorted(folder.iterdir())
        if sub.is_dir() and not sub.name.startswith((".", "_"))
        for path in audio.find(sub)
    ]
    if not clips:
        raise InputError(f"{folder} has no sound files in folders named by their word")
    _teach(model, clips, _parts(model, backbone, pooling, learner, size), skip_bad)


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
) -> None:
    """Say which taught word each file is."""
    spotter = Spotter.load(model, backbone)
    answers: list[tuple[Path, Prediction]] = []
    for paths, vectors in _extract(spotter, _expand(files), skip_bad):
        answers.extend(zip(paths, spotter.predict_vectors(vectors), strict=True))
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
        table.add_row(cell(path), cell(answer.word), f"{shares[0][1]:.1%}", cell(second))
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


def _expand(patterns: Iterable[str]) -> list[Path]:
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
                yield kept, spotter.vectors(clips, learning=learning)
            progress.advance(task, min(BATCH, len(paths) - start))


def _teach(
    model: Path, clips: list[tuple[Path, str]], parts: dict[str, Any], skip_bad: bool
) -> None:
    """Listen first, then lock the model only for the moment of learning."""
    backbones = parts.pop("backbone", None) if model.exists() else None
    listener = Spotter.load(model, backbones) if model.exists() else Spotter(**parts)
    word_of = dict(clips)
    learned = 0
    batches = list(_extract(listener, [path for path, _ in clips], skip_bad, learning=True))
    if not batches:
        raise InputError("none of the files could be used; nothing was taught")
    with Spotter.edit(model, backbones, **parts) as spotter:
        # Somebody may have replaced the model while we listened.
        spotter.require_same_parts(listener)
        for paths, vectors in batches:
            spotter.learn_vectors(vectors, [word_of[path] for path in paths])
            learned += len(paths)
    out.print(f"learned {learned} clips")
    report_model(model, spotter)


def report_model(model: Path, spotter: Spotter) -> None:
    """Say what a model knows after it was written."""
    samples = sum(spotter.words.values())
    out.print(
        f"{model}: {len(spotter.words)} words, {samples} samples, "
        f"{spotter.learner.state_bytes.total:,} bytes of statistics"
    )
