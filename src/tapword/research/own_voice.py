"""Whose voice teaches: words taught by the person who says them later, or by other people.

Every clip of a known speaker may be taught or asked, whatever its split: the people of a draw are
kept apart here.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tapword import registry
from tapword.errors import InputError
from tapword.research import metrics
from tapword.research.datasets.base import Dataset
from tapword.research.open_set import OpenSet
from tapword.research.records import Config, VoiceDraw, VoiceResult
from tapword.research.runner import Progress, Split

VOICES = ("own", "others", "both")
# Other people's other words that may be accepted, in percent.
FALSE_ACCEPTS = (5, 1)
# Of them, so many are asked at most in a draw, chosen by its seed: 20 may pass at 1%.
IMPOSTORS = 2_000
# How often draws are drawn again for an interval over them.
RESAMPLED = 300
# Fewer people with enough takes say nothing of people.
LEAST_PEOPLE = 2


class Draw(NamedTuple):
    """Clips of a draw by their numbers: (n,) int64 each.

    Attributes
    ----------
    seed, person, words
        As in `VoiceDraw`.
    taught
        Clips that are learned.
    known
        Other clips of the taught words.
    owner
        Clips of other words by the person who was taught; none where that is not who is asked.
    others
        Clips of other words by people who were not taught.
    """

    seed: int
    person: str | None
    words: list[str]
    taught: np.ndarray
    known: np.ndarray
    owner: np.ndarray
    others: np.ndarray


class Scored(NamedTuple):
    """Best word's score of the clips of a draw, (n,) each."""

    known: np.ndarray
    owner: np.ndarray
    others: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Voices(OpenSet):
    """Teach some words by one voice or by many, ask about all.

    Parameters
    ----------
    voice
        "own": teach takes of one person, ask that person's other takes. "others": teach takes of
        some people, one of each as far as there are enough, ask the people who were not taught.
        "both": a result for either.
    known, shots, draws
        As for `OpenSet`.
    """

    voice: str = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.voice not in VOICES:
            raise InputError(f"no voice {self.voice!r}; known: {', '.join(VOICES)}")

    @property
    def voices(self) -> tuple[str, ...]:
        """Each voice that gives a result of its own."""
        return VOICES[:2] if self.voice == "both" else (self.voice,)

    def config(self) -> Config:
        """Say what is run."""
        return replace(super().config(), voice=self.voice)

    def clips_of(self, dataset: Dataset) -> Dataset:
        """Give the clips that `run` wants; refuse too few people before their clips are encoded."""
        both = dataset.in_both_splits()
        clips = both.clips("test")
        people = People([clip.word for clip in clips], [clip.speaker for clip in clips])
        for voice in self.voices:
            for count in self.shots:
                self._draws(people, voice, count)
        return both

    def run(
        self, split: Split, learners: Sequence[str], jobs: int = 1, progress: Progress | None = None
    ) -> list[VoiceResult]:
        """Teach and ask, in one process: draws are quick.

        The vectors to learn and to name must be of the same clips in the same order, as those of
        `clips_of` are.
        """
        if not split.speakers or split.train_words != split.test_words:
            raise InputError(
                "own and others' voices need clips whose speakers are known: data sets "
                "speech_commands and mswc name them"
            )
        people = People(split.test_words, split.speakers)
        rows = [(name, v, count) for name in learners for count in self.shots for v in self.voices]
        results = []
        for number, (name, voice, count) in enumerate(rows):
            draws = self._draws(people, voice, count)
            scored = []
            for done, draw in enumerate(draws, start=1):
                scored.append(_ask(split, name, draw))
                if progress:
                    progress("draws", number * self.draws + done, len(rows) * self.draws)
            heard = np.unique(people.speakers[np.concatenate([draw.known for draw in draws])])
            results.append(
                VoiceResult(
                    learner=name,
                    shots=count,
                    dim=split.train.shape[1],
                    voice=voice,
                    known=self.known,
                    people=len(heard),
                    orderings=[_judged(*pair) for pair in zip(draws, scored, strict=True)],
                    **_numbers(scored),
                )
            )
        return results

    def _draws(self, people: "People", voice: str, shots: int) -> list[Draw]:
        self.check_known(len(people.names))
        draw = people.own if voice == "own" else people.others
        return [draw(self.known, shots, seed) for seed in range(self.draws)]


class People:
    """Who says what in a list of clips: draws the clips to teach and to ask.

    Parameters
    ----------
    words, speakers
        Of each clip.
    """

    def __init__(self, words: Sequence[str], speakers: Sequence[str | None]):
        # Words and people by their numbers, and how many takes each has of each.
        self.names, self.words = np.unique(np.array(words), return_inverse=True)
        self.everyone, self.speakers = np.unique(np.array(speakers), return_inverse=True)
        self.takes = np.zeros((len(self.everyone), len(self.names)), dtype=np.int64)
        np.add.at(self.takes, (self.speakers, self.words), 1)

    def own(self, known: int, shots: int, seed: int) -> Draw:
        """Teach and ask one person; the seeds go through all who have enough takes."""
        enough = self.takes > shots
        # A word more, of which the person is asked as of one that was not taught.
        said = (self.takes > 0).sum(axis=1)
        fit = np.flatnonzero((enough.sum(axis=1) >= known) & (said > known))
        if len(fit) < LEAST_PEOPLE:
            raise InputError(
                f"own voices with --shots {shots} --known {known} need at least {LEAST_PEOPLE} "
                f"speakers with {shots + 1} or more takes of {known} or more words, and a take of "
                f"another word; of {len(self.everyone)} speakers here, {len(fit)} have them"
            )
        person = np.random.default_rng(0).permutation(fit)[seed % len(fit)]
        rng = np.random.default_rng(seed)
        words = rng.permutation(np.flatnonzero(enough[person]))[:known]
        mine, chosen = self.speakers == person, np.isin(self.words, words)
        takes = [rng.permutation(np.flatnonzero(mine & (self.words == word))) for word in words]
        return Draw(
            seed,
            str(self.everyone[person]),
            self.names[words].tolist(),
            np.concatenate([one[:shots] for one in takes]),
            np.concatenate([one[shots:] for one in takes]),
            np.flatnonzero(mine & ~chosen),
            self._impostors(~mine & ~chosen, rng),
        )

    def others(self, known: int, shots: int, seed: int) -> Draw:
        """Teach some people and ask those who were not taught."""
        often = np.flatnonzero(self.takes.sum(axis=0) > shots)
        if len(often) < known:
            raise InputError(
                f"others' voices with --shots {shots} --known {known} need {known} words of more "
                f"than {shots} clips whose speaker is known; {len(often)} of {len(self.names)} "
                "words here have them"
            )
        rng = np.random.default_rng(seed)
        words = rng.permutation(often)[:known]
        # All words are taught by the first people of one order, so that many are left to ask.
        place = rng.permutation(len(self.everyone))
        taught = np.concatenate([self._one_each(word, place, rng)[:shots] for word in words])
        new, chosen = ~np.isin(self.speakers, self.speakers[taught]), np.isin(self.words, words)
        if not (new & chosen).any():
            raise InputError(
                f"others' voices with --shots {shots} --known {known} leave nobody to ask: "
                f"{len(np.unique(self.speakers[taught]))} of {len(self.everyone)} speakers are "
                f"taught, and the rest have no clip of {', '.join(self.names[words])}"
            )
        return Draw(
            seed,
            None,
            self.names[words].tolist(),
            taught,
            np.flatnonzero(new & chosen),
            np.zeros(0, dtype=np.int64),
            self._impostors(new & ~chosen, rng),
        )

    def _one_each(self, word: int, place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Order a word's clips: a first one of everybody, by their place, before a second."""
        clips = rng.permutation(np.flatnonzero(self.words == word))
        seen: Counter[int] = Counter()
        turns = []
        for clip in clips:
            person = self.speakers[clip]
            turns.append((seen[person], place[person]))
            seen[person] += 1
        return clips[sorted(range(len(clips)), key=turns.__getitem__)]

    def _impostors(self, fit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Choose among clips of other words by people who were not taught, (n,) bool."""
        if not fit.any():
            raise InputError("nobody but those who are taught says a word that is not taught")
        return rng.permutation(np.flatnonzero(fit))[:IMPOSTORS]


def _ask(split: Split, learner_name: str, draw: Draw) -> Scored:
    """Teach the clips of a draw, then score the others by their best word."""
    learner = registry.build("learners", learner_name)
    learner.learn_many(split.train[draw.taught], [split.train_words[row] for row in draw.taught])
    asked = (draw.known, draw.owner, draw.others)
    best = split.scores(learner, np.concatenate(asked)).max(axis=1)
    return Scored(*np.split(best, np.cumsum([len(rows) for rows in asked])[:-1]))


def _rates(draws: Sequence[Scored]) -> dict[str, float]:
    """FRR, and how often the owner's other words pass, at one threshold for all draws."""
    known, owner, others = (np.concatenate(scores) for scores in zip(*draws, strict=True))
    found = {}
    for percent in FALSE_ACCEPTS:
        threshold = metrics.threshold_at(others, percent)
        found[f"frr_{percent}"] = 100 - metrics.accuracy(known > threshold)
        if len(owner):
            found[f"owner_{percent}"] = metrics.accuracy(owner > threshold)
    return found


def _judged(draw: Draw, scored: Scored) -> VoiceDraw:
    rates: dict[str, Any] = {f"owner_{percent}": None for percent in FALSE_ACCEPTS}
    return VoiceDraw(
        seed=draw.seed,
        person=draw.person,
        words=draw.words,
        asked=len(draw.known),
        **rates | _rates([scored]),
    )


def _numbers(draws: Sequence[Scored]) -> dict[str, Any]:
    """Give the numbers of a `VoiceResult`."""
    rng = np.random.default_rng(0)
    again = [
        _rates([draws[index] for index in rng.integers(len(draws), size=len(draws))])
        for _ in range(RESAMPLED if len(draws) > 1 else 0)
    ]
    single = [_rates([draw]) for draw in draws]
    pooled = _rates(draws)
    numbers: dict[str, Any] = {}
    for kind, percent in itertools.product(("frr", "owner"), FALSE_ACCEPTS):
        key = f"{kind}_{percent}"
        numbers[key], numbers[f"{key}_ci"] = pooled.get(key), None
        if again and key in pooled:
            low, high = np.quantile([one[key] for one in again], (0.025, 0.975))
            numbers[f"{key}_ci"] = (float(low), float(high))
        if kind == "frr":
            values = [one[key] for one in single]
            numbers[f"{key}_draws"] = float(np.mean(values))
            numbers[f"{key}_draws_std"] = float(np.std(values))
    for name, scores in zip(Scored._fields, zip(*draws, strict=True), strict=True):
        joined = np.concatenate(scores)
        numbers[f"median_{name}"] = float(np.median(joined)) if len(joined) else None
    return numbers
