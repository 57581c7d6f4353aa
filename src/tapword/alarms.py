"""What a detector asked about in a stream -> hits, misses, false alarms at any thresholds."""

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapword.audio import HOP, SAMPLE_RATE
from tapword.detector import Event
from tapword.metrics import poisson_interval
from tapword.splice import Placed

# An event belongs to a clip if its middle is no further outside than this.
TOLERANCE_S = 0.3
# The curve of misses against false alarms: points, and the most alarms per hour it goes to.
POINTS, MOST_PER_HOUR = 200, 120.0


class Asked(NamedTuple):
    """A sound that the detector asked about.

    Attributes
    ----------
    event
        What is heard where every score is high enough.
    scores
        Word -> score; words that lost against what was rejected as them are absent.
    centre
        The sound's middle, in steps of 10 ms since the stream's start.
    told_s
        End of the chunk after which the event came.
    """

    event: Event
    scores: dict[str, float]
    centre: int
    told_s: float


class Heard(NamedTuple):
    """An event at some thresholds: what it is worth, and to which clip it belongs, if to any."""

    kind: str
    asked: Asked
    word: str
    clip: int | None

    def record(self) -> dict[str, Any]:
        """Give what is kept of it, ready for JSON."""
        event = self.asked.event
        return {
            "kind": self.kind,
            "word": self.word,
            "start_s": event.start_s,
            "end_s": event.end_s,
            "score": self.asked.scores[self.word],
            "told_s": self.asked.told_s,
            "clip": self.clip,
        }


def judge(
    asked: Sequence[Asked],
    placed: Sequence[Placed],
    thresholds: Mapping[str, float],
    refractory_s: float = 0.4,
) -> list[Heard]:
    """Say what comes of sounds at some thresholds, and what each event is worth.

    Returns
    -------
    list of Heard
        In order. "hit": the first event of a clip's word in the clip; "repeat": another one;
        "confusion": another word in a clip; "false alarm": any word elsewhere.
    """
    result: list[Heard] = []
    last: int | None = None
    done: set[int] = set()
    starts = [clip.start_s for clip in placed]
    for one in asked:
        said = [word for word, score in one.scores.items() if score >= thresholds[word]]
        if not said or (
            last is not None and (one.centre - last) * HOP < refractory_s * SAMPLE_RATE
        ):
            continue
        last = one.centre
        word = max(said, key=one.scores.__getitem__)
        clip = _clip(one, placed, starts)
        if clip is None:
            kind = "false alarm"
        elif word != placed[clip].word:
            kind = "confusion"
        else:
            kind = "repeat" if clip in done else "hit"
            done.add(clip)
        result.append(Heard(kind, one, word, clip))
    return result


def _clip(one: Asked, placed: Sequence[Placed], starts: Sequence[float]) -> int | None:
    """Give the number of the clip that an event's middle lies in, or near enough to."""
    middle_s = (one.event.start_s + one.event.end_s) / 2
    number = bisect.bisect_right(starts, middle_s + TOLERANCE_S) - 1
    inside = number >= 0 and middle_s <= placed[number].end_s + TOLERANCE_S
    return number if inside else None


def summary(
    heard: Sequence[Heard], placed: Sequence[Placed], hours: float, words: Sequence[str]
) -> dict[str, Any]:
    """Rates over the whole stream and for each word."""
    hits = [(one, placed[one.clip]) for one in heard if one.kind == "hit" and one.clip is not None]
    late = [one.asked.told_s - clip.speech_end_s for one, clip in hits]
    alarms = sum(one.kind == "false alarm" for one in heard)
    per_word: dict[str, dict[str, Any]] = {}
    for word in words:
        count = sum(clip.word == word for clip in placed)
        missed = count - sum(clip.word == word for _, clip in hits)
        mine = [one.kind for one in heard if one.word == word]
        per_word[word] = {
            "positives": count,
            "misses": missed,
            "miss_rate": 100 * missed / count if count else None,
            "false_alarms": mine.count("false alarm"),
            "confusions": mine.count("confusion"),
            "repeats": mine.count("repeat"),
        }
    return {
        "miss_rate": 100 * (1 - len(hits) / len(placed)),
        "false_alarms": alarms,
        "false_alarms_per_hour": alarms / hours,
        "false_alarms_ci": list(poisson_interval(alarms, hours)),
        "confusions": sum(one.kind == "confusion" for one in heard),
        "repeats": sum(one.kind == "repeat" for one in heard),
        "latency_s": {
            "median": float(np.median(late)) if late else None,
            "p95": float(np.quantile(late, 0.95)) if late else None,
        },
        "per_word": per_word,
    }


def curve(
    asked: Sequence[Asked],
    placed: Sequence[Placed],
    thresholds: Mapping[str, float],
    hours: float,
) -> list[dict[str, float]]:
    """Misses against false alarms while the thresholds of all words are moved alike."""
    if not asked:
        return []
    middle = float(np.mean(list(thresholds.values())))
    margins = np.array(
        [max(score - thresholds[word] for word, score in one.scores.items()) for one in asked]
    )
    starts = [clip.start_s for clip in placed]
    outside = [_clip(one, placed, starts) is None for one in asked]
    alarms = np.sort(margins[outside])[::-1]
    most = int(MOST_PER_HOUR * hours)
    # The curve goes through where the thresholds are.
    low = min(alarms[most], 0.0) if most < len(alarms) else margins.min()
    high = np.nextafter(margins.max(), np.inf)
    # Just above an alarm is where it is gone.
    moves = np.union1d(np.linspace(low, high, POINTS), np.nextafter(alarms[:POINTS], np.inf))
    moves = np.union1d(moves, [0.0])
    result: list[dict[str, float]] = []
    for move in moves[moves >= low]:
        moved = {word: threshold + float(move) for word, threshold in thresholds.items()}
        loud = [one for one, margin in zip(asked, margins, strict=True) if margin >= move]
        heard = judge(loud, placed, moved)
        point = {
            "threshold": middle + float(move),
            "miss_rate": 100 * (1 - sum(one.kind == "hit" for one in heard) / len(placed)),
            "false_alarms_per_hour": sum(one.kind == "false alarm" for one in heard) / hours,
        }
        # Where nothing changes the lowest threshold stands for all.
        if not result or any(point[key] != result[-1][key] for key in list(point)[1:]):
            result.append(point)
    return result


def miss_rate_at(det: Sequence[Mapping[str, float]], false_alarms_per_hour: float) -> float | None:
    """Lowest miss rate of a curve with at most so many false alarms per hour, in percent."""
    return min(
        (
            point["miss_rate"]
            for point in det
            if point["false_alarms_per_hour"] <= false_alarms_per_hour
        ),
        default=None,
    )
