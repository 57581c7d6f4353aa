"""Compare choices around the network: how vectors are compared, and how a clip begins.

    python training/ear/choices.py SPEECH_COMMANDS SPEECHOCEAN CALL

SPEECH_COMMANDS is a folder of that data set, of which training clips are used, 20 of a word to
teach and 40 to test; SPEECHOCEAN and CALL are as for training/whitening.py. For each choice, it
prints the accuracy with 1, 5, 10 and 20 clips a word; the percentage of clips of five words that is
rejected where 5, 1 and 0.1% of the other words pass; and the percentage missed at the highest score
of a word in the call, mean over words. All scores are normalised by the cohort.
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent))
from places import recordings
from speechocean import tokens
from whitening import windows

from tapword import registry
from tapword.audio import files
from tapword.backbones.tapword_ear import HOP, TapwordEar
from tapword.poolings.attentive import Attentive
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.encoder import CLIPS_AT_ONCE, prepare
from tapword.spotter.whitening import Whitening

TAUGHT, TESTED, SHOTS, DRAWS = 20, 40, (1, 5, 10, 20), 5
KNOWN, SETS, RATES = 5, 60, (0.05, 0.01, 0.001)
TOKENS, WINDOWS = 4000, 500
SILENCE = 12 * HOP
ABOUT = {"source": "trial"}


def main(speech_commands: str, speechocean: str, call: str) -> None:
    """Print the figures."""
    clips: dict[str, list[np.ndarray]] = {}
    for clip in registry.build("datasets", "speech_commands", root=speech_commands).clips("train"):
        if len(clips.setdefault(clip.word, [])) < TAUGHT + TESTED:
            clips[clip.word].append(prepare(files.read(clip.path), aligned=True))
    said = list(itertools.islice(tokens(Path(speechocean)), TOKENS))
    [sound] = recordings([Path(call)])
    heard = [one.clip for one in windows(sound)]
    rng = np.random.default_rng(0)
    cohort = [said[row].among.clip for row in rng.choice(len(said), WINDOWS, replace=False)]
    cohort += [heard[row] for row in rng.choice(len(heard), WINDOWS, replace=False)]
    words = [one.word for one in said] * 2
    groups = Attentive().groups(TapwordEar().dims[0])
    for silence in (0, SILENCE):
        X = vectors([one.alone for one in said] + [one.among.clip for one in said], silence)
        B, C = vectors(cohort, silence), vectors(heard, silence)
        V = {word: vectors(some, silence) for word, some in clips.items()}
        ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "as they are": lambda x: np.hstack([unit(x[:, : groups[0]]), unit(x[:, groups[0] :])]),
            "whitened": Whitening.fit(X, words, groups, ABOUT),
            "scaled": Whitening.scale(X, words, groups, ABOUT),
        }
        for name, way in ways.items():
            show = {word: unit(way(found)) for word, found in V.items()}
            told = measure(show, Windows(way(B)), unit(way(C)))
            print(f"{silence / 16_000:.2f} s of silence before, {name}: {told}", flush=True)


def vectors(clips: list[np.ndarray], silence: int) -> np.ndarray:
    """Vectors (n, D) of prepared clips that begin after some silence."""
    ear, pooling, parts = TapwordEar(), Attentive(frame_rate=25), []
    for start in range(0, len(clips), CLIPS_AT_ONCE):
        some = [np.pad(clip, (silence, 0)) for clip in clips[start : start + CLIPS_AT_ONCE]]
        parts += [pooling.pool(frames[silence // HOP :]) for [frames] in ear.frames_many(some)]
    return np.stack(parts)


def measure(clips: dict[str, np.ndarray], cohort: Windows, call: np.ndarray) -> str:
    """Figures of unit vectors of each word's clips."""
    words = list(clips)
    asked = np.concatenate([found[TAUGHT:] for found in clips.values()])
    truth = np.repeat(np.arange(len(words)), [len(found) - TAUGHT for found in clips.values()])
    shares = [
        np.mean(
            [
                np.mean((asked @ means(clips, words, n, seed).T).argmax(axis=1) == truth)
                for seed in range(DRAWS)
            ]
        )
        for n in SHOTS
    ]
    level, call_level = cohort.cohort_score(asked), cohort.cohort_score(call)
    refused, missed = [], []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        some = rng.choice(len(words), KNOWN, replace=False)
        directions = means(clips, [words[row] for row in some], 5, seed)
        scores = asked @ directions.T - level[:, None]
        known = np.isin(truth, some)
        others = np.sort(scores[~known].max(axis=1))
        right = some[scores[known].argmax(axis=1)] == truth[known]
        best = scores[known].max(axis=1)
        limits = [others[int(len(others) * (1 - rate))] for rate in RATES]
        refused.append([np.mean(~(right & (best > limit))) for limit in limits])
        highest = (call @ directions.T - call_level[:, None]).max(axis=0)
        missed += [np.mean(scores[truth == row, at] < highest[at]) for at, row in enumerate(some)]
    figures = [shares, np.mean(refused, axis=0), [np.mean(missed)]]
    return "; ".join(" ".join(f"{100 * one:.1f}" for one in group) for group in figures)


def means(clips: dict[str, np.ndarray], words: list[str], n: int, seed: int) -> np.ndarray:
    """Directions of words by n of their taught clips, drawn by the seed."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(TAUGHT, n, replace=False) for _ in words]
    return unit(
        np.stack([clips[word][row].mean(axis=0) for word, row in zip(words, rows, strict=True)])
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
