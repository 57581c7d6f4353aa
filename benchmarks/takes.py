"""How often a take is questioned: by the same voice, by another voice, of another word.

    python benchmarks/takes.py FOLDER

FOLDER is Speech Commands, or has a folder of clips named SPEAKER_nohash_N.wav for each word.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from tapword import Spotter
from tapword.audio import files
from tapword.spotter.session import TeachSession

# Pairs of takes of a word by a voice, and other words of the voice that are also taught.
PAIRS, BESIDE = 200, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rng = np.random.default_rng(0)
    takes: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("[!_]*/*_nohash_*.wav")):
        takes[path.name.partition("_")[0]][path.parent.name].append(path)
    pairs = [
        (voice, word)
        for voice, words in takes.items()
        for word, paths in words.items()
        if len(paths) > 1 and len(words) > 1
    ]
    rng.shuffle(pairs)
    empty = Spotter()
    doubted: dict[str, list[bool]] = defaultdict(list)
    for voice, word in pairs[:PAIRS]:
        others = [name for name in takes[voice] if name != word][: BESIDE + 1]
        strangers = [name for name in takes if name != voice and word in takes[name]]
        first, second = takes[voice][word][:2]
        asked = {
            "the same voice": second,
            "another voice": takes[rng.choice(strangers)][word][0],
            "another word": takes[voice][others[-1]][0],
        }
        taught = empty.copy()
        beside = [takes[voice][name][0] for name in others[:-1]]
        taught.learn_many([first, *beside], [word, *others[:-1]])
        for kind, path in asked.items():
            checked = TeachSession(taught).check(files.read(path), word)
            doubted[kind].append(checked.severity == "doubt")
    for kind, found in doubted.items():
        print(f"{kind}: {np.mean(found):.1%} of {len(found)} are doubted")


if __name__ == "__main__":
    main()
