"""Misses, false alarms and latency of a spotter in a long stream with words at known times.

The detector runs over the stream once. Its events at other thresholds follow from the candidates it
scored, by its own rules.
"""

import bisect
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from tapword.audio import files as audio
from tapword.audio.files import SAMPLE_RATE
from tapword.audio.microphone import CHUNK_S
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Candidate, Decider, Event, Overlaps
from tapword.listening.detector import Detector
from tapword.research.datasets.base import word_folders
from tapword.research.records import Environment
from tapword.research.runner import Progress
from tapword.research.stream_mix import PlacedClip, SampleReader, StreamMix
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR
from tapword.support.atomic_files import PathLike, why_not_file
from tapword.support.intervals import binomial_interval, poisson_interval

# An event belongs to a clip if its middle is at most this far outside.
TOLERANCE_S = 0.3
# About how many points the curve has, and the most false alarms per hour on it.
CURVE_POINTS, CURVE_MAX_PER_HOUR = 200, 120.0

Kind = Literal["hit", "repeat", "confusion", "false alarm"]


class Observed(NamedTuple):
    """A candidate, and the end of the chunk after which it was scored, in seconds."""

    candidate: Candidate
    reported_s: float


# An event without its confidence, which differs from threshold to threshold.
Heard = tuple[str, float, float, float]


@dataclass(frozen=True)
class EventRecord:
    """An event and its kind.

    The first event of a clip's own word is a "hit", a later one a "repeat", another word in a clip
    a "confusion". Outside clips it is a "false alarm", and `clip`, the clip's index, is None.
    """

    kind: Kind
    word: str
    start_s: float
    end_s: float
    score: float
    reported_s: float
    clip: int | None


@dataclass(frozen=True)
class WordReport:
    """Counts of one word; `confusions` are clips of other words recognised as it."""

    positives: int
    misses: int
    miss_rate: float | None
    miss_rate_ci: tuple[float, float] | None
    false_alarms: int
    confusions: int
    repeats: int


@dataclass(frozen=True)
class Latency:
    """Seconds from the end of a word until it was reported; None without hits."""

    median: float | None
    p95: float | None


@dataclass(frozen=True)
class DetPoint:
    """A point of the curve; `threshold` is the mean over words."""

    threshold: float
    miss_rate: float
    false_alarms_per_hour: float


@dataclass(kw_only=True)
class StreamConfig:
    """Configuration: words with their taught samples, names of files, options."""

    words: dict[str, int]
    positives: int
    negatives: list[str]
    noise: list[str] | None
    snr_db: float | None
    seed: int
    every_s: float | None
    wanted_per_hour: float
    refractory_s: float
    notes: list[str]
    command: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamReport:
    """Results on a stream; docs/protocols.md explains each number."""

    miss_rate: float
    miss_rate_ci: tuple[float, float]
    false_alarms: int
    false_alarms_per_hour: float
    false_alarms_ci: tuple[float, float]
    confusions: int
    repeats: int
    latency_s: Latency
    per_word: dict[str, WordReport]
    hours: float
    thresholds: dict[str, float]
    speed: float
    det: list[DetPoint]
    events: list[EventRecord]
    clips: list[PlacedClip]
    seconds: float
    config: StreamConfig
    environment: Environment


def evaluate_stream(
    spotter: Spotter,
    positives: PathLike,
    negatives: Sequence[PathLike],
    *,
    noise: Sequence[PathLike] = (),
    snr_db: float | None = None,
    seed: int = 0,
    every_s: float | None = None,
    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
    thresholds: Mapping[str, float] | None = None,
    refractory_s: float = REFRACTORY_S,
    progress: Progress | None = None,
) -> StreamReport:
    """Measure how well a spotter detects its words in a stream.

    Parameters
    ----------
    positives
        Folder with a folder of clips for each word.
    negatives
        Recordings that contain none of the words.
    noise, snr_db, seed, every_s
        As for `StreamMix`. The next three are as for `Detector`.
    progress
        Called with (step, seconds done, total).
    """
    start = time.perf_counter()
    clips, notes = find_positives(positives, list(spotter.words))
    detector = Detector(
        spotter,
        false_alarms_per_hour=false_alarms_per_hour,
        thresholds=thresholds,
        refractory_s=refractory_s,
    )
    stream = StreamMix(negatives, clips, seed=seed, every_s=every_s, noise=noise, snr_db=snr_db)
    observed = _listen(detector, stream, progress)
    if not stream.placed:
        raise InputError(
            f"no clip fits into the {stream.negative_s:.0f} s of negatives; give longer recordings "
            "or a smaller every_s"
        )
    notes += [f"{file} was left out: {why}" for file, why in stream.unreadable]
    if left := len(clips) - len(stream.placed) - len(stream.unreadable):
        notes.append(f"{left} of {len(clips)} clips were left out: the negatives are too short")
    config = StreamConfig(
        words=dict(spotter.words),
        positives=len(stream.placed),
        negatives=[Path(path).name for path in negatives],
        noise=[Path(path).name for path in noise] or None,
        snr_db=snr_db,
        seed=seed,
        every_s=every_s,
        wanted_per_hour=false_alarms_per_hour,
        refractory_s=detector.refractory_s,
        notes=notes,
    )
    return observed.report(detector.thresholds, config, start)


def find_positives(
    folder: PathLike, words: Sequence[str]
) -> tuple[list[tuple[PathLike, str]], list[str]]:
    """Clips in FOLDER/<word>/ as (file, word), and notes on missing and ignored words."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} {why_not_file(folder) or 'is not a folder'}")
    named = word_folders(folder)
    clips: list[tuple[PathLike, str]] = [
        (file, word)
        for word in words
        for name, sub in named
        if name == word
        for file in audio.find(sub)
    ]
    if not clips:
        known = ", ".join(words) or "none"
        raise InputError(f"{folder} has no clips of the model's words: {known}")
    notes = []
    if ignored := [name for name, _ in named if name not in words]:
        notes.append(f"ignored folders of untaught words: {', '.join(ignored)}")
    found = {word for _, word in clips}
    if missing := [word for word in words if word not in found]:
        notes.append(f"no clips of: {', '.join(missing)}")
    return clips, notes


@dataclass(frozen=True)
class ObservedStream:
    """The candidates of a stream, which give its events at any thresholds.

    `hours` are of the negatives, without the clips; `seconds` is the length of the stream, and
    `detector_s` the time to process it. `reported` has the time of each event of the detector: a
    word may wait for a phrase that contains it.
    """

    observed: Sequence[Observed]
    placed: Sequence[PlacedClip]
    hours: float
    seconds: float
    detector_s: float
    refractory_s: float = REFRACTORY_S
    reported: Mapping[Heard, float] = field(default_factory=dict)

    def events(self, thresholds: Mapping[str, float]) -> list[EventRecord]:
        """Events at some thresholds, and their kinds."""
        decide, overlaps = Decider(self.refractory_s), Overlaps()
        reported: dict[Heard, float] = {}
        for candidate, now_s in self.observed:
            event = decide(candidate, thresholds)
            if event is not None:
                overlaps.add(event, candidate.phrase)
                reported[event[:4]] = self.reported.get(event[:4], now_s)
            if candidate.phrase:
                overlaps.suppress(decide.phrase)
        if (event := decide.finalize()) is not None:
            overlaps.add(event, phrase=True)
            reported[event[:4]] = self.reported.get(event[:4], self.seconds)
        result: list[EventRecord] = []
        hit: set[int] = set()
        for event in overlaps.pop_ready():
            clip = self._clip_of(event)
            kind: Kind
            if clip is None:
                kind = "false alarm"
            elif event.word != self.placed[clip].word:
                kind = "confusion"
            else:
                kind = "repeat" if clip in hit else "hit"
                hit.add(clip)
            result.append(EventRecord(kind, *event[:4], reported_s=reported[event[:4]], clip=clip))
        return result

    def report(
        self, thresholds: dict[str, float], config: StreamConfig, start: float
    ) -> StreamReport:
        """Rates over the whole stream and of each word; `start` is when the run began."""
        events, placed = self.events(thresholds), self.placed
        hits = {event.clip for event in events if event.kind == "hit"}
        kinds = Counter(event.kind for event in events)
        latencies_s = [
            event.reported_s - placed[event.clip].speech_end_s
            for event in events
            if event.kind == "hit" and event.clip is not None
        ]
        per_word: dict[str, WordReport] = {}
        for word in thresholds:
            mine = Counter(event.kind for event in events if event.word == word)
            count = sum(clip.word == word for clip in placed)
            missed = count - mine["hit"]
            per_word[word] = WordReport(
                positives=count,
                misses=missed,
                miss_rate=100 * missed / count if count else None,
                miss_rate_ci=binomial_interval(missed, count) if count else None,
                false_alarms=mine["false alarm"],
                confusions=mine["confusion"],
                repeats=mine["repeat"],
            )
        return StreamReport(
            miss_rate=100 * (1 - kinds["hit"] / len(placed)),
            miss_rate_ci=binomial_interval(len(placed) - kinds["hit"], len(placed)),
            false_alarms=kinds["false alarm"],
            false_alarms_per_hour=kinds["false alarm"] / self.hours,
            false_alarms_ci=poisson_interval(kinds["false alarm"], self.hours),
            confusions=kinds["confusion"],
            repeats=kinds["repeat"],
            latency_s=Latency(
                median=float(np.median(latencies_s)) if latencies_s else None,
                p95=float(np.quantile(latencies_s, 0.95)) if latencies_s else None,
            ),
            per_word=per_word,
            hours=self.hours,
            thresholds=thresholds,
            speed=self.seconds / self.detector_s,
            det=self.curve(thresholds),
            events=events,
            clips=[replace(clip, hit=i in hits) for i, clip in enumerate(placed)],
            seconds=self.seconds,
            config=config,
            environment=Environment.since(start),
        )

    def curve(self, thresholds: Mapping[str, float]) -> list[DetPoint]:
        """Misses against false alarms as the thresholds of all words are shifted together."""
        # How far the thresholds can rise before a candidate gives no event.
        margins = [
            (one, max(score - thresholds[word] for word, score in scores.items()))
            for one in self.observed
            if (scores := one.candidate.scores.not_rejected())
        ]
        if not margins:
            return []
        alarms = np.sort(
            [margin for one, margin in margins if self._clip_of(one.candidate) is None]
        )
        alarms = alarms[::-1]
        most = int(CURVE_MAX_PER_HOUR * self.hours)
        every = [margin for _, margin in margins]
        # The curve goes through the thresholds in use.
        low = min(alarms[most], 0.0) if most < len(alarms) else min(every)
        high = np.nextafter(max(every), np.inf)
        # An alarm is gone just above its margin.
        gone = np.nextafter(alarms[:CURVE_POINTS], np.inf)
        moves = np.unique(np.concatenate([np.linspace(low, high, CURVE_POINTS), gone, [0.0]]))
        middle = float(np.mean(list(thresholds.values())))
        result: list[DetPoint] = []
        for move in map(float, moves[moves >= low]):
            moved = {word: threshold + move for word, threshold in thresholds.items()}
            loud = [one for one, margin in margins if margin >= move]
            kinds = Counter(event.kind for event in replace(self, observed=loud).events(moved))
            rates = 100 * (1 - kinds["hit"] / len(self.placed)), kinds["false alarm"] / self.hours
            # Of points with equal rates, keep the lowest threshold.
            if not result or rates != (result[-1].miss_rate, result[-1].false_alarms_per_hour):
                result.append(DetPoint(middle + move, *rates))
        return result

    def _clip_of(self, found: Candidate | Event) -> int | None:
        """Index of the clip that contains the middle of a candidate or event, within tolerance."""
        middle_s = (found.start_s + found.end_s) / 2
        begun = bisect.bisect_right(
            self.placed, middle_s + TOLERANCE_S, key=lambda clip: clip.start_s
        )
        if not begun or middle_s > self.placed[begun - 1].end_s + TOLERANCE_S:
            return None
        return begun - 1


def miss_rate_at(det: Iterable[DetPoint], false_alarms_per_hour: float) -> float | None:
    """Lowest miss rate in percent with at most this many false alarms per hour."""
    rates = [p.miss_rate for p in det if p.false_alarms_per_hour <= false_alarms_per_hour]
    return min(rates, default=None)


def _listen(detector: Detector, stream: StreamMix, progress: Progress | None) -> ObservedStream:
    """Run the detector over the whole stream."""
    observed: list[Observed] = []
    reported: dict[Heard, float] = {}
    source, spent_s = SampleReader(iter(stream)), 0.0
    detector.observe = lambda candidate: observed.append(
        Observed(candidate, source.n_read / SAMPLE_RATE)
    )
    while len(chunk := source.read(round(CHUNK_S * SAMPLE_RATE))):
        begin = time.perf_counter()
        events = detector(chunk)
        spent_s += time.perf_counter() - begin
        reported |= {event[:4]: source.n_read / SAMPLE_RATE for event in events}
        if progress and source.n_read % (60 * SAMPLE_RATE) < len(chunk):
            progress("listening, s", int(stream.negative_s), int(stream.total_s))
    detector.flush()
    hours, seconds = stream.negative_s / 3600, stream.samples / SAMPLE_RATE
    return ObservedStream(
        observed, stream.placed, hours, seconds, spent_s, detector.refractory_s, reported
    )
