"""The studio on a port: the socket, TLS, the addresses to open it by."""

import contextlib
import logging
import os
import secrets
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tapword.errors import InputError, MissingExtra
from tapword.serve.addresses import is_loopback, own_address
from tapword.serve.studio import certificate
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.serve.studio.model import StudioModel

# Certificate and key, True for a certificate made on the spot, False for none.
Tls = tuple[Path, Path] | bool


class Address(NamedTuple):
    """Where a studio can be opened."""

    # For a browser, the token in them.
    urls: list[str]
    # SHA-256 of the certificate made for it; None where none was made.
    fingerprint: str | None
    # Whether nobody can listen in: by TLS, or because it does not leave this machine. To others a
    # browser does not lend the microphone.
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
        from tapword.serve.studio.door import Door
    except ImportError as error:
        raise MissingExtra("the studio", str(error.name), "web") from error
    listening = bind(host, port)
    try:
        local = is_loopback(host)
        bound, port = listening.getsockname()[:2]
        # Not by the name localhost: another user may wait for it at the other kind of address.
        names = [bound] if local else _own_names(host)
        fingerprint, context = None, None
        if tls is True:
            public, key, fingerprint = certificate.self_signed({*names, host, "localhost"})
            context = certificate.context(public, key)
        elif tls:
            context = certificate.read(certificate_path=tls[0], key_path=tls[1])
        token = secrets.token_urlsafe(24)
        scheme = "https" if context else "http"
        shown = [f"[{name}]" if ":" in name else name for name in names]
        urls = [f"{scheme}://{name}:{port}/?token={token}" for name in shown]
        config = uvicorn.Config(
            studio(model, host, token, limits, None if local else urls[0]),
            http="h11",
            ws="websockets-sansio",
            ws_max_size=1 << 17,
            ws_per_message_deflate=False,
            proxy_headers=False,
            server_header=False,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        config.load()
    except BaseException:
        listening.close()
        raise
    logging.getLogger("uvicorn.error").addFilter(_is_our_fault)
    address = Address(urls, fingerprint, local or context is not None)
    return Door(config, token, limits, context), listening, address


def _is_our_fault(record: logging.LogRecord) -> bool:
    """Whether the log is told. What a client did wrong it is told alone: it could go on for ever.

    uvicorn takes a text that is no UTF-8 for an error, shows where it met it, and closes the line.
    """
    return record.levelno >= logging.ERROR and "Invalid UTF-8" not in str(record.msg)


@contextlib.contextmanager
def in_browser(url: str) -> Iterator[None]:
    """Open an address in the browser, and tidy up when this context ends.

    The browser is told the path of a file that only this user can read, and which leads to the
    address: all users of a machine can see what programs are told, and the address has the token.
    """
    with tempfile.TemporaryDirectory(prefix="tapword-") as folder:
        page = Path(folder) / "studio.html"
        page.touch(0o600, exist_ok=False)
        page.write_text(
            '<!doctype html><meta charset="utf-8">'
            f'<meta http-equiv="refresh" content="0;url={url}">'
            f'<title>tapword studio</title><p><a href="{url}">Open the studio</a></p>\n'
        )
        # The file goes also when the program is asked to end.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            webbrowser.open(page.as_uri())
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


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
        return socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
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
    return [*found, "127.0.0.1"]
