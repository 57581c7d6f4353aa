"""Words taught from their text alone, with takes, and by takes alone.

    python benchmarks/typed.py PHRASES ENGLISH ARABIC [--negatives FILE ...] [--words 20]
        [--sets phrases english arabic] [--clips 16] [--draws 3] [--hours H] [--kept DIR]
        [--out FILE]

A voice says each text, as `tapword learn --say` does: three wake phrases of PHRASES, words of
Speech Commands (ENGLISH) and words of the Arabic set (ARABIC), whose folders have English names.
`--words` takes only the first so many of each set. Spoken clips are kept in a folder, since
speaking takes most of the time.

Each model knows one word: by its text, by its text and 1, 3, 5 or 10 recordings, or by these
recordings alone. It is tested on the word's other recordings, at its own threshold: clean, with
noise under them, whose loudest frame is 10 dB below that of the recording (the rule of
`wake_words.py`), and with the same noise 10 dB below it by mean power. In Speech Commands and the
wake phrases, nearly every recording is by another person. "Worse by" is the difference of the
shares missed with text and without, on the same recordings, with a 95% interval from resampling
words.

With negatives, false alarms in them are counted instead. They are searched once: the detector of a
model of all words, taught by their texts, finds the windows. Each model of one word scores all of
them, and its events at its own threshold are alarms. Draws are left out whose takes are so long
that the word counts as a phrase, which is searched in longer windows.
"""

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from wake_words import (
    Alarms,
    CachedEncoder,
    level_over,
    listen_to,
    noise_under,
    read_negatives,
    to_peak,
)

from tapword import registry
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.decider import Candidate
from tapword.listening.detector import Detector
from tapword.research.cache import Cache
from tapword.spotter import typed
from tapword.spotter.cohort import unit
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Scores
from tapword.voices.base import SpokenBy, Voice
from tapword.voices.choice import choose

SNR_DB, NOISES = 10.0, ("exercise_bike", "running_tap", "pink_noise")
TAKES = (1, 3, 5, 10)
# How recordings are tested: the key of a record -> the case.
CASES = {"missed": "clean", "missed_in_noise": "noise", "missed_in_mild_noise": "mild noise"}
SETS = ("phrases", "english", "arabic")
# Seconds of the negatives that are searched at a time.
PIECE_S = 300
# Recordings of a word that are used, of those that a set has.
MOST = 60
RESAMPLED = 2000
PHRASES = ("alexa", "jarvis", "view glass")
ENGLISH = (
    "marvin sheila happy house right stop bird zero left four "
    "bed cat dog down eight nine seven tree wow yes"
)
# Folder of the set -> the word, vocalised, so that espeak-ng reads it right.
ARABIC = {
    "zero": "صِفْر",
    "one": "وَاحِد",
    "two": "اِثْنَان",
    "three": "ثَلَاثَة",
    "four": "أَرْبَعَة",
    "five": "خَمْسَة",
    "six": "سِتَّة",
    "seven": "سَبْعَة",
    "eight": "ثَمَانِيَة",
    "nine": "تِسْعَة",
    "right": "يَمِين",
    "left": "يَسَار",
    "yes": "نَعَم",
    "no": "لَا",
    "stop": "تَوَقَّف",
    "ok": "مُوَافِق",
    "cancel": "إِلْغَاء",
    "undo": "تَرَاجُع",
    "record": "تَسْجِيل",
    "options": "خِيَارَات",
}


class Word(NamedTuple):
    """A word of a set: its name in models, its text and language, and its recordings."""

    set: str
    name: str
    text: str
    language: str
    folder: Path


class Heard(NamedTuple):
    """A word as vectors: as spoken, and its recordings to learn, and to test by case."""

    word: Word
    by: SpokenBy
    spoken: Encoded
    learned: Encoded
    asked: dict[str, Encoded]


def words_of(options: argparse.Namespace) -> Iterator[Word]:
    """List the words of all sets."""
    for name in PHRASES:
        yield Word("phrases", name, name, "en-us", options.phrases / name)
    for name in ENGLISH.split()[: options.words]:
        yield Word("english", name, name, "en-us", options.english / name)
    for name, text in [*ARABIC.items()][: options.words]:
        folder = options.arabic / "ar" / "clips" / name
        yield Word("arabic", f"ar {name}", text, "ar", folder)


def voice_of(word: Word, voice: str | None) -> Voice:
    """Make the voice of a word: the one that was named, or the best one here."""
    return registry.build("voices", voice) if voice else choose(word.language)


def spoken(word: Word, n: int, made: Voice, kept: Path) -> list[np.ndarray]:
    """Let a voice say a word, or read what it said before."""
    about = "|".join((made.name, word.language, word.text, str(n)))
    path = kept / f"{made.name}_{hashlib.sha256(about.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        kept.mkdir(parents=True, exist_ok=True)
        said = [one.audio for one in made.speak(word.text, word.language, n)]
        arrays: dict[str, Any] = {f"{k:03d}": audio for k, audio in enumerate(said)}
        np.savez(path, **arrays)
    with np.load(path, allow_pickle=False) as stored:
        return [stored[name] for name in sorted(stored.files)]


def recordings(word: Word) -> list[np.ndarray]:
    """Read a word's recordings, at most `MOST` of them in a seeded order."""
    found = files.find(word.folder)
    chosen = np.random.default_rng(0).permutation(len(found))[:MOST]
    return [files.read(found[index]) for index in chosen]


def in_noise(
    clip: np.ndarray, noise: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Put a part of the noise under a clip, `SNR_DB` below it: by loudest frames, by mean power."""
    start = int(rng.integers(len(noise) - len(clip)))
    under = noise[start : start + len(clip)]
    power = float(np.square(under).mean()) / max(float(np.square(clip).mean()), 1e-12)
    factors = level_over(under, clip, SNR_DB), np.float32(np.sqrt(10 ** (SNR_DB / 10) * power))
    loudest, mean = (to_peak(clip * factor + under).astype(np.float32) for factor in factors)
    return loudest, mean


def hear(spotter: Spotter, word: Word, noise: np.ndarray, options: argparse.Namespace) -> Heard:
    """Encode a word's clips."""
    clips, rng = recordings(word), np.random.default_rng(1)
    loudest, mean = zip(*(in_noise(clip, noise, rng) for clip in clips), strict=True)
    voice = voice_of(word, options.voice)
    said = spoken(word, options.clips, voice, options.kept)
    print(f"{word.name}: {len(clips)} recordings, {len(said)} spoken by {voice.name}", flush=True)
    cases = {} if options.negatives else dict(zip(CASES, (clips, loudest, mean), strict=True))
    return Heard(
        word,
        SpokenBy(voice.name, voice.is_native(word.language)),
        spotter.encode(said, learning=True),
        spotter.encode(clips, learning=True),
        {case: spotter.encode(heard) for case, heard in cases.items()},
    )


def teach(spotter: Spotter, one: Heard, takes: np.ndarray, text: bool) -> None:
    """Teach a word by its text, by some recordings, or by both."""
    if text:
        spotter.learn_encoded(one.spoken, [one.word.name] * len(one.spoken), one.by)
    if len(takes):
        spotter.learn_encoded(one.learned[takes], [one.word.name] * len(takes))


def missed(empty: Spotter, one: Heard, takes: np.ndarray, text: bool) -> np.ndarray:
    """Percent of other recordings that a model misses, by `CASES`."""
    spotter = empty.copy()
    teach(spotter, one, takes, text)
    threshold = spotter.thresholds()[one.word.name]
    asked = np.setdiff1d(np.arange(len(one.learned)), takes)
    shares = []
    for heard in one.asked.values():
        scores = [scores.words[one.word.name] for scores in spotter.score_encoded(heard[asked])]
        shares.append(100 * float(np.mean(np.array(scores) < threshold)))
    return np.array(shares)


def drawn(one: Heard, n: int, draw: int) -> np.ndarray:
    return np.random.default_rng([draw, 7]).permutation(len(one.learned))[:n]


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the mean of words (k,), by resampling them."""
    rows = np.random.default_rng(0).integers(len(differences), size=(RESAMPLED, len(differences)))
    low, high = np.percentile(differences[rows].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def compare(empty: Spotter, heard: Sequence[Heard], draws: int) -> list[dict[str, Any]]:
    """Measure each set, and all words together, by text, takes and both."""
    found: dict[tuple[str, int], np.ndarray] = {}

    def over_draws(n: int, text: bool) -> np.ndarray:
        times = range(draws if n else 1)
        return np.array(
            [
                np.mean([missed(empty, one, drawn(one, n, k), text) for k in times], axis=0)
                for one in heard
            ]
        )

    found["text", 0] = over_draws(0, True)
    for n in TAKES:
        found["takes", n], found["both", n] = over_draws(n, False), over_draws(n, True)
    rows: list[dict[str, Any]] = []
    for name in (*SETS, "all"):
        own = np.array([name in (one.word.set, "all") for one in heard])
        if not own.any() or (name == "all" and len({one.word.set for one in heard}) == 1):
            continue
        for (kind, n), values in found.items():
            shares = dict(zip(CASES, map(float, values[own].mean(axis=0)), strict=True))
            row = {"words": name, "taught": taught_by(kind, n)}
            rows.append(row | shares | {"n_words": int(own.sum())})
        for n in TAKES:
            for at, case in enumerate(CASES.values()):
                worse = (found["both", n] - found["takes", n])[own, at]
                low, high = interval(worse)
                about = {"words": name, "takes": n, "in": case}
                measured = {"worse_by": float(worse.mean()), "lowest": low, "highest": high}
                rows.append(about | measured)
        print(f"{name}: done", flush=True)
    return rows


def taught_by(kind: str, n: int) -> str:
    takes = f"{n} take{'s' * (n > 1)}"
    return {"text": "text", "takes": takes, "both": f"text and {takes}"}[kind]


class Windows:
    """Windows of the negatives that a detector scores, and their vectors (n, D).

    They are kept in a folder, a piece of the negatives at a time, so a stopped run continues.
    """

    def __init__(self, spotter: Spotter, negatives: Sequence[np.ndarray], kept: Path):
        self.hours = sum(map(len, negatives)) / SAMPLE_RATE / 3600
        self.candidates: list[Candidate] = []
        parts, length = [], PIECE_S * SAMPLE_RATE
        pieces = [x[at : at + length] for x in negatives for at in range(0, len(x), length)]
        for number, piece in enumerate(pieces):
            digest = hashlib.sha256(piece.tobytes() + spotter.learner.directions().tobytes())
            path = kept / f"windows_{digest.hexdigest()[:16]}.npz"
            if not path.exists():
                np.savez(path, **search(spotter, piece))
            with np.load(path, allow_pickle=False) as stored:
                # Pieces are one stream, with a gap between two of them.
                start = number * (length + SAMPLE_RATE)
                for centre, begin_s, end_s in stored["places"]:
                    times = begin_s + start / SAMPLE_RATE, end_s + start / SAMPLE_RATE
                    self.candidates.append(Candidate(int(centre) + start, *times, Scores({}, {})))
                parts.append(Encoded(stored["vectors"], stored["seconds"]))
            print(f"searched {number + 1} of {len(pieces)} pieces", flush=True)
        found, cohort = Encoded.concatenate(parts), spotter.encoder.cohort
        assert cohort is not None
        self.vectors = unit(found.vectors)
        self.cohort_scores = cohort.score(found.vectors, found.seconds)

    def alarms(self, alone: Spotter, name: str) -> int:
        """Count the alarms of a model of one word at its threshold."""
        threshold = alone.thresholds()[name]
        scores = self.vectors @ alone.learner.directions()[0] - self.cohort_scores
        found = [
            self.candidates[k]._replace(scores=Scores({name: float(scores[k])}, {}))
            for k in np.flatnonzero(scores >= threshold)
        ]
        return Alarms(name, found, self.hours).count(threshold)


def search(spotter: Spotter, sound: np.ndarray) -> dict[str, Any]:
    """Find the windows of a recording: places (n, 3), vectors (n, D) and their seconds (n,)."""
    encoder, places, rows = spotter.encoder, [], []

    class Noted(CachedEncoder):
        def encode_from(self, first: np.ndarray | None, clip: np.ndarray) -> Encoded:
            self.last = encoder.encode_from(first, clip)
            return self.last

    noted, listening = Noted(encoder), spotter.copy()
    listening.encoder = noted  # type: ignore[assignment]

    def observe(candidate: Candidate) -> None:
        if not candidate.phrase:
            places.append((candidate.centre, candidate.start_s, candidate.end_s))
            rows.append(noted.last)

    listen_to(Detector(listening, observe=observe), [sound])
    # Silence has no windows.
    none = Encoded(np.empty((0, encoder.dim()), np.float32), np.empty(0, np.float32))
    found = Encoded.concatenate([none, *rows])
    shaped = np.reshape(places, (len(rows), 3))
    return {"places": shaped, "vectors": found.vectors, "seconds": found.seconds}


def count_alarms(
    empty: Spotter,
    heard: Sequence[Heard],
    negatives: Sequence[np.ndarray],
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Count false alarms of each word by its own threshold."""
    draws = options.draws
    spotter = empty.copy()
    for one in heard:
        teach(spotter, one, np.array([], dtype=int), text=True)
    windows, rows = Windows(spotter, negatives, options.kept), []
    print(f"{len(windows.candidates)} windows of {windows.hours:.2f} hours", flush=True)

    def rate(one: Heard, n: int, draw: int, text: bool) -> float:
        alone, name = empty.copy(), one.word.name
        teach(alone, one, drawn(one, n, draw), text)
        if name in alone.scorer.phrases:
            return math.nan
        return windows.alarms(alone, name) / windows.hours

    kinds = [("text", 0), *((kind, n) for n in TAKES for kind in ("takes", "both"))]
    for kind, n in kinds:
        times = range(draws if n else 1)
        rates = {
            one.word.name: float(np.nanmean([rate(one, n, k, kind != "takes") for k in times]))
            for one in heard
        }
        for name in dict.fromkeys(one.word.set for one in heard):
            own = [rates[one.word.name] for one in heard if one.word.set == name]
            row: dict[str, Any] = {"words": name, "taught": taught_by(kind, n)}
            row |= {"alarms_an_hour": float(np.mean(own)), "most": max(own)}
            rows.append(row | {"hours": windows.hours})
        print(f"alarms by {taught_by(kind, n)}: done", flush=True)
    return rows


def main() -> None:
    """Print a record for each comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("phrases", "english", "arabic"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--negatives", type=Path, nargs="+", default=[])
    parser.add_argument("--hours", type=float, help="of negatives; default: all")
    parser.add_argument("--words", type=int, default=20, help="of English and of Arabic")
    parser.add_argument("--clips", type=int, default=typed.CLIPS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--size", default="small")
    parser.add_argument("--voice", help="default: the best one here")
    parser.add_argument("--kept", type=Path, default=Cache().folder.parent / "spoken")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    spotter = Spotter(size=options.size)
    folder = options.english / "_background_noise_"
    noises = [np.concatenate(list(files.blocks(folder / f"{name}.wav"))) for name in NOISES]
    noise = noise_under(60 * SAMPLE_RATE, noises, np.random.default_rng(0))
    words = [word for word in words_of(options) if word.set in options.sets]
    heard = [hear(spotter, word, noise, options) for word in words]
    if not heard:
        raise InputError("there are no words to measure")
    if not options.negatives:
        records = compare(spotter, heard, options.draws)
    else:
        negatives = read_negatives(options.negatives, options.hours)
        records = count_alarms(spotter, heard, negatives, options)
    for row in records:
        shown: Callable[[Any], str] = lambda x: f"{x:.2f}" if isinstance(x, float) else str(x)  # noqa: E731
        print("  ".join(f"{key} {shown(value)}" for key, value in row.items()))
    if options.out:
        options.out.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
