"""Commands that make files for other programs of a model, and bring back what they learned."""

from pathlib import Path
from typing import Annotated

from tapword.assets import CLIPS
from tapword.audio import files as audio_files
from tapword.cli.app import FILES, argument, command, flag, option
from tapword.cli.console import out, progress_bar
from tapword.cli.options import Backbones, Quiet
from tapword.cli.teach import report_model
from tapword.errors import InputError
from tapword.research.datasets.base import word_folders
from tapword.spotter import presets
from tapword.spotter.spotter import Spotter
from tapword.support.atomic_files import check_writable, write
from tapword.support.text import counted

# Words there is room for on a device: with those, and what it takes to listen for words, 256 KiB.
MAX_WORDS = 20
# Names no file but a new model on it, for devices that are taught from the first word on.
[EAR] = presets.preset("small").backbones
# Of the shipped clips, some that do not set the ranges of 8-bit numbers.
COMPARE = slice(10, None, 42)


@command(FILES)
def export(
    model: Annotated[
        Path, argument("MODEL", f"Model file; but for .onnx also {EAR}, which knows no word.")
    ],
    target: Annotated[Path, argument("OUT", "OUT.onnx, OUT.h or OUT.bin.")],
    quantize: Annotated[bool, flag("--quantize", "With .onnx: the backbone in 8 bits.")] = False,
    check: Annotated[
        Path | None,
        option("DIR", "With .onnx: measure what is lost on DIR, which has a folder a word."),
    ] = None,
    max_words: Annotated[
        int | None, option("N", f"With .h: words there is room for. [default: {MAX_WORDS}]", min=1)
    ] = None,
    covariance: Annotated[
        str | None,
        option("FORM", "With .h and .bin: how much covariance is kept: diagonal, block or full."),
    ] = None,
    exact: Annotated[
        bool,
        flag("--exact", "With .h and .bin: all of MODEL, in floats; not what fits a small device."),
    ] = False,
    weights: Annotated[
        Path | None, option("FILE", "With .h: write the weights to a file of their own.")
    ] = None,
    frames: Annotated[
        Path | None,
        option("FILE", "With .h on speech_embedding: write its network, as ONNX."),
    ] = None,
    backbone: Backbones = None,
    force: Annotated[bool, flag("--force", "Replace files that exist.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make a file for other programs of MODEL as it is taught now.

    OUT.onnx goes from a waveform to word scores and is run by onnxruntime alone. OUT.h is C99 from
    samples to words that goes on learning on the device: of our own ear, as fits a small one, in 8
    bits and with the diagonal of the covariance. OUT.bin is what MODEL knows, for a device
    or web page that has such a header already; `tapword import` brings it back.

        tapword export tapword_ear core.h
    """
    wanted = target.suffix.lower()
    if wanted not in (".onnx", ".h", ".bin"):
        raise InputError(f"OUT must end in .onnx, .h or .bin, got {target}")
    for name, given, suffixes in (
        ("--quantize", quantize, [".onnx"]),
        ("--check", check is not None, [".onnx"]),
        ("--max-words", max_words is not None, [".h"]),
        ("--covariance", covariance is not None, [".h", ".bin"]),
        ("--exact", exact, [".h", ".bin"]),
        ("--weights", weights is not None, [".h"]),
        ("--frames", frames is not None, [".h"]),
    ):
        if given and wanted not in suffixes:
            raise InputError(f"{name} goes with OUT{' or OUT'.join(suffixes)}, got {target}")
    written = [path for path in (target, frames, weights) if path is not None]
    if len({path.resolve() for path in written}) < len(written):
        raise InputError("OUT, --weights and --frames must be different files")
    for path in written:
        if path.exists() and model.exists() and path.samefile(model):
            raise InputError(f"{path} is the model itself; give another file")
        if path.exists() and not force:
            raise InputError(f"{path} exists; give a new file, or --force to replace it")
        check_writable(path)
    if wanted == ".onnx":
        _export_onnx(Spotter.load(model, backbone), target, quantize, check, quiet)
        return
    spotter = _for_device(model, backbone, covariance, exact)
    if wanted == ".h":
        _export_c(spotter, target, max_words or MAX_WORDS, exact, weights, frames)
    else:
        _export_state(spotter, target)


@command(FILES, "import")
def import_state(
    state: Annotated[Path, argument("STATE", "File that a device or web page saved.")],
    target: Annotated[Path, argument("OUT", "Model file to make, or to add to.")],
    replace: Annotated[
        bool, flag("--replace", "Let OUT know what STATE knows, instead of adding to it.")
    ] = False,
    reduce: Annotated[
        bool, flag("--reduce", "Let OUT keep as little of the covariance as STATE does.")
    ] = False,
    backbone: Backbones = None,
) -> None:
    """Bring back what a device learned, or a web page.

    Where there is no OUT it is made. Otherwise STATE is added to it as by `tapword merge`: what the
    device was given of OUT counts twice then, unless --replace is given.

        tapword import device.bin home.tap
    """
    from tapword.export.c import state as states

    content = states.read(state)
    if not target.exists():
        spotter = states.load(state, content)
        spotter.save(target)
    else:
        with Spotter.edit(target, backbone) as spotter:
            found = states.load(state, content, [spotter])
            _fit(state, target, spotter, found, reduce)
            if replace or not spotter.words:
                spotter.replace_with(found)
            else:
                spotter.merge(found)
    report_model(target, spotter)


def _fit(state: Path, target: Path, spotter: Spotter, found: Spotter, reduce: bool) -> None:
    """Make a model keep no more of the covariance than a state does, if that is wanted."""
    from tapword.export.c.reduced import reduced

    if not spotter.words or spotter.learner.spec == found.learner.spec:
        return
    form = str(found.learner.arguments()["covariance"])
    if not reduce:
        raise InputError(
            f"{state} keeps the {form} covariance alone, {target} another form: give --reduce, and "
            f"{target} keeps no more from then on, or give another OUT"
        )
    spotter.learner = reduced(spotter.learner, form)


def onnx_of(spotter: Spotter) -> bytes:
    """Make an ONNX file of a model."""
    from tapword.export.onnx import file as onnx_file

    return onnx_file.build(spotter).SerializeToString()


def header_of(spotter: Spotter) -> bytes:
    """Make a C header of a model for a small device, with room for as many words as by default."""
    from tapword.export.c import header as c_header
    from tapword.export.c.reduced import for_device, in_eight_bits

    made, room = for_device(spotter), max(MAX_WORDS, len(spotter.learner.rows))
    return c_header.build(made, room, in_eight_bits(made)).text.encode()


def _export_onnx(
    spotter: Spotter, target: Path, quantised: bool, folder: Path | None, quiet: bool
) -> None:
    from tapword.export.onnx import file as onnx_file
    from tapword.export.onnx.check import compare
    from tapword.export.onnx.quantize import quantize
    from tapword.export.sample_clips import demo_clips

    built = onnx_file.build(spotter)
    content = built.SerializeToString()
    shipped = sorted(CLIPS.glob("*/*.ogg"))
    paths, words = shipped[COMPARE], None
    if folder is not None:
        paths, words = _taught_clips(spotter, folder)
    clips = list(map(audio_files.read, paths))
    files = [("as it is", content)]
    if quantised:
        with progress_bar(quiet) as progress:
            progress.add_task("quantising", total=None)
            files.append(("in 8 bits", quantize(built, demo_clips())))
    seen = [(name, made, compare(spotter, made, clips, words)) for name, made in files]
    write(target, files[-1][1])
    prepared = "aligned inside" if spotter.encoder.preparation.align else "taken as it is"
    count = len(spotter.vocabulary.negatives)
    negatives = f" and {counted(count, 'negative')}" if count else ""
    out.print(
        f"{target}: audio (samples,) float32 at 16 kHz, {prepared} -> scores of "
        f"{counted(len(spotter.words), 'word')}{negatives}",
        soft_wrap=True,
    )
    where = folder or "the shipped demo"
    for name, made, check in seen:
        line = f"{name}: {len(made):,} bytes; scores differ from the model's by at most "
        line += f"{check.difference:.1e} on {counted(check.clips, 'clip')} of {where}"
        if check.model_right is not None and check.file_right is not None:
            shares = [100 * right / check.clips for right in (check.model_right, check.file_right)]
            line += f"; right: {shares[0]:.1f}% by the model, {shares[1]:.1f}% by the file"
        out.print(line, soft_wrap=True)


def _for_device(
    model: Path, backbone: list[str] | None, covariance: str | None, exact: bool
) -> Spotter:
    """Give a model, or a new one on the ear, as a device is to hold it."""
    from tapword.export.c import state as states
    from tapword.export.c.reduced import for_device, reduced

    if str(model) == EAR and not model.exists():
        spotter = states.new(covariance or states.FORMS[0])
        return spotter if exact else for_device(spotter)
    spotter = Spotter.load(model, backbone)
    if covariance is not None:
        spotter.learner = reduced(spotter.learner, covariance)
    return spotter if exact else for_device(spotter, keep=covariance is not None)


def _export_state(spotter: Spotter, target: Path) -> None:
    from tapword.export.c import state as states

    content = states.dump(spotter)
    write(target, content)
    out.print(f"{target}: {counted(len(spotter.words), 'word')}, {len(content):,} bytes")


def _export_c(
    spotter: Spotter,
    target: Path,
    max_words: int,
    exact: bool,
    weights: Path | None,
    frames: Path | None,
) -> None:
    from tapword.export.c import header as c_header
    from tapword.export.c.amalgamation import ram
    from tapword.export.c.reduced import in_eight_bits
    from tapword.export.layout import front_end
    from tapword.export.onnx import file as onnx_file

    eight_bits = not exact and in_eight_bits(spotter)
    header = c_header.build(spotter, max_words, eight_bits, weights is not None)
    outside = not front_end(spotter.encoder.backbones[0]).in_c
    if frames is not None:
        if not outside:
            raise InputError("--frames: the header holds all of this backbone, nothing is outside")
        write(frames, onnx_file.build_frames(spotter).SerializeToString())
    if weights is not None and header.weights is not None:
        write(weights, header.weights)
    write(target, header.text.encode())
    sizes = [_kilobytes(size) for size in ram(header.text) or ()]
    memory = ", plus ".join(sizes) or "sizeof(tapword), which a C compiler knows"
    listens = " while listening" if len(sizes) > 1 else ""
    out.print(
        f"{target}: {counted(len(spotter.words), 'word')}, room for {max_words}\n"
        f"Flash: {_kilobytes(header.flash_bytes)} and code. RAM: {memory}{listens}",
        soft_wrap=True,
    )
    if header.weights is not None:
        out.print(f"{weights}: weights, {len(header.weights):,} bytes", soft_wrap=True)
    if outside:
        where = f"; it is in {frames}" if frames else "; --frames FRAMES.onnx writes it"
        out.print(
            "not in it: the backbone's convolutions, which the device's own ONNX or TFLite runtime "
            f"runs{where}",
            soft_wrap=True,
        )


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _taught_clips(spotter: Spotter, folder: Path) -> tuple[list[Path], list[str]]:
    """Clips below a folder whose words the model knows, and the words."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    named = word_folders(folder)
    found = [(path, w) for w, sub in named if w in spotter.words for path in audio_files.find(sub)]
    if not found:
        raise InputError(f"{folder} has no sound files in folders named by a word of the model")
    return [path for path, _ in found], [word for _, word in found]
