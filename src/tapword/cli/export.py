"""The command that makes a file for other programs of a taught model."""

import os
import uuid
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tapword import audio, demo
from tapword.cli.app import app, out, progress_bar
from tapword.cli.outputs import check_outputs
from tapword.cli.teach import Model
from tapword.errors import InputError
from tapword.spotter import Spotter, clean_word

MAX_WORDS = 50
# Of the shipped clips every so many set the ranges of 8-bit numbers, and others are compared.
CALIBRATE, COMPARE = slice(0, None, 21), slice(10, None, 42)


@app.command()
def export(
    model: Model,
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="OUT.onnx or OUT.h.", show_default=False)
    ],
    quantize: Annotated[
        bool, typer.Option("--quantize", help="With .onnx: the backbone in 8 bits.")
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With .onnx: measure what is lost on DIR, which has a folder a word.",
        ),
    ] = None,
    max_words: Annotated[
        int | None,
        typer.Option(help=f"With .h: words there is room for. [default: {MAX_WORDS}]", min=1),
    ] = None,
    covariance: Annotated[
        str | None,
        typer.Option(help="With .h: keep less of a full covariance: block or diagonal."),
    ] = None,
    frames: Annotated[
        Path | None,
        typer.Option(metavar="FRAMES.onnx", help="With .h: write the backbone's network too."),
    ] = None,
    backbone: Annotated[
        list[str] | None,
        typer.Option("--backbone", help="MODEL's backbones as they are to be had here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Make a file for other programs of MODEL as it is taught now.

    OUT.onnx goes from a waveform to word scores and is run by onnxruntime alone. OUT.h is C99 that
    goes on learning on the device; the backbone's convolutions stay outside of it.
    """
    wanted = target.suffix.lower()
    if wanted not in (".onnx", ".h"):
        raise InputError(f"OUT must end in .onnx or .h, got {target}")
    for option, given, suffix in (
        ("--quantize", quantize, ".onnx"),
        ("--check", check is not None, ".onnx"),
        ("--max-words", max_words is not None, ".h"),
        ("--covariance", covariance is not None, ".h"),
        ("--frames", frames is not None, ".h"),
    ):
        if given and suffix != wanted:
            raise InputError(f"{option} goes with OUT{suffix}, got {target}")
    for path in filter(None, (target, frames)):
        if path.exists() and model.exists() and path.samefile(model):
            raise InputError(f"{path} is the model itself; give another file")
        if path.exists() and not force:
            raise InputError(f"{path} exists; give a new file, or --force to replace it")
    check_outputs([target, frames])
    spotter = Spotter.load(model, backbone)
    if wanted == ".h":
        _export_c(spotter, target, max_words or MAX_WORDS, covariance, frames)
    else:
        _export_onnx(spotter, target, quantize, check)


def _export_onnx(spotter: Spotter, target: Path, quantised: bool, folder: Path | None) -> None:
    from tapword.export import onnx_file
    from tapword.export.check import compare
    from tapword.export.quantize import quantize

    built = onnx_file.build(spotter)
    content = built.SerializeToString()
    shipped = sorted(demo.CLIPS.glob("*/*.ogg"))
    paths, words = shipped[COMPARE], None
    if folder is not None:
        paths, words = _taught_clips(spotter, folder)
    clips = list(map(audio.read, paths))
    files = [("as it is", content)]
    if quantised:
        with progress_bar() as progress:
            progress.add_task("quantising", total=None)
            calibration: list[np.ndarray] = list(map(audio.read, shipped[CALIBRATE]))
            files.append(("in 8 bits", quantize(built, calibration)))
    seen = [(name, made, compare(spotter, made, clips, words)) for name, made in files]
    _write(target, files[-1][1])
    ears = "aligned inside" if spotter.align else "taken as it is"
    rejected = f" and {len(spotter.rejected)} rejected" if spotter.rejected else ""
    out.print(
        f"{target}: audio (samples,) float32 at 16 kHz, {ears} -> scores of "
        f"{len(spotter.words)} words{rejected}",
        soft_wrap=True,
    )
    where = folder or "the shipped demo"
    for name, made, check in seen:
        line = f"{name}: {len(made):,} bytes; scores differ from the model's by at most "
        line += f"{check.difference:.1e} on {check.clips} clips of {where}"
        if check.model_right is not None and check.file_right is not None:
            shares = [100 * right / check.clips for right in (check.model_right, check.file_right)]
            line += f"; right: {shares[0]:.1f}% by the model, {shares[1]:.1f}% by the file"
        out.print(line, soft_wrap=True)


def _export_c(
    spotter: Spotter, target: Path, max_words: int, covariance: str | None, frames: Path | None
) -> None:
    from tapword.backbones.speech_embedding import SpeechEmbedding
    from tapword.export import c_header, onnx_file
    from tapword.export.reduced import reduced

    if covariance is not None:
        spotter.learner = reduced(spotter.learner, covariance)
    header = c_header.build(spotter, max_words)
    network = isinstance(spotter.backbones[0], SpeechEmbedding)
    if frames is not None:
        if not network:
            raise InputError("--frames: this backbone has no network, the header holds all of it")
        _write(frames, onnx_file.build_frames(spotter).SerializeToString())
    _write(target, header.text.encode())
    out.print(
        f"{target}: {len(spotter.words)} words, room for {max_words}\n"
        f"constant tables {header.flash_bytes:,} bytes, memory {header.ram_bytes:,} bytes"
    )
    if network:
        where = f"; it is in {frames}" if frames else "; --frames FRAMES.onnx writes it"
        out.print(
            "not in it: the backbone's convolutions, which the device's own ONNX or TFLite runtime "
            f"runs{where}",
            soft_wrap=True,
        )


def _taught_clips(spotter: Spotter, folder: Path) -> tuple[list[Path], list[str]]:
    """Clips below a folder whose words the model knows, and the words."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    found = [
        (path, clean_word(sub.name))
        for sub in sorted(folder.iterdir())
        if sub.is_dir() and clean_word(sub.name) in spotter.words
        for path in audio.find(sub)
    ]
    if not found:
        raise InputError(f"{folder} has no sound files in folders named by a word of the model")
    return [path for path, _ in found], [word for _, word in found]


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, links followed."""
    target = Path(os.path.realpath(path))
    place = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        place.write_bytes(content)
        os.replace(place, target)
    except OSError as error:
        place.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
