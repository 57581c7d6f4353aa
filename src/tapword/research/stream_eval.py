"""A spotter listens to a long stream with words at known places: misses, false alarms, latency.

The detector is observed in one pass over the stream. What it would have said at other thresholds is
worked out from the candidates it scored, by its own rules.
"""

import bisect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from tapword.research.stream_mix import Placed, Source, StreamMix
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR
from tapword.support.atomic_files import PathLike, why_not_file
from tapword.support.intervals import binomial_interval, poisson_interval

# As long as the chunks that a microphone gives; latency is counted in whole chunks.
# An event belongs to a clip if its middle is no further outside than this.
TOLERANCE_S = 0.3
# The curve of misses against false alarms has about so many points, and ends at so many alarms.
CURVE_POINTS, CURVE_MOST_PER_HOUR = 200, 120.0

Progress = Callable[[str, int, int], None]
Kind = Literal["hit", "repeat", "confusion", "false alarm"]


class Observed(NamedTuple):
    """A candidate, and the end of the chunk after which it was scored, in seconds."""

    candidate: Candidate
    told_s: float


@dataclass(frozen=True)
class EventRecord:
    """An event, and what it is worth.

    It is a "hit" if it is a clip's word, for the first time in the clip; a "repeat" once more; a
    "confusion" if it is another word in a clip; a "false alarm" elsewhere, where `clip`, the number
    of its clip, is None.
    """

    kind: Kind
    word: str
    start_s: float
    end_s: float
    score: float
    told_s: float
    clip: int | None


@dataclass(frozen=True)
class WordReport:
    """Counts of one word; `confusions` are clips of other words that were taken for it."""

    positives: int
    misses: int
    miss_rate: float | None
    miss_rate_ci: tuple[float, float] | None
    false_alarms: int
    confusions: int
    repeats: int


@dataclass(frozen=True)
class Latency:
    """Seconds from the end of a word until it was told; None where nothing was hit."""

    median: float | None
    p95: float | None


@dataclass(frozen=True)
class DetPoint:
    """A point of the curve; `threshold` is the mean of the words' thresholds."""

    threshold: float
    miss_rate: float
    false_alarms_per_hour: float


@dataclass(kw_only=True)
class StreamConfig:
    """What was listened to, and how: words with their samples taught, names of files, options."""

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
    """All that is known of a stream; docs/protocols.md says what each number is."""

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
    clips: list[Placed]
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
    """Measure how well the words of a spotter are heard in a stream.

    Parameters
    ----------
    positives
        Folder with clips of each word in a folder of that name.
    negatives
        Recordings in which none of the words should be heard.
    noise, snr_db, seed, every_s
        As for `StreamMix`; the three after them as for `Detector`.
    progress
        Called with (what, seconds done, all).
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
    listening = _listen(detector, stream, progress)
    if not stream.placed:
        raise InputError(
            f"no clip could be put into the {stream.negative_s:.0f} s of negatives; longer "
            "recordings or a smaller every_s let clips in"
        )
    notes += [f"{file} was left out: {why}" for file, why in stream.unreadable]
    if left := len(clips) - len(stream.placed) - len(stream.unreadable):
        notes.append(f"{left} of {len(clips)} clips were left out: the negatives ended before")
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
    return listening.report(detector.thresholds, config, start)


def find_positives(
    folder: PathLike, words: Sequence[str]
) -> tuple[list[tuple[PathLike, str]], list[str]]:
    """Clips in FOLDER/<word>/ as (file, word), and notes on what did not fit."""
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
        raise InputError(f"{folder} has no folder of clips of a word of the model; it has: {known}")
    notes = []
    if ignored := [name for name, _ in named if name not in words]:
        notes.append(f"folders of words that are not taught were ignored: {', '.join(ignored)}")
    found = {word for _, word in clips}
    if absent := [word for word in words if word not in found]:
        notes.append(f"no clips of: {', '.join(absent)}")
    return clips, notes


@dataclass(frozen=True)
class Listening:
    """A stream that a detector has heard, which tells what happens at any thresholds.

    Attributes
    ----------
    observed, placed
        Candidates, and clips in the stream.
    hours
        Of the negatives, without the clips.
    seconds, detector_s
        Length of the stream, and the time the detector took for it.
    told
        Event -> when the detector gave it, of those it gave: a word may wait for a phrase that
        holds it.
    """

    observed: Sequence[Observed]
    placed: Sequence[Placed]
    hours: float
    seconds: float
    detector_s: float
    refractory_s: float = REFRACTORY_S
    told: Mapping[Event, float] = field(default_factory=dict)

    def events(self, thresholds: Mapping[str, float]) -> list[EventRecord]:
        """Say which candidates become events, and what each event is worth."""
        decide, overlaps = Decider(self.refractory_s), Overlaps()
        told: dict[Event, float] = {}
        for candidate, now_s in self.observed:
            event = decide(candidate, thresholds)
            if event is not None:
                overlaps.take(event, candidate.phrase)
                told[event] = self.told.get(event, now_s)
            if candidate.phrase:
                overlaps.cover(decide.phrase)
        if (event := decide.settle()) is not None:
            overlaps.take(event, phrase=True)
            told[event] = self.told.get(event, self.seconds)
        result: list[EventRecord] = []
        hit: set[int] = set()
        for event in overlaps.given():
            clip = self._clip_of(event)
            kind: Kind
            if clip is None:
                kind = "false alarm"
            elif event.word != self.placed[clip].word:
                kind = "confusion"
            else:
                kind = "repeat" if clip in hit else "hit"
                hit.add(clip)
            result.append(EventRecord(kind, **event._asdict(), told_s=told[event], clip=clip))
        return result

    def report(
        self, thresholds: dict[str, float], config: StreamConfig, start: float
    ) -> StreamReport:
        """Rates over the whole stream and for each word; `start` is when the run began."""
        events, placed = self.events(thresholds), self.placed
        hits = {event.clip for event in events if event.kind == "hit"}
        kinds = Counter(event.kind for event in events)
        late_s = [
            event.told_s - placed[event.clip].speech_end_s
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
                median=float(np.median(late_s)) if late_s else None,
                p95=float(np.quantile(late_s, 0.95)) if late_s else None,
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
        """Misses against false alarms while the thresholds of all words are moved alike."""
        # How far the thresholds may be moved up until nothing of a candidate counts as said.
        margins = [
            (one, max(score - thresholds[word] for word, score in taken.items()))
            for one in self.observed
            if (taken := one.candidate.scores.not_rejected())
        ]
        if not margins:
            return []
        alarms = np.sort(
            [margin for one, margin in margins if self._clip_of(one.candidate) is None]
        )
        alarms = alarms[::-1]
        most = int(CURVE_MOST_PER_HOUR * self.hours)
        every = [margin for _, margin in margins]
        # The curve goes through where the thresholds are.
        low = min(alarms[most], 0.0) if most < len(alarms) else min(every)
        high = np.nextafter(max(every), np.inf)
        # Just above an alarm is where it is gone.
        gone = np.nextafter(alarms[:CURVE_POINTS], np.inf)
        moves = np.unique(np.concatenate([np.linspace(low, high, CURVE_POINTS), gone, [0.0]]))
        middle = float(np.mean(list(thresholds.values())))
        result: list[DetPoint] = []
        for move in map(float, moves[moves >= low]):
            moved = {word: threshold + move for word, threshold in thresholds.items()}
            loud = [one for one, margin in margins if margin >= move]
            kinds = Counter(event.kind for event in replace(self, observed=loud).events(moved))
            rates = 100 * (1 - kinds["hit"] / len(self.placed)), kinds["false alarm"] / self.hours
            # Where nothing changes the lowest threshold stands for all.
            if not result or rates != (result[-1].miss_rate, result[-1].false_alarms_per_hour):
                result.append(DetPoint(middle + move, *rates))
        return result

    def _clip_of(self, found: Candidate | Event) -> int | None:
        """Give the number of the clip that the middle of what was found lies in, or near enough."""
        middle_s = (found.start_s + found.end_s) / 2
        begun = bisect.bisect_right(
            self.placed, middle_s + TOLERANCE_S, key=lambda clip: clip.start_s
        )
        if not begun or middle_s > self.placed[begun - 1].end_s + TOLERANCE_S:
            return None
        return begun - 1


def miss_rate_at(det: Iterable[DetPoint], false_alarms_per_hour: float) -> float | None:
    """Lowest miss rate of a curve with at most so many false alarms per hour, in percent."""
    rates = [p.miss_rate for p in det if p.false_alarms_per_hour <= false_alarms_per_hour]
    return min(rates, default=None)


def _listen(detector: Detector, stream: StreamMix, progress: Progress | None) -> Listening:
    """Observe the detector over the whole stream."""
    observed: list[Observed] = []
    told: dict[Event, float] = {}
    source, spent_s = Source(iter(stream)), 0.0
    detector.observe = lambda candidate: observed.append(
        Observed(candidate, source.taken / SAMPLE_RATE)
    )
    while len(chunk := source.take(round(CHUNK_S * SAMPLE_RATE))):
        begin = time.perf_counter()
        events = detector(chunk)
        spent_s += time.perf_counter() - begin
        told |= dict.fromkeys(events, source.taken / SAMPLE_RATE)
        if progress and source.taken % (60 * SAMPLE_RATE) < len(chunk):
            progress("listening, s", int(stream.negative_s), int(stream.total_s))
    detector.flush()
    hours, seconds = stream.negative_s / 3600, stream.samples / SAMPLE_RATE
    return Listening(observed, stream.placed, hours, seconds, spent_s, detector.refractory_s, told)
