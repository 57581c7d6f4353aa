"""Measure the scores of phrases in running speech: their thresholds follow the words' line.

    python training/phrases.py SIZE SPEECHOCEAN MINUTES CALL

SIZE is a preset; SPEECHOCEAN and CALL are as for training/whitening.py. Phrases that several people
of speechocean762 say are taught by up to five of them and searched for in the first MINUTES of the
call, in every segment of a length that they may have. It prints the distance of a phrase's scores
from the mean of its tail at several rates of alarms, and the line through these.
"""

import argparse
from pathlib import Path

import numpy as np
from places import encode
from speechocean import repeated

from tapword import Spotter
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.phrases import Phrases
from tapword.listening.segmenter import Segmenter
from tapword.spotter.cohort import unit
from tapword.spotter.thresholds import Tail
from tapword.spotter.vocabulary import CLIP_S, Length

# Alarms per hour of a phrase: up to twenty share half an alarm.
RATES = 1.0, 0.3, 0.1, 0.03
# Phrases that score highest are said in the calls: this fraction of all.
SAID = 0.03
# Fewest and most people who teach a phrase.
LEAST, MOST = 3, 5
# Alarms within this many steps count as one.
APART = 4


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size")
    parser.add_argument("speechocean")
    parser.add_argument("minutes", type=float)
    parser.add_argument("call")
    options = parser.parse_args()
    spotter = Spotter(size=options.size, augment=False)
    cohort = spotter.scorer.cohort
    assert cohort is not None
    means, spans = [], []
    for clips in repeated(Path(options.speechocean), LEAST):
        length = Length.of(np.array([len(clip) for clip in clips[:MOST]]) / SAMPLE_RATE)
        if length.is_phrase:
            means.append(encode(spotter, clips[:MOST]).mean(axis=0))
            spans.append(length.span(len(clips[:MOST])))
    directions = unit(np.stack(means))
    place = np.array([Tail.of(column).tail_mean for column in cohort.phrases.scores(directions).T])
    found = highest(spotter, options.call, 60 * options.minutes, directions, spans)
    hours = options.minutes / 60
    rare = found.max(axis=0).argsort()[: round((1 - SAID) * len(spans))]
    print(f"{len(rare)} of {len(spans)} phrases in {hours:.2f} hours, {len(found)} steps of sound")
    beyond = (found - place)[:, rare]
    # Of neighbouring steps only the best counts: the others are the same alarm.
    peaks = beyond.copy()
    for step in range(1, APART + 1):
        peaks[step:] = np.where(beyond[:-step] >= beyond[step:], -np.inf, peaks[step:])
        peaks[:-step] = np.where(beyond[step:] > beyond[:-step], -np.inf, peaks[:-step])
    ranked = np.sort(peaks.ravel())[::-1]
    reached = [ranked[int(rate * hours * len(rare))] for rate in RATES]
    print(*(f"{rate:g}: {one:.3f}" for rate, one in zip(RATES, reached, strict=True)))
    slope, base = np.polyfit(-np.log(RATES), reached, 1)
    print(f"offset {base:.3f}, slope {slope:.4f}")


def highest(
    spotter: Spotter,
    call: str,
    seconds: float,
    directions: np.ndarray,
    spans: list[tuple[float, float]],
) -> np.ndarray:
    """Highest score of each phrase in the segments that end at each step: (steps, K)."""
    cohort = spotter.scorer.cohort
    assert cohort is not None
    phrases, segmenter = Phrases(spotter, 0), Segmenter()
    sound = np.concatenate(list(files.blocks(call)))[: round(seconds * SAMPLE_RATE)]
    rows = []
    for start in range(0, len(sound) - phrases.step, phrases.step):
        piece = sound[start : start + phrases.step]
        segmenter.push(piece)
        phrases.push(piece)
        list(segmenter.windows())
        if segmenter.quiet(CLIP_S):
            continue
        phrases.make_frames()
        best = np.full(len(directions), -1.0)
        for length in phrases.lengths:
            length_s, (_, vectors) = phrases.seconds(length), phrases.vectors([length])
            if vectors is None:
                continue
            level = cohort.score(vectors, np.full(len(vectors), length_s))
            scores = (unit(vectors) @ directions.T - level[:, None]).max(axis=0)
            fits = [low <= length_s <= high for low, high in spans]
            best = np.where(fits, np.maximum(best, scores), best)
        rows.append(best)
    return np.stack(rows)


if __name__ == "__main__":
    main()
