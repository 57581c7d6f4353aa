"""Commands that teach and ask a model."""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from tapword import audio, demo, modelfile, registry
from tapword.cli.app import AsJson, app, err, out, print_json
from tapword.errors import InputError
from tapword.spotter import BACKBONE, LEARNER, POOLING, Prediction, Spotter

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
    typer.Option("--backbone", help=f"For a new model; repeat for several. [default: {BACKBONE}]"),
]
PoolingName = Annotated[
    str | None, typer.Option("--pooling", help=f"For a new model. [default: {POOLING}]")
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
    pooling: PoolingName = None,
    learner: LearnerName = None,
    size: SizeName = None,
    skip_bad: SkipBad = False,
) -> None:
    """Teach MODEL a word from sound files; MODEL is made if there is none."""
    clips = [(path, word) for path in _expand(files)]
    _teach(model, clips, _parts(model, backbone, pooling, learner, size), skip_bad)


@app.command()
def learn_folder(
    model: Model,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="DIR/<word>/* are clips of <word>.")
    ],
    backbone: Backbones = None,
    pooling: PoolingName = None,
    learner: LearnerName = None,
    size: SizeName = None,
    skip_bad: SkipBad = False,
) -> None:
    """Teach MODEL every word that has a folder in DIR."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    clips = [
        (path, sub.name)
        for sub in sorted(folder.iterdir())
        if sub.is_dir() and not sub.name.startswith((".", "_"))
        for path in audio.find(sub)
    ]
    if not clips:
        raise InputError(f"{folder} has no sound files in folders named by their word")
    _teach(model, clips, _parts(model, backbone, pooling, learner, size), skip_bad)


@app.command()
def predict(model: Model, files: Files, as_json: AsJson = False, skip_bad: SkipBad = False) -> None:
    """Say which taught word each file is."""
    spotter = Spotter.load(model)
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
        table.add_row(str(path), answer.word, f"{shares[0][1]:.1%}", second)
    out.print(table)


@app.command()
def info(model: Model, as_json: AsJson = False) -> None:
    """Show what MODEL knows, what it is made of and what it keeps."""
    header, arrays = modelfile.read(model)
    learner = registry.restore("learners", header["learner"])
    learner.load_state(arrays, header["words"])
    size = learner.state_bytes
    facts = {
        "file": str(model),
        "words": header["words"],
        "backbones": header["backbones"],
        "poolings": header["poolings"],
        "learner": header["learner"],
        "dim": header.get("dim"),
        "state_bytes": size._asdict(),
        "file_bytes": model.stat().st_size,
        "keeps_vectors": learner.keeps_vectors,
        "format": header["format"],
        "version": header.get("version"),
        "generation": header.get("generation"),
    }
    if as_json:
        print_json(facts)
        return
    table = Table("word", "samples")
    for word, count in header["words"].items():
        table.add_row(word, str(count))
    out.print(table if header["words"] else "no words yet")
    backbones = " + ".join(registry.describe(part) for part in header["backbones"])
    for part in header["backbones"]:
        if part.get("weights_sha256"):
            backbones += f"\n           weights {part['weights_sha256']}"
    poolings = " + ".join(registry.describe(part) for part in header["poolings"])
    kept = "feature vectors of some clips" if learner.keeps_vectors else "statistics only"
    out.print(
        f"backbone   {backbones}\n"
        f"pooling    {poolings}, {header.get('dim')} numbers a clip\n"
        f"learner    {registry.describe(header['learner'])}\n"
        f"state      {size.total:,} bytes: {size.fixed:,} fixed and {size.per_word:,} a word\n"
        f"keeps      {kept}, never a recording\n"
        f"written    {header.get('generation')} times, last by tapword {header.get('version')}",
        highlight=False,
    )


@app.command()
def forget(model: Model, word: str) -> None:
    """Remove a word from MODEL."""
    with _edit(model) as spotter:
        spotter.forget(word)
    out.print(f"{model}: forgot {word!r}, {len(spotter.words)} words left", highlight=False)


@app.command()
def rename(model: Model, old: str, new: str) -> None:
    """Give a word of MODEL another name."""
    with _edit(model) as spotter:
        spotter.rename(old, new)
    out.print(f"{model}: {old!r} is now {new!r}", highlight=False)


@app.command()
def merge(
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Model file to make.")],
    models: Annotated[list[Path], typer.Argument(metavar="A B...", help="Models to add up.")],
) -> None:
    """Add up models taught apart, as if one had been taught everything."""
    if target.exists():
        raise InputError(f"{target} exists; give a new file")
    spotter = Spotter.load(models[0])
    for path in models[1:]:
        spotter.merge(Spotter.load(path))
    spotter.save(target)
    _report(target, spotter)


@app.command(name="list")
def list_parts(
    room: Annotated[str, typer.Argument(help="backbones, poolings or learners.")],
    as_json: AsJson = False,
) -> None:
    """List the parts a model can be made of, with their arguments."""
    if room not in registry.ROOMS:
        raise InputError(f"nothing to list named {room!r}; known: {', '.join(registry.ROOMS)}")
    parts: list[dict[str, Any]] = [
        {
            "name": name,
            "arguments": {key: p.default for key, p in cls.parameters().items()},
            "summary": registry.summary(cls),
        }
        for name, cls in registry.classes(room).items()
    ]
    if as_json:
        print_json(parts)
        return
    table = Table("name", "arguments", "what it is")
    for part in parts:
        arguments = ",".join(f"{key}={value}" for key, value in part["arguments"].items())
        table.add_row(part["name"], arguments, part["summary"])
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
    pooling: str | None,
    learner: str | None,
    size: str | None,
) -> dict[str, Any]:
    given = {"backbone": backbone, "pooling": pooling, "learner": learner, "size": size}
    given = {name: value for name, value in given.items() if value}
    if given and model.exists():
        options = ", ".join(f"--{name}" for name in given)
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
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
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
                    err.print(f"skipped: {error}", highlight=False)
            if kept:
                yield kept, spotter.vectors(clips, learning=learning)
            progress.advance(task, min(BATCH, len(paths) - start))


def _teach(
    model: Path, clips: list[tuple[Path, str]], parts: dict[str, Any], skip_bad: bool
) -> None:
    """Listen first, then lock the model only for the moment of learning."""
    spotter = Spotter.load(model) if model.exists() else Spotter(**parts)
    word_of = dict(clips)
    learned = 0
    batches = list(_extract(spotter, [path for path, _ in clips], skip_bad, learning=True))
    if not batches:
        raise InputError("none of the files could be used; nothing was taught")
    with Spotter.edit(model, **parts) as spotter:
        for paths, vectors in batches:
            spotter.learn_vectors(vectors, [word_of[path] for path in paths])
            learned += len(paths)
    out.print(f"learned {learned} clips", highlight=False)
    _report(model, spotter)


def _edit(model: Path) -> Any:
    if not model.exists():
        raise InputError(f"no model file: {model} does not exist")
    return Spotter.edit(model)


def _report(model: Path, spotter: Spotter) -> None:
    samples = sum(spotter.words.values())
    out.print(
        f"{model}: {len(spotter.words)} words, {samples} samples, "
        f"{spotter.learner.state_bytes.total:,} bytes of statistics",
        highlight=False,
    )
