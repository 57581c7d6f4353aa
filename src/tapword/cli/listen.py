"""The command that listens to a stream and prints the words in it as they are said."""

import contextlib
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, cast

import numpy as np
import soxr
import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tapword import audio, microphone
from tapword.cli.app import app, err, printable
from tapword.cli.calibrate import PerHour
from tapword.cli.record import METER_DB
from tapword.cli.teach import Model
from tapword.detector import Detector, Event
from tapword.errors import InputError
from tapword.microphone import Chunk
from tapword.web.shared_model import SharedModel

CHUNK_S = 0.08
BLOCK_S = 10.0
# How often a model file is looked at that may have changed, in seconds of sound.
LOOK_S = 1.0


@app.command()
def listen(
    model: Model,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|-]",
            help="Sound file of any length, or - for 16-bit mono samples from a pipe.",
            show_default=False,
        ),
    ] = None,
    mic: Annotated[bool, typer.Option("--mic", help="Listen to the microphone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON an event.")] = False,
    device: Annotated[
        str | None, typer.Option(help="With --mic: name or number of the microphone.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            metavar="HZ", min=1000, max=768_000, help="With -: samples a second. [default: 16000]"
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD=SCORE", help="Score from which WORD counts; repeatable."),
    ] = None,
    false_alarms_per_hour: PerHour = 0.5,
) -> None:
    """Print the words of MODEL as they are said: time in seconds, word, score.

    While a microphone or a pipe is heard, MODEL may be taught: it is read anew when it changes.
    """
    if mic == (source is not None):
        raise InputError("give a sound file, - for a pipe, or --mic")
    if device is not None and not mic:
        raise InputError("--device goes with --mic")
    if rate is not None and source != "-":
        raise InputError("--rate goes with -; files and microphones know their own")
    if not model.exists():
        raise InputError(f"no model file: {model} does not exist")
    shared = SharedModel(model)
    if not shared.spotter.words:
        raise InputError(f"{model} has no words yet; teach it with: tapword learn {model} WORD ...")
    detector = Detector(
        shared.spotter,
        false_alarms_per_hour=false_alarms_per_hour,
        thresholds=_thresholds(threshold or []),
    )
    chunks: contextlib.AbstractContextManager[Iterator[Chunk]]
    if mic:
        chunks = microphone.open_stream(device, chunk_s=CHUNK_S)
    else:
        stream = _pipe(rate) if source == "-" else _file(str(source))
        chunks = contextlib.nullcontext(stream)
    live = None if source not in (None, "-") else shared
    counts: Counter[str] = Counter()
    heard_s = 0.0
    # Thresholds that are not known are found out before the first sound.
    _ = detector.thresholds
    with _meter() as meter:
        bar = meter.add_task("", total=METER_DB[1] - METER_DB[0])
        try:
            with chunks as stream:
                for chunk, events in _hear(detector, stream, live):
                    heard_s += len(chunk) / audio.SAMPLE_RATE
                    counts.update(event.word for event in events)
                    _show_level(meter, bar, chunk, detector)
                    for event in events:
                        _show(event, as_json, meter)
        except KeyboardInterrupt:
            pass
    words = ", ".join(f"{printable(word)} {n}" for word, n in counts.most_common())
    err.print(f"heard {heard_s:.1f} s: {counts.total()} events{words and f' ({words})'}")


def _hear(
    detector: Detector, chunks: Iterator[Chunk], live: SharedModel | None
) -> Iterator[tuple[np.ndarray, list[Event]]]:
    """Chunks and the events in them; a model that is taught meanwhile is taken over."""
    since_s = 0.0
    for chunk in chunks:
        since_s += len(chunk.samples) / audio.SAMPLE_RATE
        if live is not None and since_s >= LOOK_S:
            since_s = 0.0
            if live.look():
                detector.spotter = live.spotter
                note = live.problem or f"{live.path} has changed: {len(live.spotter.words)} words"
                err.print(printable(note), soft_wrap=True)
        if chunk.gap:
            detector.gap()
        yield chunk.samples, detector(chunk.samples)
    yield np.zeros(0, dtype=np.float32), detector.flush()


def _file(path: str) -> Iterator[Chunk]:
    for block in audio.blocks(path, BLOCK_S):
        yield Chunk(block, False)


def _pipe(rate: int | None) -> Iterator[Chunk]:
    """Little-endian 16-bit samples of standard input, as they come."""
    rate = audio.SAMPLE_RATE if rate is None else rate
    resampler = soxr.ResampleStream(rate, audio.SAMPLE_RATE, 1)
    pipe = cast(io.BufferedReader, sys.stdin.buffer)
    rest, ended = b"", False
    while not ended:
        data = pipe.read1(2 * round(CHUNK_S * rate))
        ended = not data
        rest += data
        # Half a sample waits for its other half; at the end it is dropped.
        whole = len(rest) // 2 * 2
        samples = np.frombuffer(rest[:whole], dtype="<i2").astype(np.float32) / 32768.0
        rest = rest[whole:]
        if rate != audio.SAMPLE_RATE:
            samples = resampler.resample_chunk(samples, last=ended)
        if len(samples):
            yield Chunk(samples, False)


def _thresholds(options: list[str]) -> dict[str, float]:
    result = {}
    for option in options:
        word, sign, score = option.rpartition("=")
        try:
            result[word] = float(score)
        except ValueError:
            sign = ""
        if not sign or not word or not np.isfinite(result[word]):
            raise InputError(f"--threshold must be WORD=SCORE, as in lamp=0.6; got {option!r}")
    return result


def _meter() -> Progress:
    """Level and best word on standard error; nothing where that is not a terminal."""
    return Progress(
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        console=err,
        transient=True,
        disable=not err.is_terminal,
        redirect_stdout=False,
    )


def _show_level(meter: Progress, bar: TaskID, chunk: np.ndarray, detector: Detector) -> None:
    power = float(np.mean(chunk**2)) if len(chunk) else 0.0
    level_db = max(10 * np.log10(power + 1e-10), METER_DB[0])
    best = max(detector.scores.items(), key=lambda item: item[1], default=None)
    text = f"{printable(best[0])} {best[1]:.2f}" if best else ""
    meter.update(bar, completed=level_db - METER_DB[0], description=text)


def _show(event: Event, as_json: bool, meter: Progress) -> None:
    if as_json:
        line = json.dumps(event._asdict(), ensure_ascii=False)
    else:
        line = f"{event.start_s:9.2f} s  {printable(event.word)}  {event.score:.2f}"
    if err.is_terminal and sys.stdout.isatty():
        # Above the meter, which would be written over otherwise.
        meter.console.print(line, soft_wrap=True)
    else:
        print(line, flush=True)
