"""How long words last: what a clip's vector is of, and where in a stream a word is looked for."""

import math
from typing import NamedTuple

import numpy as np

from tapword.audio.align import MARGIN_S

# Sound that is shorter is heard as the second around its middle; longer sound as it is, with a
# margin on either side (docs/phrases.md has the trials).
CLIP_S = 1.0
# The longest sound that can be one word or phrase, and the clip that is made of it.
MAX_S = 3.0
LONGEST_S = MAX_S + 2 * MARGIN_S

# A word is a phrase if its samples are longer than this on average: a phrase's own are 1.2 s and
# more, and a short word may have one or two that noise made long.
PHRASE = math.log(1.15)
# Before there are samples to tell, lengths differ by so much (standard deviation of their
# logarithm), and this counts for so many samples: a choice, about what 12 phrases said by 60 people
# have between people.
SPREAD, PRIOR = 0.2, 3
# What is no more than this is left by rounding.
_NONE = 1e-9
# How many such deviations from the mean a phrase is looked for.
N_SIGMAS = 2.0
# The least factor of that: lengths of stretches in a stream are up to 15% apart.
MIN_RATIO = 1.08


class Length(NamedTuple):
    """How long the samples of a word are: a statistic that is exact in any order.

    Attributes
    ----------
    mean
        Of the logarithms of their lengths in seconds.
    squares
        Of these about their mean, summed.

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
        """Statistic of these n samples and another's m, where m is at least 1."""
        apart, share = other.mean - self.mean, m / (n + m)
        return Length(
            self.mean + apart * share, self.squares + other.squares + n * share * apart**2
        )

    def parted(self, n: int, other: "Length", m: int) -> "Length":
        """Statistic of these n samples without another's m of them: what `joined` undoes."""
        if m >= n:
            return Length()
        mean = (n * self.mean - m * other.mean) / (n - m)
        squares = self.squares - other.squares - (n - m) * m / n * (other.mean - mean) ** 2
        left = Length(max(mean, 0.0), max(squares, 0.0))
        return left if max(left) > _NONE else Length()

    @property
    def seconds(self) -> float:
        """How long a sample is, typically."""
        return math.exp(self.mean)

    @property
    def is_phrase(self) -> bool:
        """Whether the word is longer than a second on average."""
        return self.mean > PHRASE

    def span(self, n: int) -> tuple[float, float]:
        """Seconds between which a phrase is looked for, by its n samples."""
        sigma = math.sqrt((self.squares + PRIOR * SPREAD**2) / (n + PRIOR))
        ratio = max(math.exp(N_SIGMAS * sigma), MIN_RATIO)
        return max(self.seconds / ratio, CLIP_S), min(self.seconds * ratio, LONGEST_S)


# Of samples that are all of one second.
ONE_SECOND = Length()
