"""Missed words, accepted other words and alarms per hour at default thresholds; own voices.

    python benchmarks/thresholds.py SPEECH_COMMANDS ARABIC --negatives FILE... [--out FILE]

SPEECH_COMMANDS and ARABIC are folders of these data sets (`speech_commands`, `mswc:language=ar`),
negatives are recordings without the words. Clips are encoded once, and models of a few words are
drawn from them repeatedly. All figures are at the default of `Spotter.thresholds`, 0.5 alarms per
hour of all words together; words have five clips unless stated. Alarms are the events of a detector
in the negatives. Their interval is that of a Poisson count in the hours of all draws: the draws
hear the same negatives, so it is too narrow where a sound is like several words. `--out` also
writes JSON.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from candidates import Recording

from tapword import Spotter, registry
from tapword.audio import files
from tapword.listening.segmenter import Segmenter
from tapword.research.datasets.base import Dataset
from tapword.spotter.encoder import CLIPS_AT_ONCE, Encoded
from tapword.spotter.thresholds import decide
from tapword.support.intervals import poisson_interval

# Words of Speech Commands that are rare in phone calls and orders.
RARE = "marvin sheila bird wow bed cat dog happy tree house left stop".split()  # noqa: SIM905
DRAWS, CLIPS = 20, 5

# Makes a model without words.
Empty = Callable[[], Spotter]


class Clips(NamedTuple):
    """Clips to learn and to test, and the word and speaker of each."""

    taught: Encoded
    asked: Encoded
    words: np.ndarray
    speakers: np.ndarray
    split: np.ndarray


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speech_commands")
    parser.add_argument("arabic")
    parser.add_argument("--negatives", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--size", default="small")
    parser.add_argument("--backbone", help="parts instead of a size; tapword_ear, say")
    parser.add_argument("--pooling")
    parser.add_argument("--learner")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    parts = options.backbone, options.pooling, options.learner
    empty = partial(Spotter, *parts) if any(parts) else partial(Spotter, size=options.size)
    spotter = empty()
    english = encode(spotter, "speech_commands", options.speech_commands)
    arabic = encode(spotter, "mswc:language=ar", options.arabic)
    negatives = [np.concatenate(list(files.blocks(path))) for path in options.negatives]
    heard = Recording(spotter.encoder, negatives)
    print(f"alarms are counted in {heard.hours:.2f} hours")
    rows = []
    for count in (1, 5, 20):
        for name, clips, known in (
            ("English", english, RARE),
            ("Arabic", arabic, np.unique(arabic.words)),
        ):
            if count <= len(known):
                rows.append(streams(empty, name, clips, known, count, heard))
    for count, samples in ((5, 5), (5, 100), (20, 5), (20, 100)):
        rows.append(singles(empty, "English", english, count, samples))
    rows.append(own_voices(empty, arabic))
    for samples in (3, 5, 10):
        rows.append(singles(empty, "Arabic", arabic, 3, samples, draws=10))
    if options.out:
        options.out.write_text(json.dumps(rows), encoding="utf-8")


def streams(
    empty: Empty,
    name: str,
    clips: Clips,
    known: Sequence[str] | np.ndarray,
    count: int,
    heard: Recording,
) -> dict[str, Any]:
    """Print and return misses and alarms of models of `count` words."""
    missed, alarms = [], []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        words = rng.permutation(known)[:count]
        model = taught(empty, clips, words, CLIPS, rng)
        missed.append(misses(model, clips, np.isin(clips.words, words) & (clips.split == "test")))
        alarms.append(heard.alarms(model))
    per_hour = np.array(alarms) / heard.hours
    low, high = poisson_interval(sum(alarms), heard.hours * DRAWS)
    print(
        f"{count} {name} words: {np.mean(missed):.1f}% missed, {np.mean(per_hour):.2f} alarms an "
        f"hour ({low:.2f} to {high:.2f}; median of {DRAWS} models {np.median(per_hour):.2f})",
        flush=True,
    )
    return {
        "language": name,
        "words": count,
        "models": DRAWS,
        "hours": heard.hours,
        "missed": float(np.mean(missed)),
        "missed_std": float(np.std(missed)),
        "alarms_an_hour": float(np.mean(per_hour)),
        "alarms_an_hour_std": float(np.std(per_hour)),
        "alarms_an_hour_ci": [low, high],
        "median_alarms_an_hour": float(np.median(per_hour)),
    }


def singles(
    empty: Empty, name: str, clips: Clips, count: int, samples: int, draws: int = 5
) -> dict[str, Any]:
    """Print and return misses and accepted other words, as single clips."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        words = rng.permutation(np.unique(clips.words))[:count]
        model = taught(empty, clips, words, samples, rng)
        known, test = np.isin(clips.words, words), clips.split == "test"
        others = 100 * accepted(model, clips.asked[test & ~known]).mean()
        found.append((misses(model, clips, test & known), others))
    (missed, others), (missed_std, others_std) = np.mean(found, axis=0), np.std(found, axis=0)
    print(
        f"{count} words of {samples} clips by other people: {missed:.1f}% of single clips missed, "
        f"{others:.1f}% of other words let in",
        flush=True,
    )
    return {
        "language": name,
        "words": count,
        "clips": samples,
        "models": draws,
        "missed": float(missed),
        "missed_std": float(missed_std),
        "others_let_in": float(others),
        "others_let_in_std": float(others_std),
    }


def own_voices(empty: Empty, clips: Clips, count: int = 3, takes: int = 3) -> dict[str, Any]:
    """Print and return the same for words taught by the person who is tested, and their others."""
    missed, own, others = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for person in np.unique(clips.speakers):
            mine = clips.speakers == person
            said_by, often = np.unique(clips.words[mine], return_counts=True)
            words = rng.permutation(said_by[often > takes])[:count]
            if len(words) < count:
                continue
            model, asked = empty(), []
            for word in words:
                rows = rng.permutation(np.flatnonzero(mine & (clips.words == word)))
                model.learn_encoded(clips.taught[rows[:takes]], [word] * takes)
                asked += list(rows[takes:])
            known = np.isin(clips.words, words)
            missed.append(misses(model, clips, asked))
            own.append(accepted(model, clips.asked[mine & ~known]).mean())
            strangers = rng.permutation(np.flatnonzero(~mine & ~known))[:200]
            others.append(accepted(model, clips.asked[strangers]).mean())
    print(
        f"{count} words of {takes} takes by one's own voice, {len(missed)} models: "
        f"{np.mean(missed):.1f}% missed, {100 * np.mean(own):.1f}% of the owner's other words let "
        f"in, {100 * np.mean(others):.1f}% of others'",
        flush=True,
    )
    return {
        "takes": takes,
        "models": len(missed),
        "missed": float(np.mean(missed)),
        "own_others_let_in": 100 * float(np.mean(own)),
        "others_let_in": 100 * float(np.mean(others)),
    }


def taught(
    empty: Empty, clips: Clips, words: np.ndarray, samples: int, rng: np.random.Generator
) -> Spotter:
    """Teach a model some training clips of some words."""
    model = empty()
    for word in words:
        fit = np.flatnonzero((clips.words == word) & (clips.split == "train"))
        rows = rng.permutation(fit)[:samples]
        model.learn_encoded(clips.taught[rows], [str(word)] * len(rows))
    return model


def misses(model: Spotter, clips: Clips, rows: np.ndarray | list[int]) -> float:
    """Percentage of clips that are not recognised as their word."""
    answers = model.predict_encoded(clips.asked[rows])
    wanted = clips.words[rows]
    return 100 * float(np.mean([a.word != w for a, w in zip(answers, wanted, strict=True)]))


def accepted(model: Spotter, encoded: Encoded) -> np.ndarray:
    """Whether clips are recognised as a word, (n,)."""
    thresholds, found = model.thresholds(), model.score_encoded(encoded)
    return np.array([decide(scores, thresholds) is not None for scores in found])


def encode(spotter: Spotter, name: str, root: str) -> Clips:
    """Vectors of all training and test clips of a data set."""
    dataset: Dataset = registry.build("datasets", name, root=root)
    both = [(clip, split) for split in ("train", "test") for clip in dataset.clips(split)]
    paths = [clip.path for clip, _ in both]
    return Clips(
        spotter.encode(paths, learning=True),
        spotter.encode(paths),
        np.array([clip.word for clip, _ in both]),
        np.array([str(clip.speaker) for clip, _ in both]),
        np.array([split for _, split in both]),
    )


def windows(spotter: Spotter, path: str | Path) -> Encoded:
    """Encode the windows that a detector scores first, without noise."""
    segmenter, clips, parts = Segmenter(), [], []
    for block in files.blocks(path):
        segmenter.push(block)
        clips += [window.clip for window in segmenter.windows() if window.loud]
        if len(clips) >= CLIPS_AT_ONCE:
            parts.append(spotter.encoder.encode(clips))
            clips = []
    encoded = Encoded.concatenate([*parts, spotter.encoder.encode(clips)] if clips else parts)
    return encoded[~spotter.encoder.is_noise(encoded.vectors)]


if __name__ == "__main__":
    main()
