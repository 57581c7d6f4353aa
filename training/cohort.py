"""Fit the constants of thresholds to the scores of words in running speech.

    python training/cohort.py SIZE SPEECHOCEAN SPEECH_COMMANDS CALL...

SIZE is a preset, or a backbone with its own parts (speech_embedding); SPEECHOCEAN and each CALL are
as for training/whitening.py, SPEECH_COMMANDS is a folder of that data set, of which training clips
are used. English words of speechocean762, five tokens each, are searched for in the calls; windows
of the cohort that are from the same call are left out. For several weights of the cohort
(`cohort.WEIGHT`), it prints the distance of a word's scores from the mean of its tail at several
rates of alarms, the line through these (`thresholds.OFFSET_SLOPE`), and how many training clips of
Speech Commands are missed, of words taught by five others, at one alarm in ten hours.
"""

import argparse
from pathlib import Path

import numpy as np
from places import encode
from speechocean import tokens
from whitening import windows

from tapword import Spotter, registry
from tapword.audio import files
from tapword.spotter import presets
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.thresholds import Tail

# Alarms per hour of a word: up to twenty words share half an alarm.
RATES = 1.0, 0.3, 0.1, 0.03
SAMPLES, LETTERS = 5, 5
# Words that score highest are said in the calls: this fraction of all.
SAID = 0.03
WEIGHTS = 0.0, 0.25, 0.5, 0.75, 1.0
# Clips of Speech Commands that are taught, and tested.
TAUGHT, TESTED = 5, 20


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size")
    parser.add_argument("speechocean")
    parser.add_argument("speech_commands")
    parser.add_argument("calls", nargs="+", metavar="call")
    options = parser.parse_args()
    size, calls = options.size, options.calls
    preset = size in presets.PRESETS
    spotter = Spotter(size=size, augment=False) if preset else Spotter(size, augment=False)
    hours = sum(files.length_s(call) for call in calls) / 3600
    heard = [encode(spotter, windows(call)) for call in calls]
    heard = [one[~spotter.encoder.is_noise(one)] for one in heard]
    said = encode_words(spotter, options.speechocean)
    assert spotter.scorer.cohort is not None
    cohort = spotter.scorer.cohort.words
    print(f"{len(said)} words in {hours:.2f} hours, {sum(map(len, heard))} windows")
    clips = encode_clips(spotter, options.speech_commands)
    for weight in WEIGHTS:
        changed = Windows(cohort.vectors, weight=weight)
        base, slope = fit(changed, strangers(cohort.vectors, heard), said, hours)
        missed = []
        for found in clips.values():
            direction = directions({"": found[:TAUGHT]})
            [tail] = map(Tail.of, changed.scores(direction).T)
            threshold = tail.tail_mean + base + slope * np.log(10)
            missed.append(np.mean(scores_of(changed, direction, found[TAUGHT:]) < threshold))
        print(
            f"weight {weight:g}: OFFSET_SLOPE {base:.3f}, {slope:.4f}; "
            f"{100 * np.mean(missed):.1f}% missed"
        )


Strangers = list[tuple[np.ndarray, np.ndarray]]


def strangers(cohort: np.ndarray, calls: list[np.ndarray]) -> Strangers:
    """For each call: which windows of the cohort are from others, and its windows without those."""
    result = []
    for call in calls:
        same = unit(call) @ cohort.T > 0.99
        result.append((~same.any(axis=0), call[~same.any(axis=1)]))
    return result


def fit(
    cohort: Windows, heard: Strangers, said: dict[str, np.ndarray], hours: float
) -> tuple[float, float]:
    """Line through the distances of scores of unsaid words from the tail, over -ln of the rate."""
    means, scores, beyond = directions(said), [], []
    for others, call in heard:
        part = Windows(cohort.vectors[others], cohort.projection, cohort.weight)
        scores.append(scores_of(part, means, call))
        places = np.array([Tail.of(column).tail_mean for column in part.scores(means).T])
        beyond.append(scores[-1] - places)
    highest = np.concatenate(scores).max(axis=0)
    rare = highest.argsort()[: round((1 - SAID) * len(said))]
    ranked = np.sort(np.concatenate(beyond)[:, rare].ravel())[::-1]
    reached = [ranked[int(rate * hours * len(rare))] for rate in RATES]
    print("beyond the place, by alarms an hour:", end=" ")
    print(*(f"{rate:g}: {one:.3f}" for rate, one in zip(RATES, reached, strict=True)))
    slope, base = np.polyfit(-np.log(RATES), reached, 1)
    return float(base), float(slope)


def scores_of(cohort: Windows, means: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Scores (n, K) of vectors (n, D) for words' directions (K, D)."""
    return unit(X) @ means.T - cohort.cohort_score(X)[:, None]


def directions(said: dict[str, np.ndarray]) -> np.ndarray:
    """Mean vectors of words, of length 1: (K, D)."""
    return unit(np.stack([found[:SAMPLES].mean(axis=0) for found in said.values()]))


def encode_words(spotter: Spotter, folder: str) -> dict[str, np.ndarray]:
    """Vectors of words of speechocean762 that are long and so rare."""
    clips: dict[str, list[np.ndarray]] = {}
    for one in tokens(Path(folder)):
        if len(one.word) >= LETTERS:
            clips.setdefault(one.word, []).append(one.alone)
    return {
        word: encode(spotter, found[:SAMPLES])
        for word, found in clips.items()
        if len(found) > SAMPLES
    }


def encode_clips(spotter: Spotter, folder: str) -> dict[str, np.ndarray]:
    """Vectors of the first training clips of Speech Commands."""
    paths: dict[str, list[Path]] = {}
    for clip in registry.build("datasets", "speech_commands", root=folder).clips("train"):
        paths.setdefault(clip.word, []).append(clip.path)
    return {word: spotter.encode(found[: TAUGHT + TESTED]).vectors for word, found in paths.items()}


if __name__ == "__main__":
    main()
