"""One client's stream: audio in, detected words out; knows nothing of sockets."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import Event
from tapword.listening.follow import DetectorSettings, ModelFollower
from tapword.listening.near import FINAL_S, NearMiss
from tapword.serve.wyoming.audio import ConvertedChunk, Converter, RawChunk
from tapword.serve.wyoming.served_model import ServedModel

NO_AUDIO = np.zeros(0, dtype=np.float32)
# Chunks whose arrival is remembered: 10 s of the shortest that clients send.
ARRIVALS = 1000
# Sound before and after a word in its clip: a detected word's ends are not exact.
MARGIN_S = 0.3


class Match(NamedTuple):
    """A word that was said, or nearly.

    Attributes
    ----------
    word, name
        The word, and its spelling as the client asked for it.
    ended_ms
        When it ended, on the client's clock.
    said
        Whether it counts as said; otherwise it is a near miss.
    arrived_s
        When its end arrived, on the service's clock; None if that is too long ago.
    clip
        Its sound (n,) float32 with a margin, if the stream keeps clips.
    """

    word: str
    name: str
    ended_ms: int
    score: float
    threshold: float
    confidence: int | None
    said: bool
    arrived_s: float | None = None
    clip: np.ndarray | None = None


class Stream:
    """Detect the words of a model, as they are now, in the audio of one client.

    Parameters
    ----------
    model
        Whose words.
    settings
        How they are detected for this client.
    near_misses
        Whether to give near misses, too; this costs time.
    clips
        Whether matches have clips. The stream then holds its last seconds.

    Attributes
    ----------
    detected
        Whether a word was detected since the stream began.
    """

    def __init__(
        self,
        model: ServedModel,
        settings: DetectorSettings,
        near_misses: bool = False,
        clips: bool = False,
    ):
        self.model = model
        self._clips = clips
        self._follower = ModelFollower(settings, near_misses)
        self._names: dict[str, str] = {}
        self.reset()

    def select_words(self, names: Sequence[str]) -> list[str]:
        """Report only these words, or all if none is given; give those that are not taught.

        As with other wake-word services, case and `_` for a space do not matter. A word is reported
        in the spelling of the request, because clients compare it.
        """
        self._names = {_normalize(name): name for name in names}
        known = set(map(_normalize, self.model.served.words))
        return [name for key, name in self._names.items() if key not in known]

    def reset(self, timestamp_ms: int | None = None) -> None:
        """Start a new stream, at a time on the client's clock."""
        self.detected = False
        self._follower.reset()
        self._converter: Converter | None = None
        self._received_s = 0.0
        self._recent = NO_AUDIO
        # For each recent chunk, how much had been received after it, and when it arrived.
        self._arrivals: deque[tuple[float, float]] = deque(maxlen=ARRIVALS)
        # The client's clock at the start of the stream.
        self._clock_ms = float(timestamp_ms or 0)

    def convert(self, raw: RawChunk) -> ConvertedChunk:
        """Convert the next chunk to 16 kHz mono; it may be pushed much later."""
        follows = self._converter is not None and self._converter.format == raw.format
        if self._converter is None or not follows:
            self._converter = Converter(raw.format)
        audio = self._converter(raw.samples)
        return ConvertedChunk(audio, raw.seconds, raw.timestamp_ms, None if follows else 0.0)

    def push(self, chunks: Sequence[ConvertedChunk]) -> list[Match]:
        """Process the next chunks; give the words in them, in order."""
        matches: list[Match] = []
        pending: list[np.ndarray] = []
        for chunk in chunks:
            if chunk.lost_s is not None:
                matches += self._push(pending)
                pending = []
                if self._follower.detector is not None:
                    self._follower.detector.gap(chunk.lost_s)
                self._received_s += chunk.lost_s
                self._recent = NO_AUDIO
            if chunk.timestamp_ms is not None:
                self._clock_ms = chunk.timestamp_ms - 1000 * self._received_s
            self._received_s += chunk.seconds
            self._arrivals.append((self._received_s, chunk.arrived_s))
            pending.append(chunk.audio)
        return matches + self._push(pending)

    def _push(self, pending: list[np.ndarray]) -> list[Match]:
        """Process adjacent chunks at once: they may be many and tiny."""
        if not pending:
            return []
        audio = np.concatenate(pending)
        start_s = max(0.0, self._received_s - len(audio) / SAMPLE_RATE)
        detector = self._follower.take_up(self.model.served, start_s)
        if detector is None:
            return []
        if self._clips:
            # A near miss is given this long after the end of a word.
            most_s = 2 * detector.spotter.scorer.longest_s + FINAL_S + MARGIN_S
            most = round(most_s * SAMPLE_RATE)
            self._recent = np.concatenate([self._recent, audio])[-most:]
        return self._selected(detector(audio), self._received_s)

    def flush(self) -> list[Match]:
        """End the stream; give the words at its end."""
        detector = self._follower.detector
        if detector is None or self._converter is None:
            return []
        events = detector(self._converter(b"", last=True))
        return self._selected(events + detector.flush(), float("inf"))

    def _selected(self, events: list[Event], now_s: float) -> list[Match]:
        detector, near = self._follower.detector, self._follower.near
        assert detector is not None
        thresholds = detector.thresholds
        found: list[Event | NearMiss] = [*events, *(near.since(now_s) if near else [])]
        matches = [
            Match(
                one.word,
                self._names.get(_normalize(one.word), one.word),
                round(self._clock_ms + 1000 * one.end_s),
                one.score,
                thresholds[one.word] if isinstance(one, Event) else one.threshold,
                one.confidence,
                isinstance(one, Event),
                next((at for end_s, at in self._arrivals if end_s >= one.end_s), None),
                self._clip(one) if self._clips else None,
            )
            for one in found
            if not self._names or _normalize(one.word) in self._names
        ]
        self.detected = self.detected or any(one.said for one in matches)
        return matches

    def _clip(self, found: Event | NearMiss) -> np.ndarray:
        """Copy the sound of a word from the last seconds, with a margin."""
        begin_s = self._received_s - len(self._recent) / SAMPLE_RATE
        start_s, end_s = found.start_s - MARGIN_S - begin_s, found.end_s + MARGIN_S - begin_s
        start, end = (max(round(at_s * SAMPLE_RATE), 0) for at_s in (start_s, end_s))
        return self._recent[start:end].copy()


def _normalize(word: str) -> str:
    """Spelling by which words are compared: "Kitchen_Light" as "kitchen light"."""
    return word.replace("_", " ").strip().casefold()
