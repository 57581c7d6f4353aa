"""One client of the service: its events in, ours out, and nothing it does harms the others."""

import asyncio
import contextlib
import json
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_write_event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.wake import Detect, Detection, NotDetected

from tapword.errors import InputError
from tapword.serve.wyoming.sound import Format, Raw, Sound, timestamp
from tapword.serve.wyoming.stream import Heard, Stream

if TYPE_CHECKING:
    from tapword.serve.wyoming.service import Service

# Strangers can make this one talk, so it is a logger of its own.
log = logging.getLogger("tapword.serve.wyoming.client")

# What is converted on the spot, in some 0.1 ms: handing it to a thread would take as long.
SPOT_BYTES = 1 << 14


@dataclass(frozen=True)
class Limits:
    """Bounds that keep the service small and answering, whatever its clients do."""

    clients: int = 100
    # Where all places are taken, whoever said nothing for so long makes room. Who listens sends
    # sound all the time, and satellites that were sent away come again.
    idle_s: float = 1.0
    # More data or sound in one event, or names in it, end the connection. Data is read by all
    # clients' one thread: so much takes it less than 1 ms.
    data_bytes: int = 1 << 15
    sound_bytes: int = 1 << 20
    names: int = 100
    # The first event must come within this time, and so must the rest of any once its line was
    # read; so must our answers go.
    patience_s: float = 30.0
    # So much sound may wait to be heard, 0.6 MB. Live sound that cannot be followed even then is
    # let go: nobody waits so long for an answer.
    backlog_s: float = 10.0
    # Sound heard in one go, so that clients take turns.
    turn_s: float = 0.25
    # An event counts as this long at least. The shortest pieces that clients send are 10 ms.
    piece_s: float = 0.004
    # Events with less sound than that: so many a second, and so many more at once. Clients send
    # some at the beginning and after a command, then only sound.
    chatter_hz: float = 5.0
    chatter: int = 20
    # Sound that comes so much faster than it plays is live all the same: clocks differ, and what a
    # bad connection held up comes late and at once.
    leeway: float = 1.25
    # Sound may come so much earlier than it is due before its client is said to hurry.
    live_s: float = 1.0
    # Events a second of all those together who send faster than sound plays. An event takes some
    # 0.1 ms of the one thread that reads.
    hurried: float = 1000.0


LIMITS = Limits()


async def read_event(reader: asyncio.StreamReader, limits: Limits) -> Event | None:
    """Read an event of bounded length: a line of JSON, then as much data and sound as it says.

    The protocol's own reader believes whatever length an event claims. A line's length is limited
    by the stream reader itself.
    """
    try:
        line = await reader.readline()
        if not line:
            return None
        header = json.loads(line)
        kind, data, payload = header["type"], header.get("data") or {}, None
        async with asyncio.timeout(limits.patience_s):
            if length := _length(header, "data_length", limits.data_bytes):
                data = {**data, **json.loads(await reader.readexactly(length))}
            if length := _length(header, "payload_length", limits.sound_bytes):
                payload = await reader.readexactly(length)
        if not isinstance(kind, str) or not isinstance(data, dict):
            raise TypeError("an event has a type and a table of data")
        return Event(kind, data, payload)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"not the Wyoming protocol: {repr(error)[:80]}") from error


def _length(header: dict[str, Any], key: str, most: int) -> int:
    length = header.get(key) or 0
    if type(length) is not int or not 0 <= length <= most:
        raise InputError(f"{key} must be at most {most}, got {repr(length)[:60]}")
    return length


class Client:
    """One client of a service, and its connection."""

    def __init__(
        self, service: "Service", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        self.address = str((writer.get_extra_info("peername") or ["?"])[0])
        self.name = service.model.clients.name(self.address)
        # When the last event came, and how much more sound had come by then than time had passed.
        self.last, self.ahead_s = service.clock(), 0.0
        self.task: asyncio.Task[None] | None = None
        self._service = service
        self._limits = service.limits
        self._reader = reader
        self._writer = writer
        self._stream = Stream(
            service.model,
            service.model.clients.settings(self.address),
            near_misses=log.isEnabledFor(logging.DEBUG),
        )
        self._chatter = 0.0
        self._waiting: deque[Sound] = deque()
        self._waiting_s = 0.0
        self._lost_s: float | None = None
        self._hearing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Answer until the client leaves or does not keep to the protocol."""
        log.debug("%s: connected", self.name)
        try:
            async with asyncio.timeout(self._limits.patience_s):
                event = await read_event(self._reader, self._limits)
            while event is not None:
                await self._answer(event, event.data)
                await self._let_others()
                event = await read_event(self._reader, self._limits)
        except asyncio.CancelledError:
            self._abort()
            raise
        except InputError as error:
            log.warning("%s: disconnected: %s", self.name, error)
            with contextlib.suppress(OSError):
                await self._send(Error(str(error), "bad-input").event())
        except (EOFError, OSError) as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            self._abort()
        finally:
            if self._hearing is not None:
                self._hearing.cancel()
            self._writer.close()
            log.debug("%s: disconnected", self.name)

    def leave(self) -> None:
        """Make room for another client."""
        log.warning("%s: disconnected to make room for another client", self.name)
        # Its task may not have begun, and would then never close the connection.
        self._abort()
        if self.task is not None:
            self.task.cancel()

    async def _send(self, event: Event) -> None:
        """Send an event; a client that does not read it in time is lost."""
        async with asyncio.timeout(self._limits.patience_s):
            await async_write_event(event, self._writer)

    async def _answer(self, event: Event, data: dict[str, Any]) -> None:
        chunk = AudioChunk.is_type(event.type)
        raw = Raw.of(data, event.payload or b"") if chunk else None
        self._count(raw.seconds if raw else 0.0)
        if raw:
            for piece in raw.split():
                await self._take(piece)
        elif Describe.is_type(event.type):
            await self._send(self._service.info().event())
        elif Ping.is_type(event.type):
            await self._send(Pong(data.get("text")).event())
        elif Detect.is_type(event.type):
            await self._all_heard()
            self._only(data.get("names") or [])
            # Satellites ask anew after each command without starting a new stream.
            self._stream.begin()
        elif AudioStart.is_type(event.type):
            await self._all_heard()
            Format.of(data)
            self._stream.begin(timestamp(data))
        elif AudioStop.is_type(event.type):
            await self._all_heard()
            await self._tell(await self._service.work(self.ahead_s, self._stream.end))
            if not self._stream.detected:
                await self._send(NotDetected().event())
            self._stream.begin()
        else:
            log.debug("%s: nothing to do for %.60r", self.name, event.type)

    def _only(self, names: Any) -> None:
        """Answer to the words alone that a client names."""
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"names must be a list of words, got {repr(names)[:60]}")
        if len(names) > self._limits.names:
            raise InputError(f"at most {self._limits.names} names, got {len(names)}")
        unknown = self._stream.only(names)
        if unknown:
            shown = ", ".join(f"{name[:60]!r}" for name in unknown[:3])
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            log.warning("%s: waits for %s%s, not taught here", self.name, shown, more)

    async def _take(self, raw: Raw) -> None:
        """Put sound behind what waits to be heard; see that this stays bounded."""
        if len(raw.samples) <= SPOT_BYTES:
            sound = self._stream.convert(raw)
        else:
            sound = await self._service.work(self.ahead_s, self._stream.convert, raw)
        if self._waiting_s + self._cost(sound) > self._limits.backlog_s:
            if self.ahead_s > self._limits.backlog_s / 2:
                # A recording, sent faster than it plays, can wait.
                await self._all_heard()
            else:
                lost_s = sum(one.seconds + (one.lost_s or 0.0) for one in self._waiting)
                log.warning("%s: too busy, %.1f s of sound not heard", self.name, lost_s)
                self._lost_s = (self._lost_s or 0.0) + lost_s
                self._waiting.clear()
                self._waiting_s = 0.0
        if self._lost_s is not None:
            sound = sound._replace(lost_s=self._lost_s + (sound.lost_s or 0.0))
            self._lost_s = None
        self._waiting.append(sound)
        self._waiting_s += self._cost(sound)
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())

    def _count(self, sound_s: float) -> None:
        """Note that an event came with so much sound; refuse too many that hold hardly any."""
        limits, now = self._limits, self._service.clock()
        passed_s = now - self.last
        self.last = now
        played_s = limits.leeway * passed_s
        self.ahead_s = max(0.0, self.ahead_s - played_s) + max(sound_s, limits.piece_s)
        if sound_s < limits.piece_s:
            self._chatter = max(0.0, self._chatter - limits.chatter_hz * passed_s) + 1
            if self._chatter > limits.chatter:
                most = f"{limits.chatter_hz:g} a second, {limits.chatter} at once"
                raise InputError(f"too many events with hardly any sound: {most} at most")

    @property
    def hurries(self) -> bool:
        """Whether it sends faster than sound plays, and can wait."""
        return self.ahead_s > self._limits.live_s

    async def _let_others(self) -> None:
        """Give the others their turn; those in a hurry share what they may take together."""
        await asyncio.sleep(
            self._service.places_taken / self._limits.hurried if self.hurries else 0
        )

    def _cost(self, sound: Sound) -> float:
        """Seconds that sound counts for among what waits."""
        return max(sound.seconds, self._limits.piece_s)

    async def _all_heard(self) -> None:
        if self._hearing is not None:
            await self._hearing

    async def _hear(self) -> None:
        """Hear all that waits, a turn at a time."""
        try:
            while self._waiting:
                turn, turn_s = [], 0.0
                while self._waiting and turn_s < self._limits.turn_s:
                    turn.append(self._waiting.popleft())
                    turn_s += self._cost(turn[-1])
                self._waiting_s -= turn_s
                await self._tell(await self._service.work(self.ahead_s, self._stream.hear, turn))
        except OSError as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            self._abort()

    async def _tell(self, heard: list[Heard]) -> None:
        for one in heard:
            scores = f"score {one.score:.2f}, threshold {one.threshold:.2f}"
            if one.said:
                log.info("%s: heard %r, %s", self.name, one.word, scores)
                await self._send(Detection(name=one.word, timestamp=one.ended_ms).event())
            else:
                log.debug("%s: nearly %r, %s", self.name, one.word, scores)

    def _abort(self) -> None:
        """Close at once: whoever does not read must not hold up the closing."""
        self._waiting.clear()
        self._writer.transport.abort()
