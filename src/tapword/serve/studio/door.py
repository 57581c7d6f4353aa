"""The studio's door: places for connections, deadlines, and how much of one is read at a time.

Whoever has not shown the token yet is a stranger. Strangers have places of their own, and the
oldest of them goes when a new one comes, so they never keep out whoever has the token. Of a
stranger no more is read than the head of one request; then it is known, or refused and closed.
"""

import asyncio
import contextlib
import itertools
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tapword.serve.studio.limits import Limits

END_OF_HEAD = re.compile(rb"\n\r?\n")
# Bytes read of one connection before the others have their turn. Small: a frame or a chunk may be
# six bytes long, and each takes some 20 us to take apart.
PIECE_BYTES = 4096
# Connections let in before those that are inside have their turn.
AT_ONCE = 16


class Door(uvicorn.Server):
    """A server of uvicorn's that lets connections in itself."""

    def __init__(self, config: uvicorn.Config, limits: Limits, tls: ssl.SSLContext | None):
        super().__init__(config)
        self.limits = limits
        self.tls = tls
        # In the order they came.
        self.strangers: dict[Visit, None] = {}
        self.known: set[Visit] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to let connections in."""
        await super().startup(sockets=[])
        [listening] = sockets or []
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in any more, and end what goes on."""
        self._accepting.cancel()
        await super().shutdown(sockets)
        for visit in [*self.strangers, *self.known]:
            visit.end()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError:
                # It was broken off before it was taken, or no file is left to take it with.
                await asyncio.sleep(0.05)
                continue
            while len(self.strangers) >= self.limits.strangers:
                next(iter(self.strangers)).end()
            Visit(self, accepted)
            # What waits already is taken without a turn for anybody else.
            if not number % AT_ONCE:
                await asyncio.sleep(0)


class Visit(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection: asyncio takes it for the protocol, uvicorn for the transport.

    A guard lets it in (`admit`) and says while a request is served (`serving`).
    """

    def __init__(self, door: Door, accepted: socket.socket):
        super().__init__()
        self._door = door
        self._accepted: socket.socket | None = accepted
        self._outer: asyncio.Transport | None = None
        self._inner: Any = None
        self._piece = bytearray(PIECE_BYTES)
        # The head of a stranger's first request; then what came after it, until it is known.
        self._head, self._rest = bytearray(), b""
        self._requests = 0
        # Why nothing is read for now.
        self._held: set[str] = set()
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        door.strangers[self] = None
        self._loop = asyncio.get_running_loop()
        self._expect_within(door.limits.head_s)
        self._greeting = self._loop.create_task(self._greet())

    # What the guard asks.

    def admit(self) -> bool:
        """Give this visit a place among those that are known; False where none is left."""
        if self in self._door.strangers:
            if len(self._door.known) >= self._door.limits.connections:
                return False
            del self._door.strangers[self]
            self._door.known.add(self)
            rest, self._rest = self._rest, b""
            if rest:
                self._inner.data_received(rest)
            self._hold("stranger", False)
        return True

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve a request, for which the deadline of its head does not hold."""
        self._requests += 1
        self._expect_within(None)
        try:
            yield
        finally:
            self._requests -= 1
            # A next request may be served already, and one that closes has its own deadline.
            if not self._requests and not self.is_closing():
                self._expect_within(self._door.limits.head_s)

    def end(self) -> None:
        """Break the connection off, whatever it is doing."""
        self._leave()
        self._greeting.cancel()
        if self._outer is not None:
            self._outer.abort()
        elif self._accepted is not None:
            self._accepted.close()

    def _leave(self) -> None:
        self._door.strangers.pop(self, None)
        self._door.known.discard(self)
        for timer in (self._deadline, self._write_deadline):
            if timer is not None:
                timer.cancel()

    def _expect_within(self, seconds: float | None) -> None:
        """End this visit after so many seconds, unless something else is expected by then."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._loop.call_later(seconds, self.end)

    async def _greet(self) -> None:
        """Make a transport of the socket, which may take a TLS handshake."""
        tls, limits = self._door.tls, self._door.limits
        patience = {"ssl_handshake_timeout": limits.head_s, "ssl_shutdown_timeout": limits.close_s}
        accepted, self._accepted = self._accepted, None
        assert accepted is not None
        try:
            await self._loop.connect_accepted_socket(
                lambda: self, accepted, ssl=tls, **(patience if tls else {})
            )
        except OSError:
            self._leave()

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the connection to uvicorn."""
        assert isinstance(transport, asyncio.Transport)
        self._outer = transport
        self._inner = H11Protocol(
            config=self._door.config,
            server_state=self._door.server_state,
            app_state=self._door.lifespan.state | {"visit": self},
        )
        self._inner.connection_made(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Give the place back."""
        self._leave()
        self._inner.connection_lost(error)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Where the next piece is to be put."""
        return self._piece

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on; of a stranger the head of one request, in one piece."""
        data = bytes(self._piece[:nbytes])
        if self in self._door.known:
            self._inner.data_received(data)
            # Parts of a message that are empty pass every limit of its size.
            if len(getattr(self._inner, "frames", ())) > self._door.limits.frames:
                self.end()
            return
        self._head += data
        found = END_OF_HEAD.search(self._head, max(len(self._head) - nbytes - 2, 0))
        length = found.end() if found else len(self._head)
        limits = self._door.limits
        if length > limits.head_bytes or self._head.count(b"\n", 0, length) > limits.head_lines:
            self.end()
        elif found:
            head, self._rest = bytes(self._head[:length]), bytes(self._head[length:])
            self._head.clear()
            self._hold("stranger", True)
            self._inner.data_received(head)

    def eof_received(self) -> None:
        """Pass on that nothing more comes."""
        self._inner.eof_received()

    def pause_writing(self) -> None:
        """End the visit if what waits is not taken."""
        self._write_deadline = self._loop.call_later(self._door.limits.send_s, self.end)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Go on."""
        if self._write_deadline is not None:
            self._write_deadline.cancel()
        self._inner.resume_writing()

    def _hold(self, why: str, held: bool) -> None:
        """Stop or go on reading; it goes on when no reason is left."""
        assert self._outer is not None
        (self._held.add if held else self._held.discard)(why)
        (self._outer.pause_reading if self._held else self._outer.resume_reading)()

    # What uvicorn does.

    def set_protocol(self, protocol: Any) -> None:
        """Pass what comes on to another protocol: HTTP has become a WebSocket."""
        self._inner = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Facts of the connection."""
        return self._outer.get_extra_info(name, default) if self._outer else default

    def write(self, data: Any) -> None:
        """Send. Only answers to pings do not wait until others were taken: those end the visit."""
        if self._outer is None or self._outer.is_closing():
            return
        if self._outer.get_write_buffer_size() > self._door.limits.unsent_bytes:
            self.end()
        else:
            self._outer.write(data)

    def is_closing(self) -> bool:
        """Whether it is closed, or will be when all is sent."""
        return self._outer is None or self._outer.is_closing()

    def pause_reading(self) -> None:
        """Read no more until uvicorn has handled what came."""
        self._hold("uvicorn", True)

    def resume_reading(self) -> None:
        """Go on reading."""
        self._hold("uvicorn", False)

    def close(self) -> None:
        """Close it when all is sent, which may take so long and no longer."""
        if not self.is_closing():
            assert self._outer is not None
            self._outer.close()
            self._expect_within(self._door.limits.close_s)

    def abort(self) -> None:
        """Break it off."""
        self.end()
