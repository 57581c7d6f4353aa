"""Which word counts as said: thresholds, and the false alarms they allow."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.spotter.vocabulary import SENSITIVITY, clean_word
from tapword.support.checks import in_range
from tapword.support.text import use_a_dot

# Acceptable in speech that contains none of the words, by default.
FALSE_ALARMS_PER_HOUR = 0.5

# Bounds the rate that belongs to a low score.
MAX_LOG_RATE = 20.0

# confidence = 100 / (1 + exp((threshold - score) / width)). The width is this many slopes of the
# threshold's line. training/constants.py prints what a logistic regression of right words against
# the nearest others finds.
CONFIDENCE_SLOPES = 2.0
# The highest confidence of a word that does not count as said.
UNSURE = 49
# Bounds the exponential of a confidence; far beyond what rounds to 0.
MAX_EXPONENT = 50.0

# Sensitivity 1 allows this many times the false alarms of the middle, sensitivity 0 the inverse.
MAX_RATE_RATIO = 100.0


class Line(NamedTuple):
    """How the threshold of a rate of false alarms follows from the tail of a word's scores.

    threshold = share * tail_mean + offset - slope * ln(rate), with rate in false alarms per hour.
    docs/listening.md says how lines are fitted.

    Attributes
    ----------
    first, last
        Quantiles, from the highest score down, between which the tail is: `tail_mean` is its mean.
    """

    offset: float
    slope: float
    share: float = 1.0
    first: float = 0.005
    last: float = 0.02


# Of whitenings that bring no line of their own, and of several backbones. It counts the windows
# that a detector scores first, so a detector has more false alarms.
LINE = Line(0.191, 0.0282)


class Scores(NamedTuple):
    """Scores of a clip for each word, and for the negatives of those words that have any.

    `width`: of the scale of confidences, in scores; None where it is unknown how scores spread.
    """

    words: dict[str, float]
    negatives: dict[str, float]
    width: float | None = None

    def of(self, words: Sequence[str]) -> "Scores":
        """Scores of some of the words."""
        return Scores(
            {word: self.words[word] for word in words},
            {word: score for word, score in self.negatives.items() if word in words},
            self.width,
        )

    def not_rejected(self) -> dict[str, float]:
        """Scores of the words that the clip is not closer to a negative of."""
        return {
            word: score
            for word, score in self.words.items()
            if word not in self.negatives or score > self.negatives[word]
        }


def decide(scores: Scores, thresholds: Mapping[str, float]) -> str | None:
    """Return the best word of those that reach their threshold.

    A word without a threshold never counts.

    Examples
    --------
    >>> decide(Scores({"lamp": 0.6, "music": 0.7}, {"music": 0.8}), {"lamp": 0.5, "music": 0.5})
    'lamp'
    """
    found = {
        word: score
        for word, score in scores.not_rejected().items()
        if word in thresholds and score >= thresholds[word]
    }
    return max(found, key=lambda word: found[word], default=None)


def confidence(score: float, threshold: float, width: float) -> int:
    """How sure a score makes us, from 0 to 100: 50 from the threshold on, never below it.

    Examples
    --------
    >>> [confidence(score, 0.5, 0.05) for score in (0.3, 0.4, 0.4999, 0.5, 0.6, 0.8)]
    [1, 11, 49, 50, 88, 99]
    """
    # Rounded down, so that 50 is reached at the threshold and not just before it.
    return int(100 / (1 + math.exp(min((threshold - score) / width, MAX_EXPONENT))))


def confidences(scores: Scores, thresholds: Mapping[str, float]) -> dict[str, int]:
    """Word -> how sure its score makes us, from 0 to 100, of the words with a threshold.

    50 is where a word counts as said: at its threshold, or above its negatives. Empty where it is
    unknown how scores spread.

    Examples
    --------
    >>> scores = Scores({"lamp": 0.6, "music": 0.7}, {"music": 0.8}, width=0.05)
    >>> confidences(scores, {"lamp": 0.5, "music": 0.5})
    {'lamp': 88, 'music': 11}
    """
    if scores.width is None:
        return {}
    not_rejected, result = scores.not_rejected(), {}
    for word, score in scores.words.items():
        if word in thresholds:
            needed = max(thresholds[word], scores.negatives.get(word, -math.inf))
            found = confidence(score, needed, scores.width)
            # However small the difference, a word that does not count stays below 50.
            said = word in not_rejected and score >= thresholds[word]
            result[word] = found if said else min(found, UNSURE)
    return result


def is_close(scores: Scores, thresholds: Mapping[str, float], margin: float) -> bool:
    """Whether a word's score is at most `margin` below its threshold."""
    return decide(scores, {word: score - margin for word, score in thresholds.items()}) is not None


def check_rate(false_alarms_per_hour: float) -> float:
    """Refuse a rate that is not above 0."""
    if not in_range(false_alarms_per_hour, 0, sys.float_info.max) or not false_alarms_per_hour:
        raise InputError(f"false_alarms_per_hour must be above 0, got {false_alarms_per_hour!r}")
    return false_alarms_per_hour


def check_sensitivity(sensitivity: float) -> float:
    """Refuse a sensitivity that is not from 0 to 1."""
    if not in_range(sensitivity, 0, 1):
        raise InputError(
            f"a sensitivity is a number from 0 to 1, {SENSITIVITY} unless changed; "
            f"got {sensitivity!r}"
        )
    return float(sensitivity)


def rate_factor(sensitivity: float) -> float:
    """Ratio of the false alarms that a sensitivity allows to those of the middle of the scale.

    Examples
    --------
    >>> [round(rate_factor(sensitivity), 2) for sensitivity in (0, 0.4, 0.5, 0.6, 1)]
    [0.01, 0.4, 1.0, 2.51, 100.0]
    """
    return MAX_RATE_RATIO ** (2 * check_sensitivity(sensitivity) - 1)


def sensitivity_for(factor: float) -> float:
    """Sensitivity that allows this ratio of false alarms, as far as the scale goes.

    Examples
    --------
    >>> [sensitivity_for(factor) for factor in (0, 0.01, 1, 10, 1e9)]
    [0.0, 0.0, 0.5, 0.75, 1.0]
    """
    if factor <= 1 / MAX_RATE_RATIO:
        return 0.0
    return min((1 + math.log(factor) / math.log(MAX_RATE_RATIO)) / 2, 1.0)


def parse_sensitivity(text: str) -> tuple[str | None, float]:
    """Read VALUE or WORD=VALUE, as options give it: the word, None for all, and its sensitivity.

    Examples
    --------
    >>> parse_sensitivity("0.6"), parse_sensitivity("lamp=0.6")
    ((None, 0.6), ('lamp', 0.6))
    """
    word, value = _parse(text)
    if not 0 <= value <= 1:
        raise InputError(
            "--sensitivity must be a number from 0 to 1, or WORD=NUMBER, as in lamp=0.6; "
            f"got {text!r}{use_a_dot(text.rpartition('=')[2])}"
        )
    return None if word is None else clean_word(word), value


def parse_threshold(text: str) -> tuple[str, float]:
    """Read WORD=SCORE, as options give it: the word and the score from which it counts as said.

    Examples
    --------
    >>> parse_threshold(" lamp=0.6")
    ('lamp', 0.6)
    >>> parse_threshold("a=b=0.6")
    ('a=b', 0.6)
    """
    word, value = _parse(text)
    if word is None or not math.isfinite(value):
        hint = use_a_dot(text.rpartition("=")[2])
        raise InputError(f"--threshold must be WORD=SCORE, as in lamp=0.6; got {text!r}{hint}")
    return clean_word(word), value


def _parse(text: str) -> tuple[str | None, float]:
    """Split WORD=NUMBER or NUMBER; the number is NaN if there is none, or no word before `=`."""
    word, sign, number = text.rpartition("=")
    try:
        value = float(number) if word.strip() or not sign else math.nan
    except ValueError:
        value = math.nan
    return word if sign else None, value


def tail_band(n: int, line: Line = LINE) -> tuple[int, int]:
    """Ranks among n scores, the highest first, whose mean is the `tail_mean`: first and end.

    Examples
    --------
    >>> tail_band(1000), tail_band(50)
    ((5, 20), (0, 1))
    """
    first, end = round(line.first * n), round(line.last * n)
    return first, max(end, first + 1)


class Tail(NamedTuple):
    """How high a word's scores are in running speech that does not contain it.

    The highest are left out, so a word that is said now and then changes little.

    Attributes
    ----------
    tail_mean
        Mean of the scores between the line's quantiles.
    line
        The same for all words: how widely a word's scores scatter does not help (docs/choices.md).
    """

    tail_mean: float
    line: Line = LINE

    @classmethod
    def of(cls, scores: np.ndarray, line: Line = LINE) -> "Tail":
        """Tail of the scores (n,) of windows."""
        ranked = np.sort(scores)[::-1]
        first, end = tail_band(len(ranked), line)
        return cls(float(ranked[first:end].mean()), line)

    def threshold(self, false_alarms_per_hour: float) -> float:
        """Score that gives this rate in running speech."""
        line = self.line
        above = line.offset - line.slope * math.log(false_alarms_per_hour)
        return line.share * self.tail_mean + above

    def false_alarms_per_hour(self, threshold: float) -> float:
        """Rate that a threshold gives: the inverse of `threshold`."""
        log_rate = (self.threshold(1.0) - threshold) / self.line.slope
        return math.exp(min(log_rate, MAX_LOG_RATE))
