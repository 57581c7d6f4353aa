"""Wake phrases in noise, as in Picovoice's wake-word benchmark.

    python benchmarks/wake_words.py PHRASES --noise FILE ... --negatives FILE ...
        [--hours H] [--taught 5] [--draws 20] [--snr 10] [--size small] [--out FILE]

PHRASES has a folder of recordings for each phrase. Each draw makes a model of one phrase, which
learns a few of its recordings and is tested on all others.

The stream is built as theirs (github.com/Picovoice/wake-word-benchmark, mixer.py): recordings in a
seeded order, with background between two of them, which is speech from the negatives with a
probability of 20% and silence otherwise. Noise recordings run under all of it. Every part is first
scaled to a peak of 1. Then each recording and background part is scaled by

    sqrt(10 ** (snr / 10) * E(noise under it) / E(itself))

where E is the energy of its loudest frame of 512 samples (32 ms). The loudest frames are 10 dB
apart, so steady noise is louder than at 10 dB by mean power, and crackling noise is quieter. Last,
the whole stream is scaled to a peak of 1. Theirs has 24 hours, LibriSpeech and DEMAND, and long
background parts; here these last 3 s. "Clean" is the same stream without noise. A recording is
missed unless an event of the phrase has its middle in it or within 0.3 s.

False alarms are counted in the negatives without noise. "At 0.1" is the lowest threshold with at
most one alarm in 10 hours; in fewer hours, that is none, and the threshold is just above the
highest alarm. "By tail" is where an exponential tail, fitted to the 20 highest alarms, gives 0.1
alarms per hour: it depends less on the single highest, and assumes an exponential tail. Both
thresholds are found on the negatives they are tested on, as theirs are. Rates are means over draws,
with minimum and maximum.

Each window of the stream and the negatives is encoded once, for all draws (candidates.py).
Recordings with noise make some draws models of a phrase of more than a second: these are searched
as phrases. `--jobs` phrases are tested at a time; each process encodes the negatives again.

openWakeWord is measured on the same streams and negatives, for the phrase that it has a model of
(peer_wake.py); `--alone` leaves it out.
"""

import argparse
import functools
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peer_wake
from candidates import Recording, phrase_candidates

from tapword.audio import files as audio
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Candidate, replay
from tapword.research.datasets.base import word_folders
from tapword.research.stream_eval import TOLERANCE_S
from tapword.research.stream_mix import PlacedClip
from tapword.spotter.encoder import Encoded, Encoder
from tapword.spotter.spotter import Spotter
from tapword.support.intervals import poisson_interval

# One alarm in 10 hours, their operating point; frames of their energy rule; chance of speech.
PER_HOUR, FRAME, BACKGROUND_CHANCE = 0.1, 512, 0.2
STRETCH_S = 3.0
# Alarms that the tail is fitted to. In two hours of phone calls (three phrases, three draws), a fit
# to half an hour for 2 alarms in the rest gave 2.7, 2.0, 0.9 and 0.75 there with 10, 20, 40 and 80.
# It was chosen by these, so on the same calls the column by tail is no independent figure.
TAIL = 20
# Missed at 10 dB and 0.1 alarms per hour, mean of their six phrases, as published by them.
PUBLISHED = {"Porcupine": 2.7, "Snowboy": 31.9, "PocketSphinx": 52.0}


# What a record calls the numbers of a draw.
KEYS = {
    "missed_clean": "clean",
    "missed_in_noise": "noisy",
    "alarms_an_hour": "per_hour",
    "strict_missed_clean": "strict_clean",
    "strict_missed_in_noise": "strict_noisy",
}


class CachedEncoder:
    """An encoder that encodes no clip twice."""

    def __init__(self, encoder: Encoder):
        self._encoder = encoder
        self._known: dict[tuple[bytes, bool], Encoded] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, clips: Sequence[np.ndarray], learning: bool = False) -> Encoded:
        """Encode like the encoder, one clip at a time."""
        rows = []
        for clip in clips:
            key = hashlib.blake2b(clip.tobytes(), digest_size=16).digest(), learning
            if key not in self._known:
                self._known[key] = self._encoder.encode([clip], learning)
            rows.append(self._known[key])
        return Encoded.concatenate(rows)

    def encode_from(self, first: np.ndarray | None, clip: np.ndarray) -> Encoded:
        """Encode a window; the first part of the vector is computed again if it is known."""
        return self.encode([clip])


class Mixed(NamedTuple):
    """A stream (n,) float32, and the recordings of the phrase in it; `file` is their index."""

    sound: np.ndarray
    placed: list[PlacedClip]


def loudest(sound: np.ndarray) -> float:
    """Energy of the loudest frame."""
    whole = len(sound) // FRAME * FRAME
    return float(np.square(sound[:whole], dtype=np.float64).reshape(-1, FRAME).sum(axis=1).max())


def to_peak(sound: np.ndarray) -> np.ndarray:
    return sound / max(float(np.abs(sound).max()), 1e-9)


def mix(
    phrase: str,
    clips: Sequence[np.ndarray],
    negatives: Sequence[np.ndarray],
    noise: Sequence[np.ndarray],
    snr_db: float | None,
) -> Mixed:
    """Build a stream of all clips of a phrase; without noise where `snr_db` is None."""
    rng = np.random.default_rng(0)
    length = round(STRETCH_S * SAMPLE_RATE)

    def stretch() -> np.ndarray:
        source = negatives[int(rng.integers(len(negatives)))]
        start = rng.integers(max(1, len(source) - length))
        speech = audio.as_float(source[start : start + length])
        return to_peak(speech) if rng.uniform() < BACKGROUND_CHANCE else np.zeros_like(speech)

    parts, placed, at = [stretch()], [], STRETCH_S
    for number in rng.permutation(len(clips)):
        clip = to_peak(clips[number])
        end_s = at + len(clip) / SAMPLE_RATE
        placed.append(PlacedClip(phrase, str(number), at, end_s, end_s))
        parts += [clip, stretch()]
        at = end_s + len(parts[-1]) / SAMPLE_RATE
    if snr_db is None:
        return Mixed(np.concatenate(parts), placed)
    under = noise_under(sum(map(len, parts)), noise, rng)
    start = 0
    for part in parts:
        here = under[start : start + len(part)]
        start += len(part)
        here += part * level_over(here, part, snr_db)
    return Mixed(to_peak(under), placed)


def level_over(noise: np.ndarray, sound: np.ndarray, snr_db: float) -> np.float32:
    """Give the factor that puts a sound `snr_db` over noise, by their loudest frames."""
    energy = loudest(sound)
    if not energy:
        return np.float32(0)
    return np.float32(np.sqrt(10 ** (snr_db / 10) * loudest(noise) / energy))


def noise_under(length: int, noise: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Join recordings of noise in a seeded order, (length,)."""
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < length:
        parts += [to_peak(noise[index]) for index in rng.permutation(len(noise))]
    return np.concatenate(parts)[:length]


def listen(spotters: Sequence[Spotter], recording: Recording) -> list[list[Candidate]]:
    """Listen to a recording with several models of one word or phrase; return their candidates."""
    found = [[] if one.scorer.phrases else recording.candidates(one) for one in spotters]
    longer = [row for row, one in enumerate(spotters) if one.scorer.phrases]
    if longer:
        models = [spotters[row] for row in longer]
        for row, own in zip(longer, phrase_candidates(models, recording.sounds), strict=True):
            found[row] = own
    return found


class Alarms:
    """Candidates of a model of one phrase in the negatives."""

    def __init__(self, phrase: str, candidates: Sequence[Candidate], hours: float):
        self.phrase, self.candidates, self.hours = phrase, candidates, hours
        self._scores = [one.scores.words[phrase] for one in candidates]

    def count(self, threshold: float) -> int:
        """Count the alarms at a threshold."""
        return len(replay(self.candidates, {self.phrase: threshold}))

    def threshold(self) -> float:
        """Lowest threshold with at most `PER_HOUR` alarms, by the detector's own rule."""
        for score in sorted(set(self._scores), reverse=True):
            if self.count(score) > PER_HOUR * self.hours:
                return float(np.nextafter(score, np.inf))
        return -math.inf

    def tail_threshold(self) -> float | None:
        """Threshold where an exponential tail gives `PER_HOUR` alarms; None for too few alarms."""
        peaks = list(self._peaks())
        if len(peaks) <= TAIL:
            return None
        base = peaks[TAIL]
        excess = float(np.mean(peaks[:TAIL])) - base
        return base + excess * math.log(TAIL / (PER_HOUR * self.hours))

    def _peaks(self) -> Iterator[float]:
        """Yield the highest scores, one for each sound, down to the first below the tail."""
        kept: list[int] = []
        for index in np.argsort(self._scores)[::-1]:
            centre = self.candidates[index].centre
            if all(abs(centre - other) >= REFRACTORY_S * SAMPLE_RATE for other in kept):
                kept.append(centre)
                yield self._scores[index]
            if len(kept) > TAIL:
                return


@dataclass
class Drawn:
    """A model of one draw: percentages missed in clean audio and in noise, and thresholds."""

    seed: int
    asked: int
    threshold: float
    clean: float
    noisy: float
    per_hour: float
    strict_threshold: float
    strict_clean: float
    strict_noisy: float
    tail_threshold: float | None
    tail_clean: float | None
    tail_noisy: float | None


@dataclass
class Peer:
    """openWakeWord on the same streams, at its own threshold and at `PER_HOUR`."""

    asked: int
    threshold: float
    clean: float
    noisy: float
    per_hour: float
    strict_threshold: float
    strict_clean: float
    strict_noisy: float


def within(clip: PlacedClip, middles: np.ndarray, late_s: float = TOLERANCE_S) -> np.ndarray:
    return (clip.start_s - TOLERANCE_S <= middles) & (middles <= clip.end_s + late_s)


def judge_peer(
    phrase: str, streams: Sequence[Mixed], negatives: Sequence[np.ndarray], hours: float
) -> Peer:
    """Test openWakeWord."""
    sounds = [(np.clip(stream.sound, -1, 1) * 32767).astype(np.int16) for stream in streams]
    heard = peer_wake.scores(phrase, [*sounds, *negatives])
    heard, alarms = heard[: len(streams)], heard[len(streams) :]

    def missed(number: int, threshold: float) -> float:
        times = peer_wake.event_times(heard[number], threshold)
        found = [within(clip, times, peer_wake.LATE_S).any() for clip in streams[number].placed]
        return 100 * (1 - float(np.mean(found)))

    strict = peer_wake.lowest_threshold(alarms, PER_HOUR * hours)
    return Peer(
        asked=len(streams[0].placed),
        threshold=peer_wake.THRESHOLD,
        clean=missed(0, peer_wake.THRESHOLD),
        noisy=missed(1, peer_wake.THRESHOLD),
        per_hour=peer_wake.count(alarms, peer_wake.THRESHOLD) / hours,
        strict_threshold=strict,
        strict_clean=missed(0, strict),
        strict_noisy=missed(1, strict),
    )


def judge(
    phrase: str,
    seed: int,
    taught: set[str],
    default: float,
    streams: list[Mixed],
    heard: list[list[Candidate]],
    alarms: Alarms,
) -> Drawn:
    """Test a taught model by its candidates in each stream and in the negatives."""
    asked = {clip.file for clip in streams[0].placed} - taught

    def missed(threshold: float) -> list[float]:
        shares = []
        for stream, candidates in zip(streams, heard, strict=True):
            events = replay(candidates, {phrase: threshold})
            middles = np.array([(event.start_s + event.end_s) / 2 for event in events])
            found = {clip.file for clip in stream.placed if within(clip, middles).any()}
            shares.append(100 * len(asked - found) / len(asked))
        return shares

    strict, tail = alarms.threshold(), alarms.tail_threshold()
    clean, noisy = missed(default)
    strict_clean, strict_noisy = missed(strict)
    tail_clean, tail_noisy = (None, None) if tail is None else missed(tail)
    return Drawn(
        seed=seed,
        asked=len(asked),
        threshold=default,
        clean=clean,
        noisy=noisy,
        per_hour=alarms.count(default) / alarms.hours,
        strict_threshold=strict,
        strict_clean=strict_clean,
        strict_noisy=strict_noisy,
        tail_threshold=tail,
        tail_clean=tail_clean,
        tail_noisy=tail_noisy,
    )


@functools.cache
def read_quiet(size: str, paths: tuple[Path, ...], hours: float | None) -> Recording:
    """Encode the negatives, once for all phrases."""
    return Recording(Spotter(size=size).encoder, read_negatives(paths, hours))


def read_negatives(paths: Sequence[Path], hours: float | None) -> list[np.ndarray]:
    """Read recordings as int16; only the first part of each for fewer hours."""
    total = sum(map(audio.length_s, paths)) / 3600
    share = min(1.0, hours / total) if hours else 1.0
    found = []
    for path in paths:
        wanted = round(share * audio.length_s(path) * SAMPLE_RATE)
        parts: list[np.ndarray] = []
        for block in audio.blocks(path):
            parts.append((np.clip(block, -1, 1) * 32767).astype(np.int16))
            if sum(map(len, parts)) >= wanted:
                break
        found.append(np.concatenate(parts)[:wanted])
    return found


def measure(
    options: argparse.Namespace,
) -> tuple[dict[str, list[Drawn]], dict[str, Peer], float]:
    """Test every draw of every phrase, and openWakeWord; also return the hours of negatives."""
    folders = word_folders(options.phrases)
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(measure_phrase, phrase, folder, options) for phrase, folder in folders]
        done = [task.result() for task in tasks]
    phrases = [phrase for phrase, _ in folders]
    results = {phrase: draws for phrase, (draws, _, _) in zip(phrases, done, strict=True)}
    peers = {phrase: peer for phrase, (_, peer, _) in zip(phrases, done, strict=True) if peer}
    return results, peers, done[0][2]


def measure_phrase(
    phrase: str, folder: Path, options: argparse.Namespace
) -> tuple[list[Drawn], Peer | None, float]:
    """Test every draw of a phrase, and openWakeWord if it has a model of it."""
    encoder = CachedEncoder(Spotter(size=options.size).encoder)
    quiet = read_quiet(options.size, tuple(options.negatives), options.hours)
    negatives, hours = quiet.sounds, quiet.hours
    noise = [np.concatenate(list(audio.blocks(path))) for path in options.noise]
    files = list(audio.find(folder))
    if len(files) <= options.taught:
        raise InputError(f"{folder} must have more recordings than the {options.taught} taught")
    clips = [audio.read(file) for file in files]
    streams = [mix(phrase, clips, negatives, noise, snr) for snr in (None, options.snr)]
    peer = None
    if phrase in peer_wake.MODELS and not options.alone:
        peer = judge_peer(phrase, streams, negatives, hours)
        print(f"{phrase}, {peer_wake.NAME}: {peer}", flush=True)
    spotters, taught = [], []
    for seed in range(options.draws):
        chosen = np.random.default_rng(seed).permutation(len(clips))[: options.taught]
        spotter = Spotter(size=options.size)
        spotter.encoder = encoder  # type: ignore[assignment]
        spotter.learn_many([clips[index] for index in chosen], [phrase] * len(chosen))
        spotters.append(spotter)
        taught.append({str(index) for index in chosen})
    recordings = [quiet, *(Recording(quiet.encoder, [stream.sound]) for stream in streams)]
    found = zip(*(listen(spotters, one) for one in recordings), strict=True)
    draws = []
    for seed, (spotter, own, (rest, *heard)) in enumerate(
        zip(spotters, taught, found, strict=True)
    ):
        default, alarms = spotter.thresholds()[phrase], Alarms(phrase, rest, hours)
        draws.append(judge(phrase, seed, own, default, streams, heard, alarms))
        print(f"{phrase}, draw {seed}: {draws[-1]}", flush=True)
    return draws, peer, hours


def cell(draws: Sequence[Drawn], key: str, digits: int = 1) -> str:
    """Mean over draws, with minimum and maximum."""
    values = [getattr(draw, key) for draw in draws]
    if None in values:
        return "too few alarms"
    mean, low, high = np.mean(values), min(values), max(values)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def record(phrase: str, draws: Sequence[Drawn], hours: float) -> dict[str, Any]:
    """Means and deviations over draws at the default threshold, and every draw."""
    row: dict[str, Any] = {"phrase": phrase, "system": "tapword", "models": len(draws)}
    for key, name in KEYS.items():
        values = [getattr(draw, name) for draw in draws]
        row |= {key: float(np.mean(values)), f"{key}_std": float(np.std(values))}
    count = round(sum(draw.per_hour for draw in draws) * hours)
    row["alarms_an_hour_ci"] = list(poisson_interval(count, hours * len(draws)))
    asked = {"asked": draws[0].asked, "hours": hours}
    return row | asked | {"draws": [asdict(draw) for draw in draws]}


def record_peer(phrase: str, peer: Peer, hours: float) -> dict[str, Any]:
    """Render the same of openWakeWord, which has one model of a phrase."""
    row: dict[str, Any] = {"phrase": phrase, "system": peer_wake.NAME, "models": 1}
    row |= {key: getattr(peer, name) for key, name in KEYS.items()}
    row["alarms_an_hour_ci"] = list(poisson_interval(round(peer.per_hour * hours), hours))
    return row | {"asked": peer.asked, "hours": hours, "peer": asdict(peer)}


def show(
    results: dict[str, list[Drawn]],
    peers: dict[str, Peer],
    hours: float,
    options: argparse.Namespace,
) -> None:
    print(
        f"\n{options.taught} recordings taught, {options.draws} draws, size {options.size}; noise "
        f"of {options.snr:g} dB by loudest frames; {hours:.2f} hours of negatives: "
        f"{', '.join(path.name for path in options.negatives)}."
    )
    if hours * PER_HOUR < 1:
        print(f"Fewer than {1 / PER_HOUR:g} hours: at {PER_HOUR:g} an hour means no alarm at all.")
    print("Missed %, mean over draws (least to most):\n")
    strict = f"at {PER_HOUR:g} an hour"
    print(
        "| phrase | asked | default: clean | in noise | alarms an hour | "
        f"{strict}: clean | in noise | by tail: clean | in noise |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    keys = ["clean", "noisy", "per_hour"]
    keys += [f"{kind}_{sound}" for kind in ("strict", "tail") for sound in ("clean", "noisy")]
    every = [draw for draws in results.values() for draw in draws]
    rows = results | ({"all": every} if len(results) > 1 else {})
    for phrase, draws in rows.items():
        cells = [cell(draws, key, 2 if key == "per_hour" else 1) for key in keys]
        print(f"| {phrase} | {draws[0].asked} | {' | '.join(cells)} |")
    for phrase, peer in peers.items():
        cells = [f"{getattr(peer, key):.2f}" for key in keys if hasattr(peer, key)]
        print(f"| {phrase}, {peer_wake.NAME} | {peer.asked} | {' | '.join(cells)} | | |")
    for name, missed in PUBLISHED.items():
        print(f"| {name}, published | | | | | | {missed} | | |")
    print(
        "\nPublished rows are Picovoice's own: means over six phrases, in other background speech "
        "and other noise, over 24 hours."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("phrases", type=Path, help="folder with a folder for each phrase")
    parser.add_argument("--noise", type=Path, nargs="+", required=True)
    parser.add_argument("--negatives", type=Path, nargs="+", required=True)
    parser.add_argument("--hours", type=float, help="of the negatives [default: all]")
    parser.add_argument("--taught", type=int, default=5, help="recordings of a phrase")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--snr", type=float, default=10.0, help="dB, by loudest frames")
    parser.add_argument("--size", default="small")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--alone", action="store_true", help="without openWakeWord")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write them as JSON")
    options = parser.parse_args()
    results, peers, hours = measure(options)
    show(results, peers, hours, options)
    if options.out:
        rows = [record(phrase, draws, hours) for phrase, draws in results.items()]
        rows += [record_peer(phrase, peer, hours) for phrase, peer in peers.items()]
        options.out.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
