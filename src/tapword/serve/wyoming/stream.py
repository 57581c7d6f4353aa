"""One client's stream: sound in, detections out; knows nothing of sockets."""

from collections.abc import Sequence

from tapword.listening.detector import Detector, Event
from tapword.serve.wyoming.followed_model import FollowedModel
from tapword.serve.wyoming.sound import Converter, Sound
from tapword.spotter.spotter import Spotter

# Words that were heard, and when each ended in milliseconds by the client's clock.
Detections = list[tuple[str, int]]


class Stream:
    """Hear the words of a model, also those taught meanwhile, in what one client sends.

    `detected` says whether a word was heard since the stream began.
    """

    def __init__(self, model: FollowedModel):
        self.model = model
        self._names: dict[str, str] = {}
        self.begin()

    def only(self, names: Sequence[str]) -> list[str]:
        """Answer to these words alone, or to all where none is given; give those not taught.

        As with other wake-word services, case and `_` for a space do not matter; a word is answered
        in the spelling it was asked for, which a client that waits for it compares.
        """
        self._names = {_plain(name): name for name in names}
        known = set(map(_plain, self.model.served.words))
        return [name for name in names if _plain(name) not in known]

    def begin(self, timestamp_ms: int | None = None) -> None:
        """Start anew, at a time by the client's clock."""
        self.detected = False
        self._spotter: Spotter | None = None
        self._detector: Detector | None = None
        self._converter: Converter | None = None
        self._taken_s = 0.0
        # What the client's clock showed at the stream's start.
        self._clock_ms = float(timestamp_ms or 0)

    def hear(self, sounds: Sequence[Sound]) -> Detections:
        """Hear what comes next; give the words that were said, in order."""
        heard = []
        for sound in sounds:
            if sound.lost_s or self._converter is None or self._converter.format != sound.format:
                if self._detector is not None:
                    self._detector.gap(sound.lost_s)
                self._taken_s += sound.lost_s
                self._converter = Converter(sound.format)
            if sound.timestamp_ms is not None:
                self._clock_ms = sound.timestamp_ms - 1000 * self._taken_s
            detector = self._fresh_detector()
            self._taken_s += sound.seconds
            audio = self._converter(sound.samples)
            if detector is not None:
                heard += self._wanted(detector(audio))
        return heard

    def end(self) -> Detections:
        """Give the words that were still being heard when the sound stopped."""
        if self._detector is None or self._converter is None:
            return []
        events = self._detector(self._converter(b"", last=True))
        return self._wanted(events + self._detector.flush())

    def _wanted(self, events: list[Event]) -> Detections:
        wanted = [e for e in events if not self._names or _plain(e.word) in self._names]
        self.detected = self.detected or bool(wanted)
        ended = [(e.word, round(self._clock_ms + 1000 * e.end_s)) for e in wanted]
        return [(self._names.get(_plain(word), word), at_ms) for word, at_ms in ended]

    def _fresh_detector(self) -> Detector | None:
        """Detector of the words as they are now; None while there are none."""
        spotter = self.model.served
        if self._spotter is not spotter:
            self._spotter, self._detector = spotter, self.model.detector(spotter)
            if self._detector is not None:
                self._detector.gap(self._taken_s)
        return self._detector


def _plain(word: str) -> str:
    """Spelling by which words are compared: "Kitchen_Light" as "kitchen light"."""
    return word.replace("_", " ").strip().casefold()
