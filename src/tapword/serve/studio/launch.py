"""Start the studio: bind a port, set up TLS, and give the links that open it."""

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
from tapword.serve.studio.ingress import Ingress
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.model import StudioModel

# Certificate and key; True: self-signed; False: no TLS.
Tls = tuple[Path, Path] | bool


class Address(NamedTuple):
    """Where a studio can be opened."""

    # Links for a browser; they contain the token.
    urls: list[str]
    # SHA-256 of its self-signed certificate; None without one.
    fingerprint: str | None
    # Whether browsers allow the microphone: with TLS, or on this machine.
    secure: bool


def serve(
    model: StudioModel, host: str, port: int, tls: Tls, ready: Callable[[Address], None]
) -> None:
    """Serve the studio until it is interrupted; `ready` is called with its address."""
    server, listening, address = prepare(model, host, port, tls)
    with listening:
        ready(address)
        server.run(sockets=[listening])


def prepare(
    model: StudioModel,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: Tls = False,
    limits: ServerLimits = LIMITS,
    ingress: str | None = None,
    extension: Any = None,
) -> tuple[Any, socket.socket, Address]:
    """Bind a port, 0 for a free one; give the server, its socket and its address.

    `ingress` is the address of Home Assistant's proxy, whose requests need no token; `extension` is
    an `Extension` of the pages. Run it with `server.run(sockets=[socket])`.
    """
    try:
        import uvicorn

        from tapword.serve.studio.app import studio
        from tapword.serve.studio.server import Server
        from tapword.serve.studio.sockets import NO_EXTENSION
    except ImportError as error:
        raise MissingExtra("the studio", str(error.name), "web") from error
    forwarded = Ingress(ingress)
    listening = bind(host, port)
    try:
        local = is_loopback(host)
        bound, port = listening.getsockname()[:2]
        # Not localhost: another user may have bound the other kind of address.
        names = [bound] if local else _reachable_names(host)
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
        link = None if local else urls[0]
        more = extension or NO_EXTENSION
        config = uvicorn.Config(
            studio(model, host, token, limits, link, forwarded, more),
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
    logging.getLogger("uvicorn.error").addFilter(_is_our_error)
    address = Address(urls, fingerprint, local or context is not None)
    return Server(config, token, limits, context, forwarded), listening, address


def _is_our_error(record: logging.LogRecord) -> bool:
    """Whether to log a record: not what a client did wrong, which could fill the log.

    uvicorn logs a text that is not UTF-8 as an error, with a traceback, and closes the socket.
    """
    return record.levelno >= logging.ERROR and "Invalid UTF-8" not in str(record.msg)


@contextlib.contextmanager
def in_browser(url: str) -> Iterator[None]:
    """Open a link in the browser, and clean up when this context ends.

    All users of a machine can see the arguments of its programs, and the link contains the token.
    So the browser opens a file that only this user can read, which leads to the link.
    """
    with tempfile.TemporaryDirectory(prefix="tapword-") as folder:
        page = Path(folder) / "studio.html"
        page.touch(0o600, exist_ok=False)
        page.write_text(
            '<!doctype html><meta charset="utf-8">'
            f'<meta http-equiv="refresh" content="0;url={url}">'
            f'<title>tapword studio</title><p><a href="{url}">Open the studio</a></p>\n'
        )
        # SIGTERM must remove the file, too.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            webbrowser.open(page.as_uri())
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def bind(host: str, port: int) -> socket.socket:
    """Bind a port, or say why that failed."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be in 0..65535, got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InputError(f"no address named {host!r} to bind to: {error.strerror}") from error
    family, *_, address = found[0]
    # The IPv6 address for all of this machine includes those of IPv4.
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(
            f"cannot use port {port} of {host}: {os.strerror(error.errno or 0)}; another studio "
            "may be running. Give another --port, or --port 0 for a free one"
        ) from error


def _reachable_names(host: str) -> list[str]:
    """Names and addresses under which others can reach this machine."""
    if host not in ("0.0.0.0", "::", ""):
        return [host]
    families = [socket.AF_INET] if host == "0.0.0.0" else [socket.AF_INET, socket.AF_INET6]
    found = []
    for family in families:
        with contextlib.suppress(OSError):
            found.append(own_address(family))
    return [*found, "127.0.0.1"]
