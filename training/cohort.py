"""Fit the line of thresholds to the alarms that a detector would give in running speech.

    python training/cohort.py SIZE SPEECHOCEAN CALL... [--campaigns FILE --apart CALL...]

SIZE is a preset, or a backbone with its own parts (speech_embedding); SPEECHOCEAN and each CALL are
as for training/whitening.py. FILE says which recorded message lies where in the calls, and its
campaign; campaigns that are also in calls of --apart are left out, so neither what is tested nor
the cohort has them.

Words of speechocean762 that calls hardly ever say are taught by five people each and searched for.
An alarm is an event of a detector: the best of windows closer than its refractory time, with the
windows at offsets that it scores around those close to a threshold. For several weights of the
cohort (`cohort.WEIGHT`), it prints the line through the distances of events from the mean of a
word's tail at several rates of alarms (`thresholds.Line`), and how many clips by other people are
missed at these rates.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from places import Place, encode
from speechocean import tokens

from tapword import Spotter
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import REFRACTORY_S
from tapword.listening.segmenter import WINDOW, Segmenter, Window
from tapword.spotter import presets
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.thresholds import Line, Tail

# Alarms per hour of a word: up to twenty words share half an alarm.
RATES = 0.5, 0.25, 0.1, 0.05, 0.025
# People who teach a word, draws of them, and fewest who are asked.
SAMPLES, DRAWS, ASKED = 5, 6, 3
# A choice, from words that at least eight people say: what these calls are about is left out, and
# what sounds like it (want, one, high).
UNSAID = """\
afraid another beautiful begin beginning billy book break cake child class difficult door dora draw
eyes father fight find forget friend girl glad gloves happen happened idea jack jeans layla likes
little live lived lives looked loves lucy lynda made mandy many miss mother move myself nice paint
party peter play safe school seemed sister sleep smiled story strong sweater talk talking teddy
thought tina tomorrow walk walked walking watch wish would"""
WEIGHTS = 0.5, 0.75, 1.0
# Windows that some word scores this much above are scored at offsets too: it is about as much below
# the lowest threshold as a detector's `CLOSE_SCORE`.
CLOSE = 0.07
# Highest events of a word that are kept; all rates need fewer.
MOST = 100


class Heard(NamedTuple):
    """Windows of calls: vectors (n, D), times (n,) in seconds, and vectors (m, D) at offsets.

    `beside` has the row (m,) of the window that each is beside; each of the `calls` (n,) is one.
    """

    vectors: np.ndarray
    times: np.ndarray
    calls: np.ndarray
    offsets: np.ndarray
    beside: np.ndarray
    hours: float


class Said(NamedTuple):
    """Drawn words: directions (K, D), and vectors (n, D) of clips by other people, for each."""

    directions: np.ndarray
    asked: list[np.ndarray]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size")
    parser.add_argument("speechocean", type=Path)
    parser.add_argument("calls", nargs="+", metavar="call", type=Path)
    parser.add_argument("--campaigns", type=Path, metavar="FILE")
    parser.add_argument("--apart", nargs="+", default=[], metavar="CALL")
    options = parser.parse_args()
    size = options.size
    spotter = Spotter(size=size) if size in presets.PRESETS else Spotter(size)
    said = encode_words(spotter, options.speechocean)
    sounds = pieces(options.calls, options.campaigns, options.apart)
    assert spotter.scorer.cohort is not None
    cohort = spotter.scorer.cohort.words
    heard = listen(spotter, sounds, cohort, said.directions)
    draws, windows = len(said.directions), len(heard.times)
    print(f"{draws} draws of words, {heard.hours:.2f} hours, {windows} windows")
    for weight in WEIGHTS:
        changed = Windows(cohort.vectors, cohort.projection, weight)
        print(f"weight {weight:g}:", end=" ")
        fit(changed, heard, said)


def fit(cohort: Windows, heard: Heard, said: Said) -> Line:
    """Print and return the line through the scores of alarms at `RATES`."""
    places = np.array([Tail.of(column).tail_mean for column in cohort.scores(said.directions).T])
    ranked = np.sort((events(cohort, heard, said.directions) - places).ravel())[::-1]
    reached = [ranked[round(rate * heard.hours * len(places))] for rate in RATES]
    slope, offset = np.polyfit(-np.log(RATES), reached, 1)
    line = Line(float(offset), float(slope))
    missed = []
    for rate in RATES:
        thresholds = [Tail(place, line).threshold(rate) for place in places]
        scores = [
            scores_of(cohort, one[None], X)[:, 0]
            for one, X in zip(said.directions, said.asked, strict=True)
        ]
        missed.append(
            100 * np.mean([np.mean(s < t) for s, t in zip(scores, thresholds, strict=True)])
        )
    shown = ", ".join(f"{one:.1f}% at {rate:g}" for one, rate in zip(missed, RATES, strict=True))
    print(f"Line({offset:.3f}, {slope:.4f}), missed {shown} an hour")
    return line


def events(cohort: Windows, heard: Heard, directions: np.ndarray) -> np.ndarray:
    """Highest scores of each word's events in the calls: (`MOST`, K)."""
    scores = scores_of(cohort, directions, heard.vectors)
    np.maximum.at(scores, heard.beside, scores_of(cohort, directions, heard.offsets))
    # Of windows within the refractory time, the best is the event.
    best, step = np.ones(scores.shape, dtype=bool), 1
    while True:
        close = heard.times[step:] - heard.times[:-step] < REFRACTORY_S
        close &= heard.calls[step:] == heard.calls[:-step]
        if not close.any():
            break
        later = scores[step:] > scores[:-step]
        best[:-step] &= ~(close[:, None] & later)
        best[step:] &= ~(close[:, None] & ~later)
        step += 1
    return np.sort(np.where(best, scores, -1.0), axis=0)[::-1][:MOST]


def scores_of(cohort: Windows, directions: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Scores (n, K) of vectors (n, D) for words' directions (K, D)."""
    return unit(X) @ directions.T - cohort.cohort_score(X)[:, None]


def pieces(calls: Sequence[Path], campaigns: Path | None, apart: Sequence[str]) -> list[np.ndarray]:
    """Read calls, without the campaigns that are also in those `apart`."""
    if campaigns is None:
        return [np.concatenate(list(files.blocks(call))) for call in calls]
    known = json.loads(campaigns.read_text("utf-8"))
    tested = {
        one["campaign"] for one in known if one["file"] in {Path(call).name for call in apart}
    }
    result = []
    for call in calls:
        sound = np.concatenate(list(files.blocks(call)))
        for one in known:
            if one["file"] == call.name and one["campaign"] not in tested:
                start, end = (round(one[key] * SAMPLE_RATE) for key in ("start_s", "end_s"))
                result.append(sound[start:end])
    return result


def listen(
    spotter: Spotter, sounds: Sequence[np.ndarray], cohort: Windows, directions: np.ndarray
) -> Heard:
    """Encode the windows of calls, and those at offsets around any that is close to a word."""
    vectors: list[np.ndarray] = []
    times: list[float] = []
    calls: list[int] = []
    offsets: list[Place] = []
    beside: list[int] = []
    for number, sound in enumerate(sounds):
        segmenter = Segmenter()
        segmenter.push(np.concatenate([sound, np.zeros(segmenter.flush_samples, np.float32)]))
        found: list[Window] = []
        around: dict[int, list[int]] = {}
        for window in segmenter.windows():
            if window.loud and not window.is_offset:
                segmenter.request_offsets(window)
                found.append(window)
            elif window.loud:
                around.setdefault(window.centre, []).append(window.start)
        if not found:
            continue
        X = encode(spotter, [Place(sound, window.start, WINDOW) for window in found])
        heard = np.flatnonzero(~spotter.encoder.is_noise(X))
        highest = scores_of(cohort, directions, X).max(axis=1)
        for row in heard:
            if highest[row] > CLOSE:
                starts = around.get(found[row].centre, [])
                offsets += [Place(sound, start, WINDOW) for start in starts]
                beside += [len(times)] * len(starts)
            vectors.append(X[row])
            times.append(found[row].centre / SAMPLE_RATE)
            calls.append(number)
    near = encode(spotter, offsets)
    kept = ~spotter.encoder.is_noise(near)
    hours = sum(map(len, sounds)) / SAMPLE_RATE / 3600
    found_vectors, rows = np.stack(vectors), np.array(beside)[kept]
    return Heard(found_vectors, np.array(times), np.array(calls), near[kept], rows, hours)


def encode_words(spotter: Spotter, folder: Path) -> Said:
    """Teach `UNSAID` words by several draws of people; others are asked."""
    clips: dict[str, dict[str, np.ndarray]] = {word: {} for word in UNSAID.split()}
    for one in tokens(folder):
        if one.word in clips:
            clips[one.word].setdefault(one.speaker, one.alone)
    directions, asked = [], []
    for word in UNSAID.split():
        alone = list(clips[word].values())
        if len(alone) < SAMPLES + ASKED:
            continue
        taught, plain = (spotter.encoder.encode(alone, one).vectors for one in (True, False))
        for seed in range(DRAWS):
            rows = np.random.default_rng(seed).permutation(len(alone))
            directions.append(taught[rows[:SAMPLES]].mean(axis=0))
            asked.append(plain[rows[SAMPLES:]])
    return Said(unit(np.stack(directions)), asked)


if __name__ == "__main__":
    main()
