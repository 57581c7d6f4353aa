"""The studio on a port: the socket, TLS, the addresses to open it by."""

import secrets
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tapword.errors import InputError, MissingExtra
from tapword.web import certificate
from tapword.web.shared_model import SharedModel


class Address(NamedTuple):
    """Where a studio can be opened.

    Attributes
    ----------
    urls
        Addresses for a browser, the token in them where one is needed.
    fingerprint
        SHA-256 of the certificate made for it; None where none was made.
    secure
        Whether a browser will lend it the microphone: by TLS, or because it is on this machine.
    """

    urls: list[str]
    fingerprint: str | None
    secure: bool


class Serving(NamedTuple):
    """A studio that is ready to be run: `server.run(sockets=[socket])`."""

    server: Any
    socket: socket.socket
    address: Address


def serve(
    model: SharedModel,
    host: str,
    port: int,
    tls: tuple[Path, Path] | bool,
    ready: Callable[[Address], None],
) -> None:
    """Serve the studio until it is interrupted; `ready` is told the address before."""
    server, listening, address = prepare(model, host, port, tls)
    with listening:
        ready(address)
        server.run(sockets=[listening])


def prepare(
    model: SharedModel,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: tuple[Path, Path] | bool = False,
) -> Serving:
    """Take a port for the studio and make all that is needed to serve it there.

    Parameters
    ----------
    model
        What it teaches.
    host, port
        Where to; port 0 takes a free one.
    tls
        Certificate and key, True for a certificate made on the spot, False for none.
    """
    try:
        import uvicorn

        from tapword.web import guard
        from tapword.web.patience import ImpatientProtocol
        from tapword.web.server import studio
    except ImportError as error:
        raise MissingExtra("the studio", str(error.name), "web") from error
    local = guard.is_loopback(host)
    names = ["localhost" if host == "127.0.0.1" else host] if local else _own_names(host)
    fingerprint, context = None, None
    if tls is True:
        public, key, fingerprint = certificate.self_signed([*names, host])
        context = certificate.context(public, key)
    elif tls:
        context = _read_context(*tls)
    token = None if local else secrets.token_urlsafe(24)
    config = uvicorn.Config(
        studio(model, host, token),
        http=ImpatientProtocol,
        ws="websockets-sansio",
        ws_max_size=1 << 17,
        ws_per_message_deflate=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=False,
        limit_concurrency=200,
        timeout_graceful_shutdown=2,
    )
    config.load()
    config.ssl = context
    listening = bind(host, port)
    scheme = "https" if context else "http"
    ending = f"/?token={token}" if token else "/"
    bound = listening.getsockname()[1]
    urls = [f"{scheme}://{_bracketed(name)}:{bound}{ending}" for name in names]
    address = Address(urls, fingerprint, local or context is not None)
    return Serving(uvicorn.Server(config), listening, address)


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or say why it cannot be had."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must lie in 0..65535, got {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InputError(f"no address named {host!r} to bind to: {error.strerror}") from error
    result = socket.socket(family, kind, protocol)
    try:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        result.bind(address)
        result.listen(128)
    except OSError as error:
        result.close()
        raise InputError(
            f"cannot use port {port} of {host}: {error.strerror}; another studio may be running: "
            "give another --port, or --port 0 for any that is free"
        ) from error
    return result


def _own_names(host: str) -> list[str]:
    """Names and addresses under which others can reach this machine."""
    if host not in ("0.0.0.0", "::", ""):
        return [host]
    found = []
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        if family == socket.AF_INET6 and host == "0.0.0.0":
            continue
        try:
            # Nothing is sent: connecting a datagram socket only picks the way out.
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))
                found.append(probe.getsockname()[0])
        except OSError:
            continue
    return [*found, "localhost"]


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _read_context(certificate_path: Path, key_path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without this a locked key would ask on the terminal, unseen behind the studio's text.
        context.load_cert_chain(certificate_path, key_path, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{certificate_path} and {key_path} cannot be used for TLS (wanted: a certificate and "
            f"its key without a passphrase, both PEM): {error}"
        ) from error
    return context
