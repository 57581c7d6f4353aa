"""The studio on a port: the socket, TLS, the addresses to open it by."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tapword.errors import InputError, MissingExtra
from tapword.serve.network import is_loopback, own_address
from tapword.serve.studio import certificate
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.serve.studio.model import StudioModel

# Certificate and key, True for a certificate made on the spot, False for none.
Tls = tuple[Path, Path] | bool


class Address(NamedTuple):
    """Where a studio can be opened."""

    # For a browser, the token in them where one is needed.
    urls: list[str]
    # SHA-256 of the certificate made for it; None where none was made.
    fingerprint: str | None
    # Whether a browser will lend it the microphone: by TLS, or because it is on this machine.
    secure: bool


def serve(
    model: StudioModel, host: str, port: int, tls: Tls, ready: Callable[[Address], None]
) -> None:
    """Serve the studio until it is interrupted; `ready` is told the address before."""
    server, listening, address = prepare(model, host, port, tls)
    with listening:
        ready(address)
        server.run(sockets=[listening])


def prepare(
    model: StudioModel,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: Tls = False,
    limits: Limits = LIMITS,
) -> tuple[Any, socket.socket, Address]:
    """Take a port for the studio, 0 for a free one: a server of uvicorn's, its socket, its address.

    It is run by `server.run(sockets=[socket])`.
    """
    try:
        import uvicorn

        from tapword.serve.studio.app import studio
    except ImportError as error:
        raise MissingExtra("the studio", str(error.name), "web") from error
    local = is_loopback(host)
    names = ["localhost" if host == "127.0.0.1" else host] if local else _own_names(host)
    fingerprint, context = None, None
    if tls is True:
        public, key, fingerprint = certificate.self_signed([*names, host])
        context = certificate.context(public, key)
    elif tls:
        context = certificate.read(certificate_path=tls[0], key_path=tls[1])
    token = None if local else secrets.token_urlsafe(24)
    config = uvicorn.Config(
        studio(model, host, token, limits),
        http=_impatient(limits.first_request_s),
        ws="websockets-sansio",
        ws_max_size=1 << 17,
        ws_per_message_deflate=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=False,
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=2,
    )
    config.load()
    config.ssl = context
    listening = bind(host, port)
    scheme = "https" if context else "http"
    ending = f"/?token={token}" if token else "/"
    bound = listening.getsockname()[1]
    shown = [f"[{name}]" if ":" in name else name for name in names]
    urls = [f"{scheme}://{name}:{bound}{ending}" for name in shown]
    address = Address(urls, fingerprint, local or context is not None)
    return uvicorn.Server(config), listening, address


def _impatient(first_request_s: float) -> type:
    """Make HTTP that does not wait for ever: a connection that asks for nothing is closed."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(first_request_s, self._give_up)

        def _give_up(self) -> None:
            # A WebSocket has left the HTTP connections by then.
            if self.cycle is None and self in self.connections:
                self.transport.abort()

    return Impatient


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or say why it cannot be had."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must lie in 0..65535, got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InputError(f"no address named {host!r} to bind to: {error.strerror}") from error
    family, *_, address = found[0]
    # An address of IPv6 that stands for all of this machine stands for those of IPv4, too.
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(address, family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(
            f"cannot use port {port} of {host}: {os.strerror(error.errno or 0)}; another studio "
            "may be running: give another --port, or --port 0 for any that is free"
        ) from error


def _own_names(host: str) -> list[str]:
    """Names and addresses under which others can reach this machine."""
    if host not in ("0.0.0.0", "::", ""):
        return [host]
    families = [socket.AF_INET] if host == "0.0.0.0" else [socket.AF_INET, socket.AF_INET6]
    found = []
    for family in families:
        with contextlib.suppress(OSError):
            found.append(own_address(family))
    return [*found, "localhost"]
