"""Download files with a size limit; redirects are followed only to https."""

import http.client
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

BLOCK_BYTES = 1 << 18
TIMEOUT_S = 30.0


class TooLarge(OSError):
    """The server sent or announced more bytes than the limit."""


def opened(
    url: str, headers: dict[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> http.client.HTTPResponse:
    """Open an address; a redirect is followed only to https. Raises `OSError`."""
    if not url.startswith(("http://", "https://")):
        raise OSError(f"an address must begin with http:// or https://, got {url!r}")
    request = urllib.request.Request(url, headers={"User-Agent": "tapword"} | (headers or {}))
    try:
        return urllib.request.build_opener(_OnlyToHttps).open(request, timeout=timeout_s)
    except http.client.HTTPException as error:
        raise OSError(f"no answer of a web server: {error!r}") from error


def blocks(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    """Read a response of at most `max_bytes` in blocks. Raises `OSError`."""
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise TooLarge(f"{int(length):,} bytes are offered; the file has at most {max_bytes:,}")
    try:
        while block := response.read(BLOCK_BYTES):
            max_bytes -= len(block)
            if max_bytes < 0:
                raise TooLarge("more bytes came than the file can have")
            yield block
    except http.client.HTTPException as error:
        raise OSError(f"the connection was cut: {error!r}") from error


def download(url: str, path: Path, max_bytes: int) -> None:
    """Download a file of at most `max_bytes`, completely or not at all. Raises `OSError`."""
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
