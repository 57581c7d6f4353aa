"""Lengths of words: what a clip's vector covers, and which windows of a stream are searched."""

import math
from typing import NamedTuple

import numpy as np

from tapword.audio.align import MARGIN_S

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
SIGMA, PRIOR = 0.2, 3
# Smaller values are rounding errors.
_NONE = 1e-9
# A phrase is searched this many standard deviations around its mean length.
N_SIGMAS = 2.0
# At least by this factor: lengths of segments are up to 15% apart.
MIN_RATIO = 1.08


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
        return left if max(left) > _NONE else Length()

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
        sigma = math.sqrt((self.squares + PRIOR * SIGMA**2) / (n + PRIOR))
        ratio = max(math.exp(N_SIGMAS * sigma), MIN_RATIO)
        return max(self.seconds / ratio, CLIP_S), min(self.seconds * ratio, LONGEST_S)


# All samples of one second.
ONE_SECOND = Length()
