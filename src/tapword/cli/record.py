"""Record a word with the microphone, take by take."""

from collections.abc import Callable, Iterator

import typer
from rich.progress import BarColumn, Progress, TextColumn

from tapword.audio import microphone
from tapword.audio.endpoint import Endpointer, Take
from tapword.audio.files import SAMPLE_RATE
from tapword.cli.console import err, out
from tapword.errors import InputError
from tapword.spotter.session import TeachSession
from tapword.support.issues import Issue, message
from tapword.support.text import printable

TAKES = 5
# After this many refusals in a row, another try does not help.
MAX_REFUSALS = 5
COUNTDOWN_S = 2
METER_DB = (-70, 0)


def record(
    session: TeachSession, word: str, count: int, device: str | None, ask: Callable[[Issue], bool]
) -> None:
    """Record good takes of a word: `count` of them, or as many as the speaker wants to keep.

    Parameters
    ----------
    session
        Checks the takes, and accepts the good ones.
    word
        What to say.
    count
        How many good takes are wanted.
    device
        Microphone, as `microphone.open_stream` takes it.
    ask
        Called with each doubt about what was said; says whether to keep the take.
    """
    refusals = 0
    try:
        with microphone.open_stream(device) as chunks:
            while session.clips < count and refusals < MAX_REFUSALS:
                name = f"take {session.clips + 1} of {count}"
                take = _record_one(chunks, name, word)
                if take.issue is not None:
                    refusals += 1
                    out.print(f"{name} not used: {message(take.issue)}", soft_wrap=True)
                    continue
                length_s = take.end_s - take.start_s
                out.print(f"{name}: good, {length_s:.1f} s, {take.snr_db:.0f} dB above the noise")
                checked = session.check(take, word, name=f"take {session.clips + 1}")
                if all(ask(issue._replace(clips=(checked.name,))) for issue in checked.issues):
                    session.accept(checked)
                    refusals = 0
                else:
                    refusals += 1
    except KeyboardInterrupt:
        out.print("stopped")
        if not session.clips:
            raise
    kept = session.clips
    if not kept:
        raise InputError(f"{refusals} takes in a row could not be used; nothing was taught")
    if kept < count:
        question = f"{kept} of {count} takes are good; teach {printable(word)!r} with them?"
        typer.confirm(question, default=True, abort=True)


def _record_one(chunks: Iterator[microphone.Chunk], name: str, word: str) -> Take:
    """Count down, then record until the word is over."""
    out.print(f"{name}: get ready to say {printable(word)!r}")
    low, high = METER_DB
    columns = TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as meter:
        bar = meter.add_task("", total=high - low)
        # The sound is the clock, so that no chunks pile up during the countdown.
        for second in range(COUNTDOWN_S, 0, -1):
            meter.update(bar, description=f"{second}...")
            heard = 0
            while heard < SAMPLE_RATE:
                heard += len(next(chunks).samples)
        meter.update(bar, description="say it now")
        if not err.is_terminal:
            out.print("say it now")
        endpointer = Endpointer()
        for chunk in chunks:
            if chunk.gap:
                endpointer.gap()
            state = endpointer.push(chunk.samples)
            meter.update(bar, completed=endpointer.level_db - low)
            if state in ("over", "nobody"):
                break
    return endpointer.take()
