"""The studio's door: places for connections, deadlines, and how much of one is read at a time.

Whoever has not shown the token yet is a stranger. Strangers have places of their own, and the
oldest of them goes when a new one comes, so they never keep out whoever has the token. Of a
stranger no more is read than the head of one request, and nothing but this file reads it; then it
is known, or refused and closed.
"""

import asyncio
import contextlib
import itertools
import re
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from tapword.serve.studio.guard import NO_PLACE, NO_TOKEN, is_token, refusal
from tapword.serve.studio.limits import Limits

END_OF_HEAD = re.compile(rb"\n\r?\n")
# Bytes read of one connection before the others have their turn. Small, because what they mean may
# be much: a frame or a chunk of a body can be six bytes long.
PIECE_BYTES = 1024
# Connections let in before those that are inside have their turn.
AT_ONCE = 16


class Door(uvicorn.Server):
    """A server of uvicorn's that lets connections in itself."""

    def __init__(
        self, config: uvicorn.Config, token: str, limits: Limits, tls: ssl.SSLContext | None
    ):
        super().__init__(config)
        self.limits = limits
        self.tls = tls
        self.no_token = bytes_of(refusal(403, NO_TOKEN))
        self.no_place = bytes_of(refusal(503, NO_PLACE))
        self._token = token.encode()
        self._like_token = re.compile(rb"(?<![\w-])[\w-]{%d}(?![\w-])" % len(token))
        # In the order they came.
        self.strangers: dict[Visit, None] = {}
        self.known: set[Visit] = set()

    def is_shown_token(self, head: bytes) -> bool:
        """Whether the token is anywhere in the head of a request; where it must be a guard says."""
        return is_token(self._token, self._like_token.findall(head))

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
            if self.tls is not None or not self._turns_away(accepted):
                while len(self.strangers) >= self.limits.strangers:
                    next(iter(self.strangers)).end()
                Visit(self, accepted)
            # What waits already is taken without a turn for anybody else.
            if not number % AT_ONCE:
                await asyncio.sleep(0)

    def _turns_away(self, accepted: socket.socket) -> bool:
        """Refuse a stranger who has said enough already, in a third of the time a visit takes.

        Whoever waits behind a flood of them is met sooner.
        """
        try:
            said = accepted.recv(PIECE_BYTES, socket.MSG_PEEK)
            if END_OF_HEAD.search(said) is None or self.is_shown_token(said):
                return False
            # What is left unread would break the connection off before the answer is.
            accepted.recv(PIECE_BYTES)
            accepted.send(self.no_token)
        except BlockingIOError:
            return False
        except OSError:
            pass
        accepted.close()
        return True


class Visit(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection: asyncio takes it for the protocol, uvicorn for the transport.

    The guard says while a request is served (`serving`).
    """

    def __init__(self, door: Door, accepted: socket.socket):
        super().__init__()
        self._door = door
        self._accepted: socket.socket | None = accepted
        self._outer: asyncio.Transport | None = None
        self._inner: Any = None
        self._piece = bytearray(PIECE_BYTES)
        # What came of the head of a stranger's request.
        self._head = bytearray()
        self._requests = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        door.strangers[self] = None
        self._loop = asyncio.get_running_loop()
        self._expect_within(door.limits.head_s)
        self._greeting = self._loop.create_task(self._greet())

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
        """Wait for what a stranger will say."""
        assert isinstance(transport, asyncio.Transport)
        self._outer = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Give the place back."""
        self._leave()
        if self._inner is not None:
            self._inner.connection_lost(error)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Where the next piece is to be put."""
        return self._piece

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on, or look whether a stranger is known by now."""
        data = bytes(self._piece[:nbytes])
        if self._inner is None:
            self._meet(data)
        else:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        # uvicorn trips over a page that speaks before its WebSocket is open. Parts of a message
        # that are empty pass every limit of its size.
        if not getattr(self._inner, "handshake_complete", True):
            self.end()
            return
        self._inner.data_received(data)
        if len(getattr(self._inner, "frames", ())) > self._door.limits.frames:
            self.end()

    def _meet(self, data: bytes) -> None:
        """Hand a stranger that shows the token on to uvicorn, and refuse others."""
        door, limits = self._door, self._door.limits
        self._head += data
        found = END_OF_HEAD.search(self._head, max(len(self._head) - len(data) - 2, 0))
        head = bytes(self._head[: found.end()] if found else self._head)
        if len(head) > limits.head_bytes or head.count(b"\n") > limits.head_lines:
            self.end()
        elif not found:
            return
        elif not door.is_shown_token(head):
            self._refuse(door.no_token)
        elif len(door.known) >= limits.connections:
            self._refuse(door.no_place)
        else:
            del door.strangers[self]
            door.known.add(self)
            self._inner = H11Protocol(
                config=door.config,
                server_state=door.server_state,
                app_state=door.lifespan.state | {"visit": self},
            )
            self._inner.connection_made(self)
            self._inner.data_received(head)
            # Apart, because by now this may be a WebSocket.
            if len(self._head) > len(head):
                self._pass_on(bytes(self._head[len(head) :]))
            self._head.clear()

    def _refuse(self, answer: bytes) -> None:
        self.write(answer)
        self.close()

    def eof_received(self) -> None:
        """Let asyncio close what the other side has closed."""

    def pause_writing(self) -> None:
        """End the visit if what waits is not taken."""
        self._write_deadline = self._loop.call_later(self._door.limits.send_s, self.end)
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Go on."""
        if self._write_deadline is not None:
            self._write_deadline.cancel()
        if self._inner is not None:
            self._inner.resume_writing()

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
        if self._outer is not None:
            self._outer.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._outer is not None:
            self._outer.resume_reading()

    def close(self) -> None:
        """Close it when all is sent, which may take so long and no longer."""
        if not self.is_closing():
            assert self._outer is not None
            self._outer.close()
            self._expect_within(self._door.limits.close_s)

    def abort(self) -> None:
        """Break it off."""
        self.end()


def bytes_of(answer: Response) -> bytes:
    """Write out an answer, head and body."""
    phrase = HTTPStatus(answer.status_code).phrase
    lines = [f"HTTP/1.1 {answer.status_code} {phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(answer.body)])
