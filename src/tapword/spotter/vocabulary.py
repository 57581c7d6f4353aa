"""The words of a model: one immutable record each, and the sensitivity of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tapword.spotter.lengths import ONE_SECOND, Length
from tapword.spotter.thresholds import SENSITIVITY


@dataclass(frozen=True)
class Word:
    """What a model knows of a word, apart from the learner's statistic.

    Attributes
    ----------
    count, negatives
        Samples taught as the word, and as not the word.
    length
        How long its samples are.
    sensitivity
        Its own sensitivity from 0 to 1; None where it has that of all words.
    """

    count: int = 0
    negatives: int = 0
    length: Length = ONE_SECOND
    sensitivity: float | None = None


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
    def of_samples(cls, words: Sequence[str], seconds: np.ndarray) -> "Vocabulary":
        """Make the records of samples by their words and lengths (n,) in seconds."""
        rows: dict[str, list[int]] = {}
        for row, word in enumerate(words):
            rows.setdefault(word, []).append(row)
        return cls({w: Word(len(own), length=Length.of(seconds[own])) for w, own in rows.items()})

    @classmethod
    def of(
        cls,
        counts: Mapping[str, int],
        negatives: Mapping[str, int],
        lengths: Mapping[str, Sequence[float]],
        sensitivities: Mapping[str, float],
        sensitivity: float,
    ) -> "Vocabulary":
        """Make records from tables by word, as in a model file."""
        words = {
            word: Word(count, negatives.get(word, 0), Length(*map(float, lengths.get(word, ()))))
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
                length=one.length.joined(one.count, more.length, more.count),
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

    def unlearned(self, word: str, seconds: np.ndarray) -> "Vocabulary":
        """Take out one sample of this length (1,); the last one takes the word along."""
        one = self.words[word]
        if one.count == 1:
            return self.without(word)
        length = one.length.parted(one.count, Length.of(seconds), 1)
        return self._with(word, replace(one, count=one.count - 1, length=length))

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
