"""One page's microphone: words are heard in it, and takes recorded from it.

Sound stays in memory for a short time only: the last seconds, the clip of each recent event until
it is corrected, and the take that was recorded last until it is kept.
"""

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapword.audio.endpoint import Endpointer, examine
from tapword.audio.files import SAMPLE_RATE, as_float
from tapword.errors import InputError
from tapword.listening.decider import Event
from tapword.listening.detector import Detector
from tapword.listening.near import NearMisses
from tapword.serve.studio.history import History
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.serve.studio.model import StudioModel
from tapword.support.issues import message

Message = dict[str, Any]
NO_SOUND = np.zeros(0, dtype=np.float32)


class Kept(NamedTuple):
    """Sound (n,) float32 that may be learned yet, and since when it has been kept."""

    audio: np.ndarray
    since_s: float


class Listener:
    """Chunks in, messages for the page out.

    The page may listen for words and record a take at the same time; both hear the same chunks.
    `clips` holds the sound of recent events by their numbers, `takes` the take that was recorded
    last by the number the page gave it.
    """

    def __init__(
        self,
        model: StudioModel,
        limits: Limits = LIMITS,
        clock: Callable[[], float] = time.monotonic,
        history: History | None = None,
    ):
        self.model = model
        self.history = history or History(limits)
        self.limits = limits
        self.clock = clock
        self.clips: dict[int, Kept] = {}
        self.takes: dict[int, Kept] = {}
        self._detector: Detector | None = None
        self._near: NearMisses | None = None
        self._listening = False
        self._events = 0
        # The last seconds, and how many samples were heard up to their end.
        self._recent, self._heard = NO_SOUND, 0
        self._endpointer: Endpointer | None = None
        self._number = 0

    # Listening.

    def listen(self) -> Message:
        """Begin to listen; give the score from which each word counts as said."""
        self.stop()
        detector = self._fresh_detector()
        self._listening = True
        return {"thresholds": _rounded(detector.thresholds if detector else {})}

    def stop(self) -> None:
        """Listen no more; what was heard can still be corrected."""
        self._listening = False
        self._detector, self._recent = None, NO_SOUND

    def gap(self) -> None:
        """Note that sound was lost: what comes next does not follow on what was."""
        self._detector, self._recent = None, NO_SOUND
        if self._endpointer is not None:
            self._endpointer.gap()

    def hear(self, samples: np.ndarray) -> list[Message]:
        """Listen to samples (n,) int16; give the events, near misses, and the scores after them.

        Thresholds come first where they may have changed.
        """
        if not self._listening:
            return []
        audio = as_float(samples)
        known = self._detector.spotter if self._detector else None
        detector = self._fresh_detector()
        most = round(self.limits.recent_s * SAMPLE_RATE)
        self._recent = np.concatenate([self._recent, audio])[-most:]
        self._heard += len(audio)
        events = [self._announce(event) for event in detector(audio)] if detector else []
        scores = _rounded(detector.scores if detector else {})
        now_s = self._heard / SAMPLE_RATE
        near = self._near.since(now_s) if detector and self._near else []
        told = [
            *events,
            *({"type": "near"} | _rounded_floats(miss._asdict()) for miss in near),
            {"type": "scores", "time_s": now_s, "scores": scores},
        ]
        if detector is not None and detector.spotter is not known:
            # The page draws them; they change with the words and their sensitivities.
            told.insert(0, {"type": "thresholds", "thresholds": _rounded(detector.thresholds)})
        return told

    def _fresh_detector(self) -> Detector | None:
        """Detector of the words as they are now; None while there are none."""
        if not self.model.spotter.words:
            self._detector = None
        elif self._detector is None:
            self._detector = self.model.detector(self.model.spotter)
            self._near = NearMisses(self._detector)
            # Its times go on where the stream is.
            self._detector.gap(self._heard / SAMPLE_RATE)
        else:
            self._detector.spotter = self.model.spotter
        return self._detector

    def _announce(self, event: Event) -> Message:
        """Keep the clip of an event, and tell of it."""
        self._events += 1
        # Samples of `recent`, which begins later than the stream.
        begin_s = (self._heard - len(self._recent)) / SAMPLE_RATE
        start_s = event.start_s - self.limits.around_s - begin_s
        end_s = event.end_s + self.limits.around_s - begin_s
        start, end = (max(round(at_s * SAMPLE_RATE), 0) for at_s in (start_s, end_s))
        # A copy: a view would keep all the sound it was cut from.
        self.clips[self._events] = Kept(self._recent[start:end].copy(), self.clock())
        while len(self.clips) > self.limits.events:
            del self.clips[next(iter(self.clips))]
        return {"type": "event", "id": self._events} | _rounded_floats(event._asdict())

    def correct(self, event: int, word: str | None) -> Message:
        """Learn an event's clip as `word`, or as none of the words; then let go of it.

        The page is given the sound: it holds the takes that it may want to hear or take back.
        """
        spoken = self._spoken(event)
        if word is None:
            outcome = self.model.reject(spoken, self.history)
        else:
            outcome = self.model.learn(spoken, word, self.history)
        self.clips.pop(event, None)
        return outcome._asdict() | {"sound": _written(spoken)}

    def hear_again(self, event: int) -> Message:
        """Give the sound of an event, as it would be learned."""
        return {"sound": _written(self._spoken(event))}

    def _spoken(self, event: int) -> np.ndarray:
        """Clip (n,) of an event, cut to the speech where there is any."""
        kept = self.clips.get(event)
        if kept is None:
            raise InputError(
                "the sound of this event is gone already (it is kept for two minutes at most); "
                "say the word again and correct that"
            )
        take = examine(kept.audio)
        return take.audio if take.has_speech else kept.audio

    def missed(self, word: str) -> Message:
        """Learn a word that was said in the last seconds and not noticed."""
        take = examine(self._recent)
        if not take.has_speech:
            seconds = self.limits.recent_s
            raise InputError(f"no speech was heard in the last {seconds:.0f} s; say it again")
        outcome = self.model.learn(take.audio, word, self.history)
        self._recent = NO_SOUND
        return outcome._asdict() | {"sound": _written(take.audio)}

    # Recording a take.

    def record(self, number: int) -> None:
        """Begin a take, which the page calls by this number; the one before is let go."""
        self.cancel()
        self._number = number
        self._endpointer = Endpointer(most_s=self.limits.clip_s)

    def take_up(self, samples: np.ndarray) -> list[Message]:
        """Add samples (n,) int16 to the take; say how it stands, and what it is when it is over."""
        if self._endpointer is None:
            return []
        before = self._endpointer.state
        state = self._endpointer.push(as_float(samples))
        if state in ("over", "nobody"):
            return [self.finish()]
        changed = {"type": "recording", "id": self._number, "state": state}
        return [] if state == before else [changed]

    def finish(self) -> Message:
        """End the take that is being recorded, if one is, and say what was found in it."""
        if self._endpointer is None:
            return {}
        take, length = self._endpointer.take(), len(self._endpointer.audio)
        self._endpointer = None
        if take.has_speech:
            self.takes = {self._number: Kept(take.audio, self.clock())}
        return {
            "type": "take",
            "id": self._number,
            "problem": None if take.issue is None else message(take.issue),
            "speech": take.has_speech,
            "length_s": length / SAMPLE_RATE,
            "start_s": round(take.start_s, 3),
            "end_s": round(take.end_s, 3),
            "snr_db": round(float(take.snr_db), 1),
        }

    def cancel(self) -> None:
        """Let go of the take that is being recorded or was last."""
        self._endpointer = None
        self.takes = {}

    def keep(self, number: int, word: str, careful: bool = False) -> Message:
        """Learn a take as `word`, and let go of it; say what may be wrong with it.

        Where `careful`, a take that may be none of the word is not learned, but waits.
        """
        kept = self.takes.get(number)
        if kept is None:
            raise InputError("the sound of this take is gone already; record it again")
        outcome = self.model.learn(kept.audio, word, self.history, careful)
        if outcome.take is not None:
            self.takes = {}
        return outcome._asdict()

    def tidy(self) -> list[int]:
        """Let go of sound that is too old; give the events that can still be corrected."""
        oldest = self.clock() - self.limits.keep_s
        for table in (self.clips, self.takes):
            # Sound goes on coming in another thread: a copy is walked, and the table is kept.
            for number, kept in list(table.items()):
                if kept.since_s < oldest:
                    table.pop(number, None)
        return list(self.clips)


def _written(audio: np.ndarray) -> str:
    """Write samples (n,) float32 as text: 16 bit, base64."""
    samples = np.clip(np.round(audio * 32768), -32768, 32767).astype("<i2")
    return base64.b64encode(samples.tobytes()).decode()


def _rounded_floats(values: Message) -> Message:
    return {
        name: round(float(value), 3) if isinstance(value, float | np.floating) else value
        for name, value in values.items()
    }


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {word: round(float(score), 3) for word, score in scores.items()}
