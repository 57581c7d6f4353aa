"""Commands that listen to a stream: to report words, or to calibrate sensitivities."""

import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import soxr
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tapword.audio import files as audio_files
from tapword.audio import microphone
from tapword.audio.align import decibels
from tapword.audio.files import SAMPLE_RATE, as_float
from tapword.audio.microphone import CHUNK_S, Chunk
from tapword.cli.action import Action
from tapword.cli.app import argument, command, flag, option
from tapword.cli.console import err, out, print_json, progress_steps
from tapword.cli.models import sensitivity_change
from tapword.cli.options import (
    AsJson,
    Backbones,
    Device,
    Model,
    PerHour,
    Refractory,
    Sensitivities,
    Thresholds,
    expand,
)
from tapword.cli.record import METER_DB
from tapword.errors import InputError
from tapword.listening import calibration
from tapword.listening.decider import REFRACTORY_S, Event
from tapword.listening.follow import DetectorSettings, ModelFollower
from tapword.listening.near import NearMiss
from tapword.spotter import store
from tapword.spotter.spotter import Spotter, require_same_parts
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    parse_sensitivity,
    parse_threshold,
)
from tapword.spotter.watched import WatchedModel
from tapword.support.text import counted, printable

BLOCK_S = 10.0
# How often to check whether the model file changed, in seconds of sound.
POLL_S = 1.0


@command()
def listen(
    model: Model,
    source: Annotated[
        str | None,
        argument("FILE", "Sound file of any length, or - to read 16-bit mono samples from a pipe."),
    ] = None,
    mic: Annotated[bool, flag("--mic", "Listen to the microphone.")] = False,
    as_json: Annotated[bool, flag("--json", "Print one line of JSON per event.")] = False,
    device: Device = None,
    rate: Annotated[
        int | None,
        option("HZ", "With -: sample rate. [default: 16000]"),
    ] = None,
    near: Annotated[bool, flag("--near", "Also show near misses, with their thresholds.")] = False,
    exec_: Annotated[
        str | None,
        option(
            "COMMAND",
            "Run COMMAND for each event; {word}, {score}, {confidence}, {start} and {end} are "
            "replaced.",
            "--exec",
        ),
    ] = None,
    sensitivity: Sensitivities = None,
    threshold: Thresholds = None,
    false_alarms_per_hour: PerHour = FALSE_ALARMS_PER_HOUR,
    refractory: Refractory = REFRACTORY_S,
    backbone: Backbones = None,
) -> None:
    """Print the words of MODEL as they are said: time in seconds, word, score, and how sure.

    You can teach MODEL while it listens to a microphone or a pipe: it is reloaded when it changes.
    """
    if mic == (source is not None):
        raise InputError("give a sound file, - for a pipe, or --mic")
    if device is not None and not mic:
        raise InputError("--device needs --mic")
    if rate is not None and source != "-":
        raise InputError("--rate needs -: files and microphones have their own rate")
    audio_files.check_rate(SAMPLE_RATE if rate is None else rate, "--rate")
    follows = mic or source == "-"
    action = None if exec_ is None else Action(exec_, may_wait=not follows)
    store.require_file(model)
    watched = WatchedModel(model, backbones=backbone)
    if not watched.spotter.words:
        raise InputError(f"{model} has no words yet; teach it with: tapword learn {model} WORD")
    settings = DetectorSettings(
        false_alarms_per_hour,
        refractory,
        dict(map(parse_threshold, threshold or [])),
        dict(map(parse_sensitivity, sensitivity or [])),
    )
    for word in settings.words:
        watched.spotter.learner.require_taught(word)
    follower = ModelFollower(settings, near_misses=near)
    follower.take_up(watched.spotter)
    live = watched if follows else None
    counts: Counter[str] = Counter()
    heard_s = 0.0
    stream: AbstractContextManager[Iterator[Chunk]]
    if mic:
        stream = microphone.open_stream(device, chunk_s=CHUNK_S)
    else:
        stream = nullcontext(_pipe(rate) if source == "-" else _file(str(source)))
    with action or nullcontext(), _meter(action is None) as meter:
        bar = meter.add_task("", total=METER_DB[1] - METER_DB[0])
        try:
            with stream as chunks:
                for chunk, events in _detect(follower, chunks, live):
                    heard_s += len(chunk) / SAMPLE_RATE
                    counts.update(event.word for event in events)
                    _show_level(meter, bar, chunk, follower)
                    if action:
                        action.look()
                    # The last chunk is empty.
                    now_s = heard_s if len(chunk) else math.inf
                    found: list[Event | NearMiss] = [*events]
                    found += follower.near.since(now_s) if follower.near else []
                    for one in sorted(found, key=lambda one: one.start_s):
                        _show(one, as_json, meter)
                        if action and isinstance(one, Event):
                            action(one)
        except KeyboardInterrupt:
            for miss in follower.near.since(math.inf) if follower.near else []:
                _show(miss, as_json, meter)
    words = ", ".join(f"{printable(word)} {n}" for word, n in counts.most_common())
    err.print(f"heard {heard_s:.1f} s: {counted(counts.total(), 'event')}{words and f' ({words})'}")


def _detect(
    follower: ModelFollower, chunks: Iterator[Chunk], live: WatchedModel | None
) -> Iterator[tuple[np.ndarray, list[Event]]]:
    """Give chunks and the events in them; read the model `live` again when it changes."""
    now_s = since_s = 0.0
    for chunk in chunks:
        since_s += len(chunk.samples) / SAMPLE_RATE
        if live is not None and since_s >= POLL_S:
            since_s = 0.0
            if live.refresh():
                follower.take_up(live.spotter, now_s)
                known = counted(len(live.spotter.words), "word")
                note = live.problem or f"{live.path} has changed: {known}"
                err.print(printable(note), soft_wrap=True)
        now_s += len(chunk.samples) / SAMPLE_RATE
        detector = follower.detector
        if detector is not None and chunk.gap:
            detector.gap()
        yield chunk.samples, detector(chunk.samples) if detector else []
    last = follower.detector.flush() if follower.detector else []
    yield np.zeros(0, dtype=np.float32), last


def _file(path: str) -> Iterator[Chunk]:
    for block in audio_files.blocks(path, BLOCK_S):
        yield Chunk(block, False)


def _pipe(rate: int | None) -> Iterator[Chunk]:
    """Read little-endian 16-bit samples from standard input as they arrive."""
    rate = SAMPLE_RATE if rate is None else rate
    resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1)
    pipe = cast(io.BufferedReader, sys.stdin.buffer)
    rest, ended = b"", False
    while not ended:
        data = pipe.read1(2 * round(CHUNK_S * rate))
        ended = not data
        rest += data
        # Half a sample waits for its other half, and is dropped at the end.
        whole = len(rest) // 2 * 2
        samples = as_float(np.frombuffer(rest[:whole], dtype="<i2"))
        rest = rest[whole:]
        if rate != SAMPLE_RATE:
            samples = resampler.resample_chunk(samples, last=ended)
        if len(samples):
            yield Chunk(samples, False)


def _meter(alone: bool) -> Progress:
    """Show the level and the best word, where standard error is a terminal and free."""
    return Progress(
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        console=err,
        transient=True,
        disable=not (alone and err.is_terminal),
        redirect_stdout=False,
    )


def _show_level(meter: Progress, bar: TaskID, chunk: np.ndarray, follower: ModelFollower) -> None:
    power = float(np.mean(chunk**2)) if len(chunk) else 0.0
    level_db = max(float(decibels(power)), METER_DB[0])
    scores = follower.detector.scores if follower.detector else {}
    best = max(scores.items(), key=lambda item: item[1], default=None)
    text = f"{printable(best[0])} {best[1]:.2f}" if best else ""
    meter.update(bar, completed=level_db - METER_DB[0], description=text)


def _show(one: Event | NearMiss, as_json: bool, meter: Progress) -> None:
    line = f"{one.start_s:9.2f} s  {printable(one.word)}  {one.score:.2f}"
    if one.confidence is not None:
        line += f"  sure {one.confidence}"
    told, style = one._asdict(), None
    if isinstance(one, NearMiss):
        why = "rejected as a negative" if one.rejected else "near miss"
        line += f"  {why}; threshold {one.threshold:.2f}"
        told, style = told | {"near": True}, "dim"
    if as_json:
        line = json.dumps(told, ensure_ascii=False)
    if err.is_terminal and sys.stdout.isatty():
        # Printed above the meter, which would overwrite it.
        meter.console.print(line, soft_wrap=True, style=style)
    else:
        print(line, flush=True)


@command()
def calibrate(
    model: Model,
    negatives: Annotated[
        list[str],
        argument("FILES", "Long recordings without the words: files, folders or globs."),
    ],
    false_alarms_per_hour: PerHour = FALSE_ALARMS_PER_HOUR,
    refractory: Refractory = REFRACTORY_S,
    as_json: AsJson = False,
    backbone: Backbones = None,
) -> None:
    """Calibrate the sensitivities of MODEL on recordings that contain none of its words.

    Words that nothing in the recordings resembles become more sensitive; words that raise false
    alarms become less so. Earlier sensitivities are replaced, so give all recordings at once.
    """
    spotter = Spotter.load(model, backbone)
    with progress_steps() as step:
        recordings = _recordings(expand(negatives), step)
        found = calibration.calibrate(spotter, recordings, false_alarms_per_hour, refractory)
    with Spotter.edit(model, spotter.encoder.backbones, "calibrate") as edited:
        require_same_parts(edited, spotter)
        for word, value in found.after.items():
            if word in edited.words:
                edited.set_sensitivity(value, word)
    if as_json:
        print_json(found._asdict())
    else:
        _show_calibration(found, false_alarms_per_hour)


def _recordings(
    paths: list[Path], step: Callable[[str, int, int], None]
) -> Iterator[Iterator[np.ndarray]]:
    """Give recordings as streams of blocks; report progress to `step`."""
    total_s, done = int(sum(map(audio_files.length_s, paths))), 0

    def blocks(path: Path) -> Iterator[np.ndarray]:
        nonlocal done
        for block in audio_files.blocks(path, BLOCK_S):
            yield block
            done += len(block)
            step("listening, s", done // SAMPLE_RATE, total_s)

    return map(blocks, paths)


def _show_calibration(found: calibration.Calibration, false_alarms_per_hour: float) -> None:
    length = f"{found.hours:.1f} h" if found.hours >= 1 else f"{found.hours * 60:.1f} minutes"
    for word, now in found.after.items():
        count, before = found.alarms_after[word], found.alarms_before[word]
        alarms = f"{counted(count, 'false alarm') if count else 'no false alarm'} in {length}"
        end = {0.0: ", the lowest", 1.0: ", the highest"}.get(now, "")
        earlier = f", {before} before" if before != count else ""
        line = f"{sensitivity_change(word, found.before[word], now)}{end}; {alarms}{earlier}"
        out.print(line, soft_wrap=True)
    allowed, count = int(false_alarms_per_hour * found.hours), sum(found.alarms_after.values())
    out.print(
        f"{found.sound_hours * 60:.1f} minutes of {length} contain sound. At "
        f"{false_alarms_per_hour:g} an hour, {allowed or 'no'} false alarm"
        f"{'s are' if allowed > 1 else ' is'} allowed; there {'are' if count > 1 else 'is'} "
        f"{count or 'none'}. For sound like this, the rate is below "
        f"{found.at_most_per_hour:.2g} an hour (95% confidence).",
        soft_wrap=True,
    )
    if found.at_most_per_hour > false_alarms_per_hour:
        out.print(
            "Showing the target rate needs at least "
            f"{found.at_most_per_hour * found.hours / false_alarms_per_hour:.1f} hours."
        )
