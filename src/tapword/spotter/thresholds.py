"""What counts as said: scores against thresholds, and how many false alarms a threshold allows."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.spotter.words import clean_word

# How many are acceptable in speech that holds none of the words, unless somebody says otherwise.
FALSE_ALARMS_PER_HOUR = 0.5

# A word's scores in running speech: between which shares of the highest its tail is placed.
PLACED = (0.005, 0.02)
# How far the tail reaches beyond its place: for one false alarm an hour, and more for e times
# fewer. Fitted by training/cohort.py, size small, to English words in phone calls of which the
# cohort held no window; docs/results/running_speech.md has how it does elsewhere. A whitening
# may bring others.
REACH = (0.191, 0.0282)
# A low score would have a rate without limit.
MOST_LOG_RATE = 20.0

# Of a word that nobody made hear more or less: the middle of a scale from 0 to 1, as Picovoice's.
SENSITIVITY = 0.5
# Either end of the scale allows so many times as many false alarms as the middle, or as few.
SENSITIVITY_REACH = 100.0


class Scores(NamedTuple):
    """What a clip scores, and what it scores as a negative of a word, where it has any."""

    words: dict[str, float]
    negatives: dict[str, float]

    def of(self, words: Sequence[str]) -> "Scores":
        """Scores of some of the words alone."""
        return Scores(
            {word: self.words[word] for word in words},
            {word: score for word, score in self.negatives.items() if word in words},
        )

    def not_rejected(self) -> dict[str, float]:
        """Scores of the words that the clip is not closer to a negative of."""
        return {
            word: score
            for word, score in self.words.items()
            if word not in self.negatives or score > self.negatives[word]
        }


def decide(scores: Scores, thresholds: Mapping[str, float]) -> str | None:
    """Word that counts as said: the best of those that reach their threshold.

    A word without a threshold is never said.

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


def nearly(scores: Scores, thresholds: Mapping[str, float], by: float) -> bool:
    """Whether a word's score is below its threshold by no more than this, or reaches it."""
    return decide(scores, {word: score - by for word, score in thresholds.items()}) is not None


def check_rate(false_alarms_per_hour: float) -> float:
    """Refuse a rate of false alarms that no threshold gives."""
    if not 0 < false_alarms_per_hour < math.inf:
        raise InputError(f"false_alarms_per_hour must be above 0, got {false_alarms_per_hour!r}")
    return false_alarms_per_hour


def check_sensitivity(sensitivity: float) -> float:
    """Refuse a sensitivity that is not on the scale."""
    if not 0 <= sensitivity <= 1:
        raise InputError(
            f"a sensitivity is a number from 0 to 1, {SENSITIVITY} unless changed; "
            f"got {sensitivity!r}"
        )
    return float(sensitivity)


def rate_factor(sensitivity: float) -> float:
    """How many times as many false alarms a sensitivity allows as the middle of the scale.

    Examples
    --------
    >>> [round(rate_factor(sensitivity), 2) for sensitivity in (0, 0.4, 0.5, 0.6, 1)]
    [0.01, 0.4, 1.0, 2.51, 100.0]
    """
    return SENSITIVITY_REACH ** (2 * check_sensitivity(sensitivity) - 1)


def sensitivity_for(factor: float) -> float:
    """Sensitivity that allows so many times as many false alarms, as near as the scale comes to it.

    Examples
    --------
    >>> [sensitivity_for(factor) for factor in (0, 0.01, 1, 10, 1e9)]
    [0.0, 0.0, 0.5, 0.75, 1.0]
    """
    if factor <= 1 / SENSITIVITY_REACH:
        return 0.0
    return min((1 + math.log(factor) / math.log(SENSITIVITY_REACH)) / 2, 1.0)


def parse_sensitivity(text: str) -> tuple[str | None, float]:
    """Read VALUE or WORD=VALUE, as options give it: the word, None for all, and its sensitivity.

    Examples
    --------
    >>> parse_sensitivity("0.6"), parse_sensitivity("lamp=0.6")
    ((None, 0.6), ('lamp', 0.6))
    """
    word, sign, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1 or (sign and not word.strip()):
        raise InputError(
            "--sensitivity must be a number from 0 to 1, or WORD=NUMBER, as in lamp=0.6; "
            f"got {text!r}"
        )
    return clean_word(word) if sign else None, value


def parse_threshold(text: str) -> tuple[str, float]:
    """Read WORD=SCORE, as options give it: the word and the score from which it counts as said.

    Examples
    --------
    >>> parse_threshold(" lamp=0.6")
    ('lamp', 0.6)
    >>> parse_threshold("a=b=0.6")
    ('a=b', 0.6)
    """
    word, sign, score = text.rpartition("=")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not sign or not word.strip() or not math.isfinite(value):
        raise InputError(f"--threshold must be WORD=SCORE, as in lamp=0.6; got {text!r}")
    return clean_word(word), value


def placed(n: int) -> tuple[int, int]:
    """Which of n scores, the highest first, a tail is placed by: from the first to the second.

    Examples
    --------
    >>> placed(1000), placed(50)
    ((5, 20), (0, 1))
    """
    highest, lowest = (round(share * n) for share in PLACED)
    return highest, max(lowest, highest + 1)


class Tail(NamedTuple):
    """How high a word's scores reach in running speech, in which nobody says it.

    Its place does not hang on the highest half percent of the scores, so a word that somebody does
    say now and then has nearly the same tail.

    Attributes
    ----------
    place
        Mean of the scores that between 0.5 and 2% of the sounds reach.
    reach
        How far beyond its place one false alarm an hour lies, and e times fewer after it. The same
        for all words: how widely a word's scores scatter does not tell (docs/choices.md).
    """

    place: float
    reach: tuple[float, float] = REACH

    @classmethod
    def of(cls, scores: np.ndarray, reach: tuple[float, float] = REACH) -> "Tail":
        """Tail of the scores (n,) that sounds have."""
        ranked = np.sort(scores)[::-1]
        first, end = placed(len(ranked))
        return cls(float(ranked[first:end].mean()), reach)

    def threshold(self, false_alarms_per_hour: float) -> float:
        """Score that is reached so often in an hour of running speech."""
        one_per_hour, fewer = self.reach
        return self.place + one_per_hour - fewer * math.log(false_alarms_per_hour)

    def false_alarms_per_hour(self, threshold: float) -> float:
        """How often a score is reached: what `threshold` undoes."""
        one_per_hour, fewer = self.reach
        rarity = (threshold - self.place - one_per_hour) / fewer
        return math.exp(min(-rarity, MOST_LOG_RATE))
