"""How often a recording of several takes is split, and how often one of a single take is.

    python benchmarks/split.py FOLDER [--size SIZE] [--single FOLDER...]

FOLDER is Speech Commands, or has a folder of clips for each word. Names of clips start with the
speaker and an underscore.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tapword import Spotter
from tapword.audio import files
from tapword.audio.endpoint import examine
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.takes import find_takes

# Recordings of each kind, takes of one, and pauses between them in seconds.
RECORDINGS, TAKES, PAUSE_S = 100, 7, (0.4, 2.0)
# Level of the noise in each recording, in dB of full scale.
NOISE_DB = (-75, -50)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="small")
    parser.add_argument("--single", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    encoder = Spotter(size=options.size).encoder
    takes: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in files.find(options.folder):
        if not path.parent.name.startswith("_"):
            takes[path.name.partition("_")[0], path.parent.name].append(path)
    every = [path for paths in takes.values() for path in paths]

    chosen = [every[i] for i in rng.permutation(len(every))[:RECORDINGS]]
    single = [joined([files.read(path)], rng) for path in chosen]
    report("single clips", [len(find_takes(encoder, audio)) for audio in single], 0)
    for folder in options.single:
        clips = [files.read(path) for path in files.find(folder)]
        report(str(folder), [len(find_takes(encoder, audio)) for audio in clips], 0)
    by_speaker: dict[str, list[Path]] = defaultdict(list)
    for (speaker, _), paths in takes.items():
        by_speaker[speaker].append(paths[0])
    pairs = [words[:2] for words in by_speaker.values() if len(words) > 1]
    said = [joined(speech(paths), rng) for paths in pairs[:RECORDINGS]]
    report("two words of one speaker", [len(find_takes(encoder, audio)) for audio in said], 0)
    for n in range(2, TAKES + 1):
        enough = [paths for paths in takes.values() if len(paths) >= n]
        rng.shuffle(enough)
        recordings = [speech(paths[:n]) for paths in enough[:RECORDINGS]]
        found = [find_takes(encoder, joined(some, rng)) for some in recordings if len(some) == n]
        report(f"{n} takes", [sum(one.is_take for one in sounds) for sounds in found], n)


def speech(paths: Sequence[Path]) -> list[np.ndarray]:
    """Read the speech of clips in which there is some."""
    found = [examine(files.read(path)) for path in paths]
    return [take.audio for take in found if take.has_speech]


def joined(clips: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Join clips with pauses, in faint noise."""
    parts = [np.zeros(SAMPLE_RATE // 2, dtype=np.float32)]
    for clip in clips:
        # A clip has 0.2 s of margin on each side.
        pause_s = max(0.0, rng.uniform(*PAUSE_S) - 0.4 * (len(clips) > 1))
        parts += [clip, np.zeros(round(pause_s * SAMPLE_RATE), dtype=np.float32)]
    audio = np.concatenate(parts)
    noise = 10 ** (rng.uniform(*NOISE_DB) / 20) * rng.standard_normal(len(audio))
    return (audio + noise).astype(np.float32)


def report(kind: str, found: list[int], wanted: int) -> None:
    """Print how many recordings were split, and how many into the right number."""
    right = f", {sum(n == wanted for n in found)} into {wanted}" if wanted else ""
    print(f"{kind}: {sum(n > 1 for n in found)} of {len(found)} are split{right}", flush=True)


if __name__ == "__main__":
    main()
