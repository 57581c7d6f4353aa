"""One browser's microphone: what the detector hears, and how people put it right.

Sound stays in memory for a short time only, so that an event can be corrected: the last seconds
in a ring, and the clip of each recent event until it is corrected, old or superseded.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapword import takes
from tapword.audio import SAMPLE_RATE
from tapword.detector import Detector, Event
from tapword.errors import InputError
from tapword.web.shared_model import SharedModel

RECENT_S = 6.0
# What is cut out around an event, so that the word's own edges can be found in it.
AROUND_S = 0.3
MOST_CLIPS, CLIP_AGE_S = 10, 120.0


class Recent:
    """The last seconds of a stream, by the number of each sample since its start.

    Examples
    --------
    >>> recent = Recent(4)
    >>> recent.add(np.array([1, 2, 3], dtype=np.float32))
    >>> recent.add(np.array([4, 5, 6], dtype=np.float32))
    >>> recent.cut(0, 5).tolist()
    [3.0, 4.0, 5.0]
    """

    def __init__(self, size: int):
        self._ring = np.zeros(size, dtype=np.float32)
        self.total = 0

    def add(self, audio: np.ndarray) -> None:
        """Put samples (n,) behind the others."""
        last = audio[-len(self._ring) :]
        at = np.arange(self.total + len(audio) - len(last), self.total + len(audio))
        self._ring[at % len(self._ring)] = last
        self.total += len(audio)

    def cut(self, start: int, end: int) -> np.ndarray:
        """Copy samples [start, end), as far as they are still there."""
        start = max(start, self.total - len(self._ring), 0)
        return self._ring[np.arange(start, min(end, self.total)) % len(self._ring)]

    def clear(self) -> None:
        """Let go of all sound."""
        self._ring[:] = 0


class Clip(NamedTuple):
    """Sound of an event, (n,) float32, and when it was heard."""

    audio: np.ndarray
    heard_s: float


class Listener:
    """Chunks of one microphone in, messages for its page out.

    Parameters
    ----------
    model
        Whose words; a change of them is noticed at the next chunk.
    clock
        Seconds that only go forward.
    """

    def __init__(self, model: SharedModel, clock: Callable[[], float] = time.monotonic):
        self.model = model
        self.clock = clock
        self.recent = Recent(round(RECENT_S * SAMPLE_RATE))
        self.clips: dict[int, Clip] = {}
        self._events = 0
        self._detector: Detector | None = None
        self._detector_start = 0

    def hear(self, samples: np.ndarray) -> list[dict[str, Any]]:
        """Listen to samples (n,) int16; give the scores, and the events before them."""
        audio = samples.astype(np.float32) / 32768.0
        detector = self._fresh_detector()
        self.recent.add(audio)
        events = detector(audio) if detector is not None else []
        scores = dict(detector.scores) if detector is not None else {}
        messages = [self._announce(event) for event in events]
        heard_s = self.recent.total / SAMPLE_RATE
        scores = {word: round(float(score), 3) for word, score in scores.items()}
        return [*messages, {"type": "heard", "time_s": heard_s, "scores": scores}]

    def _fresh_detector(self) -> Detector | None:
        """Detector of the words as they are now; None while there are none."""
        if not self.model.spotter.words:
            self._detector = None
        elif self._detector is None:
            self._detector = Detector(self.model.spotter)
            self._detector_start = self.recent.total
        else:
            self._detector.spotter = self.model.spotter
        return self._detector

    @property
    def thresholds(self) -> dict[str, float]:
        """Score from which each word counts as said."""
        detector = self._fresh_detector()
        if detector is None:
            return {}
        return {word: round(float(value), 3) for word, value in detector.thresholds.items()}

    def _announce(self, event: Event) -> dict[str, Any]:
        self._events += 1
        start = self._detector_start + round(event.start_s * SAMPLE_RATE)
        end = self._detector_start + round(event.end_s * SAMPLE_RATE)
        around = round(AROUND_S * SAMPLE_RATE)
        self.clips[self._events] = Clip(self.recent.cut(start - around, end + around), self.clock())
        while len(self.clips) > MOST_CLIPS:
            del self.clips[next(iter(self.clips))]
        return {
            "type": "event",
            "id": self._events,
            "word": event.word,
            "start_s": start / SAMPLE_RATE,
            "end_s": end / SAMPLE_RATE,
            "score": round(float(event.score), 3),
        }

    def pause(self) -> None:
        """Note a gap in the stream: what comes next does not follow on what was."""
        self._detector = None
        self.recent.clear()

    def correct(self, event: int, word: str | None) -> None:
        """Learn an event's clip as `word`, or as none of the words; then let go of it."""
        if event not in self.clips:
            raise InputError(
                "the sound of this event is gone already (it is kept for two minutes at most); "
                "say the word again and correct that"
            )
        audio = takes.examine(self.clips[event].audio).audio
        if word is None:
            self.model.reject(audio)
        else:
            self.model.learn(audio, word)
        self.clips.pop(event, None)

    def missed(self, word: str) -> None:
        """Learn a word that was said in the last seconds and not noticed."""
        take = takes.examine(self.recent.cut(0, self.recent.total))
        if take.start_s == take.end_s:
            raise InputError(f"no speech was heard in the last {RECENT_S:.0f} s; say it again")
        self.model.learn(take.audio, word)
        self.recent.clear()

    def let_go(self) -> list[int]:
        """Drop clips that are too old to be corrected; give the ids of those left."""
        oldest = self.clock() - CLIP_AGE_S
        # Sound goes on coming in another thread: a copy is walked, and the table is kept.
        for event, clip in list(self.clips.items()):
            if clip.heard_s < oldest:
                self.clips.pop(event, None)
        return list(self.clips)
