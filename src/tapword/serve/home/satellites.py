"""The satellites that stream: their names and levels, and what pages and the list take from them.

The protocol does not say who streams. A satellite that connects to the service directly is known by
its address. Streams that come through Home Assistant share its address, so they are numbered, and
the next stream takes the lowest number that is free.
"""

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.serve.home.calibration import RunningCalibration, require_none_running
from tapword.serve.home.entries import Entries
from tapword.serve.studio.history import History
from tapword.serve.studio.listener import Listener
from tapword.serve.studio.sockets import EncodedMessage, Outbox, encode_message
from tapword.serve.wyoming.audio import ConvertedChunk
from tapword.serve.wyoming.settings import Clients
from tapword.serve.wyoming.stream import Match
from tapword.serve.wyoming.watch import Watch

log = logging.getLogger("tapword.serve.home")

# Satellites that are remembered, and characters of a name.
MAX_SATELLITES, MAX_NAME_CHARACTERS = 100, 40
# Without sound for this long, a satellite does not stream. Clients send a chunk every 10 to 100 ms.
SILENT_S = 3.0
# A word is detected up to a second after its end, so words stay held back this long after a take.
HOLD_S = 2.5
# A page gets chunks as long as those of its own microphone, 80 ms; some may wait for a slow page.
CHUNK, MAX_WAITING = SAMPLE_RATE * 80 // 1000, 25
# Answers whose latency is remembered.
LATENCIES = 20
QUIET_DB = -100.0


class Microphone:
    """A satellite as the microphone of one page."""

    def __init__(self, outbox: Outbox, listener: Listener):
        self.outbox = outbox
        self.listener = listener
        self._waiting = np.zeros(0, dtype=np.float32)
        self._lost = False

    def push(self, audio: np.ndarray) -> None:
        """Send the page the next samples (n,) float32 in whole chunks."""
        sound = np.concatenate([self._waiting, audio])
        whole = len(sound) // CHUNK * CHUNK
        self._waiting = sound[whole:].copy()
        for start in range(0, whole, CHUNK):
            if self.outbox.waiting("sound") >= MAX_WAITING:
                self._lost = True
                continue
            if self._lost:
                self.outbox.put(encode_message({"type": "lost"}))
                self._lost = False
            chunk = np.round(sound[start : start + CHUNK] * 32768)
            samples = np.clip(chunk, -32768, 32767).astype("<i2")
            self.outbox.put(EncodedMessage("sound", samples.tobytes()))


@dataclass(eq=False)
class Satellite:
    """One satellite that streams, or did.

    Attributes
    ----------
    number
        Its number in the page.
    address, place
        Where it streams from, and which of the streams from there it is, from 1.
    name
        As somebody named it; "" if nobody did.
    stream
        The stream that it is now, if there is one.
    microphones
        Pages that use it as their microphone.
    calibration
        The last calibration by its sound, until its result is dismissed.
    """

    number: int
    address: str
    place: int
    name: str = ""
    stream: "Stream | None" = None
    last_s: float = 0.0
    level_db: float = QUIET_DB
    held_until_s: float = 0.0
    latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES))
    microphones: dict[Outbox, Microphone] = field(default_factory=dict)
    calibration: RunningCalibration | None = None

    def state(self, now_s: float) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        latency_ms = round(1000 * median(self.latencies_s)) if self.latencies_s else None
        return {
            "id": self.number,
            "name": self.name,
            "address": self.address,
            "place": self.place,
            "streaming": self.streams(now_s),
            "held": self.holds_back(now_s),
            "used": len(self.microphones),
            "latency_ms": latency_ms,
            "calibration": self.calibration.state() if self.calibration else None,
        }

    def streams(self, now_s: float) -> bool:
        """Whether it sends sound now."""
        return self.stream is not None and now_s - self.last_s < SILENT_S

    @property
    def calibrates(self) -> bool:
        """Whether it is being calibrated."""
        return self.calibration is not None and self.calibration.running

    def holds_back(self, now_s: float) -> bool:
        """Whether it is taught or calibrated now, so that its words wake nobody."""
        if self.calibrates or any(one.listener.recording for one in self.microphones.values()):
            self.held_until_s = max(self.held_until_s, now_s + HOLD_S)
        return now_s < self.held_until_s


class Satellites:
    """All satellites.

    Parameters
    ----------
    clients
        Names of clients by address.
    entries
        Where their words are listed.
    changed
        Called when something a page shows changed, from any thread.
    clock
        The service's clock.
    calibrated
        Called when a calibration changed the model, from any thread.
    """

    def __init__(
        self,
        clients: Clients,
        entries: Entries,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        calibrated: Callable[[], None] = lambda: None,
    ):
        self.calibrated = calibrated
        self.clients = clients
        self.entries = entries
        self.clock = clock
        self.changed = changed
        self.all: dict[int, Satellite] = {}
        # Called with each entry, from a thread.
        self.noted: list[Callable[[dict[str, Any]], None]] = []
        self._paused_until_s = 0.0
        self._numbers = itertools.count(1)

    def watch(self, address: str) -> Watch:
        """Watch a client; it is a satellite from its first sound on."""
        return Stream(self, address)

    def join(self, stream: "Stream") -> Satellite:
        """Give the satellite that a new stream is: the first of its address that has none."""
        theirs = [one for one in self.all.values() if one.address == stream.address]
        free = next((one for one in theirs if one.stream is None), None)
        if free is None:
            free = Satellite(next(self._numbers), stream.address, len(theirs) + 1)
            if not theirs:
                free.name = self.clients.names.get(stream.address, "")
            self.all[free.number] = free
            self._drop_oldest()
        free.stream = stream
        self.changed()
        return free

    def _drop_oldest(self) -> None:
        gone = [
            one
            for one in self.all.values()
            if one.stream is None and not one.microphones and not one.calibrates
        ]
        if len(self.all) > MAX_SATELLITES and gone:
            del self.all[min(gone, key=lambda one: one.last_s).number]

    def find(self, number: int) -> Satellite:
        """Find a satellite by its number."""
        if number not in self.all:
            raise InputError("this satellite is gone: choose another", code="satellite_gone")
        return self.all[number]

    def rename(self, number: int, name: str) -> None:
        """Name a satellite; "" takes the name away."""
        name = " ".join(name.split())
        if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
            raise InputError(
                f"a name has at most {MAX_NAME_CHARACTERS} printable characters",
                code="satellite_name",
                params={"most": MAX_NAME_CHARACTERS},
            )
        self.find(number).name = name
        self.changed()

    def label(self, number: int) -> str:
        """Name of a satellite, or its address and place."""
        found = self.all.get(number)
        return "" if found is None else found.name or f"{found.address} #{found.place}"

    def pause(self, seconds: float) -> None:
        """Hold back the words of all satellites for a time; 0 ends that."""
        self._paused_until_s = self.clock() + seconds
        self.changed()

    @property
    def paused_s(self) -> float:
        """Seconds until words are no longer held back."""
        return max(0.0, self._paused_until_s - self.clock())

    def use(self, number: int | None, outbox: Outbox, listener: Listener) -> None:
        """Make a satellite the microphone of a page, in place of any other; None: none."""
        chosen = None if number is None else self.find(number)
        self.leave(outbox)
        if chosen is not None:
            chosen.microphones[outbox] = Microphone(outbox, listener)
        self.changed()

    def calibrate(self, number: int, history: History) -> None:
        """Calibrate the words by the sound of a satellite, from now on."""
        one = self.find(number)
        require_none_running([other.calibration for other in self.all.values()])
        one.calibration = RunningCalibration(self.entries.model, history, self.calibrated)
        self.changed()

    def calibration(self, number: int) -> RunningCalibration:
        """Give the calibration of a satellite."""
        found = self.find(number).calibration
        if found is None:
            raise InputError("this calibration is over", code="calibration_over")
        return found

    def end_calibration(self, number: int) -> None:
        """Cancel the calibration of a satellite, or dismiss its result."""
        self.find(number).calibration = None
        self.changed()

    def leave(self, outbox: Outbox) -> None:
        """Note that a page uses none any more."""
        for one in self.all.values():
            microphone = one.microphones.pop(outbox, None)
            if microphone is not None and microphone.listener.recording:
                one.held_until_s = self.clock() + HOLD_S

    def state(self) -> list[dict[str, Any]]:
        """Give what a page shows of all, ready for JSON."""
        now_s = self.clock()
        return [one.state(now_s) for one in self.all.values()]

    def levels(self) -> dict[str, float]:
        """Give number -> level in dB of those that stream."""
        now_s = self.clock()
        streaming = [one for one in self.all.values() if one.streams(now_s)]
        return {str(one.number): round(one.level_db, 1) for one in streaming}


class Stream(Watch):
    """One connection of a satellite."""

    listed = True

    def __init__(self, satellites: Satellites, address: str):
        super().__init__(address)
        self._satellites = satellites
        self._satellite: Satellite | None = None

    def audio(self, chunks: Sequence[ConvertedChunk]) -> None:
        """Note the level; pass the sound on to the pages that use it."""
        if self._satellite is None:
            self._satellite = self._satellites.join(self)
        one = self._satellite
        one.last_s = self._satellites.clock()
        sound = np.concatenate([chunk.audio for chunk in chunks])
        if len(sound):
            power = float(np.dot(sound, sound)) / len(sound)
            one.level_db = 10 * float(np.log10(power + 1e-10))
        for microphone in list(one.microphones.values()):
            microphone.push(sound)

    def search(self, chunks: Sequence[ConvertedChunk]) -> None:
        """Calibrate by the sound, where that was started."""
        one = self._satellite
        calibration = None if one is None else one.calibration
        if calibration is not None:
            calibration.push(chunks)

    def stopped(self) -> None:
        """Leave the satellite; the next stream from the same place is it again."""
        self.closed()

    def closed(self) -> None:
        """Note that the client disconnected."""
        if self._satellite is not None:
            self._satellite.stream = None
            self._satellite.level_db = QUIET_DB
            self._satellite = None
            self._satellites.changed()

    def holds_back(self, match: Match) -> bool:
        """Whether a word ended while the satellite was taught, or all were paused."""
        one, all_ = self._satellite, self._satellites
        now_s = all_.clock()
        # A busy machine detects a word late.
        ended_s = now_s if match.arrived_s is None else match.arrived_s
        taught = one is not None and (one.holds_back(now_s) or one.holds_back(ended_s))
        return all_.paused_s > 0 or taught

    def note(self, match: Match, latency_s: float | None) -> None:
        """List a word or a near miss."""
        one = self._satellite
        if one is None or match.clip is None or not len(match.clip):
            return
        if match.said and latency_s is not None:
            one.latencies_s.append(latency_s)
        try:
            entry = self._satellites.entries.add(
                one.number,
                match.word,
                match.score,
                match.threshold,
                match.said,
                match.clip,
                match.confidence,
            )
        except Exception:
            # The client was answered, which is what counts.
            log.exception("a word could not be listed")
            return
        event = entry.state() | {"name": self._satellites.label(one.number)}
        if match.said and latency_s is not None:
            event["latency_ms"] = round(1000 * latency_s)
        for told in self._satellites.noted:
            told(event)
