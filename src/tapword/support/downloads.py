"""Download files with limits on size and time; redirects are followed only to https."""

import contextlib
import functools
import http.client
import queue
import secrets
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tapword.errors import InputError

BLOCK_BYTES = 1 << 18
# How long a server may be silent; how long it may take in all, to answer and for the file. Choices:
# slower than any connection on which one would wait for these files.
TIMEOUT_S = 30.0
ANSWER_S = 120.0
SLOWEST_BYTES_PER_S = 100_000


class TooLarge(OSError):
    """The server sent or announced more bytes than the limit."""


class TooLate(OSError):
    """The server took longer than the limit."""


def check_address(url: str) -> None:
    """Refuse an address of another kind than http and https, or without a valid host and port."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"an address must begin with http:// or https://, got {url!r}")
    try:
        parts = urllib.parse.urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("it names no host")
    except ValueError as error:
        raise InputError(f"{url!r} is not an address: {error}") from error


def opened(
    url: str,
    headers: dict[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    put: bytes | None = None,
) -> http.client.HTTPResponse:
    """Open an address; a redirect is followed only to https. With `put`, replace what is there.

    Raises `InputError` for what is not an address, and `OSError`.
    """
    check_address(url)
    found: queue.SimpleQueue[http.client.HTTPResponse | Exception] = queue.SimpleQueue()
    # In a thread, because a server that sends a byte now and then never times out.
    ask = functools.partial(_answer, url, headers or {}, timeout_s, put, found)
    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = found.get(timeout=ANSWER_S)
    except queue.Empty:
        raise TooLate(f"no answer within {ANSWER_S:g} s") from None
    try:
        if isinstance(answer, (ValueError, http.client.InvalidURL)):
            raise InputError(f"{url!r} is not an address: {answer}") from answer
        if isinstance(answer, http.client.HTTPException):
            raise OSError(f"no answer of a web server: {answer!r}") from answer
        if isinstance(answer, Exception):
            raise answer
        return answer
    finally:
        # An error and the frame it is raised in would keep each other, and its connection, alive.
        del answer


def _answer(
    url: str,
    headers: dict[str, str],
    timeout_s: float,
    put: bytes | None,
    found: "queue.SimpleQueue[http.client.HTTPResponse | Exception]",
) -> None:
    try:
        headers = {"User-Agent": "tapword"} | headers
        if put is not None:
            headers["Content-Type"] = "application/octet-stream"
        method = "GET" if put is None else "PUT"
        request = urllib.request.Request(url, put, headers, method=method)
        found.put(urllib.request.build_opener(_OnlyToHttps).open(request, timeout=timeout_s))
    except Exception as error:
        found.put(error)


def deadline(max_bytes: int) -> float:
    """Time, as of `time.monotonic`, by which `max_bytes` must be here."""
    return time.monotonic() + TIMEOUT_S + max_bytes / SLOWEST_BYTES_PER_S


def blocks(
    response: http.client.HTTPResponse, max_bytes: int, end_s: float | None = None
) -> Iterator[bytes]:
    """Read a response of at most `max_bytes` in blocks. Raises `OSError`.

    `end_s` is the time, as of `time.monotonic`, by which all must be here; `deadline` by default.
    """
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise TooLarge(f"{int(length):,} bytes are offered; the file has at most {max_bytes:,}")
    end_s = deadline(max_bytes) if end_s is None else end_s
    try:
        with _cut_off_at(end_s, response):
            while block := response.read(BLOCK_BYTES):
                max_bytes -= len(block)
                if max_bytes < 0:
                    raise TooLarge("more bytes came than the file can have")
                yield block
    except (http.client.HTTPException, OSError) as error:
        _check_time(end_s)
        if isinstance(error, OSError):
            raise
        raise OSError(f"the connection was cut: {error!r}") from error
    _check_time(end_s)


def _check_time(end_s: float) -> None:
    if time.monotonic() >= end_s:
        raise TooLate("the download took too long")


@contextlib.contextmanager
def _cut_off_at(end_s: float, response: http.client.HTTPResponse) -> Iterator[None]:
    """Cut the connection of a response when its time is over."""
    if response.isclosed():
        yield
        return
    # A copy of the descriptor stays valid until the timer has ended.
    connection = socket.fromfd(response.fileno(), socket.AF_INET, socket.SOCK_STREAM)
    timer = threading.Timer(max(0.0, end_s - time.monotonic()), _cut_off, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        connection.close()


def _cut_off(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def download(url: str, path: Path, max_bytes: int) -> None:
    """Download a file of at most `max_bytes`, completely or not at all.

    Raises as `opened` and `blocks` do.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with opened(url) as response, temporary.open("xb") as file:
            for block in blocks(response, max_bytes):
                file.write(block)
            # http.client counts down the bytes that are still to come.
            if response.length:
                raise OSError(f"the connection was cut {response.length:,} bytes before the end")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _OnlyToHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Refuse a redirect to ftp:, file: or plain http:."""
        if not newurl.startswith("https://"):
            why = f"leads on to {newurl}, which is not an https address"
            raise urllib.error.HTTPError(req.full_url, code, why, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
