"""The main job in under a minute, offline: teach words one sample at a time, watch them stay."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from tapword.assets import CLIPS
from tapword.spotter.spotter import Spotter

HELD_OUT = 1 / 3


class Step(NamedTuple):
    """What was seen after one more word was taught; accuracies in percent, on held-out voices.

    Attributes
    ----------
    word, samples
        The word and how many clips it was taught from.
    accuracy
        Over all words so far.
    new, old
        Of the new word alone, and of the words before it (None at the first).
    learn_ms
        Time per sample, backbone included.
    """

    word: str
    samples: int
    accuracy: float
    new: float
    old: float | None
    learn_ms: float


def teach(spotter: Spotter, seed: int = 0) -> Iterator[Step]:
    """Teach the shipped words in a seeded order, some voices held out for asking."""
    rng = np.random.default_rng(seed)
    words = [
        str(word) for word in rng.permutation(sorted(p.name for p in CLIPS.iterdir() if p.is_dir()))
    ]
    voices = sorted({_voice(path) for path in CLIPS.glob("*/*.ogg")})
    asked = set(rng.permutation(voices)[: round(len(voices) * HELD_OUT)].tolist())
    vectors: list[np.ndarray] = []
    truth: list[str] = []
    for word in words:
        clips = sorted((CLIPS / word).glob("*.ogg"))
        learned = [path for path in clips if _voice(path) not in asked]
        start = time.perf_counter()
        for path in learned:
            spotter.learn(path, word)
        learn_ms = (time.perf_counter() - start) * 1000 / len(learned)
        held_out = [path for path in clips if _voice(path) in asked]
        vectors.append(spotter.vectors(held_out))
        truth.extend([word] * len(held_out))
        answers = spotter.predict_vectors(np.concatenate(vectors), closed=True)
        right = np.array([answer.word == true for answer, true in zip(answers, truth, strict=True)])
        before = right[: -len(held_out)]
        yield Step(
            word,
            len(learned),
            100 * right.mean(),
            100 * right[-len(held_out) :].mean(),
            100 * before.mean() if len(before) else None,
            learn_ms,
        )


def show(console: Console, seed: int = 0) -> None:
    """Run the demo on a console."""
    spotter = Spotter()
    voices = sorted({_voice(path) for path in CLIPS.glob("*/*.ogg")})
    held_out = round(len(voices) * HELD_OUT)
    console.print(
        f"{spotter!r}\nSynthetic words in {len(voices)} voices: {len(voices) - held_out} teach, "
        f"one sample at a time, each clip once; {held_out} others ask.\n",
        highlight=False,
        markup=False,
    )
    table = Table("taught", "samples", "all words so far", "new word", "words before")
    start = time.perf_counter()
    steps = []
    with Live(table, console=console, refresh_per_second=8):
        for step in teach(spotter, seed):
            steps.append(step)
            old = "" if step.old is None else f"{step.old:.1f}%"
            table.add_row(
                step.word, str(step.samples), f"{step.accuracy:.1f}%", f"{step.new:.1f}%", old
            )
    seconds = time.perf_counter() - start
    size = spotter.learner.state_bytes
    learn_ms = np.median([step.learn_ms for step in steps])
    console.print(
        f"\n{len(steps)} words from {sum(step.samples for step in steps)} samples in "
        f"{seconds:.1f} s; {learn_ms:.1f} ms a sample, backbone included.\n"
        f"State: {size.total:,} bytes ({size.fixed:,} and {size.per_word:,} a word); "
        "no recording kept.\n"
        "Now yours: tapword learn home.tap WORD FILES... and tapword predict home.tap FILE",
        highlight=False,
    )


def _voice(path: Path) -> str:
    return path.stem.rpartition("_")[0]
