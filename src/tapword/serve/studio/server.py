"""The studio's HTTP server: it limits connections, their time, and what is read at once.

A connection is unauthenticated until a request shows the token, or comes through Home Assistant's
ingress where that was switched on. Unauthenticated connections have
their own limit, and the oldest is closed for a new one: they never shut out whoever has the token.
Only this file reads from them, and only the head of one request.
"""

import asyncio
import contextlib
import itertools
import logging
import re
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from tapword.serve.log import LineRateFilter
from tapword.serve.studio.guard import NO_TOKEN, TOO_MANY, is_token, refusal
from tapword.serve.studio.ingress import Ingress
from tapword.serve.studio.limits import ServerLimits
from tapword.support.text import printable

log = logging.getLogger(__name__)
# Pages decide how much it logs.
log.addFilter(LineRateFilter(__name__))

END_OF_HEAD = re.compile(rb"\n\r?\n")
# Bytes read from one connection before the others get a turn. Small, because a frame or a chunk of
# a body can be six bytes long, and each costs time.
PIECE_BYTES = 1024
# Connections accepted before the open ones get a turn.
ACCEPT_BATCH = 16


class Server(uvicorn.Server):
    """A uvicorn server that accepts its connections itself."""

    def __init__(
        self,
        config: uvicorn.Config,
        token: str,
        limits: ServerLimits,
        tls: ssl.SSLContext | None,
        ingress: Ingress,
    ):
        super().__init__(config)
        self.ingress = ingress
        self.limits = limits
        self.tls = tls
        self.forbidden = encode_response(refusal(403, NO_TOKEN))
        self.too_many = encode_response(refusal(503, TOO_MANY))
        self._token = token.encode()
        self._token_pattern = re.compile(rb"(?<![\w-])[\w-]{%d}(?![\w-])" % len(token))
        # In the order in which they were accepted.
        self.unauthenticated: dict[Connection, None] = {}
        self.authenticated: set[Connection] = set()

    def may_enter(self, head: bytes, address: str | None) -> bool:
        """Whether the head of a request from `address` shows the token, or ingress forwarded it.

        The guard checks every request exactly.
        """
        shown = is_token(self._token, self._token_pattern.findall(head))
        return shown or self.ingress.may_forward(address, head)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup(sockets=[])
        [listening] = sockets or []
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and close the open ones."""
        self._accepting.cancel()
        await super().shutdown(sockets)
        for connection in [*self.unauthenticated, *self.authenticated]:
            connection.abort("the studio was closed")

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError:
                # The peer hung up, or this process has no file descriptor left.
                await asyncio.sleep(0.05)
                continue
            if self.tls is not None or not self._refuse_early(accepted, peer[0]):
                while len(self.unauthenticated) >= self.limits.unauthenticated:
                    next(iter(self.unauthenticated)).abort()
                Connection(self, accepted)
            # Accepting a waiting connection does not give the event loop a turn.
            if not number % ACCEPT_BATCH:
                await asyncio.sleep(0)

    def _refuse_early(self, accepted: socket.socket, address: str) -> bool:
        """Refuse a request without the token that has arrived already; say whether it was.

        This takes a third of the time of a `Connection`, so a flood delays others less.
        """
        try:
            head = accepted.recv(PIECE_BYTES, socket.MSG_PEEK)
            if END_OF_HEAD.search(head) is None or self.may_enter(head, address):
                return False
            # Unread data would reset the connection before the answer arrives.
            accepted.recv(PIECE_BYTES)
            accepted.send(self.forbidden)
        except BlockingIOError:
            return False
        except OSError:
            pass
        accepted.close()
        return True


class Connection(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection: a protocol to asyncio, a transport to uvicorn.

    The guard reports while a request is served (`serving`).
    """

    def __init__(self, server: Server, accepted: socket.socket):
        super().__init__()
        self._server = server
        self._accepted: socket.socket | None = accepted
        self._transport: asyncio.Transport | None = None
        self._protocol: Any = None
        self._buffer = bytearray(PIECE_BYTES)
        # The head of the first request, as far as it has arrived.
        self._head = bytearray()
        self._requests = 0
        # Path of the last HTTP request that was served.
        self._path: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        server.unauthenticated[self] = None
        self._loop = asyncio.get_running_loop()
        self._set_deadline(server.limits.head_s)
        self._connecting = self._loop.create_task(self._connect())

    @contextlib.contextmanager
    def serving(self, path: str | None) -> Iterator[None]:
        """Suspend the deadline for the next request while one is served.

        `path` is that of an HTTP request, None for a WebSocket.
        """
        self._requests += 1
        self._path = path
        self._set_deadline(None)
        try:
            yield
        finally:
            self._requests -= 1
            self._await_request()

    def _await_request(self) -> None:
        """Set the deadline for the next request, if the answer to the last one was sent."""
        # The next request may be served already. A connection that closes has its own deadline.
        if not self._requests and self._write_deadline is None and not self.is_closing():
            self._set_deadline(self._server.limits.head_s)

    def abort(self, reason: str = "the connection broke the studio's limits") -> None:
        """Close the connection at once; log whether that cuts an answer off."""
        if self._path is not None and (self._requests or self._write_deadline is not None):
            log.warning("the answer to %s was cut off: %s", printable(self._path)[:100], reason)
        self._leave()
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        elif self._accepted is not None:
            self._accepted.close()

    def _leave(self) -> None:
        self._server.unauthenticated.pop(self, None)
        self._server.authenticated.discard(self)
        for timer in (self._deadline, self._write_deadline):
            if timer is not None:
                timer.cancel()

    def _set_deadline(self, seconds: float | None) -> None:
        """Abort after this time; None: no deadline. It replaces the deadline before."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._abort_after(seconds)

    def _abort_after(self, seconds: float) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, self.abort, f"it was not read within {seconds:g} s")

    async def _connect(self) -> None:
        """Make a transport of the socket, with a TLS handshake where there is TLS."""
        tls, limits = self._server.tls, self._server.limits
        # `close` has its own deadline, which may be shorter.
        timeouts = {"ssl_handshake_timeout": limits.head_s, "ssl_shutdown_timeout": limits.send_s}
        accepted, self._accepted = self._accepted, None
        assert accepted is not None
        try:
            await self._loop.connect_accepted_socket(
                lambda: self, accepted, ssl=tls, **(timeouts if tls else {})
            )
        except OSError:
            self._leave()

    # asyncio's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        assert isinstance(transport, asyncio.Transport)
        # Pause as soon as anything waits: then `_write_deadline` says whether all was sent.
        transport.set_write_buffer_limits(high=1, low=0)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Free its place."""
        self._leave()
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Buffer for the next bytes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes on to uvicorn, or look for the token in them."""
        data = bytes(self._buffer[:nbytes])
        if self._protocol is None:
            self._authenticate(data)
        else:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        # uvicorn fails if data comes after what it refused, or before its WebSocket is open. It
        # limits the size of a message but not the number of its empty frames.
        if self.is_closing():
            return
        if not getattr(self._protocol, "handshake_complete", True):
            self.abort()
            return
        self._protocol.data_received(data)
        if self.is_closing() and isinstance(self._protocol, H11Protocol):
            # It has refused the rest of a request, so the request's handler must not answer.
            self._protocol.connection_lost(None)
        if len(getattr(self._protocol, "frames", ())) > self._server.limits.frames:
            self.abort()

    def _authenticate(self, data: bytes) -> None:
        """Hand a connection that shows the token to uvicorn; refuse others."""
        server, limits = self._server, self._server.limits
        self._head += data
        found = END_OF_HEAD.search(self._head, max(len(self._head) - len(data) - 2, 0))
        head = bytes(self._head[: found.end()] if found else self._head)
        if len(head) > limits.head_bytes or head.count(b"\n") > limits.head_lines:
            self.abort()
        elif not found:
            return
        elif not server.may_enter(head, (self.get_extra_info("peername") or [None])[0]):
            self._refuse(server.forbidden)
        elif len(server.authenticated) >= limits.connections:
            self._refuse(server.too_many)
        else:
            del server.unauthenticated[self]
            server.authenticated.add(self)
            self._protocol = H11Protocol(
                config=server.config,
                server_state=server.server_state,
                app_state=server.lifespan.state | {"connection": self},
            )
            self._protocol.connection_made(self)
            self._pass_on(head)
            # Separately, because by now this may be a WebSocket.
            if len(self._head) > len(head):
                self._pass_on(bytes(self._head[len(head) :]))
            self._head.clear()

    def _refuse(self, answer: bytes) -> None:
        self.write(answer)
        self.close()

    def eof_received(self) -> None:
        """Let asyncio close a connection that the peer has closed."""

    def pause_writing(self) -> None:
        """Abort unless the peer reads what waits within the limit."""
        self._write_deadline = self._abort_after(self._server.limits.send_s)
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Cancel that deadline."""
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None
        if self._protocol is not None:
            self._protocol.resume_writing()
            self._await_request()

    # uvicorn's transport.

    def set_protocol(self, protocol: Any) -> None:
        """Switch from HTTP to the WebSocket protocol."""
        self._protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Give the transport's information."""
        return self._transport.get_extra_info(name, default) if self._transport else default

    def write(self, data: Any) -> None:
        """Send; abort where too much waits. Only answers to pings may: all else is sent in turn."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > self._server.limits.unsent_bytes:
            self.abort()
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether it is closed, or will be once everything is sent."""
        return self._transport is None or self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read no more until uvicorn has handled what arrived."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading."""
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        """Close it once everything is sent, within the limit."""
        if not self.is_closing():
            assert self._transport is not None
            self._transport.close()
            limits = self._server.limits
            known = self in self._server.authenticated
            self._set_deadline(limits.send_s if known else limits.close_s)


def encode_response(answer: Response) -> bytes:
    """Encode a response, head and body."""
    phrase = HTTPStatus(answer.status_code).phrase
    lines = [f"HTTP/1.1 {answer.status_code} {phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(answer.body)])
