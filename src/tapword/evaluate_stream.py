"""Detector + long recordings -> misses, false alarms per hour, latency.

One pass over the stream notes how every sound scored that the detector asked about; which events
come at which threshold is worked out from that, the detector's pause after an event included.
"""

import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapword import audio
from tapword.alarms import Asked, curve, judge, summary
from tapword.audio import SAMPLE_RATE
from tapword.detector import Detector, Event
from tapword.errors import InputError
from tapword.evaluate import environment
from tapword.splice import PathLike, Splice
from tapword.spotter import Spotter

CHUNK_S = 0.08

Progress = Callable[[str, int, int], None]


class _Recorder(Detector):
    """Detector that says everything it asks about, to be judged later."""

    def __init__(self, spotter: Spotter, limits: Mapping[str, float]):
        self.noted: list[tuple[Event, dict[str, float], int]] = []
        self._limits = limits
        super().__init__(spotter, refractory_s=0.0)

    @property
    def thresholds(self) -> dict[str, float]:
        return dict.fromkeys(self.spotter.words, -np.inf)

    def _unclear(
        self, said: str | None, scores: Mapping[str, float], thresholds: Mapping[str, float]
    ) -> bool:
        # It may be no word at the thresholds it is judged by.
        return super()._unclear(None, scores, self._limits)

    def _ask(self, centre: int, steps: int = 0) -> list[Event]:
        # No pause after an event.
        self._last = None
        events = super()._ask(centre, steps)
        for event in events:
            # A word above the one that was chosen lost against what was rejected as it.
            scores = {word: s for word, s in self.scores.items() if s <= event.score}
            self.noted.append((event, scores, self._time + centre))
        # What was noted is not said, so that every window beside a centre is asked about.
        return []


def evaluate_stream(
    spotter: Spotter,
    positives: PathLike,
    negatives: Sequence[PathLike],
    *,
    noise: Sequence[PathLike] = (),
    snr_db: float | None = None,
    seed: int = 0,
    every_s: float | None = None,
    false_alarms_per_hour: float = 0.5,
    thresholds: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure how well the words of a spotter are heard in a stream.

    Parameters
    ----------
    spotter
        Whose words.
    positives
        Folder with clips of each word in a folder of that name.
    negatives
        Recordings in which none of the words should be heard.
    noise, snr_db, seed, every_s
        As for `Splice`.
    false_alarms_per_hour, thresholds
        As for `Detector`.
    progress
        Called with (what, seconds done, all).

    Returns
    -------
    dict
        Ready for JSON; docs/protocols.md says what each number is.
    """
    start = time.perf_counter()
    clips, notes = find_positives(positives, list(spotter.words))
    limits = Detector(
        spotter, false_alarms_per_hour=false_alarms_per_hour, thresholds=thresholds
    ).thresholds
    stream = Splice(negatives, clips, seed=seed, every_s=every_s, noise=noise, snr_db=snr_db)
    asked, detector_s = _listen(spotter, limits, stream, progress)
    if not stream.placed:
        raise InputError(
            f"no clip could be put into the {stream.negative_s:.0f} s of negatives; longer "
            "recordings or a smaller every_s let clips in"
        )
    notes += [f"{file} was left out: {why}" for file, why in stream.unreadable]
    left = len(clips) - len(stream.placed) - len(stream.unreadable)
    if left:
        notes.append(f"{left} of {len(clips)} clips were left out: the negatives ended before")
    hours = stream.negative_s / 3600
    heard = judge(asked, stream.placed, limits)
    hit = {one.clip for one in heard if one.kind == "hit"}
    seconds = stream.samples / SAMPLE_RATE
    config = {
        "words": dict(spotter.words),
        "positives": len(stream.placed),
        "negatives": [Path(path).name for path in negatives],
        "noise": [Path(path).name for path in noise] or None,
        "snr_db": snr_db,
        "seed": seed,
        "every_s": every_s,
        "wanted_per_hour": false_alarms_per_hour,
        "notes": notes,
    }
    return {
        **summary(heard, stream.placed, hours, list(limits)),
        "hours": hours,
        "thresholds": limits,
        "speed": seconds / detector_s,
        "det": curve(asked, stream.placed, limits, hours),
        "events": [one.record() for one in heard],
        "clips": [clip._asdict() | {"hit": i in hit} for i, clip in enumerate(stream.placed)],
        "seconds": seconds,
        "config": config,
        "environment": environment(start),
    }


def find_positives(
    folder: PathLike, words: Sequence[str]
) -> tuple[list[tuple[PathLike, str]], list[str]]:
    """Clips in FOLDER/<word>/ as (file, word), and notes on what did not fit."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    below = sorted(path for path in folder.iterdir() if path.is_dir())
    # Names on disk may be decomposed; words are not.
    named = {
        unicodedata.normalize("NFC", path.name): path
        for path in below
        if not path.name.startswith((".", "_"))
    }
    clips: list[tuple[PathLike, str]] = []
    for word in words:
        clips += [(file, word) for file in audio.find(named[word])] if word in named else []
    if not clips:
        known = ", ".join(words) or "none"
        raise InputError(f"{folder} has no folder of clips of a word of the model; it has: {known}")
    notes = []
    ignored = [word for word in named if word not in words]
    if ignored:
        notes.append(f"folders of words that are not taught were ignored: {', '.join(ignored)}")
    absent = [word for word in words if word not in {word for _, word in clips}]
    if absent:
        notes.append(f"no clips of: {', '.join(absent)}")
    return clips, notes


def _listen(
    spotter: Spotter, limits: Mapping[str, float], stream: Splice, progress: Progress | None
) -> tuple[list[Asked], float]:
    """Hear the whole stream; what was asked about, and the seconds the detector took."""
    detector = _Recorder(spotter, limits)
    asked: list[Asked] = []
    heard, spent_s = 0, 0.0
    for chunk in _chunks(stream, round(CHUNK_S * SAMPLE_RATE)):
        begin = time.perf_counter()
        # The stream is over with a chunk of no samples: what remains is heard.
        detector(chunk) if len(chunk) else detector.flush()
        spent_s += time.perf_counter() - begin
        heard += len(chunk)
        asked += [Asked(*one, heard / SAMPLE_RATE) for one in detector.noted]
        detector.noted.clear()
        if progress and heard % (60 * SAMPLE_RATE) < len(chunk):
            progress("listening, s", int(stream.negative_s), int(stream.total_s))
    return asked, spent_s


def _chunks(blocks: Iterator[np.ndarray] | Splice, size: int) -> Iterator[np.ndarray]:
    """Cut blocks (n,) anew into chunks (size,), a shorter one at the end and an empty one."""
    rest = np.zeros(0, dtype=np.float32)
    for block in blocks:
        rest = np.concatenate([rest, block])
        whole = len(rest) // size * size
        yield from rest[:whole].reshape(-1, size)
        rest = rest[whole:]
    if len(rest):
        yield rest
    yield rest[:0]
