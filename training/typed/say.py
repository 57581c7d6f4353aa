"""Let voices say the words of a list, and keep the ear's vectors.

    python training/typed/say.py WORDS.json FOLDER {kokoro,espeak,flite} SEED CLIPS

FOLDER/SOURCE_SEED_N.npz: `vectors` (n, 672) float16, as a model learns them, `seconds` (n,), `rows`
of WORDS.json and `speakers`. A file holds at most 200 clips, so a
job may be stopped at any time.
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
from tapword.errors import TapwordError
from tapword.spotter.spotter import Spotter
from tapword.voices import espeak, kokoro
from tapword.voices.base import Said

IN_FILE, WORKERS = 200, 8
FLITE = ("slt", "rms", "awb", "kal16")
# Share of English in what a voice of several languages says.
ENGLISH = 0.8
Row = tuple[str, str, str, int]
Say = Callable[[Row, np.random.Generator], Said]


def by_kokoro() -> Say:
    """As `learn --say` does: one clip of those it would make, drawn at random."""
    voice = kokoro.Kokoro(threads=1)

    def say(row: Row, rng: np.random.Generator) -> Said:
        _, language, phonemes, _ = row
        signs = kokoro.signs(phonemes, language)
        numbers = [kokoro.SIGNS[sign] for sign in signs if sign in kokoro.SIGNS]
        part = kokoro.cast(voice._files.speakers, language, 16, rng)[rng.integers(16)]
        speed = np.exp(rng.uniform(*np.log(kokoro.SPEEDS)))
        return voice._say(numbers, part, float(speed))

    return say


def by_espeak() -> Say:
    """One clip of a random variant, speed and pitch."""

    def say(row: Row, rng: np.random.Generator) -> Said:
        text, language, *_ = row
        variant = str(rng.choice(espeak.VARIANTS))
        name = f"{language}+{variant}" if variant else language
        speed, pitch = rng.integers(*espeak.WORDS_PER_MINUTE), rng.integers(*espeak.PITCH)
        options = ["-v", name, "-s", str(speed), "-p", str(pitch), "--stdout", "--", text]
        return Said(espeak._decoded(espeak._run(options)), name)

    return say


def by_flite() -> Say:
    """One clip of a random speaker of flite, slower or faster."""

    def say(row: Row, rng: np.random.Generator) -> Said:
        speaker, stretch = str(rng.choice(FLITE)), rng.uniform(0.8, 1.3)
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            options = ["-voice", speaker, "--setf", f"duration_stretch={stretch:.2f}"]
            command = ["flite", *options, "-t", row[0], "-o", file.name]
            subprocess.run(command, check=True, capture_output=True)
            return Said(files.load(file.name), speaker)

    return say


def drawn(rows: list[Row], source: str, rng: np.random.Generator) -> Iterator[int]:
    """Yield rows in a random order, each once before any comes again."""
    english = [k for k, row in enumerate(rows) if row[1] == "en-us"]
    others = [k for k, row in enumerate(rows) if row[1] != "en-us"]

    def again_and_again(some: list[int]) -> Iterator[int]:
        while True:
            yield from rng.permutation(some)

    one, other = again_and_again(english), again_and_again(others)
    while True:
        yield int(next(one if source == "flite" or rng.random() < ENGLISH else other))


def main(words: str, folder: str, source: str, seed: str, clips: str) -> None:
    """Say and encode."""
    rows: list[Row] = json.loads(Path(words).read_text("utf-8"))
    say = {"kokoro": by_kokoro, "espeak": by_espeak, "flite": by_flite}[source]()
    spotter, order = Spotter(), drawn(rows, source, np.random.default_rng(int(seed)))
    seeds = np.random.default_rng([int(seed), len(source)])

    def speak(row: int) -> tuple[int, str, np.ndarray] | None:
        try:
            said = say(rows[row], np.random.default_rng(int(seeds.integers(2**32))))
            return row, said.speaker, spotter.encoder.prepare(said.audio)
        except TapwordError as error:
            print(rows[row], error, flush=True)
            return None

    for number in range(int(clips) // IN_FILE):
        # Programs are waited for together; the network speaks by itself.
        with ThreadPoolExecutor(1 if source == "kokoro" else WORKERS) as pool:
            found = [one for one in pool.map(speak, itertools.islice(order, IN_FILE)) if one]
        encoded = spotter.encoder.encode([clip for _, _, clip in found], learning=True)
        np.savez(
            Path(folder, f"{source}_{seed}_{number:03d}.npz"),
            vectors=encoded.vectors.astype(np.float16),
            seconds=encoded.seconds,
            rows=np.array([row for row, _, _ in found]),
            speakers=np.array([speaker for _, speaker, _ in found]),
        )
        print(source, (number + 1) * IN_FILE, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
