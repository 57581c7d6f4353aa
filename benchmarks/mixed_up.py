"""Whether negatives that a voice speaks keep a typed word apart from words close in sound.

    python benchmarks/mixed_up.py ENGLISH [--kept DIR] [--out FILE]

Each of the 30 words of Speech Commands (ENGLISH) is taught by its text alone, in a model of its
own. Counted are the recordings of the word that are missed, and those of the other 29 words that
count as it: of all of them, and of the one that does so most often.

Negatives are other words, spoken by the same voice: the likeliest of the 29, by the scores of its
spoken clips; or 1, 2 or 3 words of a dictionary that are nearest in phonemes, likeliest first. The
dictionary has none of the 30 words, as a program does not know what will be said. Its nearest words
were found for eight words, by an edit distance in which similar sounds cost half.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typed

from tapword.research.cache import Cache
from tapword.research.datasets.base import word_folders
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.voices.base import SpokenBy

RECORDINGS, CLIPS, NEAR_CLIPS = 40, 16, 6
NEAR = {
    "bed": ("bet", "bud", "bread"),
    "bird": ("bud", "birds", "burned"),
    "up": ("upper", "cup", "cups"),
    "three": ("free", "threw", "through"),
    "tree": ("true", "treat", "trees"),
    "go": ("goal", "goat", "goes"),
    "one": ("when", "win", "once"),
    "off": ("if", "offer", "awful"),
}


class Heard(NamedTuple):
    """A word as vectors: spoken, to learn and to score; and its recordings."""

    learned: Encoded
    asked: Encoded
    real: Encoded


def spoken(word: str, n: int, voice: str, kept: Path) -> list[np.ndarray]:
    one = typed.Word("english", word, word, "en-us", Path())
    return typed.spoken(one, n, typed.voice_of(one, voice), kept)


class Model:
    """A model of one typed word with negatives."""

    def __init__(self, empty: Spotter, name: str, clips: Encoded, negatives: Sequence[Encoded]):
        self.name, self.spotter = name, empty.copy()
        by = SpokenBy("voice")
        self.spotter.learn_encoded(clips, [name] * len(clips), by)
        for encoded in negatives:
            for vector in encoded.vectors:
                self.spotter.learner.learn_one(vector, name, negative=True)
        self.threshold = self.spotter.thresholds()[name]

    def mean(self, encoded: Encoded) -> float:
        """Mean score of clips."""
        scores = self.spotter.score_encoded(encoded)
        return float(np.mean([one.words[self.name] for one in scores]))

    def accepted(self, encoded: Encoded) -> float:
        """Percent of clips that count as the word."""
        found = [one.not_rejected() for one in self.spotter.score_encoded(encoded)]
        said = [found_here.get(self.name, -np.inf) >= self.threshold for found_here in found]
        return 100 * float(np.mean(said))


def measure(model: Model, heard: dict[str, Heard]) -> np.ndarray:
    """Percent missed, of all others accepted, and of the one accepted most often."""
    others = [model.accepted(one.real) for name, one in heard.items() if name != model.name]
    own = model.accepted(heard[model.name].real)
    return np.array([100 - own, np.mean(others), max(others)])


def main() -> None:
    """Print a record for each kind of negatives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("english", type=Path)
    parser.add_argument("--size", default="small")
    parser.add_argument("--voice", default="kokoro")
    parser.add_argument("--kept", type=Path, default=Cache().folder.parent / "spoken")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    empty = Spotter(size=options.size)
    heard = {}
    for name, folder in word_folders(options.english):
        clips = spoken(name, CLIPS, options.voice, options.kept)
        word = typed.Word("english", name, name, "en-us", folder)
        real = empty.encode(typed.recordings(word)[:RECORDINGS])
        heard[name] = Heard(empty.encode(clips, learning=True), empty.encode(clips), real)
    near: dict[str, Encoded] = {}
    for other in dict.fromkeys(other for others in NEAR.values() for other in others):
        said = spoken(other, NEAR_CLIPS, options.voice, options.kept)
        near[other] = empty.encode(said, learning=True)
    found: dict[tuple[int, str], list[np.ndarray]] = {}

    def note(words: int, kind: str, name: str, negatives: Sequence[Encoded]) -> None:
        made = Model(empty, name, heard[name].learned, negatives)
        found.setdefault((words, kind), []).append(measure(made, heard))

    for name, one in heard.items():
        plain = Model(empty, name, one.learned, [])
        rest = [other for other in heard if other != name]
        likeliest = max(rest, key=lambda other: plain.mean(heard[other].asked))
        note(len(heard), "none", name, [])
        note(len(heard), "likeliest of the others", name, [heard[likeliest].learned])
        if name in NEAR:
            order = sorted(NEAR[name], key=lambda word: -plain.mean(near[word]))
            for n in range(len(order) + 1):
                kind = f"{n} of the dictionary" if n else "none"
                note(len(NEAR), kind, name, [near[word] for word in order[:n]])
    rows: list[dict[str, Any]] = []
    for (words, kind), values in found.items():
        missed, others, most = map(float, np.mean(values, axis=0))
        row = {"n_words": words, "negatives": kind, "missed": missed}
        rows.append(row | {"others_accepted": others, "worst_accepted": most})
        print(rows[-1])
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
