"""Do words improve by learning from detections? Taught words after half an hour of use.

    python benchmarks/use.py SPEECH_COMMANDS ARABIC --negatives FILE FILE... [--out FILE]

SPEECH_COMMANDS and ARABIC are folders of these data sets (`speech_commands`, `mswc:language=ar`).
The files are recordings without the words: the first plays while the words are used, in the others
alarms are counted afterwards. `--out` also writes all figures as JSON.

The rule under test: a sound that counts as a word even at sensitivity 0, judged by the taught
samples alone, is a confident one. The mean of a word's confident sounds is added to its taught
samples, with the weight of their number, at most that of the taught samples. So a word moves half
way at most, and its use never decides its next use. Thresholds follow as usual.

In that half hour each word is said 15 times, the most similar word 45 times, other words 200 times,
and people talk. Then other clips by other people are tested: how many are missed, and how many of
the similar word and of others are accepted. For comparison, the same with twice as many taught
clips; for one's own voice there are no more clips.

A word got worse if one of its figures did. A sign test tells whether more words got worse than
better by chance; draws share clips, so its p values are rather too small.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from scipy.stats import binomtest
from thresholds import RARE, windows

from tapword import Spotter, registry
from tapword.audio import files
from tapword.research.datasets.base import Dataset
from tapword.spotter.cohort import normalize
from tapword.spotter.encoder import Encoded

# Words a model, models of each kind, clips a word to teach.
WORDS, DRAWS, TAUGHT = 3, 20, 10
# How often words are said in the half hour; noise level below the words in dB.
USES, NEAR, OTHERS, NOISE_DB = 15, 45, 200, 10.0
# Takes of a word by one person: one is taught, the last tested, the others used.
OWN = 4
FIGURES = ("missed", "likest_let_in", "others_let_in", "alarms_an_hour")


class Sounds(NamedTuple):
    """Vectors (n, D), their cohort scores (n,), and which are noise (n,)."""

    vectors: np.ndarray
    level: np.ndarray
    noise: np.ndarray

    def taken(
        self,
        spotter: Spotter,
        rows: np.ndarray | slice = slice(None),
        sensitivities: Mapping[str | None, float] | None = None,
    ) -> np.ndarray:
        """Recognised words, (n,); "" for none."""
        X, learner = self.vectors[rows], spotter.learner
        scores, _ = normalize(learner, X, *learner.all_scores(X), self.level[rows])
        thresholds = spotter.thresholds(sensitivities=sensitivities)
        scores[scores < list(thresholds.values())] = -np.inf
        scores[self.noise[rows]] = -np.inf
        found = np.array([*thresholds])[scores.argmax(axis=1)]
        return np.where(np.isfinite(scores.max(axis=1)), found, "")


class Clips(NamedTuple):
    """Clips to learn, to test, and to test in noise; word, speaker and split of each."""

    taught: np.ndarray
    quiet: Sounds
    noisy: Sounds
    words: np.ndarray
    speakers: np.ndarray
    split: np.ndarray


class Plan(NamedTuple):
    """Which clips are taught, used and tested: rows of `Clips` for each word."""

    words: list[str]
    taught: list[np.ndarray]
    more: list[np.ndarray]
    used: list[np.ndarray]
    asked: list[np.ndarray]
    near: list[np.ndarray]
    near_asked: list[np.ndarray]
    others: np.ndarray
    others_asked: np.ndarray


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speech_commands")
    parser.add_argument("arabic")
    parser.add_argument("--negatives", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    first, *others = options.negatives
    if not others:
        parser.error("give two recordings or more: the first is heard, in the others are counted")
    spotter = Spotter()
    noise = [
        soundfile.read(path, dtype="float32")[0]
        for path in sorted(Path(options.speech_commands, "_background_noise_").glob("*.wav"))
    ]
    english = encode(spotter, "speech_commands", options.speech_commands, noise, RARE)
    arabic = encode(spotter, "mswc:language=ar", options.arabic, noise)
    heard = as_sounds(spotter, windows(spotter, first))
    counted = as_sounds(spotter, Encoded.concatenate([windows(spotter, x) for x in others]))
    hours = sum(files.length_s(path) for path in others) / 3600
    rows = []
    for taught in (1, 2, 3, 5):
        for name, clips, known in (
            ("English", english, RARE),
            ("Arabic", arabic, sorted(set(arabic.words))),
        ):
            plans = [plan(clips, known, taught, seed) for seed in range(DRAWS)]
            rows += trials(
                f"{name}, {taught} taught by others", plans, clips, heard, counted, hours
            )
    label = "Arabic, 1 taught by one's own voice"
    rows += trials(label, own(arabic), arabic, heard, counted, hours)
    if options.out:
        options.out.write_text(json.dumps(rows), encoding="utf-8")


def plan(clips: Clips, known: list[str], taught: int, seed: int) -> Plan:
    """Draw words and their clips: training clips to teach, test clips to use and test."""
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.permutation(known)[:WORDS]]
    teach = [_rows(clips, rng, word, "train")[: 2 * taught] for word in words]
    said = [_rows(clips, rng, word, "test") for word in words]
    half = min(USES, len(said[0]) // 2)
    return _planned(
        clips,
        rng,
        words,
        [rows[:taught] for rows in teach],
        [rows[taught:] for rows in teach],
        [np.resize(rows[:half], USES) for rows in said],
        [rows[half:] for rows in said],
    )


def own(clips: Clips) -> list[Plan]:
    """One word by one person who said it at least four times, for each such pair; one is taught."""
    plans = []
    often = Counter(zip(clips.speakers, clips.words, strict=True))
    for seed, ((person, word), count) in enumerate(sorted(often.items())):
        if count < OWN:
            continue
        rng = np.random.default_rng(seed)
        mine = (clips.speakers == person) & (clips.words == word)
        rows = rng.permutation(np.flatnonzero(mine))
        taught, used, asked = np.split(rows, [1, OWN - 1])
        used = np.resize(used, USES)
        plans.append(_planned(clips, rng, [str(word)], [taught], [taught], [used], [asked]))
    return plans


def _planned(
    clips: Clips,
    rng: np.random.Generator,
    words: list[str],
    taught: list[np.ndarray],
    more: list[np.ndarray],
    used: list[np.ndarray],
    asked: list[np.ndarray],
) -> Plan:
    near, near_asked = [], []
    likest = [nearest(clips, word, words) for word in words]
    for word in likest:
        first, second = np.array_split(_rows(clips, rng, word, "test"), 2)
        near.append(np.resize(first, NEAR))
        near_asked.append(second)
    others = ~np.isin(clips.words, [*words, *likest]) & (clips.split == "test")
    first, second = np.array_split(rng.permutation(np.flatnonzero(others)), 2)
    others = np.resize(first, OTHERS)
    return Plan(words, taught, more, used, asked, near, near_asked, others, second)


def nearest(clips: Clips, word: str, taught: list[str]) -> str:
    """Untaught word that is most similar to a word, by the mean vectors of the test clips."""
    names = sorted(set(clips.words))
    test = clips.split == "test"
    quiet = clips.quiet.vectors
    means = np.array([quiet[test & (clips.words == name)].mean(axis=0) for name in names])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines = means @ means[names.index(word)]
    cosines[np.isin(names, taught)] = -1
    return str(names[cosines.argmax()])


def trials(
    label: str, plans: list[Plan], clips: Clips, heard: Sounds, counted: Sounds, hours: float
) -> list[dict[str, Any]]:
    """Print and return the figures of words that are used in quiet, and in noise."""
    quiet: list[np.ndarray] = []
    noisy: list[np.ndarray] = []
    for one in plans:
        before = model(one.words, [clips.taught[rows] for rows in one.taught])
        both = zip(one.taught, one.more, strict=True)
        twice = model(one.words, [clips.taught[np.concatenate(rows)] for rows in both])
        for sounds, found in ((clips.quiet, quiet), (clips.noisy, noisy)):
            models = before, after_use(before, one, clips, sounds, heard), twice
            figures = [_figures(spotter, one, sounds, counted, hours) for spotter in models]
            found.append(np.stack(figures, axis=1))
    return [
        show(f"{label}, used {where}", np.concatenate(found))
        for where, found in (("in quiet", quiet), ("in noise", noisy))
    ]


def after_use(before: Spotter, one: Plan, clips: Clips, sounds: Sounds, heard: Sounds) -> Spotter:
    """Add the words' confident sounds to their taught samples."""
    rows = np.concatenate([*one.used, *one.near, one.others])
    sure: dict[str | None, float] = {None: 0.0}
    taken = [sounds.taken(before, rows, sure), heard.taken(before, sensitivities=sure)]
    X = np.concatenate([sounds.vectors[rows], heard.vectors])
    samples = []
    for word, taught in zip(one.words, one.taught, strict=True):
        use = X[np.concatenate(taken) == word]
        weight = min(len(use), len(taught))
        mean = use.mean(axis=0, keepdims=True) if len(use) else use
        samples.append(np.concatenate([clips.taught[taught], np.repeat(mean, weight, axis=0)]))
    return model(one.words, samples)


def _figures(
    spotter: Spotter, one: Plan, sounds: Sounds, counted: Sounds, hours: float
) -> np.ndarray:
    """Percentage missed and accepted, and alarms per hour, (words, figures)."""
    alarms = Counter(counted.taken(spotter).tolist())
    found = []
    for word, asked, near in zip(one.words, one.asked, one.near_asked, strict=True):
        shares = [
            100 * float(np.mean(sounds.taken(spotter, rows) == word))
            for rows in (asked, near, one.others_asked)
        ]
        found.append((100 - shares[0], *shares[1:], alarms[word] / hours))
    return np.array(found)


def show(label: str, found: np.ndarray) -> dict[str, Any]:
    """Print and return the means over words, and how many words got worse."""
    row: dict[str, Any] = {"what": label, "words": len(found)}
    print(f"{label}, {len(found)} words")
    for figure, name in enumerate(FIGURES):
        taught, used, twice = found.mean(axis=0)[:, figure].tolist()
        row |= {name: taught, f"{name}_after_use": used, f"{name}_taught_twice": twice}
        change = found[:, 1, figure] - found[:, 0, figure]
        worse, better = int((change > 0).sum()), int((change < 0).sum())
        chance = float(binomtest(worse, worse + better).pvalue) if worse + better else 1.0
        row |= {f"{name}_worse": worse, f"{name}_better": better, f"{name}_p": chance}
        print(
            f"  {name}: {taught:.2f}, after use {used:.2f} (taught twice as many {twice:.2f}); "
            f"worse for {worse} words, by {change.max():.1f} at most, better for {better}, "
            f"p = {chance:.2g}",
            flush=True,
        )
    return row


def model(words: list[str], samples: list[np.ndarray]) -> Spotter:
    """Teach words from the vectors of their samples."""
    spotter = Spotter()
    for word, X in zip(words, samples, strict=True):
        spotter.learn_encoded(Encoded.one_second(X), [word] * len(X))
    return spotter


def encode(
    spotter: Spotter,
    name: str,
    root: str,
    noise: list[np.ndarray],
    known: Sequence[str] | None = None,
) -> Clips:
    """Vectors of the clips that plans may draw: of `known` words to learn, and of all to test."""
    dataset: Dataset = registry.build("datasets", name, root=root)
    clips = [(clip, split) for split in ("train", "test") for clip in dataset.clips(split)]
    takes = Counter((clip.speaker, clip.word) for clip, _ in clips)
    rng, often = np.random.default_rng(0), Counter[str]()
    rows = []
    for index in rng.permutation(len(clips)):
        clip, split = clips[index]
        often[clip.word] += split == "train"
        first = split == "train" and often[clip.word] <= TAUGHT
        teach = (known is None or clip.word in known) and first
        teach |= takes[clip.speaker, clip.word] >= OWN
        if teach or split == "test":
            rows.append((files.load(clip.path), clip.word, str(clip.speaker), split, teach))
    sounds, words, speakers, splits, taught = zip(*rows, strict=True)
    to_teach = [sound for sound, *_, teach in rows if teach]
    vectors = spotter.encode(to_teach, learning=True).vectors
    # Clips that are not taught have no vector to learn.
    learned = np.full((len(rows), vectors.shape[1]), np.nan, dtype=np.float32)
    learned[list(taught)] = vectors
    mixed = [add_noise(sound, noise, rng) for sound in sounds]
    quiet, noisy = (as_sounds(spotter, spotter.encode(every)) for every in (sounds, mixed))
    return Clips(learned, quiet, noisy, np.array(words), np.array(speakers), np.array(splits))


def as_sounds(spotter: Spotter, encoded: Encoded) -> Sounds:
    """Score vectors by the cohort, once for all models."""
    cohort = spotter.encoder.cohort
    assert cohort is not None
    level = cohort.score(encoded.vectors, encoded.seconds)
    return Sounds(encoded.vectors, level, spotter.encoder.is_noise(encoded.vectors))


def add_noise(sound: np.ndarray, noise: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Mix a clip with a part of a noise recording, 10 dB below it."""
    recording = noise[rng.integers(len(noise))]
    start = rng.integers(len(recording) - len(sound))
    stretch = recording[start : start + len(sound)]
    levels = [np.sqrt(np.mean(np.square(x))) for x in (sound, stretch)]
    gain = levels[0] / max(levels[1], 1e-9) * 10 ** (-NOISE_DB / 20)
    return np.clip(sound + gain * stretch, -1, 1).astype(np.float32)


def _rows(clips: Clips, rng: np.random.Generator, word: str, split: str) -> np.ndarray:
    return rng.permutation(np.flatnonzero((clips.words == word) & (clips.split == split)))


if __name__ == "__main__":
    main()
