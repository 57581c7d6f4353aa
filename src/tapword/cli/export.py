"""Commands that export a model for other programs, and import what these learned."""

from pathlib import Path
from typing import Annotated

from tapword.assets import CLIPS
from tapword.audio import files as audio_files
from tapword.cli.app import argument, command, flag, option
from tapword.cli.console import activity, out
from tapword.cli.options import Backbones, Quiet
from tapword.cli.teach import report_model
from tapword.errors import InputError
from tapword.research.datasets.base import word_folders
from tapword.spotter import presets
from tapword.spotter.spotter import Spotter
from tapword.support.atomic_files import check_writable, write
from tapword.support.text import counted

# Capacity of a device, in words: with these, a model that listens needs 256 KiB.
MAX_WORDS = 20
# Instead of a file: a new model without words, for devices that are taught from the start.
[EAR] = presets.preset("small").backbones
Port = Annotated[
    str | None,
    option("PORT", "Serial port of a board, such as /dev/ttyUSB0 or COM3.", "--port"),
]
# Shipped clips that are not used to set the ranges of 8-bit numbers.
COMPARE = slice(10, None, 42)


@command()
def export(
    model: Annotated[
        Path, argument("MODEL", f"Model file; for .h and .bin also {EAR}, a new model.")
    ],
    place: Annotated[
        str | None,
        argument(
            "OUT",
            "OUT.onnx, OUT.h or OUT.bin; the http address of a board; with --to a folder. With "
            "--port leave it out.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        option("KIND", "Write a package for boards: arduino, esp-idf or esphome.", "--to"),
    ] = None,
    quantize: Annotated[
        bool, flag("--quantize", "With .onnx: quantize the backbone to 8 bits.")
    ] = False,
    check: Annotated[
        Path | None,
        option("DIR", "With .onnx: compare the accuracy on clips in DIR/WORD/."),
    ] = None,
    max_words: Annotated[
        int | None, option("N", f"With .h: capacity in words. [default: {MAX_WORDS}]", min=1)
    ] = None,
    covariance: Annotated[
        str | None,
        option("FORM", "With .h and .bin: covariance to keep: diagonal, block or full."),
    ] = None,
    exact: Annotated[
        bool,
        flag(
            "--exact",
            "With .h and .bin: export in floats and in full, not reduced for small devices.",
        ),
    ] = False,
    weights: Annotated[
        Path | None, option("FILE", "With .h: write the weights to a separate file.")
    ] = None,
    frames: Annotated[
        Path | None,
        option("FILE", "With .h and speech_embedding: write its network as ONNX."),
    ] = None,
    port: Port = None,
    backbone: Backbones = None,
    force: Annotated[bool, flag("--force", "Replace files that exist.")] = False,
    quiet: Quiet = False,
) -> None:
    """Export MODEL for use in other programs.

    OUT.onnx turns a waveform into word scores; it needs only onnxruntime. OUT.h is C99 that
    recognises words and keeps learning on the device, by default in 8 bits and with a diagonal
    covariance. OUT.bin is MODEL's words for a device or web page that has such a header;
    `tapword import` reads it back.

        tapword export ear_s core.h

    With --to, OUT is a folder: a library for Arduino and PlatformIO, or a component for ESP-IDF or
    ESPHome, which is also taught on the board.

        tapword export home.tap Arduino/libraries/Tapword --to arduino

    With --port or an address as OUT, a board on which tapword runs gets MODEL's words.

        tapword export home.tap --port /dev/ttyUSB0
    """
    if (place is None) == (port is None):
        raise InputError("give either OUT, or --port of a board")
    board, target = _board(port, place), Path(place or "")
    wanted = "--to" if to is not None else ".bin" if board else target.suffix.lower()
    if wanted not in (".onnx", ".h", ".bin", "--to"):
        raise InputError(f"OUT must end in .onnx, .h or .bin, got {target}")
    if board and to is not None:
        raise InputError(f"--to writes a folder, got {board}")
    for name, given, suffixes in (
        ("--quantize", quantize, [".onnx"]),
        ("--check", check is not None, [".onnx"]),
        ("--max-words", max_words is not None, [".h", "--to"]),
        ("--covariance", covariance is not None, [".h", ".bin", "--to"]),
        ("--exact", exact, [".h", ".bin", "--to"]),
        ("--weights", weights is not None, [".h"]),
        ("--frames", frames is not None, [".h"]),
    ):
        if given and wanted not in suffixes:
            files = [f"OUT{suffix}" for suffix in suffixes if suffix != "--to"]
            raise InputError(f"{name} goes with {' or '.join(files)}, got {board or target}")
    if to is not None:
        _export_package(model, target, to, max_words, (covariance, exact, backbone), force, quiet)
        return
    if board:
        with activity("preparing", quiet):
            spotter = _for_device(model, backbone, covariance, exact)
        with activity("transferring", quiet):
            _write_board(spotter, port, board)
        return
    written = [path for path in (target, frames, weights) if path is not None]
    if len({path.resolve() for path in written}) < len(written):
        raise InputError("OUT, --weights and --frames must be different files")
    for path in written:
        if path.exists() and model.exists() and path.samefile(model):
            raise InputError(f"{path} is the model itself; give another file")
        if path.exists() and not force:
            raise InputError(f"{path} exists; give another file, or --force to replace it")
        check_writable(path)
    if wanted == ".onnx":
        _export_onnx(Spotter.load(model, backbone), target, quantize, check, quiet)
        return
    with activity("preparing", quiet):
        spotter = _for_device(model, backbone, covariance, exact)
    if wanted == ".h":
        _export_c(spotter, target, max_words or MAX_WORDS, exact, weights, frames, quiet)
    else:
        _export_state(spotter, target)


@command("import")
def import_state(
    state: Annotated[
        str,
        argument(
            "STATE",
            "File saved by a device or web page, or http address of a board. With --port leave it "
            "out.",
        ),
    ],
    target: Annotated[Path | None, argument("OUT", "Model file to create, or to add to.")] = None,
    replace: Annotated[
        bool, flag("--replace", "Replace the words of OUT, instead of adding to them.")
    ] = False,
    reduce: Annotated[
        bool, flag("--reduce", "Reduce the covariance of OUT to that of STATE.")
    ] = False,
    port: Port = None,
    backbone: Backbones = None,
) -> None:
    """Import what a device or web page learned.

    A new OUT is created. Otherwise STATE is added to OUT, as by `tapword merge`: words that the
    device got from OUT then count twice. --replace avoids that.

        tapword import device.bin home.tap

        tapword import --port /dev/ttyUSB0 home.tap
    """
    from tapword.export.c import state as states

    if port is not None:
        if target is not None:
            raise InputError("--port takes the place of STATE: give OUT alone")
        state, target = port, Path(state)
    if target is None:
        raise InputError("give OUT, the model file to create or to add to")
    content = _read_board(port, state) if _board(port, state) else states.read(state)
    if not target.exists():
        spotter = states.load(state, content)
        spotter.save(target, step=f"import {state}")
    else:
        with Spotter.edit(target, backbone, f"import {state}") as spotter:
            found = states.load(state, content, [spotter])
            _fit(state, target, spotter, found, reduce)
            if replace or not spotter.words:
                spotter.replace_with(found)
            else:
                spotter.merge(found)
    report_model(target, spotter)


def _board(port: str | None, place: str | None) -> str | None:
    """Name the port or the address of a board; None for a file."""
    from tapword.export.boards import address

    if port is not None:
        return port
    return place if place is not None and address.is_address(place) else None


def _read_board(port: str | None, place: str) -> bytes:
    from tapword.export.boards import address, line

    return address.read(place) if port is None else line.read(port)


def _write_board(spotter: Spotter, port: str | None, place: str) -> None:
    from tapword.export.boards import address, line
    from tapword.export.c import state as states

    content = states.dump(spotter)
    if port is None:
        address.write(place, content)
    else:
        line.write(port, content)
    out.print(f"{place}: {counted(len(spotter.words), 'word')}, {len(content):,} bytes")


def _fit(state: str, target: Path, spotter: Spotter, found: Spotter, reduce: bool) -> None:
    """Reduce the covariance of a model to that of a state, where allowed."""
    from tapword.export.c.reduced import reduced

    if not spotter.words or spotter.learner.spec == found.learner.spec:
        return
    form = str(found.learner.arguments()["covariance"])
    if not reduce:
        raise InputError(
            f"{state} has the {form} covariance, {target} another form: give --reduce to reduce "
            f"{target} for good, or give another OUT"
        )
    spotter.learner = reduced(spotter.learner, form)


def onnx_of(spotter: Spotter) -> bytes:
    """Make the content of a model's ONNX file."""
    from tapword.export.onnx import file as onnx_file

    return onnx_file.build(spotter).SerializeToString()


def header_of(spotter: Spotter) -> bytes:
    """Make the C header of a model for a small device, with the default capacity."""
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
    files = [("float32", content)]
    if quantised:
        with activity("quantizing", quiet):
            files.append(("8 bits", quantize(built, demo_clips())))
    with activity("checking", quiet):
        seen = [(name, made, compare(spotter, made, clips, words)) for name, made in files]
    write(target, files[-1][1])
    prepared = "aligned inside" if spotter.encoder.preparation.align else "not aligned"
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
    """Load a model, or make a new one, in the form for a device."""
    from tapword.export.c import state as states
    from tapword.export.c.reduced import for_device, reduced

    if str(model) in states.EARS and not model.exists():
        spotter = states.new(covariance or states.FORMS[0], str(model))
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
    quiet: bool,
) -> None:
    from tapword.export.c import header as c_header
    from tapword.export.c.amalgamation import ram
    from tapword.export.c.reduced import in_eight_bits
    from tapword.export.layout import front_end
    from tapword.export.onnx import file as onnx_file

    eight_bits = not exact and in_eight_bits(spotter)
    with activity("writing C", quiet):
        header = c_header.build(spotter, max_words, eight_bits, weights is not None)
        sizes = [_kilobytes(size) for size in ram(header.text) or ()]
    outside = not front_end(spotter.encoder.backbones[0]).in_c
    if frames is not None:
        if not outside:
            raise InputError("--frames: the header already has the whole backbone")
        write(frames, onnx_file.build_frames(spotter).SerializeToString())
    if weights is not None and header.weights is not None:
        write(weights, header.weights)
    write(target, header.text.encode())
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
        where = f"{frames} has it" if frames else "--frames FRAMES.onnx writes it"
        out.print(
            "The backbone's network is not included: run it with an ONNX or TFLite runtime on the "
            f"device. {where}",
            soft_wrap=True,
        )


def _export_package(
    model: Path,
    folder: Path,
    kind: str,
    max_words: int | None,
    form: tuple[str | None, bool, list[str] | None],
    force: bool,
    quiet: bool,
) -> None:
    from tapword.export.boards import packages

    packages.check(folder, kind, force)
    covariance, exact, backbone = form
    with activity("writing C", quiet):
        spotter = _for_device(model, backbone, covariance, exact)
        room = max_words or max(MAX_WORDS, len(spotter.learner.rows))
        flash = packages.write(spotter, folder, kind, room, exact)
    out.print(
        f"{folder}: {packages.KINDS[kind].title}, {counted(len(spotter.words), 'word')}, room for "
        f"{room}\nFlash: {_kilobytes(flash)} and code",
        soft_wrap=True,
    )


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _taught_clips(spotter: Spotter, folder: Path) -> tuple[list[Path], list[str]]:
    """Clips below a folder that are of the model's words, and these words."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    named = word_folders(folder)
    found = [(path, w) for w, sub in named if w in spotter.words for path in audio_files.find(sub)]
    if not found:
        raise InputError(f"{folder} has no folder of sound files named by a word of the model")
    return [path for path, _ in found], [word for _, word in found]
