"""From how many false alarms are acceptable to the score from which a word counts as said."""

import functools
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np

# Sounds in an hour of speech that are as like a word as one spoken alone. 20 minutes of people who
# order coffee hold as many alarms as 64 of them an hour would, at the threshold for 0.5 an hour;
# synthetic sentences 174 at a threshold of 0.55 (scripts/measure_alarms.py), most of them by a few
# short words such as go and off.
SOUNDS_PER_HOUR = 100.0


def threshold(priors: Sequence[str], false_alarms_per_hour: float) -> float | None:
    """Score that other words reach so seldom.

    Parameters
    ----------
    priors
        Hashes of the priors that whiten the vectors.
    false_alarms_per_hour
        How many are acceptable of one word.

    Returns
    -------
    float or None
        None where it is not known how other words score.
    """
    table = _impostors().get(" ".join(priors))
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
    file = resources.files("tapword.priors").joinpath("impostors.json")
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
