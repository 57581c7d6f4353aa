"""The demo: three parts in under a minute, offline, on the shipped clips.

A few voices teach words and others test them; every number is computed on the spot.
"""

import importlib.util
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.align import decibels
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import how_to_install
from tapword.listening.detector import Detector, Event
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.support.text import counted

# Taught words, the rest are unknown; voices that teach, the rest are tested.
N_TAUGHT, N_TEACHERS = 12, 5
# A pair that rhymes: the first is taught, the second is not, and the demo says why it is taken for
# the first. Words that sound like others of the demo, without such a reason, are left out.
TAUGHT_RHYME, RHYME = "light", "right"
LEFT_OUT = ("blinds", "kitchen", "up")
# The stream: number of taught words, with one unknown word, pauses and level of the noise.
N_SAID, PAUSE_S, NOISE = 5, (0.7, 1.0), 0.001

# An event belongs to a word that was said this close to it.
SAME_S = 0.5

# Percentages of the chart's rows, and width of a word's column.
LEVELS = (100, 80, 60, 40, 20, 0)
COLUMN = 4
# Seconds per character of the timeline; its bars, and their range in dB.
LETTER_S = 1 / 6
BARS, BARS_DB = " ▁▂▃▄▅▆▇█", (-55, -15)
OURS, OTHER = ("●", "green"), ("○", "red")


class Setup(NamedTuple):
    """Taught and unknown words, teaching voices and others."""

    taught: list[str]
    unknown: list[str]
    teachers: list[str]
    others: list[str]


class Step(NamedTuple):
    """Accuracy in percent after one more word, and the clips that were right once and are not now.

    On the clips of all words so far by the other voices.
    """

    word: str
    ours: float
    finetuned: float
    ours_forgot: int
    finetuned_forgot: int


class Refusal(NamedTuple):
    """Rejected clips of an unknown word, and the word it is most often confused with."""

    word: str
    clips: int
    rejected: int
    confused_with: str | None


class Rhyme(NamedTuple):
    """Clips of each of the rhyming words that were recognised, once both were taught."""

    clips: int
    taught_first: int
    taught_last: int


class Stream(NamedTuple):
    """Audio (n,), the words in it with their times, and the events."""

    audio: np.ndarray
    words: list[tuple[float, str]]
    events: list[Event]


def setup(seed: int) -> Setup:
    """Draw words and voices."""
    rng = np.random.default_rng(seed)
    named = sorted(path.name for path in CLIPS.iterdir() if path.is_dir())
    drawn = [word for word in named if word not in (TAUGHT_RHYME, RHYME, *LEFT_OUT)]
    words = rng.permutation(drawn).tolist()
    taught = rng.permutation([TAUGHT_RHYME, *words[: N_TAUGHT - 1]]).tolist()
    voices = sorted({path.stem.rpartition("_")[0] for path in CLIPS.glob("*/*.ogg")})
    voices = rng.permutation(voices).tolist()
    unknown = [*words[N_TAUGHT - 1 :], RHYME]
    return Setup(taught, unknown, voices[:N_TEACHERS], voices[N_TEACHERS:])


def clips(word: str, voices: Sequence[str]) -> list[np.ndarray]:
    """One clip of a word by each voice."""
    return [files.read(CLIPS / word / f"{voice}_0.ogg") for voice in voices]


def teach(spotter: Spotter, chosen: Setup) -> Iterator[Step]:
    """Teach words one by one to a spotter and to a fine-tuned network."""
    network = Spotter(learner="finetune", whitening="shipped")
    tested: list[Encoded] = []
    truth: list[str] = []
    # Clips that each of the two had right once.
    once: tuple[set[int], set[int]] = (set(), set())
    for word in chosen.taught:
        taught = spotter.encode(clips(word, chosen.teachers), learning=True)
        tested.append(spotter.encode(clips(word, chosen.others)))
        truth += [word] * len(chosen.others)
        shares: list[float] = []
        forgot: list[int] = []
        for model, before in zip((spotter, network), once, strict=True):
            model.learn_encoded(taught, [word] * len(taught))
            answers = model.predict_encoded(Encoded.concatenate(tested), closed=True)
            right = {row for row, word in enumerate(truth) if answers[row].word == word}
            shares.append(100 * len(right) / len(truth))
            forgot.append(len(before - right))
            before |= right
        yield Step(word, shares[0], shares[1], forgot[0], forgot[1])


def reject(spotter: Spotter, chosen: Setup) -> Iterator[Refusal]:
    """Test words that were never taught."""
    for word in chosen.unknown:
        answers = [answer.word for answer in spotter.predict_many(clips(word, chosen.others))]
        mistakes = Counter(answer for answer in answers if answer is not None)
        best = mistakes.most_common(1)
        rejected = len(answers) - mistakes.total()
        yield Refusal(word, len(answers), rejected, best[0][0] if best else None)


def teach_rhyme(spotter: Spotter, chosen: Setup) -> Rhyme:
    """Teach the word that rhymes with a taught one, and test both."""
    taught = spotter.encode(clips(RHYME, chosen.teachers), learning=True)
    spotter.learn_encoded(taught, [RHYME] * len(taught))
    right = [
        sum(answer.word == word for answer in spotter.predict_many(clips(word, chosen.others)))
        for word in (TAUGHT_RHYME, RHYME)
    ]
    return Rhyme(len(chosen.others), *right)


def listen(spotter: Spotter, chosen: Setup, seed: int) -> Stream:
    """Detect words by another voice in a noisy stream with pauses."""
    rng = np.random.default_rng(seed)
    voice = chosen.others[0]
    words = [*rng.permutation(list(spotter.words))[:N_SAID].tolist()]
    unknown = next(word for word in chosen.unknown if word not in spotter.words)
    words.insert(N_SAID // 2, unknown)
    pieces, said, length = [], [], 0
    for word in words:
        [clip] = clips(word, [voice])
        pause = np.zeros(round(rng.uniform(*PAUSE_S) * SAMPLE_RATE), dtype=np.float32)
        said.append(((length + len(pause)) / SAMPLE_RATE, word))
        pieces += [pause, clip]
        length += len(pause) + len(clip)
    pieces.append(np.zeros(SAMPLE_RATE, dtype=np.float32))
    audio = np.concatenate(pieces)
    audio += NOISE * rng.standard_normal(len(audio), dtype=np.float32)
    detector = Detector(spotter)
    events = [event for chunk in np.array_split(audio, 50) for event in detector(chunk)]
    return Stream(audio, said, events + detector.flush())


def show(console: Console, seed: int = 0) -> None:
    """Run the three parts on a console."""
    chosen = setup(seed)
    spotter = Spotter()
    _say(
        console,
        "tapword learns a word from a few samples and keeps the words it learned before.\n"
        f"Here {N_TEACHERS} synthetic voices teach and {len(chosen.others)} others are tested, all "
        "on this machine.",
    )
    _title(console, f"1  Teach {N_TAUGHT} words, one by one, {N_TEACHERS} samples each")
    steps: list[Step] = []
    with Live(chart(steps), console=console, refresh_per_second=8) as picture:
        for step in teach(spotter, chosen):
            steps.append(step)
            picture.update(chart(steps))
    end = steps[-1]
    tested = counted(N_TAUGHT * len(chosen.others), "clip")
    _say(
        console,
        f"\nOf {tested} by the other voices, tapword recognises {end.ours:.0f}%; it forgot "
        f"{end.ours_forgot or 'none'}.\n"
        "The other line is the same network with its last layer fine-tuned on the same\n"
        f"samples: it forgot {end.finetuned_forgot} clips that it recognised before.",
    )
    _title(console, f"2  Test {len(chosen.unknown)} words that were never taught")
    found = list(reject(spotter, chosen))
    for one in found:
        _say(console, _refusal(one))
    both = teach_rhyme(spotter, chosen)
    _say(
        console,
        f"{RHYME!r} and the taught {TAUGHT_RHYME!r} differ in their first sound alone.\n"
        f"Once it is taught too, {RHYME!r} is recognised {both.taught_last} of {both.clips} times, "
        f"{TAUGHT_RHYME!r} {both.taught_first} of {both.clips} times.",
    )
    _title(console, "3  Listen to a stream by a new voice")
    stream = listen(spotter, chosen, seed)
    for line in timeline(stream):
        console.print(line, soft_wrap=True)
    _say(console, _found(stream, spotter))
    _title(console, "Next: your own words")
    _say(
        console,
        "tapword demo --mic                      one word by your own voice, here\n"
        "tapword studio home.tap                 by voice, in the browser\n"
        "tapword learn home.tap WORD FILES...    from recordings, three or more a word",
    )
    if importlib.util.find_spec("starlette") is None:
        _say(console, f"The studio needs an optional package: {how_to_install('web')}")


def chart(steps: Sequence[Step]) -> Text:
    """Draw the accuracy of both models over the words taught so far."""
    rows = [Text(f" {level:3d}% ┤") for level in LEVELS]
    for number, step in enumerate(steps, start=1):
        marks = {_level(step.finetuned): OTHER, _level(step.ours): OURS}
        for place, row in enumerate(rows):
            mark, style = marks.get(place, (" ", ""))
            row.append(mark.rjust(COLUMN), style)
        if number == len(steps):
            rows[_level(step.ours)].append(f"  tapword {step.ours:.0f}%", OURS[1])
            rows[_level(step.finetuned)].append(f"  fine-tuned {step.finetuned:.0f}%", OTHER[1])
    numbers = "".join(str(number + 1).rjust(COLUMN) for number in range(N_TAUGHT))
    last = f"  {steps[-1].word!r}" if 0 < len(steps) < N_TAUGHT else ""
    axis = [Text("      └" + "─" * len(numbers)), Text(f" words {numbers}{last}")]
    return Text("\n").join([*rows, *axis])


def _level(percentage: float) -> int:
    return round((LEVELS[0] - percentage) / (LEVELS[0] - LEVELS[1]))


def timeline(stream: Stream) -> list[Text]:
    """Draw a stream over time: level, and each word with what was heard and how sure."""
    size = round(LETTER_S * SAMPLE_RATE)
    pieces = np.array_split(stream.audio, range(size, len(stream.audio), size))
    low, high = BARS_DB
    levels = [float(decibels(np.mean(piece**2))) for piece in pieces]
    shares = np.clip([(level - low) / (high - low) for level in levels], 0, 1)
    bars = "".join(BARS[round(share * (len(BARS) - 1))] for share in shares)
    said, heard, sure = _columns(_beside(stream))
    return [
        Text(" level ").append(bars, "dim"),
        Text(f" said  {said}"),
        Text(" heard ").append(heard, OURS[1]),
        Text(f" sure  {sure}"),
    ]


def _beside(stream: Stream) -> list[tuple[float, str, str, str]]:
    """Put what was heard beside what was said: time, word said, word heard, how sure, in order."""
    rows = [(start_s, word, "-", "") for start_s, word in stream.words]
    for event in stream.events:
        shown = event.word, str(event.confidence)
        near = [abs(start_s - event.start_s) for start_s, _ in stream.words]
        place = near.index(min(near))
        if near[place] < SAME_S and rows[place][2] == "-":
            rows[place] = (*rows[place][:2], *shown)
        else:
            rows.append((event.start_s, "", *shown))
    return sorted(rows)


def _columns(rows: Sequence[tuple[float, str, str, str]]) -> list[str]:
    """Write each row of texts as a column at its time, or after the one before."""
    lines = ["", "", ""]
    for start_s, *texts in rows:
        after = max(len(line) + bool(line) for line in lines)
        lines = [
            line.ljust(max(round(start_s / LETTER_S), after)) + text
            for line, text in zip(lines, texts, strict=True)
        ]
    return [line.rstrip() for line in lines]


def _refusal(one: Refusal) -> str:
    mistaken = f", else confused with {one.confused_with!r}" if one.confused_with else ""
    return f" {one.word:<8} rejected {one.rejected:2d} of {one.clips} times{mistaken}"


def _found(stream: Stream, spotter: Spotter) -> str:
    """Describe which words of a stream were found."""

    def at(start_s: float) -> list[str]:
        return [event.word for event in stream.events if abs(event.start_s - start_s) < SAME_S]

    known = [word in at(start_s) for start_s, word in stream.words if word in spotter.words]
    [(start_s, unknown)] = [one for one in stream.words if one[1] not in spotter.words]
    mistaken = f"confused with {at(start_s)[0]!r}" if at(start_s) else "rejected"
    hint = "" if all(known) else "More takes, or a higher sensitivity, let it miss fewer.\n"
    return (
        f"Heard {sum(known)} of {counted(len(known), 'word')}; the unknown {unknown!r} was "
        f"{mistaken}.\n{hint}sure: from 0 to 100; a word counts as said from 50 on."
    )


def _title(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold", highlight=False, markup=False, soft_wrap=True)


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
