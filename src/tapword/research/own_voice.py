"""Words taught by the person who says them later, or by other people.

Every clip of a known speaker may be learned or tested, in any split: each draw separates people.
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
# At most this many of them are tested in a draw, chosen by its seed: at 1%, 20 may pass.
IMPOSTORS = 2_000
# Bootstrap samples of the interval over draws.
N_BOOTSTRAP = 300
# Fewer people with enough takes tell nothing about people.
MIN_PEOPLE = 2


class Draw(NamedTuple):
    """Indices of a draw's clips, (n,) int64 each; the first three fields as in `VoiceDraw`.

    `taught` clips are learned. Tested are `known`, other clips of the taught words; `owner`, other
    words of the person who taught (none for "others"); and `others`, other words of other people.
    """

    seed: int
    person: str | None
    words: list[str]
    taught: np.ndarray
    known: np.ndarray
    owner: np.ndarray
    others: np.ndarray


class Scored(NamedTuple):
    """Best word's score of a draw's clips, (n,) each."""

    known: np.ndarray
    owner: np.ndarray
    others: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OwnVoice(OpenSet):
    """Teach some words with one voice or with many, and test all words.

    Parameters
    ----------
    voice
        "own": learn takes of one person, test that person's other takes. "others": learn takes of
        some people, if possible one of each, and test other people. "both": a result for each.
    known, shots, draws
        As for `OpenSet`.
    """

    voice: str = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.voice not in VOICES:
            raise InputError(f"voice must be one of {', '.join(VOICES)}; got {self.voice!r}")

    @property
    def voices(self) -> tuple[str, ...]:
        """Voices with a result each."""
        return VOICES[:2] if self.voice == "both" else (self.voice,)

    def config(self) -> Config:
        """Describe the protocol."""
        return replace(super().config(), voice=self.voice)

    def clips_of(self, dataset: Dataset) -> Dataset:
        """Clips that `run` needs; refuse too few people before clips are encoded."""
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
        """Learn and test in one process: draws are quick.

        Training and test vectors must be of the same clips in the same order, as from `clips_of`.
        """
        if not split.speakers or split.train_words != split.test_words:
            raise InputError(
                "own and others' voices need clips with known speakers; data sets speech_commands "
                "and mswc have them"
            )
        people = People(split.test_words, split.speakers)
        rows = [(name, v, count) for name in learners for count in self.shots for v in self.voices]
        results = []
        for number, (name, voice, count) in enumerate(rows):
            draws = self._draws(people, voice, count)
            scored = []
            for done, draw in enumerate(draws, start=1):
                scored.append(_score(split, name, draw))
                if progress:
                    progress("draws", number * self.draws + done, len(rows) * self.draws)
            tested = np.unique(people.speakers[np.concatenate([draw.known for draw in draws])])
            results.append(
                VoiceResult(
                    learner=name,
                    shots=count,
                    dim=split.train.shape[1],
                    voice=voice,
                    known=self.known,
                    people=len(tested),
                    orderings=[_voice_draw(*pair) for pair in zip(draws, scored, strict=True)],
                    **_numbers(scored),
                )
            )
        return results

    def _draws(self, people: "People", voice: str, shots: int) -> list[Draw]:
        self.check_known(len(people.names))
        draw = people.own if voice == "own" else people.others
        return [draw(self.known, shots, seed) for seed in range(self.draws)]


class People:
    """Who says what in a list of clips: draws the clips to learn and to test."""

    def __init__(self, words: Sequence[str], speakers: Sequence[str | None]):
        # Words and people by their indices, and how many takes each person has of each word.
        self.names, self.words = np.unique(np.array(words), return_inverse=True)
        self.everyone, self.speakers = np.unique(np.array(speakers), return_inverse=True)
        self.takes = np.zeros((len(self.everyone), len(self.names)), dtype=np.int64)
        np.add.at(self.takes, (self.speakers, self.words), 1)

    def own(self, known: int, shots: int, seed: int) -> Draw:
        """Learn and test one person; the seeds go through all who have enough takes."""
        enough = self.takes > shots
        # One more word, to test the person on a word that was not taught.
        n_words = (self.takes > 0).sum(axis=1)
        fit = np.flatnonzero((enough.sum(axis=1) >= known) & (n_words > known))
        if len(fit) < MIN_PEOPLE:
            raise InputError(
                f"own voices with --shots {shots} --known {known} need at least {MIN_PEOPLE} "
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
        """Learn takes of some people and test other people."""
        often = np.flatnonzero(self.takes.sum(axis=0) > shots)
        if len(often) < known:
            raise InputError(
                f"others' voices with --shots {shots} --known {known} need {known} words of more "
                f"than {shots} clips with known speakers; {len(often)} of {len(self.names)} words "
                "here have them"
            )
        rng = np.random.default_rng(seed)
        words = rng.permutation(often)[:known]
        # The first people of one order teach all words, so many are left to test.
        place = rng.permutation(len(self.everyone))
        taught = np.concatenate([self._one_each(word, place, rng)[:shots] for word in words])
        new, chosen = ~np.isin(self.speakers, self.speakers[taught]), np.isin(self.words, words)
        if not (new & chosen).any():
            raise InputError(
                f"others' voices with --shots {shots} --known {known} leave nobody to test: "
                f"{len(np.unique(self.speakers[taught]))} of {len(self.everyone)} speakers "
                f"teach, and the rest have no clip of {', '.join(self.names[words])}"
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
        """Order a word's clips: the first of every person, by their `place`, then the second."""
        clips = rng.permutation(np.flatnonzero(self.words == word))
        seen: Counter[int] = Counter()
        turns = []
        for clip in clips:
            person = self.speakers[clip]
            turns.append((seen[person], place[person]))
            seen[person] += 1
        return clips[sorted(range(len(clips)), key=turns.__getitem__)]

    def _impostors(self, fit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw from the clips of other words by other people, (n,) bool."""
        if not fit.any():
            raise InputError("only the people who teach say words that are not taught")
        return rng.permutation(np.flatnonzero(fit))[:IMPOSTORS]


def _score(split: Split, learner_name: str, draw: Draw) -> Scored:
    """Learn the taught clips of a draw, and score the others by their best word."""
    learner = registry.build("learners", learner_name)
    learner.learn_many(split.train[draw.taught], [split.train_words[row] for row in draw.taught])
    tested = (draw.known, draw.owner, draw.others)
    best = split.scores(learner, np.concatenate(tested)).max(axis=1)
    return Scored(*np.split(best, np.cumsum([len(rows) for rows in tested])[:-1]))


def _rates(draws: Sequence[Scored]) -> dict[str, float]:
    """FRR, and acceptance of the owner's other words, at one threshold for all draws."""
    known, owner, others = (np.concatenate(scores) for scores in zip(*draws, strict=True))
    found = {}
    for percent in FALSE_ACCEPTS:
        threshold = metrics.threshold_at(others, percent)
        found[f"frr_{percent}"] = 100 - metrics.accuracy(known > threshold)
        if len(owner):
            found[f"owner_{percent}"] = metrics.accuracy(owner > threshold)
    return found


def _voice_draw(draw: Draw, scored: Scored) -> VoiceDraw:
    rates: dict[str, Any] = {f"owner_{percent}": None for percent in FALSE_ACCEPTS}
    return VoiceDraw(
        seed=draw.seed,
        person=draw.person,
        words=draw.words,
        clips=len(draw.known),
        **rates | _rates([scored]),
    )


def _numbers(draws: Sequence[Scored]) -> dict[str, Any]:
    """Give the numbers of a `VoiceResult`."""
    rng = np.random.default_rng(0)
    again = [
        _rates([draws[index] for index in rng.integers(len(draws), size=len(draws))])
        for _ in range(N_BOOTSTRAP if len(draws) > 1 else 0)
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
