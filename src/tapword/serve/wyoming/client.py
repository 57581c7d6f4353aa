"""One client of the service: it reads events and sends answers, within limits."""

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
from tapword.serve.wyoming.audio import ConvertedChunk, Format, RawChunk, timestamp
from tapword.serve.wyoming.stream import Match, Stream

if TYPE_CHECKING:
    from tapword.serve.wyoming.service import Service

# Its own logger, because clients decide how much it logs.
log = logging.getLogger("tapword.serve.wyoming.client")

# Converted in this thread, in about 0.1 ms: handing it to another would take as long.
INLINE_BYTES = 1 << 14


@dataclass(frozen=True)
class ClientLimits:
    """Bounds that keep the service small and responsive, whatever its clients do."""

    clients: int = 100
    # At the limit, a client that sent nothing for this long makes room. Clients that listen send
    # audio all the time, and satellites that were disconnected connect again.
    idle_s: float = 1.0
    # More data, audio or names in one event end the connection. One thread reads the data of all
    # clients: this much takes less than 1 ms.
    data_bytes: int = 1 << 15
    audio_bytes: int = 1 << 20
    names: int = 100
    # Time for the first event, for the rest of an event after its line, and to send an answer.
    timeout_s: float = 30.0
    # Audio that may wait, 0.6 MB. Live audio beyond that is dropped: no answer is worth waiting
    # longer.
    backlog_s: float = 10.0
    # Audio processed at once, so that clients take turns.
    turn_s: float = 0.25
    # An event counts as at least this long. The shortest chunks that clients send are 10 ms.
    min_event_s: float = 0.004
    # Shorter events: per second, and in addition at once. Clients send some at the start and after
    # a command, then only audio.
    control_events_hz: float = 5.0
    control_events: int = 20
    # Audio that arrives up to this much faster than real time is live: clocks differ, and a bad
    # connection delivers late and all at once.
    realtime_tolerance: float = 1.25
    # A client is ahead of real time from this much on.
    max_ahead_s: float = 1.0
    # Events per second of all clients together that are ahead of real time. An event takes about
    # 0.1 ms of the one thread that reads.
    fast_events_hz: float = 1000.0


LIMITS = ClientLimits()


async def read_event(reader: asyncio.StreamReader, limits: ClientLimits) -> Event | None:
    """Read an event of limited length: a line of JSON, then the data and audio it announces.

    The protocol's own reader accepts any length. The stream reader limits the length of a line.
    """
    try:
        line = await reader.readline()
        if not line:
            return None
        header = json.loads(line)
        kind, data, payload = header["type"], header.get("data") or {}, None
        async with asyncio.timeout(limits.timeout_s):
            if length := _length(header, "data_length", limits.data_bytes):
                data = {**data, **json.loads(await reader.readexactly(length))}
            if length := _length(header, "payload_length", limits.audio_bytes):
                payload = await reader.readexactly(length)
        if not isinstance(kind, str) or not isinstance(data, dict):
            raise TypeError("an event has a type and a dictionary of data")
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
        # Time of the last event, and how far its audio was ahead of real time then.
        self.last, self.ahead_s = service.clock(), 0.0
        self.task: asyncio.Task[None] | None = None
        self._service = service
        self._limits = service.limits
        self._reader = reader
        self._writer = writer
        self._watch = service.watch(self.address)
        self._stream = Stream(
            service.model,
            service.model.clients.settings(self.address),
            near_misses=self._watch.listed or log.isEnabledFor(logging.DEBUG),
            clips=self._watch.listed,
        )
        self._control_events = 0.0
        self._queue: deque[ConvertedChunk] = deque()
        self._queued_s = 0.0
        self._lost_s: float | None = None
        self._processing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Answer until the client disconnects or breaks the protocol."""
        log.debug("%s: connected", self.name)
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                event = await read_event(self._reader, self._limits)
            while event is not None:
                await self._answer(event, event.data)
                await self._yield_turn()
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
            if self._processing is not None:
                self._processing.cancel()
            self._watch.closed()
            self._writer.close()
            log.debug("%s: disconnected", self.name)

    def disconnect(self) -> None:
        """Disconnect it to make room for another client."""
        log.warning("%s: disconnected to make room for another client", self.name)
        # A task that has not started would never close the connection.
        self._abort()
        if self.task is not None:
            self.task.cancel()

    async def _send(self, event: Event) -> None:
        """Send an event; a client that does not read it in time is disconnected."""
        async with asyncio.timeout(self._limits.timeout_s):
            await async_write_event(event, self._writer)

    async def _answer(self, event: Event, data: dict[str, Any]) -> None:
        chunk = AudioChunk.is_type(event.type)
        raw = RawChunk.of(data, event.payload or b"") if chunk else None
        self._count(raw.seconds if raw else 0.0)
        if raw:
            for piece in raw.split():
                await self._enqueue(piece)
        elif Describe.is_type(event.type):
            await self._send(self._service.info().event())
        elif Ping.is_type(event.type):
            await self._send(Pong(data.get("text")).event())
        elif Detect.is_type(event.type):
            await self._drain()
            self._select_words(data.get("names") or [])
            # Satellites ask again after each command without starting a new stream.
            self._stream.reset()
        elif AudioStart.is_type(event.type):
            await self._drain()
            Format.of(data)
            self._stream.reset(timestamp(data))
        elif AudioStop.is_type(event.type):
            await self._drain()
            await self._report(await self._service.work(self.ahead_s, self._stream.flush))
            if not self._stream.detected:
                await self._send(NotDetected().event())
            self._stream.reset()
            self._watch.stopped()
        else:
            log.debug("%s: ignored %.60r", self.name, event.type)

    def _select_words(self, names: Any) -> None:
        """Report only the words that a client names."""
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"names must be a list of words, got {repr(names)[:60]}")
        if len(names) > self._limits.names:
            raise InputError(f"at most {self._limits.names} names, got {len(names)}")
        unknown = self._stream.select_words(names)
        if unknown:
            shown = ", ".join(f"{name[:60]!r}" for name in unknown[:3])
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            log.warning("%s: waits for %s%s, not taught", self.name, shown, more)

    async def _enqueue(self, raw: RawChunk) -> None:
        """Queue audio, within the limit."""
        if len(raw.samples) <= INLINE_BYTES:
            chunk = self._stream.convert(raw)
        else:
            chunk = await self._service.work(self.ahead_s, self._stream.convert, raw)
        if self._queued_s + self._cost(chunk) > self._limits.backlog_s:
            if self.ahead_s > self._limits.backlog_s / 2:
                # A recording, sent faster than real time, can wait.
                await self._drain()
            else:
                lost_s = sum(one.seconds + (one.lost_s or 0.0) for one in self._queue)
                log.warning("%s: too busy, %.1f s of audio dropped", self.name, lost_s)
                self._lost_s = (self._lost_s or 0.0) + lost_s
                self._queue.clear()
                self._queued_s = 0.0
        if self._lost_s is not None:
            chunk = chunk._replace(lost_s=self._lost_s + (chunk.lost_s or 0.0))
            self._lost_s = None
        self._queue.append(chunk._replace(arrived_s=self.last))
        self._queued_s += self._cost(chunk)
        if self._processing is None or self._processing.done():
            self._processing = asyncio.create_task(self._process())

    def _count(self, audio_s: float) -> None:
        """Note an event with this much audio; refuse too many with hardly any."""
        limits, now = self._limits, self._service.clock()
        passed_s = now - self.last
        self.last = now
        played_s = limits.realtime_tolerance * passed_s
        self.ahead_s = max(0.0, self.ahead_s - played_s) + max(audio_s, limits.min_event_s)
        if audio_s < limits.min_event_s:
            self._control_events = (
                max(0.0, self._control_events - limits.control_events_hz * passed_s) + 1
            )
            if self._control_events > limits.control_events:
                most = f"{limits.control_events_hz:g} a second, {limits.control_events} at once"
                raise InputError(f"too many events with hardly any audio: at most {most}")

    @property
    def ahead_of_realtime(self) -> bool:
        """Whether it sends faster than real time, and can wait."""
        return self.ahead_s > self._limits.max_ahead_s

    async def _yield_turn(self) -> None:
        """Let others run."""
        await asyncio.sleep(self._service.fast_turn_s() if self.ahead_of_realtime else 0)

    def _cost(self, chunk: ConvertedChunk) -> float:
        """Seconds that a chunk counts for in the queue."""
        return max(chunk.seconds, self._limits.min_event_s)

    async def _drain(self) -> None:
        """Wait until the queue is processed."""
        if self._processing is not None:
            await self._processing

    async def _process(self) -> None:
        """Process the queue, one turn at a time."""
        try:
            while self._queue:
                turn, turn_s = [], 0.0
                while self._queue and turn_s < self._limits.turn_s:
                    turn.append(self._queue.popleft())
                    turn_s += self._cost(turn[-1])
                self._queued_s -= turn_s
                self._watch.audio(turn)
                await self._report(await self._service.work(self.ahead_s, self._search, turn))
        except OSError as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            self._abort()

    def _search(self, turn: list[ConvertedChunk]) -> list[Match]:
        self._watch.search(turn)
        return self._stream.push(turn)

    async def _report(self, matches: list[Match]) -> None:
        for one in matches:
            sure = "" if one.confidence is None else f"sure {one.confidence}, "
            scores = f"{sure}score {one.score:.2f}, threshold {one.threshold:.2f}"
            if self._watch.holds_back(one):
                log.info("%s: held back %r, %s", self.name, one.word, scores)
                continue
            if one.said:
                log.info("%s: heard %r, %s", self.name, one.word, scores)
                await self._send(Detection(name=one.name, timestamp=one.ended_ms).event())
            else:
                log.debug("%s: nearly %r, %s", self.name, one.word, scores)
            if self._watch.listed:
                live = one.arrived_s is not None and not self.ahead_of_realtime
                latency_s = self._service.clock() - (one.arrived_s or 0.0) if live else None
                await self._service.work(self.ahead_s, self._watch.note, one, latency_s)

    def _abort(self) -> None:
        """Close at once, without waiting for a client that does not read."""
        self._queue.clear()
        self._writer.transport.abort()
