"""The microphone of one page: detect words in it, and record takes from it.

Audio stays in memory for a short time: the last seconds, the clip of each recent event until it is
corrected, the last take until it is learned, and a doubtful missed word until the page answers.
"""

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapword.audio.endpoint import Endpointer, Take, examine
from tapword.audio.files import SAMPLE_RATE, as_float
from tapword.errors import InputError
from tapword.listening.decider import Event
from tapword.listening.detector import Detector
from tapword.listening.follow import ModelFollower
from tapword.serve.studio.history import History
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.model import StudioModel, issue_states

Message = dict[str, Any]
NO_AUDIO = np.zeros(0, dtype=np.float32)


class HeldClip(NamedTuple):
    """Audio (n,) float32 that may still be learned, and since when it is held."""

    audio: np.ndarray
    since_s: float


class Listener:
    """Chunks in, messages for the page out.

    A page may listen for words and record a take at the same time, from the same chunks. `clips`
    holds the audio of recent events by number, `takes` the last take by the page's number for it,
    `missed_clips` the sound of a missed word by that word, until the page answers a doubt.
    """

    def __init__(
        self,
        model: StudioModel,
        limits: ServerLimits = LIMITS,
        clock: Callable[[], float] = time.monotonic,
        history: History | None = None,
    ):
        self.model = model
        self.history = history or History(limits)
        self.limits = limits
        self.clock = clock
        self.clips: dict[int, HeldClip] = {}
        self.takes: dict[int, HeldClip] = {}
        self.missed_clips: dict[str, HeldClip] = {}
        self._follower = ModelFollower(near_misses=True, kind=model.detector)
        self._listening = False
        self._events = 0
        # The last seconds, and how many samples the stream had up to their end.
        self._recent, self._received = NO_AUDIO, 0
        self._endpointer: Endpointer | None = None
        self._number = 0

    # Listening.

    def listen(self) -> Message:
        """Start listening; give the thresholds."""
        self.stop()
        detector = self._take_up_model()
        self._listening = True
        return {"thresholds": _rounded(detector.thresholds if detector else {})}

    def stop(self) -> None:
        """Stop listening; events can still be corrected."""
        self._listening = False
        self._follower.reset()
        self._recent = NO_AUDIO

    def gap(self) -> None:
        """Note that audio was lost before the next chunk."""
        self._follower.reset()
        self._recent = NO_AUDIO
        if self._endpointer is not None:
            self._endpointer.gap()

    def push(self, samples: np.ndarray) -> list[Message]:
        """Detect words in samples (n,) int16; give events, near misses and the scores after them.

        Thresholds come first if they may have changed.
        """
        if not self._listening:
            return []
        audio = as_float(samples)
        before = self._follower.detector
        spotter = before.spotter if before else None
        detector = self._take_up_model()
        most = round(self.limits.recent_s * SAMPLE_RATE)
        self._recent = np.concatenate([self._recent, audio])[-most:]
        self._received += len(audio)
        events = [self._event_message(event) for event in detector(audio)] if detector else []
        scores = _rounded(detector.scores if detector else {})
        now_s = self._received / SAMPLE_RATE
        near = self._follower.near.since(now_s) if self._follower.near else []
        messages = [
            *events,
            *({"type": "near"} | _rounded_floats(miss._asdict()) for miss in near),
            {"type": "scores", "time_s": now_s, "scores": scores},
        ]
        if detector is not None and detector.spotter is not spotter:
            # They change with the words and their sensitivities, and the page draws them.
            thresholds = {"type": "thresholds", "thresholds": _rounded(detector.thresholds)}
            messages.insert(0, thresholds)
        return messages

    def _take_up_model(self) -> Detector | None:
        return self._follower.take_up(self.model.spotter, self._received / SAMPLE_RATE)

    def _event_message(self, event: Event) -> Message:
        """Hold the clip of an event, and make its message."""
        self._events += 1
        # `_recent` starts later than the stream.
        begin_s = (self._received - len(self._recent)) / SAMPLE_RATE
        start_s = event.start_s - self.limits.margin_s - begin_s
        end_s = event.end_s + self.limits.margin_s - begin_s
        start, end = (max(round(at_s * SAMPLE_RATE), 0) for at_s in (start_s, end_s))
        # A copy, because a view would hold all of `_recent`.
        self.clips[self._events] = HeldClip(self._recent[start:end].copy(), self.clock())
        while len(self.clips) > self.limits.events:
            del self.clips[next(iter(self.clips))]
        return {"type": "event", "id": self._events} | _rounded_floats(event._asdict())

    def correct(self, event: int, word: str | None) -> Message:
        """Learn an event's clip as `word`, or as none of the words if it is None; then drop it.

        The page gets the audio, because it holds the takes that it can play or remove.
        """
        spoken = self._event_speech(event)
        if word is None:
            outcome = self.model.reject(spoken.audio, self.history)
        else:
            outcome = self.model.learn(spoken.audio, word, self.history)
        self.clips.pop(event, None)
        return outcome.state() | _sound_message(spoken)

    def event_audio(self, event: int) -> Message:
        """Give the audio of an event, as it would be learned."""
        return _sound_message(self._event_speech(event))

    def _event_speech(self, event: int) -> Take:
        """Clip of an event, cut to its speech if there is any."""
        kept = self.clips.get(event)
        if kept is None:
            raise InputError(
                "the audio of this event is gone (it is held for at most two minutes): say the "
                "word again, then correct that",
                code="event_expired",
            )
        return speech_of(kept.audio)

    @property
    def recording(self) -> bool:
        """Whether a take is being recorded."""
        return self._endpointer is not None

    def missed(self, word: str) -> Message:
        """Find a word that was said in the last seconds and missed, and learn it.

        The page gets the sound that was taken. If it is doubtful, it is held until the page answers
        with `keep_missed` or `drop_missed`.
        """
        self.drop_missed()
        recent_s = len(self._recent) / SAMPLE_RATE
        take = examine(self._recent)
        if not take.has_speech:
            seconds = self.limits.recent_s
            raise InputError(
                f"no speech in the last {seconds:.0f} s: say it again",
                code="no_recent_speech",
                params={"seconds": seconds},
            )
        if take.issue is not None and take.issue.code == "several_words":
            # The last seconds are no take: others may have spoken, or the word was said again.
            take = take._replace(issue=None)
        outcome = self.model.learn(take, word, self.history, anyway=False)
        if outcome.take is None:
            self.missed_clips = {word: HeldClip(take.audio, self.clock())}
        else:
            self._recent = NO_AUDIO
        ago_s = round(recent_s - take.end_s, 1)
        return outcome.state() | _sound_message(take) | {"ago_s": ago_s}

    def keep_missed(self, word: str) -> Message:
        """Learn a missed word although it is doubtful, and drop its sound."""
        kept = self.missed_clips.get(word)
        if kept is None:
            raise InputError("the audio of this take is gone: record it again", code="take_expired")
        outcome = self.model.learn(kept.audio, word, self.history)
        self.drop_missed()
        self._recent = NO_AUDIO
        return outcome.state()

    def drop_missed(self) -> None:
        """Drop the sound of a missed word that is not to be learned."""
        self.missed_clips = {}

    # Recording a take.

    def record(self, number: int) -> None:
        """Start a take with this number; drop the one before."""
        self.cancel()
        self._number = number
        self._endpointer = Endpointer(max_s=self.limits.clip_s)

    def push_take(self, samples: np.ndarray) -> list[Message]:
        """Add samples (n,) int16 to the take; report its state, or the take once complete."""
        if self._endpointer is None:
            return []
        before = self._endpointer.state
        state = self._endpointer.push(as_float(samples))
        if state in ("over", "nobody"):
            return [self.finish()]
        changed = {"type": "recording", "id": self._number, "state": state}
        return [] if state == before else [changed]

    def finish(self) -> Message:
        """End the take that is being recorded, if any, and report what it contains."""
        if self._endpointer is None:
            return {}
        take, length = self._endpointer.take(), len(self._endpointer.audio)
        self._endpointer = None
        if take.has_speech:
            self.takes = {self._number: HeldClip(take.audio, self.clock())}
        return {
            "type": "take",
            "id": self._number,
            "issues": issue_states([take.issue] if take.issue else []),
            "has_speech": take.has_speech,
            "length_s": length / SAMPLE_RATE,
            "start_s": round(take.start_s, 3),
            "end_s": round(take.end_s, 3),
            "snr_db": round(float(take.snr_db), 1),
        }

    def cancel(self) -> None:
        """Drop the take that is being recorded, or the last one."""
        self._endpointer = None
        self.takes = {}

    def keep(self, number: int, word: str, anyway: bool = False) -> Message:
        """Learn a take as `word` and drop it; a doubtful take waits, unless `anyway`."""
        kept = self.takes.get(number)
        if kept is None:
            raise InputError("the audio of this take is gone: record it again", code="take_expired")
        outcome = self.model.learn(kept.audio, word, self.history, anyway=anyway)
        if outcome.take is not None:
            self.takes = {}
        return outcome.state()

    def drop_expired(self) -> list[int]:
        """Drop audio that is too old; give the events that can still be corrected."""
        oldest = self.clock() - self.limits.keep_s
        tables: list[dict[Any, HeldClip]] = [self.clips, self.takes, self.missed_clips]
        for table in tables:
            # Another thread may add to the table, so this iterates over a copy.
            for key, kept in list(table.items()):
                if kept.since_s < oldest:
                    table.pop(key, None)
        return list(self.clips)


def speech_of(clip: np.ndarray) -> Take:
    """Cut a clip (n,) of an event to its speech, if there is any."""
    take = examine(clip)
    return take if take.has_speech else take._replace(audio=clip, end_s=len(clip) / SAMPLE_RATE)


def encode_audio(audio: np.ndarray) -> str:
    """Encode samples (n,) float32 as 16-bit integers in base64."""
    samples = np.clip(np.round(audio * 32768), -32768, 32767).astype("<i2")
    return base64.b64encode(samples.tobytes()).decode()


def _sound_message(take: Take) -> Message:
    """Audio of a take, and how long the speech in it lasts."""
    return {
        "audio": encode_audio(take.audio),
        "seconds": round(take.end_s - take.start_s, 3),
    }


def _rounded_floats(values: Message) -> Message:
    return {
        name: round(float(value), 3) if isinstance(value, float | np.floating) else value
        for name, value in values.items()
    }


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {word: round(float(score), 3) for word, score in scores.items()}
