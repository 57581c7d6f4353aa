"""Spotter = backbone + pooling + learner: teach words from clips, recognise them, reject others."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapword import audio as audio_room
from tapword import rejection, sizes
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.front import Front, make
from tapword.learners.base import Learner
from tapword.learners.cosine import Cosine
from tapword.learners.statistics_learner import LinearLearner
from tapword.poolings.base import Pooling
from tapword.priors.prior import Prior
from tapword.saved import Saved
from tapword.vectors import Hearing, prepare

Audio = str | os.PathLike[str] | np.ndarray

# Name of what was taken for a word and rejected: this sign before the word.
NOT = "¬"
# Learner that is not named where other parts are.
LEARNER = "ridge"


class Prediction(NamedTuple):
    """What a spotter heard.

    Attributes
    ----------
    word
        The best word; None where nothing is taught, or where it may be and is none of them.
    score
        Its score on the learner's own scale; None where nothing is taught.
    probabilities
        Word -> share, over all taught words, best first.
    """

    word: str | None
    score: float | None
    probabilities: dict[str, float]


class Spotter(Saved):
    """Teach words from clips, one at a time; recognise them.

    Parameters
    ----------
    backbone
        Name with arguments (`"speech_embedding:layers=b64+emb"`), a `Backbone`, or a list of
        either, whose vectors are put side by side.
    pooling
        Name with arguments (`"tap:R=3"`), a `Pooling`, or a list with one for each backbone.
    learner
        Name with arguments or a `Learner`.
    size
        "small", "medium" or "large" instead of parts; a spotter without any argument is "small".
    align
        Centre each clip on its speech and listen to that second alone; otherwise a clip is taken
        as it is. None: as the size has it, or False.
    copies
        Teach each sample as the mean of itself and copies of it, said faster, slower and in noise:
        words are missed less in noise, and one sample is worth more. None: as the size has it, or
        False.
    prior
        "shipped": whiten vectors by how other words vary, as far as the package holds that for
        these backbones and poolings; "none"; or `Prior`s, among which one is for each backbone.
        None: shipped where the learner asks for it (`cosine:prior=shipped`), or none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spotter = Spotter(backbone="logmel", pooling="avg", learner="ncm")
    >>> low, high = (0.1 * np.sin(np.arange(16000) * pitch) for pitch in (0.1, 0.9))
    >>> spotter.learn(low, "low")
    >>> spotter.learn(high, "high")
    >>> spotter.predict(low + 0.001 * rng.standard_normal(16000)).word
    'low'
    """

    def __init__(
        self,
        backbone: str | Backbone | Sequence[str | Backbone] | None = None,
        pooling: str | Pooling | Sequence[str | Pooling] | None = None,
        learner: str | Learner | None = None,
        size: str | None = None,
        align: bool | None = None,
        copies: bool | None = None,
        prior: str | Sequence[Prior] | None = None,
    ):
        parts = (backbone, pooling, learner)
        if size is not None and parts != (None, None, None):
            raise InputError(f"give either size={size!r} or parts, not both")
        if parts == (None, None, None):
            chosen = sizes.size(size or sizes.DEFAULT)
            backbone, pooling, learner = chosen[:3]
            align = chosen.align if align is None else align
            copies = chosen.copies if copies is None else copies
        self.learner: Learner = make("learners", LEARNER if learner is None else learner, Learner)
        asked = getattr(self.learner, "prior", None) == "shipped"
        if prior is None:
            prior = "shipped" if asked else "none"
        if asked and prior == "none":
            raise InputError(f"learner {self.learner.spec} needs a prior, got prior='none'")
        self.front = Front(backbone, pooling, Hearing(bool(align), bool(copies)), prior)
        self.calibrated: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Spotter {self.front!r} -> {self.learner.spec}, {len(self.words)} words>"

    @property
    def backbones(self) -> list[Backbone]:
        """What turns audio into frames."""
        return self.front.backbones

    @property
    def poolings(self) -> list[Pooling]:
        """What turns each backbone's frames into a vector."""
        return self.front.poolings

    @property
    def align(self) -> bool:
        """Whether clips are centred on their speech."""
        return self.front.hearing.align

    @property
    def priors(self) -> list[Prior]:
        """What whitens each backbone's vector; none where vectors stay as they are."""
        return self.front.priors

    @property
    def words(self) -> dict[str, int]:
        """Word -> how many samples it was taught."""
        return {word: n for word, n in self.learner.words.items() if not word.startswith(NOT)}

    @property
    def rejected(self) -> dict[str, int]:
        """Word -> how many sounds were rejected that had been taken for it."""
        known = self.learner.words.items()
        return {word.removeprefix(NOT): n for word, n in known if word.startswith(NOT)}

    def learn(self, audio: Audio, word: str, sample_rate: int = audio_room.SAMPLE_RATE) -> None:
        """Learn one clip of a word, known or new; the clip is not kept.

        Parameters
        ----------
        audio
            A sound file, or samples of shape (n,): float in [-1, 1] or int16.
        word
            What is said in it.
        sample_rate
            Rate of `audio` where it is an array.
        """
        word = clean_word(word)
        self.learner.learn_one(self.vectors([audio], sample_rate, learning=True)[0], word)

    def learn_many(
        self,
        audios: Sequence[Audio],
        words: Sequence[str],
        sample_rate: int = audio_room.SAMPLE_RATE,
    ) -> None:
        """Learn many clips: equal to `learn` in order, faster; all of them or none."""
        if len(audios) != len(words):
            raise InputError(f"got {len(audios)} clips for {len(words)} words")
        if len(audios):
            self.learn_vectors(self.vectors(audios, sample_rate, learning=True), words)

    def learn_vectors(self, vectors: np.ndarray, words: Sequence[str]) -> None:
        """Learn vectors (n, D) that `vectors` gave."""
        self.learner.learn_many(vectors, [clean_word(word) for word in words])

    def predict(
        self,
        audio: Audio,
        sample_rate: int = audio_room.SAMPLE_RATE,
        reject: bool | Mapping[str, float] = False,
    ) -> Prediction:
        """Say which taught word a clip is.

        Parameters
        ----------
        audio, sample_rate
            As for `learn`.
        reject
            Whether it may be none of them: then `word` is None for noise, and where no word's score
            reaches its threshold, by `thresholds` or as given. `score` is the best word's all the
            same.
        """
        return self.predict_many([audio], sample_rate, reject)[0]

    def predict_many(
        self,
        audios: Sequence[Audio],
        sample_rate: int = audio_room.SAMPLE_RATE,
        reject: bool | Mapping[str, float] = False,
    ) -> list[Prediction]:
        """Predictions of many clips, equal to `predict` one by one."""
        if not len(audios):
            return []
        return self.predict_vectors(self.vectors(audios, sample_rate), reject)

    def predict_vectors(
        self, vectors: np.ndarray, reject: bool | Mapping[str, float] = False
    ) -> list[Prediction]:
        """Predictions of vectors (n, D) that `vectors` gave."""
        scores = self.learner.scores(vectors)
        if not self.words:
            return [Prediction(None, None, {})] * len(scores)
        limits = self.thresholds() if reject is True else dict(reject or {})
        names = list(self.learner.words)
        columns = [index for index, name in enumerate(names) if not name.startswith(NOT)]
        shares = self.learner.probabilities(scores[:, columns])
        result = []
        noise = self.front.is_noise(vectors) if reject is not False else np.zeros(len(scores), bool)
        for row, share, no_word in zip(scores, shares, noise, strict=True):
            order = sorted(range(len(columns)), key=lambda i: -row[columns[i]])
            ranked = {names[columns[i]]: float(share[i]) for i in order}
            score = float(row[columns[order[0]]])
            word: str | None = next(iter(ranked))
            if reject is not False:
                by_word = dict(zip(names, map(float, row), strict=True))
                word = None if no_word else self.decide(by_word, limits)
            result.append(Prediction(word, score, ranked))
        return result

    # What is none of the words.

    def thresholds(self, false_alarms_per_hour: float = 0.5) -> dict[str, float]:
        """Score from which each word counts as said.

        Parameters
        ----------
        false_alarms_per_hour
            How many are acceptable, of all words together, in speech that holds none of them.
        """
        if not 0 < false_alarms_per_hour < np.inf:
            raise InputError(
                f"false_alarms_per_hour must be above 0, got {false_alarms_per_hour!r}"
            )
        words = self.words
        if not words:
            return {}
        limit = None
        # How other words score was measured for this learner alone.
        if isinstance(self.learner, Cosine) and self.learner.prior == "shipped":
            hashes = [prior.sha256 for prior in self.priors]
            limit = rejection.threshold(hashes, false_alarms_per_hour / len(words))
        if limit is None:
            raise InputError(
                "how sounds score that are no word is not known for these parts; the sizes know "
                "it, or give thresholds"
            )
        return {word: max(limit, self.calibrated.get(word, limit)) for word in words}

    def decide(self, scores: Mapping[str, float], thresholds: Mapping[str, float]) -> str | None:
        """Best word by its scores, of `learner.words`; None where none reaches its threshold.

        A sound that lies closer to what was rejected as a word than to the word is not that word.
        """
        said = [
            word
            for word, score in scores.items()
            if not word.startswith(NOT)
            and score >= thresholds.get(word, -np.inf)
            and score > scores.get(NOT + word, -np.inf)
        ]
        return max(said, key=lambda word: scores[word], default=None)

    def score_window(self, clip: np.ndarray, thresholds: Mapping[str, float]) -> dict[str, float]:
        """Scores of `learner.words` for a clip (n,) that is aligned already.

        Where there are several backbones, the first proposes: if no word would reach its threshold
        even with most of what the others could add, they are not asked, and the first one's scores
        stand for all. Noise alone has no scores.
        """
        names = list(self.learner.words)
        scores = None
        if len(self.backbones) > 1 and self.priors and isinstance(self.learner, LinearLearner):
            limits = [
                np.inf if name.startswith(NOT) else thresholds.get(name, -np.inf) for name in names
            ]
            scores = self.front.propose(clip, *self.learner.linear(), limits)
        if scores is None:
            X = self.front.pool([clip])
            if self.front.is_noise(X)[0]:
                return {}
            scores = self.learner.scores(X)[0]
        elif np.isneginf(scores).all():
            return {}
        return dict(zip(names, map(float, scores), strict=True))

    def reject(self, audio: Audio, sample_rate: int = audio_room.SAMPLE_RATE) -> str | None:
        """Learn that a sound is none of the words; give the word it was taken for, or nearest to.

        What is learned is how the sounds vary that are taken for a word, as statistics like a
        word's own; the clip is not kept.
        """
        if not self.words:
            return None
        audio = audio_room.load(audio, sample_rate)
        [scores] = self.learner.scores(self.vectors([audio]))
        by_word = dict(zip(self.learner.words, map(float, scores), strict=True))
        # What it is taken for now: a word it was rejected as before may be nearer still.
        word = self.decide(by_word, {}) or max(self.words, key=lambda name: by_word[name])
        self.learner.learn_one(self.vectors([audio], learning=True)[0], f"{NOT}{word}")
        return word

    def vectors(
        self,
        audios: Sequence[Audio],
        sample_rate: int = audio_room.SAMPLE_RATE,
        learning: bool = False,
    ) -> np.ndarray:
        """Pool clips into vectors (n, D): every block of every backbone, side by side."""
        clips = [prepare(audio_room.load(audio, sample_rate), self.align) for audio in audios]
        return self.front.pool(clips, learning)

    def forget(self, word: str) -> None:
        """Remove a word, and what was rejected as it."""
        word = clean_word(word)
        self.learner.forget(word)
        self.calibrated.pop(word, None)
        if NOT + word in self.learner.words:
            self.learner.forget(NOT + word)

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        old, new = clean_word(old), clean_word(new)
        self.learner.rename(old, new)
        if old in self.calibrated:
            self.calibrated[new] = self.calibrated.pop(old)
        if old != new and NOT + old in self.learner.words:
            self.learner.rename(NOT + old, NOT + new)

    def merge(self, other: "Spotter") -> None:
        """Add what another spotter of the same parts was taught."""
        self.require_same_parts(other)
        self.learner.merge(other.learner)
        for word, limit in other.calibrated.items():
            self.calibrated[word] = max(limit, self.calibrated.get(word, limit))


def load(path: str | os.PathLike[str]) -> Spotter:
    """Read a model file: short for `Spotter.load`."""
    return Spotter.load(path)


def clean_word(word: str) -> str:
    """One spelling for words that look the same; refuse what cannot be shown.

    Examples
    --------
    >>> clean_word(" lamp ")
    'lamp'
    """
    if not isinstance(word, str):
        raise InputError(f"a word must be a string, got {word!r}")
    cleaned = unicodedata.normalize("NFC", word).strip()
    if not cleaned or len(cleaned) > 200 or not cleaned.isprintable():
        raise InputError(f"a word must be 1 to 200 printable characters, got {word[:220]!r}")
    if cleaned.startswith(NOT):
        raise InputError(f"a word cannot begin with {NOT}, which marks rejected sounds: {word!r}")
    return cleaned
