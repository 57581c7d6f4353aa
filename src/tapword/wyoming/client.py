"""One client of the service: its events in, ours out, and nothing it does harms the others."""

import asyncio
import logging
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.server import AsyncEventHandler
from wyoming.wake import Detect, Detection, NotDetected

from tapword.errors import InputError
from tapword.wyoming.sound import Format, Sound, timestamp
from tapword.wyoming.stream import Heard, Stream

if TYPE_CHECKING:
    from tapword.wyoming.service import Service

log = logging.getLogger("tapword.wyoming")

# A longer part of an event (its data, or the sound in it) ends the connection.
MOST_BYTES = 1 << 20
# Once an event has begun, the rest of it must come within this time; so must our answers go.
PATIENCE_S = 30.0
# So much sound may wait to be heard. Live sound that still cannot be followed then is let go.
BACKLOG_S = 30.0
# Sound heard in one go, so that clients take turns.
TURN_S = 1.0


class BoundedReader:
    """The part of `asyncio.StreamReader` that the protocol uses, with limits.

    The protocol's own reader believes whatever length an event claims. A line's length is limited
    by the stream reader itself.
    """

    def __init__(self, reader: asyncio.StreamReader):
        self._reader = reader
        self.readline = reader.readline
        self.feed_eof = reader.feed_eof

    async def readexactly(self, n: int) -> bytes:
        """Read `n` bytes, unless that is too many or they do not come."""
        if n > MOST_BYTES:
            log.warning(
                "part of an event may have %d bytes, got %.60r: disconnected", MOST_BYTES, n
            )
            raise ValueError("too long")
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readexactly(n)


class Client(AsyncEventHandler):
    """Answer one client until it leaves.

    Parameters
    ----------
    service
        What it is a client of.
    reader, writer
        Its connection.
    """

    def __init__(
        self, service: "Service", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        super().__init__(cast(asyncio.StreamReader, BoundedReader(reader)), writer)
        self.name = str((writer.get_extra_info("peername") or ["?"])[0])
        self._service = service
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
            await super().run()
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
            self.writer.close()
            log.debug("%s: disconnected", self.name)

    async def disconnect(self) -> None:
        """Let go of what is still to be heard."""
        if self._hearing is not None:
            self._hearing.cancel()

    async def write_event(self, event: Event) -> None:
        """Send an event; a client that does not read it in time is lost."""
        async with asyncio.timeout(PATIENCE_S):
            await super().write_event(event)

    async def handle_event(self, event: Event) -> bool:
        """Answer an event; False ends the connection."""
        try:
            await self._answer(event, event.data if isinstance(event.data, dict) else {})
        except InputError as error:
            log.warning("%s: disconnected: %s", self.name, error)
            await self.write_event(Error(str(error), "bad-input").event())
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
            await self.write_event(self._service.info().event())
        elif Ping.is_type(event.type):
            await self.write_event(Pong(data.get("text")).event())
        elif Detect.is_type(event.type):
            await self._all_heard()
            for name in self._stream.only(_names(data)):
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
                await self.write_event(NotDetected().event())
            self._stream.begin()
        else:
            log.debug("%s: nothing to do for %.60r", self.name, event.type)

    async def _take(self, sound: Sound) -> None:
        """Put sound behind what waits to be heard; see that this stays bounded."""
        now = monotonic()
        self._ahead_s = max(0.0, self._ahead_s - (now - self._ahead_at)) + sound.seconds
        self._ahead_at = now
        if self._waiting_s + sound.seconds > BACKLOG_S:
            if self._ahead_s > BACKLOG_S / 2:
                # A recording, sent faster than it plays, can wait.
                await self._all_heard()
            else:
                self._let_go()
        self._waiting.append(sound._replace(lost_s=self._lost_s))
        self._waiting_s += sound.seconds
        self._lost_s = 0.0
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())

    def _let_go(self) -> None:
        log.warning("%s: too busy, %.0f s of sound not heard", self.name, self._waiting_s)
        self._lost_s += self._waiting_s + sum(sound.lost_s for sound in self._waiting)
        self._waiting.clear()
        self._waiting_s = 0.0

    async def _all_heard(self) -> None:
        if self._hearing is not None:
            await self._hearing

    async def _hear(self) -> None:
        """Hear all that waits, a turn at a time."""
        try:
            while self._waiting:
                turn = [self._waiting.popleft()]
                while self._waiting and sum(s.seconds for s in turn) < TURN_S:
                    turn.append(self._waiting.popleft())
                self._waiting_s -= sum(sound.seconds for sound in turn)
                await self._tell(await self._service.work(self._stream.hear, turn))
        except OSError as error:
            log.debug("%s: connection lost: %r", self.name, error)
            self._abort()
        except Exception:
            log.exception("%s: disconnected by an unexpected error", self.name)
            self._abort()

    async def _tell(self, heard: list[Heard]) -> None:
        for word, timestamp_ms in heard:
            log.info("%s: heard %r", self.name, word)
            await self.write_event(Detection(name=word, timestamp=timestamp_ms).event())

    def _abort(self) -> None:
        """Close at once: whoever does not read must not hold up the closing."""
        self._waiting.clear()
        self.writer.transport.abort()


def _names(data: dict[str, Any]) -> list[str]:
    names = data.get("names") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"names must be a list of words, got {repr(names)[:60]}")
    return names
