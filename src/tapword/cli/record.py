"""The dialogue that records a word by microphone, take by take."""

import copy
from collections import Counter
from collections.abc import Iterator

import numpy as np
import typer
from rich.progress import BarColumn, Progress, TextColumn

from tapword import microphone
from tapword.audio import SAMPLE_RATE
from tapword.cli.app import err, out, printable
from tapword.errors import InputError
from tapword.spotter import Spotter
from tapword.takes import Endpointer, Take, examine

TAKES = 5
# After so many refusals in a row something is wrong that another try does not mend.
MAX_REFUSALS = 5
COUNTDOWN_S = 2
WAIT_S = 5.0
METER_DB = (-70, 0)
# Share of the takes that must be heard as another word for it to be close.
CLOSE_SHARE = 0.8
LOST = "sound was lost on the way: close programs that keep the machine busy"


def record(word: str, count: int, device: str | None) -> list[np.ndarray]:
    """Record good takes of a word, `count` of them or as many as the speaker wants to keep.

    Parameters
    ----------
    word
        What to say.
    count
        How many good takes are wanted.
    device
        Microphone, as `microphone.open_stream` takes it.

    Returns
    -------
    list
        The speech of each take, (n,) float32 at 16 kHz.
    """
    kept: list[np.ndarray] = []
    refusals = 0
    try:
        with microphone.open_stream(device) as chunks:
            while len(kept) < count and refusals < MAX_REFUSALS:
                name = f"take {len(kept) + 1} of {count}"
                take = _record_one(chunks, name, word)
                if take.problem is None:
                    kept.append(take.audio)
                    refusals = 0
                    length_s = take.end_s - take.start_s
                    out.print(
                        f"{name}: good, {length_s:.1f} s, {take.snr_db:.0f} dB over the noise"
                    )
                else:
                    refusals += 1
                    out.print(f"{name} not used, {take.problem}", soft_wrap=True)
    except KeyboardInterrupt:
        out.print("stopped")
        if not kept:
            raise
    if not kept:
        raise InputError(f"{refusals} takes in a row could not be used; nothing was taught")
    if len(kept) < count:
        question = f"{len(kept)} of {count} takes are good; teach {printable(word)!r} with them?"
        typer.confirm(question, default=True, abort=True)
    return kept


def _record_one(chunks: Iterator[microphone.Chunk], name: str, word: str) -> Take:
    """Count down, then record until the word is over."""
    out.print(f"{name}: get ready to say {printable(word)!r}")
    low, high = METER_DB
    columns = TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as meter:
        bar = meter.add_task("", total=high - low)
        # What the microphone hears is the clock: nothing piles up while we count.
        for second in range(COUNTDOWN_S, 0, -1):
            meter.update(bar, description=f"{second}...")
            heard = 0
            while heard < SAMPLE_RATE:
                heard += len(next(chunks).samples)
        meter.update(bar, description="say it now")
        if not err.is_terminal:
            out.print("say it now")
        endpointer = Endpointer(WAIT_S)
        gap = False
        for chunk in chunks:
            state = endpointer.hear(chunk.samples)
            gap = gap or chunk.gap
            meter.update(bar, completed=endpointer.level_db - low)
            if state in ("over", "nobody"):
                break
    take = examine(endpointer.audio)
    return take._replace(problem=LOST) if gap else take


def close_word(spotter: Spotter, vectors: np.ndarray, word: str) -> str | None:
    """Taught word that takes of another are mixed up with, or None.

    Nearly all takes must be heard as it now, and at least one still when a copy has learned the
    other takes: a model of few words hears one of them in anything, but tells a word that is far
    from it as soon as it is taught.

    Parameters
    ----------
    spotter
        The model before it learns the takes.
    vectors
        Of the takes, (n, D).
    word
        What is said in them.
    """
    heard = Counter(prediction.word for prediction in spotter.predict_vectors(vectors))
    other, votes = heard.most_common(1)[0]
    if other in (None, word) or votes < CLOSE_SHARE * len(vectors) or len(vectors) < 3:
        return None
    pupil = copy.copy(spotter)
    for index, vector in enumerate(vectors):
        pupil.learner = copy.deepcopy(spotter.learner)
        rest = np.delete(vectors, index, axis=0)
        pupil.learn_vectors(rest, [word] * len(rest))
        if pupil.predict_vectors(vector[None])[0].word == other:
            return other
    return None


def warn_if_close(spotter: Spotter, vectors: np.ndarray, word: str) -> None:
    """Say so where takes (n, D) of a word sound close to a word the model knows."""
    other = close_word(spotter, vectors, word)
    if other is not None:
        err.print(
            f'warning: "{printable(word)}" sounds close to "{printable(other)}"; if they are mixed '
            "up, teach more takes of both, or forget one and choose another word",
            soft_wrap=True,
        )
