"""The words of a model: how they are spelled, how long they last, and one record each."""

import math
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tapword.audio.align import MARGIN_S
from tapword.errors import InputError
from tapword.voices.base import SpokenBy

# Longest new word in UTF-8, which the C core has space for.
MAX_WORD_BYTES = 64
# Longest word of a model file: version 0.1 allowed this much.
MAX_CHARACTERS = 200
# The default: the middle of a scale from 0 to 1, as Picovoice's.
SENSITIVITY = 0.5

# Shorter sound is encoded as the second around its middle; longer sound as a whole, with a margin
# on either side (docs/phrases.md has the trials).
CLIP_S = 1.0
# The longest word or phrase, and the clip that is cut around it.
MAX_S = 3.0
LONGEST_S = MAX_S + 2 * MARGIN_S

# A word is a phrase if its samples are longer than this on average (mean logarithm): phrases last
# 1.2 s and more, and noise may lengthen one or two samples of a short word.
PHRASE = math.log(1.15)
# Prior of the standard deviation of log lengths, and the number of samples it counts for: a choice,
# about what 12 phrases said by 60 people have between people.
LENGTH_SIGMA, LENGTH_PRIOR = 0.2, 3
# Smaller values are rounding errors.
_ROUNDING = 1e-9
# A phrase is searched this many standard deviations around its mean length.
N_SIGMAS = 2.0
# At least by this factor: lengths of segments are up to 15% apart.
MIN_RATIO = 1.08


def spelling(text: str) -> str:
    """One spelling for names that look the same: keyboards, disks and lists differ in Unicode form.

    Examples
    --------
    >>> spelling("cafe" + chr(0x301)) == "caf" + chr(0xE9)
    True
    """
    return unicodedata.normalize("NFC", text).strip()


def clean_word(word: str) -> str:
    """Give a word its one spelling; refuse what cannot be shown.

    Examples
    --------
    >>> clean_word(" lamp ")
    'lamp'
    """
    if not isinstance(word, str):
        raise InputError(f"a word must be a string, got {word!r}")
    cleaned = spelling(word)
    if not cleaned or len(cleaned) > MAX_CHARACTERS or not cleaned.isprintable():
        raise InputError(
            f"a word must be 1 to {MAX_CHARACTERS} printable characters, "
            f"got {word[:MAX_WORD_BYTES]!r}",
            code="bad_word",
        )
    return cleaned


def clean_new_word(word: str, known: Container[str] = ()) -> str:
    """Clean a word, and refuse it if it is too long, unless it is known already.

    Examples
    --------
    >>> clean_new_word("x" * 65)
    Traceback (most recent call last):
    tapword.errors.InputError: a word must be at most 64 bytes of UTF-8, got 65 bytes
    """
    cleaned = clean_word(word)
    size = len(cleaned.encode())
    if size > MAX_WORD_BYTES and cleaned not in known:
        raise InputError(
            f"a word must be at most {MAX_WORD_BYTES} bytes of UTF-8, got {size} bytes",
            code="word_too_long",
            params={"max_bytes": MAX_WORD_BYTES},
        )
    return cleaned


class Length(NamedTuple):
    """How long the samples of a word are: a statistic that does not depend on their order.

    Attributes
    ----------
    mean
        Of the logarithms of their lengths in seconds.
    squares
        Sum of squared deviations from the mean.

    Examples
    --------
    >>> length = Length.of(np.array([1.5, 2.0]))
    >>> length.is_phrase, round(length.seconds, 3)
    (True, 1.732)
    """

    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, seconds: np.ndarray) -> "Length":
        """Statistic of lengths (n,), n at least 1."""
        logs = np.log(seconds.astype(np.float64))
        return cls(float(logs.mean()), float(np.square(logs - logs.mean()).sum()))

    def joined(self, n: int, other: "Length", m: int) -> "Length":
        """Statistic of these n samples and another's m, m at least 1."""
        difference, weight = other.mean - self.mean, m / (n + m)
        squares = self.squares + other.squares + n * weight * difference**2
        return Length(self.mean + difference * weight, squares)

    def parted(self, n: int, other: "Length", m: int) -> "Length":
        """Statistic of these n samples without m of them: the inverse of `joined`."""
        if m >= n:
            return Length()
        mean = (n * self.mean - m * other.mean) / (n - m)
        squares = self.squares - other.squares - (n - m) * m / n * (other.mean - mean) ** 2
        left = Length(max(mean, 0.0), max(squares, 0.0))
        return left if max(left) > _ROUNDING else Length()

    @property
    def seconds(self) -> float:
        """Typical length of a sample (geometric mean)."""
        return math.exp(self.mean)

    @property
    def is_phrase(self) -> bool:
        """Whether the word is longer than a second on average."""
        return self.mean > PHRASE

    def span(self, n: int) -> tuple[float, float]:
        """Shortest and longest window that a phrase of n samples is searched in, in seconds."""
        sigma = math.sqrt((self.squares + LENGTH_PRIOR * LENGTH_SIGMA**2) / (n + LENGTH_PRIOR))
        ratio = max(math.exp(N_SIGMAS * sigma), MIN_RATIO)
        return max(self.seconds / ratio, CLIP_S), min(self.seconds * ratio, LONGEST_S)


# All samples of one second.
ONE_SECOND = Length()


@dataclass(frozen=True)
class Word:
    """What a model knows of a word, apart from the learner's statistic.

    Attributes
    ----------
    count, negatives
        Samples taught as the word, and as not the word.
    synthetic
        Clips of the word that a voice spoke, taught from its text.
    voices
        Names of the voices that spoke them, sorted.
    length
        How long its samples are.
    sensitivity
        Its own sensitivity from 0 to 1; None where it has that of all words.
    """

    count: int = 0
    negatives: int = 0
    length: Length = ONE_SECOND
    sensitivity: float | None = None
    synthetic: int = 0
    voices: tuple[str, ...] = ()

    @property
    def clips(self) -> int:
        """Samples and synthetic clips, which its length is measured by."""
        return self.count + self.synthetic


@dataclass(frozen=True)
class Vocabulary:
    """The records of all words. Every change returns a new vocabulary.

    Attributes
    ----------
    words
        Word -> its record, in the order they were first taught.
    sensitivity
        Of all words that have none of their own.

    Examples
    --------
    >>> vocabulary = Vocabulary.of_samples(["lamp", "lamp"], np.array([1.0, 1.0]))
    >>> vocabulary.renamed("lamp", "light").counts
    {'light': 2}
    """

    words: Mapping[str, Word] = field(default_factory=dict)
    sensitivity: float = SENSITIVITY

    @classmethod
    def of_samples(
        cls, words: Sequence[str], seconds: np.ndarray, spoken_by: SpokenBy | None = None
    ) -> "Vocabulary":
        """Make the records of samples by their words and lengths (n,) in seconds.

        Of synthetic clips, if they were `spoken_by` a voice.
        """
        rows: dict[str, list[int]] = {}
        for row, word in enumerate(words):
            rows.setdefault(word, []).append(row)

        def record(own: list[int]) -> Word:
            length = Length.of(seconds[own])
            if spoken_by is None:
                return Word(len(own), length=length)
            return Word(synthetic=len(own), voices=(spoken_by.voice,), length=length)

        return cls({word: record(own) for word, own in rows.items()})

    @classmethod
    def of(
        cls,
        counts: Mapping[str, int],
        negatives: Mapping[str, int],
        lengths: Mapping[str, Sequence[float]],
        sensitivities: Mapping[str, float],
        sensitivity: float,
        synthetic: Mapping[str, int] | None = None,
        voices: Mapping[str, Sequence[str]] | None = None,
    ) -> "Vocabulary":
        """Make records from tables by word, as in a model file."""
        clips, named = synthetic or {}, voices or {}
        words = {
            word: Word(
                count,
                negatives.get(word, 0),
                Length(*map(float, lengths.get(word, ()))),
                synthetic=clips.get(word, 0),
                voices=tuple(named.get(word, ())),
            )
            for word, count in counts.items()
        }
        return cls(words).with_sensitivities(sensitivity, sensitivities)

    @property
    def counts(self) -> dict[str, int]:
        """Word -> samples taught."""
        return {word: one.count for word, one in self.words.items()}

    @property
    def negatives(self) -> dict[str, int]:
        """Word -> sounds taught as not this word, if there are any."""
        return {word: one.negatives for word, one in self.words.items() if one.negatives}

    @property
    def synthetic(self) -> dict[str, int]:
        """Word -> synthetic clips, if there are any."""
        return {word: one.synthetic for word, one in self.words.items() if one.synthetic}

    @property
    def voices(self) -> dict[str, list[str]]:
        """Word -> names of the voices that spoke its synthetic clips, if there are any."""
        return {word: list(one.voices) for word, one in self.words.items() if one.voices}

    @property
    def lengths(self) -> dict[str, Length]:
        """Word -> how long its samples are, where they are not all of one second."""
        return {word: one.length for word, one in self.words.items() if one.length != ONE_SECOND}

    @property
    def sensitivities(self) -> dict[str, float]:
        """Word -> its own sensitivity, where it has one."""
        found = ((word, one.sensitivity) for word, one in self.words.items())
        return {word: sensitivity for word, sensitivity in found if sensitivity is not None}

    def length_of(self, word: str) -> Length:
        """How long the samples of a word are."""
        return self.words.get(word, Word()).length

    def sensitivity_of(self, word: str) -> float:
        """How readily a word is recognised: its own sensitivity, or that of all words."""
        own = self.words.get(word, Word()).sensitivity
        return self.sensitivity if own is None else own

    def added(self, other: "Vocabulary") -> "Vocabulary":
        """Add the samples of another vocabulary; sensitivities stay."""
        words = dict(self.words)
        for word, more in other.words.items():
            one = words.get(word, Word())
            words[word] = replace(
                one,
                count=one.count + more.count,
                negatives=one.negatives + more.negatives,
                length=one.length.joined(one.clips, more.length, more.clips),
                synthetic=one.synthetic + more.synthetic,
                voices=tuple(sorted({*one.voices, *more.voices})),
            )
        return replace(self, words=words)

    def merged(self, other: "Vocabulary") -> "Vocabulary":
        """Add another vocabulary: of two sensitivities the lower one, of one that one."""
        own = self.sensitivities
        for word in other.words:
            wanted, current = other.sensitivity_of(word), self.sensitivity_of(word)
            if word in self.words:
                wanted = min(wanted, current)
            if wanted != current:
                own[word] = wanted
        return self.added(other).with_sensitivities(self.sensitivity, own)

    def unlearned(self, word: str, seconds: np.ndarray, synthetic: bool = False) -> "Vocabulary":
        """Take out one sample of this length (1,), or one synthetic clip.

        The last of both takes the word along.
        """
        one = self.words[word]
        if one.clips == 1:
            return self.without(word)
        length = one.length.parted(one.clips, Length.of(seconds), 1)
        if not synthetic:
            return self._with(word, replace(one, count=one.count - 1, length=length))
        voices = one.voices if one.synthetic > 1 else ()
        left = replace(one, synthetic=one.synthetic - 1, voices=voices, length=length)
        return self._with(word, left)

    def rejected(self, word: str, more: int = 1) -> "Vocabulary":
        """Count further negatives of a word; -1 takes one out."""
        one = self.words[word]
        return self._with(word, replace(one, negatives=one.negatives + more))

    def without(self, word: str) -> "Vocabulary":
        """Leave a word out."""
        return replace(self, words={w: one for w, one in self.words.items() if w != word})

    def only(self, word: str) -> "Vocabulary":
        """Leave all other words out; the word keeps its sensitivity wherever it is merged."""
        one = replace(self.words[word], sensitivity=self.sensitivity_of(word))
        return replace(self, words={word: one})

    def renamed(self, old: str, new: str) -> "Vocabulary":
        """Give a word another name."""
        renamed = {new if word == old else word: one for word, one in self.words.items()}
        return replace(self, words=renamed)

    def with_sensitivities(self, common: float, own: Mapping[str, float]) -> "Vocabulary":
        """Set the sensitivity of all words, and those of words that have their own."""
        words = {w: replace(one, sensitivity=own.get(w)) for w, one in self.words.items()}
        return Vocabulary(words, common)

    def _with(self, word: str, record: Word) -> "Vocabulary":
        return replace(self, words={**self.words, word: record})
