"""What counts as said: scores against thresholds, and how many false alarms a threshold allows."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.spotter.words import clean_word

# How many are acceptable in speech that holds none of the words, unless somebody says otherwise.
FALSE_ALARMS_PER_HOUR = 0.5

# How many sounds an hour of speech are as easily taken for a word as a word spoken alone. In 20
# minutes of people who order coffee there are as many alarms as 64 of them an hour would give, at
# the threshold for 0.5 an hour; in synthetic sentences 174, at a threshold of 0.55
# (training/alarm_rate.py), most of them by a few short words such as go and off.
SOUNDS_PER_HOUR = 100.0

# Of a word that nobody made hear more or less: the middle of a scale from 0 to 1, as Picovoice's.
SENSITIVITY = 0.5
# Either end of the scale allows so many times as many false alarms as the middle, or as few.
SENSITIVITY_REACH = 100.0


class Scores(NamedTuple):
    """What a clip scores, and what it scores as a negative of a word, where it has any."""

    words: dict[str, float]
    negatives: dict[str, float]

    def taken(self) -> dict[str, float]:
        """Scores of the words that the clip is not closer to a negative of."""
        return {
            word: score
            for word, score in self.words.items()
            if word not in self.negatives or score > self.negatives[word]
        }


def said(scores: Scores, thresholds: Mapping[str, float]) -> str | None:
    """Word that counts as said: the best of those that reach their threshold.

    A word without a threshold is never said.

    Examples
    --------
    >>> said(Scores({"lamp": 0.6, "music": 0.7}, {"music": 0.8}), {"lamp": 0.5, "music": 0.5})
    'lamp'
    """
    found = {
        word: score
        for word, score in scores.taken().items()
        if word in thresholds and score >= thresholds[word]
    }
    return max(found, key=lambda word: found[word], default=None)


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


def shipped_threshold(whitenings: Sequence[str], false_alarms_per_hour: float) -> float | None:
    """Score that clips of other words exceed only so often for one word; None: not measured.

    `whitenings` are the hashes of what whitens the vectors.
    """
    table = _impostors().get(" ".join(whitenings))
    if table is None:
        return None
    rarity = -np.log(min(false_alarms_per_hour / SOUNDS_PER_HOUR, 1.0))
    rarities, scores = -np.log(table["shares"]), np.array(table["scores"])
    if rarity <= rarities[-1]:
        return float(np.interp(rarity, rarities, scores))
    # Beyond what was measured the last stretch goes on.
    slope = (scores[-1] - scores[-2]) / (rarities[-1] - rarities[-2])
    return float(scores[-1] + slope * (rarity - rarities[-1]))


@functools.cache
def _impostors() -> dict[str, dict[str, list[float]]]:
    """Scores that clips of other words reach for a word of five samples, and their share."""
    file = resources.files("tapword.assets").joinpath("impostors.json")
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
