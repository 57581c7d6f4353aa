"""Compare ears by their frames: of clips heard alone, and of words in a running stream.

    python training/ear/evaluate.py DATA EAR ... [--before S] [--known S] [--no-anew]
        [--cache FILE]

DATA is the folder of recordings (`speech_commands_v0.01_subset`, `mswc_layout`, `negatives`,
`wake_phrases`, `training`). EAR is a checkpoint of train.py, a shipped file of weights, or
`tapword_ear`. The audio is prepared once and kept in FILE.

Vectors are compared as in the presets: scaled by how words vary, and normalised by a cohort, both
fitted here to speechocean762 and phone calls 1 and 2. Clips are taught without augmented copies,
from the beginning of a stream, or after some silence (`--before`). Words in a stream are searched
at their known places, in two ways: "pooled" takes the frames of the stream, those of the first
`--known` seconds of a window; "anew" cuts out a second and passes it through the ear from the
beginning, as the detector does for ears that do not stream.
Taught clips are always heard alone.

Printed are, in percent:

- right: Speech Commands with 1, 5, 10, 20 and 100 clips a word, and Arabic with 1 and 5
- refused: clips of taught words below the score that 5 and 1% of other words reach (English: five
  words of five clips; Arabic: three of three)
- placed: right at five clips a word where each test clip follows other speech without a pause,
  and is followed by it; and in noise at 10 dB
- alike: mean cosine of a test clip's vector in that stream and alone
- missed: test clips below the highest score, or below the fifth highest, that a word of five clips
  reaches in an hour of calls
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from ship import folded

sys.path.append(str(Path(__file__).parent.parent))
from speechocean import BESIDE_S, LONGEST_S, SHORTEST_S, TESTED

from tapword import registry
from tapword.audio import align, files
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.tapword_ear import HOP, EarNetwork, EarStream, TapwordEar
from tapword.learners.cosine import Cosine
from tapword.listening.frames import KNOWN_S
from tapword.listening.segmenter import Segmenter
from tapword.poolings.attentive import Attentive
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.whitening import Whitening

SHOTS, ARABIC_SHOTS = (1, 5, 10, 20, 100), (1, 5)
DRAWS, SETS, WORD_DRAWS = 8, 60, 4
RATES = 0.05, 0.01
# Level of sounds in streams, and noise below it; pieces of speech between two words.
LEVEL, SNR_DB, GAP_S = 0.05, 10.0, 1.0
NOISES = "exercise_bike", "running_tap", "pink_noise"
SENTENCES, TOKENS, WINDOWS, FIT_S = 500, 2500, 500, 900
# Seconds of a stream that pass the network at once.
PIECE_S = 40
ABOUT = {"source": "trial"}
Vectors = np.ndarray


class Ear:
    """An ear, from a checkpoint or shipped weights."""

    def __init__(self, path: str):
        if path == "tapword_ear":
            self._network = TapwordEar().network
        else:
            given = safetensors.numpy.load_file(path)
            if "flat.norm.weight" in given:
                given = folded(given)
            with tempfile.TemporaryDirectory() as folder:
                shipped = Path(folder, "ear.safetensors")
                safetensors.numpy.save_file(given, shipped)
                self._network = EarNetwork(shipped)
        self.pooling = Attentive(frame_rate=SAMPLE_RATE // HOP)
        self.groups = self.pooling.groups(len(self._network.arrays["out.bias"]))
        self.million = self._network.params / 1e6

    def clips(self, clips: Sequence[np.ndarray], before_s: float = 0.0) -> Vectors:
        """Vectors (n, D) of clips of one second each, alone."""
        before, parts = round(before_s * SAMPLE_RATE / HOP) * HOP, []
        for start in range(0, len(clips), 32):
            some = np.stack(clips[start : start + 32])
            some = np.pad(some, ((0, 0), (before, 0)))
            frames = EarStream(self._network, len(some)).whole(some)[:, before // HOP :]
            parts.append(self.pooling.pool(frames))
        return np.concatenate(parts)

    def stream(self, sound: np.ndarray) -> np.ndarray:
        """Frames (t, d) of a stream."""
        piece, stream = PIECE_S * SAMPLE_RATE, EarStream(self._network)
        sound = np.pad(sound, (0, -len(sound) % HOP))
        found = [
            stream.advance(sound[start : start + piece])[0] for start in range(0, len(sound), piece)
        ]
        return np.concatenate([*found, *stream.provisional()])

    def pool(self, frames: np.ndarray, centres: np.ndarray, known_s: float) -> Vectors:
        """Vectors (n, D) of the seconds of a stream around these samples, as a detector has them.

        Of each second, frames of the first `known_s` are used; the last of these stands for others.
        """
        first = (centres - SAMPLE_RATE // 2 + HOP // 2) // HOP
        rows = first[:, None] + np.arange(SAMPLE_RATE // HOP)
        last = first + int(np.ceil(known_s * SAMPLE_RATE / HOP)) - 1
        rows = np.clip(rows, 0, np.minimum(last, len(frames) - 1)[:, None])
        return self.pooling.pool(frames[rows])


class Placed(NamedTuple):
    """A stream, and the centre of each word in it, in samples."""

    sound: np.ndarray
    centres: np.ndarray

    def anew(self) -> list[np.ndarray]:
        """Cut out a second around each word."""
        return [align.cut(self.sound, int(centre), SAMPLE_RATE) for centre in self.centres]


class Tests(NamedTuple):
    """Recordings, prepared: clips (n, 16000) with their words, and streams."""

    english: np.ndarray
    english_words: np.ndarray
    asked: np.ndarray
    asked_words: np.ndarray
    arabic: np.ndarray
    arabic_words: np.ndarray
    arabic_asked: np.ndarray
    arabic_asked_words: np.ndarray
    among: Placed
    noisy: Placed
    wake: np.ndarray
    wake_words: np.ndarray
    wake_clean: Placed
    wake_noisy: Placed
    calls: Placed
    tokens: np.ndarray
    token_words: np.ndarray
    sentences: Placed
    sentence_words: np.ndarray
    fit_calls: Placed


def prepare(data: Path) -> Tests:
    """Read and place all recordings."""
    sets = {
        "english": ("speech_commands", data / "speech_commands_v0.01_subset"),
        "arabic": ("mswc:language=ar", data / "mswc_layout"),
    }
    found: dict[str, np.ndarray] = {}
    raw: list[np.ndarray] = []
    for name, (spec, root) in sets.items():
        dataset = registry.build("datasets", spec, root=str(root))
        for split, to in (("train", ""), ("test", "_asked")):
            listed = list(dataset.clips(split))
            clips = [files.read(clip.path) for clip in listed]
            key = "asked" if (name, to) == ("english", "_asked") else name + to
            found[key] = np.stack([align.align(clip, 1.0) for clip in clips])
            found[f"{key}_words"] = np.array([clip.word for clip in listed])
            if key == "asked":
                raw = clips
    folder = data / "speech_commands_v0.01_subset" / "_background_noise_"
    noise = itertools.cycle(level(read(folder / f"{name}.wav")) for name in NOISES)
    negatives = data / "negatives"
    coffee = read(negatives / "coffee_orders_20min.flac")
    wake = sorted((data / "wake_phrases").glob("*/*"))
    phrases = [files.read(path) for path in wake]
    tokens, words, sentences, sentence_words = speech(data / "training" / "speechocean762")
    return Tests(
        **found,
        among=among(raw, coffee),
        noisy=placed(raw, noise),
        wake=np.stack([align.align(clip, 1.0) for clip in phrases]),
        wake_words=np.array([path.parent.name for path in wake]),
        wake_clean=placed(phrases, None),
        wake_noisy=placed(phrases, noise),
        calls=segmented([negatives / f"phone_calls_{part}_of_4.opus" for part in (3, 4)]),
        tokens=tokens,
        token_words=words,
        sentences=sentences,
        sentence_words=sentence_words,
        fit_calls=segmented([negatives / f"phone_calls_{n}_of_4.opus" for n in (1, 2)], FIT_S),
    )


def read(path: Path) -> np.ndarray:
    """Read a recording of any length."""
    return np.concatenate(list(files.blocks(path)))


def level(sound: np.ndarray) -> np.ndarray:
    """Scale a sound to `LEVEL`."""
    return sound * np.float32(LEVEL / max(float(np.sqrt(np.square(sound).mean())), 1e-6))


def among(clips: Sequence[np.ndarray], speech: np.ndarray) -> Placed:
    """Place the sound of clips in speech, without a pause."""
    gap = round(GAP_S * SAMPLE_RATE)
    rng = np.random.default_rng(0)
    parts: list[np.ndarray] = []
    centres, at = [], 0
    for clip in clips:
        between = np.zeros(gap, dtype=np.float32)
        while np.sqrt(np.square(between).mean()) < LEVEL / 20:
            start = int(rng.integers(len(speech) - gap))
            between = speech[start : start + gap]
        first, last = align.extent(clip)
        parts += [level(between), level(clip[first:last])]
        centres.append(at + gap + align.centre(clip) - first)
        at += gap + last - first
    parts.append(level(speech[:gap]))
    return Placed(np.concatenate(parts), np.array(centres))


def placed(clips: Sequence[np.ndarray], noise: Iterator[np.ndarray] | None) -> Placed:
    """Place clips in a stream, with silence between them, and noise under all if there is some."""
    gap = np.zeros(round(GAP_S / 2 * SAMPLE_RATE), dtype=np.float32)
    parts: list[np.ndarray] = [gap]
    centres, at = [], len(gap)
    for clip in clips:
        first, last = align.extent(clip)
        loud = float(np.sqrt(np.square(clip[first:last]).mean()))
        parts += [clip * np.float32(LEVEL / loud), gap]
        centres.append(at + align.centre(clip))
        at += len(clip) + len(gap)
    sound = np.concatenate(parts)
    if noise is not None:
        under: list[np.ndarray] = []
        while sum(map(len, under)) < len(sound):
            under.append(next(noise))
        under_all = np.concatenate(under)[: len(sound)]
        sound = sound + under_all * np.float32(10 ** (-SNR_DB / 20))
    return Placed(sound, np.array(centres))


def segmented(paths: Sequence[Path], seconds: float | None = None) -> Placed:
    """Join recordings; the centres are those of windows that a detector would score."""
    sounds, centres, at = [], [], 0
    for path in paths:
        sound = read(path)
        sound = sound if seconds is None else sound[: round(seconds * SAMPLE_RATE)]
        sound = sound[: len(sound) // HOP * HOP]
        segmenter = Segmenter()
        for start in range(0, len(sound), 10 * SAMPLE_RATE):
            segmenter.push(sound[start : start + 10 * SAMPLE_RATE])
            centres += [at + one.centre for one in segmenter.windows() if one.loud]
        sounds.append(sound)
        at += len(sound)
    return Placed(np.concatenate(sounds), np.array(centres))


def speech(folder: Path) -> tuple[np.ndarray, np.ndarray, Placed, np.ndarray]:
    """Words of sentences: cut out (n, 16000), and in a stream of these sentences."""
    tested = set(TESTED.split())
    lines = (folder / "words.jsonl").read_text("utf-8").splitlines()
    rng = np.random.default_rng(0)
    sounds, centres, alone, words, at = [], [], [], [], 0
    for row in rng.permutation(len(lines))[:SENTENCES]:
        sentence = json.loads(lines[row])
        sound = files.load(folder / "clips" / sentence["clip"])
        for word, start_s, length_s in sentence["words"]:
            if word in tested or not SHORTEST_S <= length_s <= LONGEST_S:
                continue
            first = max(0, round((start_s - BESIDE_S) * SAMPLE_RATE))
            last = round((start_s + length_s + BESIDE_S) * SAMPLE_RATE)
            alone.append(align.align(sound[first:last], 1.0))
            words.append(word)
            centres.append(at + round((start_s + length_s / 2) * SAMPLE_RATE))
        sounds.append(sound)
        at += len(sound)
    kept = np.array(words)
    return np.stack(alone), kept, Placed(np.concatenate(sounds), np.array(centres)), kept


def stored(data: Path, cache: Path) -> Tests:
    """Read prepared recordings from the cache, which is made if it does not exist."""
    if not cache.is_file():
        made = prepare(data)
        flat: dict[str, Any] = {}
        for name, one in made._asdict().items():
            parts = one._asdict() if isinstance(one, Placed) else {"": one}
            flat |= {f"{name}.{part}" if part else name: array for part, array in parts.items()}
        np.savez(cache, **flat)
    with np.load(cache) as file:
        arrays = {name: file[name] for name in file.files}
    fields: dict[str, Any] = {}
    for name in Tests._fields:
        if name in arrays:
            fields[name] = arrays[name]
        else:
            fields[name] = Placed(arrays[f"{name}.sound"], arrays[f"{name}.centres"])
    return Tests(**fields)


class Judge:
    """Figures of an ear whose vectors in streams are heard in one way."""

    def __init__(self, tests: Tests, ear: Ear, before_s: float, known_s: float | None):
        self.tests = tests
        self._heard: Callable[[Placed], Vectors] = (
            (lambda placed: ear.clips(placed.anew()))
            if known_s is None
            else (lambda placed: ear.pool(ear.stream(placed.sound), placed.centres, known_s))
        )
        rng = np.random.default_rng(0)
        counts = dict(zip(*np.unique(tests.token_words, return_counts=True), strict=True))
        often = np.flatnonzero([counts[word] >= 3 for word in tests.token_words])
        rows = rng.permutation(often)[:TOKENS]
        running = self._heard(tests.sentences._replace(centres=tests.sentences.centres[rows]))
        alone = ear.clips(tests.tokens[rows], before_s)
        words = list(tests.token_words[rows])
        both = np.concatenate([alone, running])
        self._map = Whitening.scale(both, words * 2, ear.groups, ABOUT)
        calls = tests.fit_calls
        some = calls._replace(centres=rng.permutation(calls.centres)[:WINDOWS])
        cohort = np.concatenate(
            [running[rng.permutation(len(running))[:WINDOWS]], self._heard(some)]
        )
        self.cohort = Windows(self._map(cohort))
        self._ear, self._before_s = ear, before_s

    def alone(self, clips: np.ndarray) -> Vectors:
        """Whitened vectors of clips."""
        return self._map(self._ear.clips(list(clips), self._before_s))

    def heard(self, placed: Placed) -> Vectors:
        """Whitened vectors of the words of a stream."""
        return self._map(self._heard(placed))

    def normalized(self, X: Vectors, directions: np.ndarray) -> np.ndarray:
        """Scores (n, K), less the cohort's."""
        return unit(X) @ directions.T - self.cohort.cohort_score(X)[:, None]


def main() -> None:
    """Print the figures of each ear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("ears", nargs="+", metavar="ear")
    parser.add_argument("--before", type=float, default=0.0, metavar="S")
    parser.add_argument("--known", type=float, default=KNOWN_S, metavar="S")
    parser.add_argument("--no-anew", action="store_true", help="do not hear words anew")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/tapword_ears.npz"))
    options = parser.parse_args()
    tests = stored(options.data, options.cache)
    for path in options.ears:
        start = time.process_time()
        ear = Ear(path)
        print(f"\n{path}: {ear.million:.2f} million weights", flush=True)
        for anew in (False,) if options.no_anew else (False, True):
            judge = Judge(tests, ear, options.before, None if anew else options.known)
            lines = [*clips_alone(judge), *in_streams(judge)]
            for line in lines:
                print(f"{'anew' if anew else 'pooled':7} {line}", flush=True)
        print(f"{time.process_time() - start:.0f} s of CPU")


def clips_alone(judge: Judge) -> Iterator[str]:
    """Clips heard alone: right and refused."""
    tests = judge.tests
    languages = {
        "English": (tests.english, tests.english_words, tests.asked, tests.asked_words),
        "Arabic": (tests.arabic, tests.arabic_words, tests.arabic_asked, tests.arabic_asked_words),
    }
    protocols = {"English": (SHOTS, 5, 5), "Arabic": (ARABIC_SHOTS, 3, 3)}
    for name, (shown, words, asked, truth) in languages.items():
        X, Y = judge.alone(shown), judge.alone(asked)
        shots, known, clips = protocols[name]
        right = []
        for count in shots:
            shares = []
            for seed in range(1 if count == 100 else DRAWS):
                learner = taught(X, words, sorted(set(words)), count, seed)
                best = np.array(list(learner.words))[learner.scores(Y).argmax(axis=1)]
                shares.append(np.mean(best == truth))
            right.append(np.mean(shares))
        refused = refusals(judge, X, words, Y, truth, known, clips)
        yield f"{name} right {percent(right)}; refused {percent(refused)}"


def refusals(
    judge: Judge,
    X: Vectors,
    words: np.ndarray,
    Y: Vectors,
    truth: np.ndarray,
    known: int,
    clips: int,
) -> list[float]:
    """Taught words below the score that some of the others reach."""
    names = sorted(set(words))
    own, others = [], []
    for seed in range(SETS):
        chosen = [names[row] for row in np.random.default_rng(seed).permutation(len(names))[:known]]
        scores = judge.normalized(Y, directions(X, words, chosen, clips, seed)).max(axis=1)
        mine = np.isin(truth, chosen)
        own.append(scores[mine])
        others.append(scores[~mine])
    ranked = np.sort(np.concatenate(others))[::-1]
    limits = [ranked[int(rate * len(ranked))] for rate in RATES]
    return [float(np.mean(np.concatenate(own) <= limit)) for limit in limits]


def in_streams(judge: Judge) -> Iterator[str]:
    """Words in a stream: right, alike, and missed."""
    tests = judge.tests
    X, alone = judge.alone(tests.english), judge.alone(tests.asked)
    words, truth = tests.english_words, tests.asked_words
    calls = judge.heard(tests.calls)
    placed = {"in speech": judge.heard(tests.among), "in noise": judge.heard(tests.noisy)}
    for name, Y in placed.items():
        shares = []
        for seed in range(DRAWS):
            learner = taught(X, words, sorted(set(words)), 5, seed)
            best = np.array(list(learner.words))[learner.scores(Y).argmax(axis=1)]
            shares.append(np.mean(best == truth))
        cosine = np.einsum("nd,nd->n", unit(Y), unit(alone))
        yield f"{name}: right {percent([np.mean(shares)])}, alike {np.mean(cosine):.3f}"
    asked = {"alone": alone} | placed
    yield "words missed, " + missed(judge, X, words, truth, asked, calls, exclude=False)
    P, phrases = judge.alone(tests.wake), tests.wake_words
    asked = {"clean": judge.heard(tests.wake_clean), "in noise": judge.heard(tests.wake_noisy)}
    yield "wake phrases missed, " + missed(judge, P, phrases, phrases, asked, calls, exclude=True)


def missed(
    judge: Judge,
    X: Vectors,
    words: np.ndarray,
    truth: np.ndarray,
    asked: dict[str, Vectors],
    calls: Vectors,
    exclude: bool,
) -> str:
    """Clips below the highest and the fifth highest score in calls; `exclude` the taught ones."""
    found: dict[str, list[list[float]]] = {name: [] for name in asked}
    levels = judge.cohort.cohort_score(calls)
    units = unit(calls)
    scored = {name: (unit(Y), judge.cohort.cohort_score(Y)) for name, Y in asked.items()}
    for word in sorted(set(words)):
        for seed in range(WORD_DRAWS if not exclude else 3 * WORD_DRAWS):
            rows = drawn(words, word, 5, seed)
            [direction] = unit(X[rows].mean(axis=0)[None])
            ranked = np.sort(units @ direction - levels)[::-1]
            mine = truth == word
            if exclude:
                mine[rows] = False
            for name, (U, level_of) in scored.items():
                scores = (U @ direction - level_of)[mine]
                found[name].append([float(np.mean(scores < ranked[n])) for n in (0, 4)])
    return "; ".join(f"{name} {percent(np.mean(rows, axis=0))}" for name, rows in found.items())


def drawn(words: np.ndarray, word: str, count: int, seed: int) -> np.ndarray:
    """Rows of some clips of a word."""
    rows = np.flatnonzero(words == word)
    return np.random.default_rng(seed).permutation(rows)[:count]


def taught(X: Vectors, words: np.ndarray, names: list[str], count: int, seed: int) -> Cosine:
    """Teach some clips of each word."""
    learner = Cosine(prior="shipped", covariance="full")
    rows = np.concatenate([drawn(words, name, count, seed) for name in names])
    learner.learn_many(X[rows], list(words[rows]))
    return learner


def directions(
    X: Vectors, words: np.ndarray, names: list[str], count: int, seed: int
) -> np.ndarray:
    """Directions (K, D) of words by some of their clips."""
    means = [X[drawn(words, name, count, seed)].mean(axis=0) for name in names]
    return unit(np.stack(means))


def percent(shares: Sequence[float] | np.ndarray) -> str:
    """Show shares in percent."""
    return " ".join(f"{100 * one:.1f}" for one in shares)


if __name__ == "__main__":
    main()
