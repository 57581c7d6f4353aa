"""Let voices say words, and keep what the ear makes of them.

    python training/typed/say.py WORDS.json FOLDER {kokoro,flite} SEED CLIPS

FOLDER/SOURCE_SEED_N.npz: `frames` (n, 25, 101) and `vectors` (n, 672) of the ear, float16; `spans`
(n, 2), where the word begins and ends within its second; and `rows` of WORDS.json. They are English
words of one second at most. A file has up to 200 clips, so a job may be stopped at any time.
"""

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tapword.audio import files
from tapword.audio.align import extent
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import TapwordError
from tapword.spotter.encoder import Encoder
from tapword.spotter.spotter import Spotter
from tapword.voices import kokoro

IN_FILE, WORKERS = 200, 8
# A longer word is a phrase to the ear, with other places of its heads.
LONGEST_S = 0.95
FLITE = ("slt", "rms", "awb", "kal16")
Row = tuple[str, str, str, int]
Say = Callable[[Row, np.random.Generator], np.ndarray]


def by_kokoro() -> Say:
    """As `learn --say` does: one clip of those it would make, drawn at random."""
    voice = kokoro.Kokoro(threads=1)

    def say(row: Row, rng: np.random.Generator) -> np.ndarray:
        _, language, phonemes, _ = row
        signs = kokoro.signs(phonemes, language)
        numbers = [kokoro.SIGNS[sign] for sign in signs if sign in kokoro.SIGNS]
        part = kokoro.cast(voice._files.speakers, language, 16, rng)[rng.integers(16)]
        speed = np.exp(rng.uniform(*np.log(kokoro.SPEEDS)))
        return voice._say(numbers, part, float(speed)).audio

    return say


def by_flite() -> Say:
    """One clip of a random speaker of flite, slower or faster."""

    def say(row: Row, rng: np.random.Generator) -> np.ndarray:
        speaker, stretch = str(rng.choice(FLITE)), rng.uniform(0.8, 1.3)
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            options = ["-voice", speaker, "--setf", f"duration_stretch={stretch:.2f}"]
            command = ["flite", *options, "-t", row[0], "-o", file.name]
            subprocess.run(command, check=True, capture_output=True)
            return files.load(file.name)

    return say


def drawn(rows: list[Row], seed: int) -> Iterator[int]:
    """Yield English words that are not held out, in a random order, each once before any again."""
    some = [
        k
        for k, (text, language, sounds, held) in enumerate(rows)
        if language == "en-us" and not held and " " not in text + sounds
    ]
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.permutation(some)


def save(target: Path, encoder: Encoder, clips: list[tuple[int, np.ndarray]]) -> None:
    """Write the ear's frames and vectors of rows and their prepared clips."""
    sounds = [clip for _, clip in clips]
    blocks = encoder.backbones[0].frames_many(sounds)
    np.savez(
        target,
        frames=np.stack([frames for (frames,) in blocks]).astype(np.float16),
        vectors=encoder.encode(sounds).vectors.astype(np.float16),
        spans=np.array([extent(sound) for sound in sounds]) / SAMPLE_RATE,
        rows=np.array([row for row, _ in clips]),
    )


def main(words: str, folder: str, source: str, seed: str, clips: str) -> None:
    """Say and encode."""
    rows: list[Row] = json.loads(Path(words).read_text("utf-8"))
    say = {"kokoro": by_kokoro, "flite": by_flite}[source]()
    encoder, order = Spotter().encoder, drawn(rows, int(seed))

    def speak(row: int) -> tuple[int, np.ndarray] | None:
        try:
            audio = say(rows[row], np.random.default_rng([int(seed), row]))
            start, end = extent(audio)
            short = (end - start) / SAMPLE_RATE <= LONGEST_S
            return (row, encoder.prepare(audio)) if short else None
        except TapwordError as error:
            print(rows[row], error, flush=True)
            return None

    for number in range(-(-int(clips) // IN_FILE)):
        # Programs are waited for together; the network speaks by itself.
        with ThreadPoolExecutor(1 if source == "kokoro" else WORKERS) as pool:
            said = pool.map(speak, itertools.islice(order, min(IN_FILE, int(clips))))
            found = [one for one in said if one is not None]
        save(Path(folder, f"{source}_{seed}_{number:03d}.npz"), encoder, found)
        print(f"{source}: file {number}, {len(found)} clips", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
