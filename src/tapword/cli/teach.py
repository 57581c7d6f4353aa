"""Commands that teach a model: words, and what is none of them."""

import contextlib
import hashlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from tapword.audio import files as audio_files
from tapword.cli import demo
from tapword.cli.app import TEACH, argument, command, flag, option
from tapword.cli.console import cell, err, out, print_json, progress_bar, warn
from tapword.cli.options import (
    AsJson,
    Backbones,
    Device,
    Engine,
    Files,
    Model,
    Parts,
    Quiet,
    SkipBad,
    expand,
)
from tapword.cli.record import TAKES, record
from tapword.errors import InputError
from tapword.research.cluster import Cluster, open_engine
from tapword.research.datasets.base import word_folders
from tapword.spotter import store, teaching
from tapword.spotter.encoder import CLIPS_AT_ONCE, Encoded
from tapword.spotter.spotter import Prediction, Spotter, require_same_parts
from tapword.spotter.words import case_variant, clean_word
from tapword.support.text import counted, listed, printable

NOTHING = "none of the clips could be used; nothing was taught"


@command(TEACH)
def learn(
    model: Model,
    word: Annotated[
        str, argument("WORD", "What is said; or a folder that has a folder of clips for each word.")
    ],
    files: Annotated[list[str] | None, argument("FILES", "Sound files, folders or globs.")] = None,
    mic: Annotated[bool, flag("--mic", "Record by microphone instead of FILES.")] = False,
    takes: Annotated[
        int | None, option("N", f"With --mic: how often to say it. [default: {TAKES}]", min=1)
    ] = None,
    device: Device = None,
    *,
    parts: Parts,
    skip_bad: SkipBad = False,
    keep_noise: Annotated[
        bool, flag("--keep-noise", "Teach clips of noise alone too, which are left out otherwise.")
    ] = False,
    engine: Engine,
    quiet: Quiet = False,
) -> None:
    """Teach MODEL a word from sound files or by microphone; MODEL is made if there is none.

    A folder that has a folder of clips for each word teaches them all. MODEL is written when all
    clips were heard: after Ctrl-C it is as it was.

        tapword learn home.tap lamp lamp1.wav lamp2.wav lamp3.wav

        tapword learn home.tap recordings/
    """
    if mic and files:
        raise InputError("give either sound files or --mic to record them")
    if not mic and (takes is not None or device is not None):
        raise InputError("--takes and --device go with --mic")
    pupil = Pupil(model, parts.given(model), keep_noise)
    named: Iterable[tuple[Path, str]] = []
    if mic or files:
        words = [clean_word(word)]
    if files:
        if Path(word).is_file() or (Path(word).is_dir() and word_folders(Path(word))):
            raise InputError(
                f"{word} is a file or a folder of words, not a word: give a word and its clips, or "
                "one folder of words alone"
            )
        named = [(path, words[0]) for path in expand(files)]
    elif not mic and Path(word).is_dir():
        words = [clean_word(name) for name, _ in word_folders(Path(word))]
        named = _walk(Path(word))
    elif not mic:
        raise InputError(
            f"give sound files of {word!r}, or --mic to record them; {word} is no folder of words"
        )
    with pupil.told_when_stopped():
        pupil.ask_about(words)
        if mic:
            clips = record(words[0], TAKES if takes is None else takes, device)
            encoded = pupil.listener.encode(clips, learning=True)
            takes_by_name = [f"take {n + 1}" for n in range(len(clips))]
            pupil.learn(encoded, words * len(clips), takes_by_name)
            return
        with open_engine(engine.engine, engine.address) as workers:
            if workers is None:
                _teach(pupil, list(named), skip_bad, quiet)
            else:
                _teach_on(workers, pupil, named, skip_bad, quiet)


@command(TEACH)
def predict(
    model: Model,
    files: Files,
    closed: Annotated[
        bool, flag("--closed", "Give the nearest word at all cost, never -.")
    ] = False,
    as_json: AsJson = False,
    skip_bad: SkipBad = False,
    backbone: Backbones = None,
    quiet: Quiet = False,
) -> None:
    """Say which taught word each file is, or - where it is none of them."""
    spotter = Spotter.load(model, backbone)
    answers: list[tuple[Path, Prediction]] = []
    for paths, _, encoded in _extract(spotter, expand(files), skip_bad, quiet):
        answers.extend(zip(paths, spotter.predict_encoded(encoded, closed=closed), strict=True))
    if as_json:
        print_json([{"file": str(path)} | answer._asdict() for path, answer in answers])
        return
    if not spotter.words:
        out.print(f"{model} has no words yet; teach it with: tapword learn {model} WORD FILES...")
        return
    table = Table("file", "word", "nearest", "share", "next")
    for path, answer in answers:
        (first, share), *others = answer.probabilities.items()
        second = f"{others[0][0]} {others[0][1]:.1%}" if others else ""
        word = "-" if answer.word is None else answer.word
        table.add_row(cell(path), cell(word), cell(first), f"{share:.1%}", cell(second))
    out.print(table)


@command(TEACH)
def reject(model: Model, files: Files, as_json: AsJson = False, backbone: Backbones = None) -> None:
    """Teach MODEL that each file was none of its words.

    Whatever was taken for a word by mistake: a sound like it will not be taken for it again.
    """
    listener = Spotter.load(model, backbone)
    if not listener.words:
        raise InputError(f"{model} has no words yet, so nothing is taken for one")
    paths = expand(files)
    clips = [audio_files.read(path) for path in paths]
    asked, taught = listener.encode(clips), listener.encode(clips, learning=True)
    # The file is locked only for the moment of learning.
    with Spotter.edit(model, listener.encoder.backbones) as spotter:
        require_same_parts(spotter, listener)
        before = spotter.predict_encoded(asked)
        taken = [spotter.reject_encoded(*pair) for pair in zip(asked, taught, strict=True)]
        after = spotter.predict_encoded(asked)
    rows = [
        {"file": str(path), "nearest": word, "before": old.word, "now": new.word}
        for path, word, old, new in zip(paths, taken, before, after, strict=True)
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("file", "nearest to", "taken for, before", "now")
    for row in rows:
        table.add_row(*(cell("-" if value is None else value) for value in row.values()))
    out.print(table)


@command(TEACH, "demo")
def run_demo(
    seed: Annotated[int, option("N", "Order of words and voices.")] = 0,
) -> None:
    """Teach words, refuse others, find them in a stream: three acts in under a minute, offline."""
    demo.show(out, seed)


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Clips of every word that has a folder, one folder at a time; at least one, or an error."""
    found = False
    for word, sub in word_folders(folder):
        word = clean_word(word)
        for path in audio_files.find(sub):
            found = True
            yield path, word
    if not found:
        raise InputError(
            f"{folder} has no sound files in folders named by their word; to teach its own clips: "
            f"tapword learn MODEL WORD {folder}"
        )


def _extract(
    spotter: Spotter, paths: list[Path], skip_bad: bool, quiet: bool, learning: bool = False
) -> Iterator[tuple[list[Path], list[np.ndarray], Encoded]]:
    """Files, clips and vectors, a batch at a time, with a progress bar."""
    with progress_bar(quiet) as progress:
        task = progress.add_task("listening", total=len(paths))
        for start in range(0, len(paths), CLIPS_AT_ONCE):
            clips, prepared, kept = [], [], []
            for path in paths[start : start + CLIPS_AT_ONCE]:
                try:
                    clip = audio_files.read(path)
                    prepared.append(spotter.encoder.read(path))
                except InputError as error:
                    if not skip_bad:
                        raise
                    _say_skipped(str(error))
                else:
                    clips.append(clip)
                    kept.append(path)
            if kept:
                yield kept, clips, spotter.encoder.encode(prepared, learning)
            progress.advance(task, min(CLIPS_AT_ONCE, len(paths) - start))


def _say_skipped(message: str) -> None:
    err.print(f"skipped: {printable(message)}", soft_wrap=True)


class Pupil:
    """A model file, and a spotter of its parts that listens before the file is locked.

    Parameters
    ----------
    model
        The file; made where there is none.
    parts
        What a new model is made of; of one that exists, its backbones as they are to be had here.
    keep_noise
        Whether clips of noise alone are taught.
    """

    def __init__(self, model: Path, parts: dict[str, Any], keep_noise: bool):
        self.model = model
        self.backbones = parts.pop("backbone", None) if model.exists() else None
        self.parts = parts
        self.keep_noise = keep_noise
        exists = model.exists()
        self.revision = store.revision(model)
        self.listener = Spotter.load(model, self.backbones) if exists else Spotter(**parts)

    @contextlib.contextmanager
    def told_when_stopped(self) -> Iterator[None]:
        """Say what became of the model when somebody stops the work inside the `with`."""
        try:
            yield
        except (KeyboardInterrupt, typer.Abort):
            written = store.revision(self.model) != self.revision
            done = "all was taught" if written else "nothing was taught"
            err.print(f"stopped: {done}")
            raise

    def ask_about(self, words: Sequence[str]) -> None:
        """Ask about new words that differ from others in capital letters alone."""
        known = list(self.listener.words)
        for word in words:
            other = None if word in known else case_variant(word, known)
            known.append(word)
            if other is None:
                continue
            if not (sys.stdin.isatty() and err.is_terminal):
                warn(f'"{word}" is taught beside "{other}", as another word')
            elif not typer.confirm(f'There is "{other}". Is "{word}" another word?', default=False):
                raise InputError(f'nothing was taught; to teach it as "{other}", give it that name')

    def learn(self, encoded: Encoded, words: Sequence[str], names: Sequence[str]) -> None:
        """Learn clips by these names; warn of those that may not do."""
        noise = teaching.is_noise(self.listener, encoded)
        self.tell_noise([names[row] for row in np.flatnonzero(noise).tolist()])
        if not self.keep_noise:
            fit = np.flatnonzero(~noise).tolist()
            encoded = encoded[fit]
            words, names = ([texts[row] for row in fit] for texts in (words, names))
        for message in teaching.lesson_warnings(self.listener, encoded, words, names):
            warn(message)
        self.write(len(words), lambda spotter: spotter.learn_encoded(encoded, words))

    def tell_noise(self, names: Sequence[str]) -> None:
        """Say in one line which clips are noise alone, and what becomes of them."""
        clips = f"{counted(len(names), 'clip')} of noise alone"
        if names and self.keep_noise:
            warn(f"taught {clips}, never taken for a word when listening: {listed(names)}")
        elif names:
            warn(f"left out {clips}: {listed(names)}; --keep-noise teaches such clips")

    def write(self, clips: int, teach: Callable[[Spotter], None]) -> None:
        """Lock the model only for the moment of learning what was listened to before."""
        if not clips:
            raise InputError(NOTHING)
        with Spotter.edit(self.model, self.backbones, **self.parts) as spotter:
            # Somebody may have replaced the model while we listened.
            require_same_parts(spotter, self.listener)
            teach(spotter)
        out.print(f"learned {counted(clips, 'clip')}")
        report_model(self.model, spotter)
        if not spotter.has_thresholds:
            out.print(
                "With these parts predict names the nearest word, whatever is said, and listen "
                "needs --threshold WORD=SCORE; the sizes and speech_embedding know thresholds.",
                soft_wrap=True,
            )


def _teach(pupil: Pupil, clips: list[tuple[Path, str]], skip_bad: bool, quiet: bool) -> None:
    """Teach sound files, each with its word."""
    word_of = dict(clips)
    paths: list[Path] = []
    parts: list[Encoded] = []
    # Recording -> the first file that holds it.
    first: dict[bytes, Path] = {}
    remarked: dict[str, list[str]] = {}
    given = [path for path, _ in clips]
    for files, heard, found in _extract(pupil.listener, given, skip_bad, quiet, learning=True):
        paths.extend(files)
        parts.append(found)
        for path, clip in zip(files, heard, strict=True):
            same = first.setdefault(hashlib.sha256(clip.tobytes()).digest(), path)
            if word_of[same] != word_of[path]:
                names = f'"{word_of[same]}" and "{word_of[path]}"'
                warn(f"{same} and {path} are one recording, taught as {names}")
            if pupil.listener.encoder.preparation.align:
                for remark in teaching.remarks(clip):
                    remarked.setdefault(remark, []).append(str(path))
    for remark, files_with in remarked.items():
        warn(f"{remark}: {listed(files_with)}")
    if not paths:
        raise InputError(NOTHING)
    pupil.learn(
        Encoded.concatenate(parts), [word_of[path] for path in paths], list(map(str, paths))
    )


def _teach_on(
    workers: Cluster,
    pupil: Pupil,
    clips: Iterable[tuple[Path, str]],
    skip_bad: bool,
    quiet: bool,
) -> None:
    """Teach sound files, each with its word; the workers of a cluster listen."""
    clips = iter(clips)
    # A folder without clips is said before the workers start.
    clips = itertools.chain([next(clips)], clips)
    noise: list[str] = []
    leave_out = None if pupil.keep_noise else noise.extend
    with progress_bar(quiet) as progress:
        task = progress.add_task("listening", total=None)

        def step(done: int) -> None:
            progress.update(task, completed=done)

        heard = workers.listen(pupil.listener, clips, skip_bad, _say_skipped, step, leave_out)
        with heard as lesson:
            pupil.tell_noise(noise)
            pupil.write(lesson.clips, lesson.teach)


def report_model(model: Path, spotter: Spotter) -> None:
    """Say what a model knows after it was written."""
    samples = sum(spotter.words.values())
    out.print(
        f"{model}: {counted(len(spotter.words), 'word')}, {counted(samples, 'sample')}, "
        f"{spotter.learner.state_bytes.total:,} bytes of statistics"
    )
