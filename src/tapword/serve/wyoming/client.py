"""One client of the service: its events in, ours out, and nothing it does harms the others."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_read_event, async_write_event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.wake import Detect, Detection, NotDetected

from tapword.errors import InputError
from tapword.serve.wyoming.sound import Format, Sound, timestamp
from tapword.serve.wyoming.stream import Detections, Stream

if TYPE_CHECKING:
    from tapword.serve.wyoming.service import Service

log = logging.getLogger("tapword.serve.wyoming")


@dataclass(frozen=True)
class Limits:
    """Bounds that keep the service small and answering, whatever its clients do."""

    clients: int = 100
    # A longer part of an event (its data, or the sound in it) ends the connection.
    event_bytes: int = 1 << 20
    # Once an event has begun, the rest of it must come within this time; so must our answers go.
    patience_s: float = 30.0
    # So much sound may wait to be heard. Live sound that cannot be followed even then is let go.
    backlog_s: float = 30.0
    # Sound heard in one go, so that clients take turns.
    turn_s: float = 1.0


LIMITS = Limits()


class BoundedReader:
    """The part of `asyncio.StreamReader` that the protocol uses, with limits.

    The protocol's own reader believes whatever length an event claims. A line's length is limited
    by the stream reader itself.
    """

    def __init__(self, reader: asyncio.StreamReader, limits: Limits):
        self._reader = reader
        self._limits = limits
        self.readline = reader.readline

    async def readexactly(self, n: int) -> bytes:
        """Read `n` bytes, unless that is too many or they do not come."""
        most = self._limits.event_bytes
        if n > most:
            log.warning("part of an event may have %d bytes, got %.60r: disconnected", most, n)
            raise ValueError("too long")
        async with asyncio.timeout(self._limits.patience_s):
            return await self._reader.readexactly(n)


class Client:
    """One client of a service, and its connection."""

    def __init__(
        self, service: "Service", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        self.name = str((writer.get_extra_info("peername") or ["?"])[0])
        self._service = service
        self._limits = service.limits
        self._reader = cast(asyncio.StreamReader, BoundedReader(reader, service.limits))
        self._writer = writer
        self._stream = Stream(service.model)
        self._waiting: deque[Sound] = deque()
        self._waiting_s = 0.0
        self._lost_s = 0.0
        self._hearing: asyncio.Task[None] | None = None
        # How much more sound was sent than time has passed, and when that was true.
        self._ahead_s, self._ahead_at = 0.0, 0.0

    async def run(self) -> None:
        """Answer until the client leaves or does not keep to the protocol."""
        log.debug("%s: connected", self.name)
        try:
            while (event := await async_read_event(self._reader)) is not None:
                if not await self._handle(event):
                    break
        except asyncio.CancelledError:
            self._abort()
            raise
        except (EOFError, OSError) as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception as error:
            # The protocol's reader fails in many ways on what is not the protocol.
            log.warning("%s: disconnected, not the Wyoming protocol: %r", self.name, error)
            self._abort()
        finally:
            if self._hearing is not None:
                self._hearing.cancel()
            self._writer.close()
            log.debug("%s: disconnected", self.name)

    async def _send(self, event: Event) -> None:
        """Send an event; a client that does not read it in time is lost."""
        async with asyncio.timeout(self._limits.patience_s):
            await async_write_event(event, self._writer)

    async def _handle(self, event: Event) -> bool:
        """Answer an event; False ends the connection."""
        try:
            await self._answer(event, event.data if isinstance(event.data, dict) else {})
        except InputError as error:
            log.warning("%s: disconnected: %s", self.name, error)
            await self._send(Error(str(error), "bad-input").event())
            return False
        except OSError:
            raise
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            return False
        return True

    async def _answer(self, event: Event, data: dict[str, Any]) -> None:
        if AudioChunk.is_type(event.type):
            for sound in Sound.of(data, event.payload or b"").split():
                await self._take(sound)
        elif Describe.is_type(event.type):
            await self._send(self._service.info().event())
        elif Ping.is_type(event.type):
            await self._send(Pong(data.get("text")).event())
        elif Detect.is_type(event.type):
            await self._all_heard()
            names = data.get("names") or []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise InputError(f"names must be a list of words, got {repr(names)[:60]}")
            for name in self._stream.only(names):
                log.warning("%s: waits for %.60r, which is not taught", self.name, name)
            # Satellites ask anew after each command without starting a new stream.
            self._stream.begin()
        elif AudioStart.is_type(event.type):
            await self._all_heard()
            Format.of(data)
            self._stream.begin(timestamp(data))
        elif AudioStop.is_type(event.type):
            await self._all_heard()
            await self._tell(await self._service.work(self._stream.end))
            if not self._stream.detected:
                await self._send(NotDetected().event())
            self._stream.begin()
        else:
            log.debug("%s: nothing to do for %.60r", self.name, event.type)

    async def _take(self, sound: Sound) -> None:
        """Put sound behind what waits to be heard; see that this stays bounded."""
        now, backlog_s = self._service.clock(), self._limits.backlog_s
        self._ahead_s = max(0.0, self._ahead_s - (now - self._ahead_at)) + sound.seconds
        self._ahead_at = now
        if self._waiting_s + sound.seconds > backlog_s:
            if self._ahead_s > backlog_s / 2:
                # A recording, sent faster than it plays, can wait.
                await self._all_heard()
            else:
                log.warning("%s: too busy, %.0f s of sound not heard", self.name, self._waiting_s)
                self._lost_s += self._waiting_s + sum(one.lost_s for one in self._waiting)
                self._waiting.clear()
                self._waiting_s = 0.0
        self._waiting.append(sound._replace(lost_s=self._lost_s))
        self._waiting_s += sound.seconds
        self._lost_s = 0.0
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())

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
                    turn_s += turn[-1].seconds
                self._waiting_s -= turn_s
                await self._tell(await self._service.work(self._stream.hear, turn))
        except OSError as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            self._abort()

    async def _tell(self, heard: Detections) -> None:
        for word, timestamp_ms in heard:
            log.info("%s: heard %r", self.name, word)
            await self._send(Detection(name=word, timestamp=timestamp_ms).event())

    def _abort(self) -> None:
        """Close at once: whoever does not read must not hold up the closing."""
        self._waiting.clear()
        self._writer.transport.abort()
