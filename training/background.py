"""Measure how high words score in running speech: where the constants of thresholds come from.

    python training/background.py SIZE SPEECHOCEAN SPEECH_COMMANDS CALL...

SIZE is a preset, or a backbone with parts of its own (tapword_ear); SPEECHOCEAN and each CALL are
what training/whitening.py takes, SPEECH_COMMANDS a folder of that data set, of which training clips
are used. English words of speechocean762 are looked for in the calls, by five tokens each: printed
is how far beyond its tail's place a word's scores reach, in the tail's widths, at several rates of
alarms, and the line through these (`thresholds.REACH`). Then, for several shares of the background
(`background.SHARE`), how many training clips of Speech Commands are missed, of words taught by five
others, at thresholds of one alarm in ten hours that are fitted in the same way.
"""

import sys
from pathlib import Path

import numpy as np
from speechocean import tokens
from whitening import encode, windows

from tapword import Spotter, registry
from tapword.audio import files
from tapword.spotter import background as background_room
from tapword.spotter import presets
from tapword.spotter.background import Windows, unit
from tapword.spotter.thresholds import Tail

RATES = 10.0, 3.0, 1.0, 0.3, 0.1, 0.03
SAMPLES, LETTERS = 5, 5
# A word that scores so high in the calls is said in them.
SAID = 0.42
SHARES = 0.0, 0.25, 0.5, 0.75, 1.0
# Clips of Speech Commands that are taught, and asked.
TAUGHT, ASKED = 5, 20


def main(size: str, speechocean: str, speech_commands: str, *calls: str) -> None:
    """Print all of it."""
    parts = {"size": size} if size in presets.PRESETS else {"backbone": size}
    spotter = Spotter(**parts, augment=False)
    hours = sum(files.length_s(call) for call in calls) / 3600
    heard = encode(spotter, [window for call in calls for window in windows(call)])
    heard = heard[~spotter.encoder.is_noise(heard)]
    said = encode_words(spotter, speechocean)
    assert spotter.background is not None
    background = spotter.background.words
    # Windows of the background itself are not strangers to it.
    heard = heard[(unit(heard) @ background.vectors.T).max(axis=1) < 0.99]
    highest = scores_of(background, directions(said), heard).max(axis=0)
    said = {
        word: found
        for (word, found), most in zip(said.items(), highest, strict=True)
        if most < SAID
    }
    print(f"{len(said)} of {len(highest)} words in {hours:.2f} hours, {len(heard)} windows")
    base, slope = fit(background, said, heard, hours)
    print(f"REACH {base:.3f}, {slope:.3f}")
    clips = encode_clips(spotter, speech_commands)
    for share in SHARES:
        background_room.SHARE = share
        changed = Windows(background.vectors)
        base, slope = fit(changed, said, heard, hours)
        missed = []
        for found in clips.values():
            direction = directions({"": found[:TAUGHT]})
            [tail] = map(Tail.of, changed.scores(direction).T)
            threshold = tail.place + tail.width * (base + slope * np.log(10))
            missed.append(np.mean(scores_of(changed, direction, found[TAUGHT:]) < threshold))
        print(f"share {share:g}: {100 * np.mean(missed):.1f}% missed")


def fit(
    background: Windows, said: dict[str, np.ndarray], heard: np.ndarray, hours: float
) -> tuple[float, float]:
    """Line through how far words' scores reach, in widths, over -ln of the rate."""
    means = directions(said)
    place, width = np.array([Tail.of(column)[:2] for column in background.scores(means).T]).T
    beyond = np.sort(((scores_of(background, means, heard) - place) / width).ravel())[::-1]
    reached = [beyond[int(rate * hours * len(said))] for rate in RATES]
    print("widths beyond the place, by alarms an hour:", end=" ")
    print(*(f"{rate:g}: {one:.2f}" for rate, one in zip(RATES, reached, strict=True)))
    slope, base = np.polyfit(-np.log(RATES), reached, 1)
    return float(base), float(slope)


def scores_of(background: Windows, means: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Scores (n, K) of vectors (n, D) for words' directions (K, D)."""
    return unit(X) @ means.T - background.level(X)[:, None]


def directions(said: dict[str, np.ndarray]) -> np.ndarray:
    """Average words' vectors and bring the means to length 1: (K, D)."""
    return unit(np.stack([found[:SAMPLES].mean(axis=0) for found in said.values()]))


def encode_words(spotter: Spotter, folder: str) -> dict[str, np.ndarray]:
    """Vectors of words of speechocean762 that are long enough to be rare."""
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
    return {
        word: spotter.encoder.split(spotter.vectors(found[: TAUGHT + ASKED]))[0]
        for word, found in paths.items()
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
