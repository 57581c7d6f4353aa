"""One client's stream: sound in, detections out; knows nothing of sockets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import Event
from tapword.listening.detector import Detector
from tapword.listening.near import NearMiss, NearMisses
from tapword.serve.wyoming.followed_model import FollowedModel
from tapword.serve.wyoming.settings import Settings
from tapword.serve.wyoming.sound import Converter, Raw, Sound
from tapword.spotter.spotter import Spotter


class Heard(NamedTuple):
    """A word that was said, or nearly; `ended_ms` is by the client's clock."""

    word: str
    ended_ms: int
    score: float
    threshold: float
    said: bool


class Stream:
    """Hear the words of a model, also those taught meanwhile, in what one client sends.

    Parameters
    ----------
    model
        Whose words.
    settings
        How they are heard for this client.
    near_misses
        Also give what was nearly said; this costs some time.

    Attributes
    ----------
    detected
        Whether a word was heard since the stream began.
    """

    def __init__(self, model: FollowedModel, settings: Settings, near_misses: bool = False):
        self.model = model
        self.settings = settings
        self.near_misses = near_misses
        self._names: dict[str, str] = {}
        self.begin()

    def only(self, names: Sequence[str]) -> list[str]:
        """Answer to these words alone, or to all where none is given; give those not taught.

        As with other wake-word services, case and `_` for a space do not matter; a word is answered
        in the spelling it was asked for, which a client that waits for it compares.
        """
        self._names = {_plain(name): name for name in names}
        known = set(map(_plain, self.model.served.words))
        return [name for plain, name in self._names.items() if plain not in known]

    def begin(self, timestamp_ms: int | None = None) -> None:
        """Start anew, at a time by the client's clock."""
        self.detected = False
        self._spotter: Spotter | None = None
        self._detector: Detector | None = None
        self._converter: Converter | None = None
        self._near: NearMisses | None = None
        self._taken_s = 0.0
        # What the client's clock showed at the stream's start.
        self._clock_ms = float(timestamp_ms or 0)

    def convert(self, raw: Raw) -> Sound:
        """Bring what comes next into the form in which it is heard; it may be heard much later."""
        follows = self._converter is not None and self._converter.format == raw.format
        if self._converter is None or not follows:
            self._converter = Converter(raw.format)
        audio = self._converter(raw.samples)
        return Sound(audio, raw.seconds, raw.timestamp_ms, None if follows else 0.0)

    def hear(self, sounds: Sequence[Sound]) -> list[Heard]:
        """Hear what comes next; give the words that were said, in order."""
        heard: list[Heard] = []
        pieces: list[np.ndarray] = []
        for sound in sounds:
            if sound.lost_s is not None:
                heard += self._hear(pieces)
                pieces = []
                if self._detector is not None:
                    self._detector.gap(sound.lost_s)
                self._taken_s += sound.lost_s
            if sound.timestamp_ms is not None:
                self._clock_ms = sound.timestamp_ms - 1000 * self._taken_s
            self._taken_s += sound.seconds
            pieces.append(sound.audio)
        return heard + self._hear(pieces)

    def _hear(self, pieces: list[np.ndarray]) -> list[Heard]:
        """Hear pieces that follow on each other, in one go: they may be many and tiny."""
        if not pieces:
            return []
        audio = np.concatenate(pieces)
        detector = self._fresh_detector(len(audio) / SAMPLE_RATE)
        return [] if detector is None else self._wanted(detector(audio), self._taken_s)

    def end(self) -> list[Heard]:
        """Give the words that were still being heard when the sound stopped."""
        if self._detector is None or self._converter is None:
            return []
        events = self._detector(self._converter(b"", last=True))
        return self._wanted(events + self._detector.flush(), float("inf"))

    def _wanted(self, events: list[Event], now_s: float) -> list[Heard]:
        assert self._detector is not None
        thresholds = self._detector.thresholds
        near = self._near.since(now_s) if self._near else []
        found: list[Event | NearMiss] = [*events, *near]
        heard = [
            Heard(
                self._names.get(_plain(one.word), one.word),
                round(self._clock_ms + 1000 * one.end_s),
                one.score,
                thresholds[one.word] if isinstance(one, Event) else one.threshold,
                isinstance(one, Event),
            )
            for one in found
            if not self._names or _plain(one.word) in self._names
        ]
        self.detected = self.detected or any(one.said for one in heard)
        return heard

    def _fresh_detector(self, next_s: float) -> Detector | None:
        """Detector of the words as they are now, at what was taken last; None without words."""
        spotter = self.model.served
        if self._spotter is not spotter:
            self._spotter = spotter
            self._detector = self.model.detector(spotter, self.settings)
            if self._detector is not None:
                self._detector.gap(max(0.0, self._taken_s - next_s))
                if self.near_misses:
                    self._near = NearMisses(self._detector)
        return self._detector


def _plain(word: str) -> str:
    """Spelling by which words are compared: "Kitchen_Light" as "kitchen light"."""
    return word.replace("_", " ").strip().casefold()
