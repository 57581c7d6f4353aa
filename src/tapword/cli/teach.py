"""Commands that teach a model: words, and sounds that are not words."""

import contextlib
import itertools
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tapword.audio import files as audio_files
from tapword.cli import demo, demo_mic
from tapword.cli.app import argument, command, flag, option
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
from tapword.research.datasets.base import word_folders
from tapword.spotter import store, typed
from tapword.spotter.session import TeachSession, has_several_words, read_files
from tapword.spotter.spotter import Prediction, Spotter, require_same_parts
from tapword.spotter.vocabulary import clean_word
from tapword.support.issues import Issue, message
from tapword.support.text import counted, listed, printable
from tapword.voices.base import MAX_CLIPS

# Long enough to be unlike other words; no assistant listens for it.
DEMO_WORD = "kitchen light"


@command()
def learn(
    model: Model,
    word: Annotated[
        str, argument("WORD", "The word; or a folder with one folder of clips per word.")
    ],
    files: Annotated[list[str] | None, argument("FILES", "Sound files, folders or globs.")] = None,
    mic: Annotated[bool, flag("--mic", "Record with the microphone instead of FILES.")] = False,
    takes: Annotated[
        int | None, option("N", f"With --mic: how many takes to record. [default: {TAKES}]", min=1)
    ] = None,
    device: Device = None,
    say: Annotated[
        bool, flag("--say", "Record nothing: let a voice say WORD in many ways, and learn these.")
    ] = False,
    language: Annotated[
        str | None,
        option("LANG", f"With --say: en-us, de, fr-fr, pt-br, ... [default: {typed.LANGUAGE}]"),
    ] = None,
    voice: Annotated[
        str | None, option("PART", "With --say: which voice. [default: the best one here]")
    ] = None,
    voices: Annotated[
        int | None,
        option("N", f"With --say: how many clips. [default: {typed.CLIPS}]", min=1, max=MAX_CLIPS),
    ] = None,
    phonemes: Annotated[
        str | None, option("IPA", "With --say: the pronunciation. [default: as it is spelled]")
    ] = None,
    *,
    parts: Parts,
    skip_bad: SkipBad = False,
    keep_noise: Annotated[
        bool, flag("--keep-noise", "Also teach clips that contain only noise.")
    ] = False,
    split: Annotated[
        bool | None,
        flag(
            "--split/--no-split",
            "Teach each sound of a file as a take, or only the loudest. [default: each, where they "
            "are similar]",
        ),
    ] = None,
    engine: Engine,
    quiet: Quiet = False,
) -> None:
    """Teach MODEL a word from sound files, the microphone or its text; create MODEL if needed.

    A folder with one folder of clips per word teaches all of them. A file with several takes of its
    word teaches each. MODEL is written once, at the
    end: Ctrl-C leaves it unchanged.

        tapword learn home.tap lamp lamp1.wav lamp2.wav lamp3.wav

        tapword learn home.tap recordings/

        tapword learn home.tap "hey computer" --say
    """
    if ((mic or say) and files) or (mic and say):
        raise InputError("give one of sound files, --mic and --say")
    if not say and (language, voice, voices, phonemes) != (None, None, None, None):
        raise InputError("--language, --voice, --voices and --phonemes need --say")
    if say and split is not None:
        raise InputError("--split and --no-split are for sound files, not for --say")
    if mic and split is not None:
        raise InputError("--split and --no-split are for sound files, not for --mic")
    if not mic and (takes is not None or device is not None):
        raise InputError("--takes and --device need --mic")
    file = parts.model_file(model)
    words, clips = ([clean_word(word)], ()) if mic or say else _words_and_clips(word, files)
    with _told_when_stopped(model):
        if mic:
            session = TeachSession.open(file, words, _ask)
            record(session, words[0], TAKES if takes is None else takes, device, _ask)
            spotter = session.write(_say)
        elif say:
            request = typed.Request(
                words[0],
                typed.LANGUAGE if language is None else language,
                typed.CLIPS if voices is None else voices,
                phonemes or "",
            )
            speaker = request.voice(voice)
            session = TeachSession.open(file, words, _ask)
            with _progress(request.n, quiet, f"{speaker.name} speaks") as step:
                session.speak(words[0], request, speaker, step)
            if not speaker.is_native(request.language):
                warn(
                    f"voice {speaker.name} has no native speaker of {request.language}: the word "
                    "may be missed until you teach takes of your own"
                )
            spotter = session.write(_say)
        else:
            with engine.open() as workers:
                open_session = TeachSession.open if workers is None else workers.open_session
                session = open_session(file, words, _ask)
                if workers is None:
                    # A cluster walks a folder as its workers get free; here the bar needs its size.
                    clips = list(clips)
                with _progress(len(clips) if isinstance(clips, list) else None, quiet) as step:
                    skipped = _say_skipped if skip_bad else None
                    spotter = session.learn_files(clips, _say, keep_noise, skipped, step, split)
        spoken = ""
        if say:
            pronounced = phonemes or speaker.pronunciation(request.text, request.language)
            spoken = f" that {speaker.name} spoke{pronounced and f': {pronounced}'}"
        out.print(f"learned {counted(session.clips, 'clip')}{spoken}")
        report_model(model, spotter)
        if not spotter.has_thresholds:
            out.print(
                "With these parts, predict always gives the nearest word, and listen needs "
                "--threshold WORD=SCORE. The sizes and speech_embedding have thresholds.",
                soft_wrap=True,
            )


@command()
def predict(
    model: Model,
    files: Files,
    closed: Annotated[bool, flag("--closed", "Always give the nearest word.")] = False,
    as_json: AsJson = False,
    skip_bad: SkipBad = False,
    backbone: Backbones = None,
    quiet: Quiet = False,
) -> None:
    """Print the word in each file, or - if none matches."""
    spotter = Spotter.load(model, backbone)
    answers: list[tuple[Path, Prediction]] = []
    longer: list[str] = []
    paths = expand(files)
    with _progress(len(paths), quiet) as step:
        labelled = ((path, path) for path in paths)
        skipped = _say_skipped if skip_bad else None
        for batch in read_files(spotter.encoder, labelled, skipped, step):
            encoded = spotter.encoder.encode([prepared for *_, prepared in batch])
            predictions = spotter.predict_encoded(encoded, closed=closed)
            answers += zip((path for _, path, *_ in batch), predictions, strict=True)
            longer += [str(path) for path, _, clip, _ in batch if has_several_words(clip)]
    if longer:
        command = shlex.join(["tapword", "listen", str(model), longer[0]])
        found = f"more than one word in {listed(longer)}; to find all of them: {command}"
        err.print(printable(found), soft_wrap=True)
    if as_json:
        print_json(
            [
                {"file": str(path)} | answer._asdict() | {"confidence": answer.confidence}
                for path, answer in answers
            ]
        )
        return
    if not spotter.words:
        out.print(f"{model} has no words yet; teach it with: tapword learn {model} WORD FILES...")
        return
    with_thresholds = spotter.has_thresholds
    table = Table("file", "word", "sure" if with_thresholds else "share", "nearest", "next")
    for path, answer in answers:
        shares = {word: f"{share:.1%}" for word, share in answer.probabilities.items()}
        nearest, *others = shares
        # A share compares taught words with each other: beside "-" it would look sure.
        values = answer.confidences if with_thresholds else shares
        second = f"{others[0]} {values[others[0]]}" if others else ""
        sure = answer.confidence if with_thresholds else shares[nearest]
        word = "-" if answer.word is None else answer.word
        table.add_row(*map(cell, (path, word, sure, nearest, second)))
    out.print(table)
    if with_thresholds:
        out.print("sure: from 0 to 100; a word counts as said from 50 on")


@command()
def reject(model: Model, files: Files, as_json: AsJson = False, backbone: Backbones = None) -> None:
    """Teach MODEL that each file contains none of its words.

    Use it for sounds that MODEL mistook for a word: it will not mistake similar sounds again.
    """
    listener = Spotter.load(model, backbone)
    if not listener.words:
        raise InputError(f"{model} has no words yet, so there is nothing to reject")
    paths = expand(files)
    clips = [audio_files.read(path) for path in paths]
    asked, taught = listener.encode(clips), listener.encode(clips, learning=True)
    # The file is locked only for the moment of learning.
    step = f"reject {counted(len(clips), 'clip')}"
    with Spotter.edit(model, listener.encoder.backbones, step) as spotter:
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
    table = Table("file", "nearest word", "predicted before", "predicted now")
    for row in rows:
        table.add_row(*(cell("-" if value is None else value) for value in row.values()))
    out.print(table)


@command("demo", parts=False)
def run_demo(
    seed: Annotated[int, option("N", "Seed for the order of words and voices.")] = 0,
    mic: Annotated[bool, flag("--mic", "Teach one word by your own voice instead.")] = False,
    word: Annotated[
        str | None, option("WORD", f"With --mic: the word to teach. [default: {DEMO_WORD}]")
    ] = None,
    device: Device = None,
) -> None:
    """Teach words, reject others, find them in a stream: in under a minute, offline.

    Nothing is stored, with --mic neither.
    """
    if not mic and (word is not None or device is not None):
        raise InputError("--word and --device need --mic")
    if mic:
        demo_mic.show(out, clean_word(DEMO_WORD if word is None else word), device, _ask)
    else:
        demo.show(out, seed)


def _words_and_clips(
    word: str, files: list[str] | None
) -> tuple[list[str], Iterable[tuple[Path, str]]]:
    """Words to teach, and their clips: of a word and files, or of a folder of words."""
    folder = Path(word)
    if files:
        if word and (folder.is_file() or (folder.is_dir() and word_folders(folder))):
            raise InputError(
                f"{word} is a file or a folder of words: give a word and its clips, or one folder "
                "of words alone"
            )
        cleaned = clean_word(word)
        return [cleaned], [(path, cleaned) for path in expand(files)]
    if not folder.is_dir():
        raise InputError(
            f"give sound files of {word!r}, or --mic to record them; {word} is not a folder of "
            "words"
        )
    folders = [(clean_word(name), sub) for name, sub in word_folders(folder)]
    clips = ((path, word) for word, sub in folders for path in audio_files.find(sub))
    first = next(clips, None)
    if first is None:
        raise InputError(
            f"{folder} has no folders of sound files named by their word; to teach its own clips: "
            f"tapword learn MODEL WORD {folder}"
        )
    return [word for word, _ in folders], itertools.chain([first], clips)


@contextlib.contextmanager
def _progress(
    total: int | None, quiet: bool, doing: str = "reading"
) -> Iterator[Callable[[int], None]]:
    """Show a bar of files that were read; `total` is how many there are, if that is known."""
    with progress_bar(quiet) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)


def _say_skipped(message: str) -> None:
    err.print(f"skipped: {printable(message)}", soft_wrap=True)


@contextlib.contextmanager
def _told_when_stopped(model: Path) -> Iterator[None]:
    """Say what became of the model when somebody stops the work inside the `with`."""
    revision = store.revision(model)
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        written = store.revision(model) != revision
        err.print(f"stopped: {'everything' if written else 'nothing'} was taught")
        raise


def _ask(issue: Issue) -> bool:
    """Ask about a doubt at a terminal; elsewhere, say it and go on."""
    if not (sys.stdin.isatty() and err.is_terminal):
        _say(issue)
        return True
    return typer.confirm(f"{printable(_described(issue))}. Teach it?", default=False)


def _say(issue: Issue) -> None:
    if issue.code == "noise":
        clips = f"{counted(len(issue.clips), 'clip')} with only noise"
        left_out = issue.severity == "refuse"
        hint = "; --keep-noise teaches them" if left_out else ""
        warn(f"{'left out' if left_out else 'taught'} {clips}: {listed(issue.clips)}{hint}")
    elif issue.code == "several_takes":
        err.print(f"{printable(_described(issue))} (--no-split: the loudest alone)", soft_wrap=True)
    else:
        warn(f"{'left out: ' if issue.severity == 'refuse' else ''}{_described(issue)}")


def _described(issue: Issue) -> str:
    clips = f": {listed(issue.clips)}" if issue.clips else ""
    return f"{message(issue)}{clips}"


def words_and_clips(words: Mapping[str, int], synthetic: Mapping[str, int]) -> str:
    """Say how many words a model has, and how many samples and synthetic clips of them.

    Examples
    --------
    >>> words_and_clips({"lamp": 3, "hey computer": 0}, {"hey computer": 16})
    '2 words, 3 samples, 16 synthetic clips'
    """
    found = f"{counted(len(words), 'word')}, {counted(sum(words.values()), 'sample')}"
    spoken = sum(synthetic.values())
    return f"{found}, {counted(spoken, 'synthetic clip')}" if spoken else found


def report_model(model: Path, spotter: Spotter) -> None:
    """Print what a model knows, after it was written."""
    held = words_and_clips(spotter.words, spotter.vocabulary.synthetic)
    out.print(f"{model}: {held}, {spotter.learner.state_bytes.total:,} bytes of statistics")
