"""A large file over HTTP: resumed where it was cut, retried, with room for it made sure of."""

import http.client
import json
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tapword.errors import InputError, TapwordError

# Bytes done and bytes in all, the latter None where the server does not say.
Progress = Callable[[int, int | None], None]

_BLOCK = 1 << 18
_TRY_AGAIN = (408, 425, 429)


class DownloadError(TapwordError):
    """None of the addresses gave the file."""


def download(
    urls: Sequence[str],
    target: Path,
    progress: Progress | None = None,
    timeout_s: float = 30.0,
    retries: int = 3,
    backoff_s: float = 1.0,
    extra_room: float = 0.0,
) -> None:
    """Fetch a file from the first address that gives it.

    Parameters
    ----------
    urls
        Addresses of one and the same file.
    target
        Where to; until it is whole it lies beside as `<target>.part`, and a later call goes on
        from there, if the server can and its file has not changed.
    progress
        Called with bytes done and in all.
    timeout_s
        How long the server may stay silent.
    retries
        How often an address is tried again, counted anew whenever bytes have come.
    backoff_s
        Pause before the first retry; each further one is twice as long.
    extra_room
        Room on the disk that must be left after the download, in multiples of the file's size.
    """
    part = _Part(target)
    problems = []
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"an address must begin with http:// or https://, got {url!r}")
        failures = 0
        while True:
            size = part.size
            try:
                _attempt(url, part, progress, timeout_s, extra_room)
                part.finish()
                return
            except (OSError, http.client.HTTPException) as error:
                failures = 1 if part.size > size else failures + 1
                if failures > retries or not _passing(error):
                    problems.append(f"{url}: {error}")
                    break
            time.sleep(backoff_s * 2 ** (failures - 1))
    raise DownloadError("could not download " + "; ".join(problems))


def _passing(error: Exception) -> bool:
    """Whether trying again may help; a refusal (404, 403) stays one."""
    if not isinstance(error, urllib.error.HTTPError):
        return True
    return error.code >= 500 or error.code in _TRY_AGAIN


class _Part:
    """A file on its way, and a note of which file of which server it is the beginning of."""

    def __init__(self, target: Path):
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self.note_path = target.with_name(target.name + ".part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def note(self) -> dict[str, Any]:
        try:
            note = json.loads(self.note_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def begin(self, note: dict[str, Any]) -> None:
        self.path.unlink(missing_ok=True)
        self.note_path.write_text(json.dumps(note), encoding="utf-8")

    def finish(self) -> None:
        self.path.replace(self.target)
        self.note_path.unlink(missing_ok=True)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note_path.unlink(missing_ok=True)


def _attempt(
    url: str, part: _Part, progress: Progress | None, timeout_s: float, extra_room: float
) -> None:
    """Ask once for what is still missing; a cut connection raises OSError."""
    note = part.note()
    if note.get("url") != url:
        part.discard()
    start = part.size
    headers = {"User-Agent": "tapword", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if note.get("validator"):
            # A server whose file has changed then sends the whole of the new one.
            headers["If-Range"] = note["validator"]
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=timeout_s
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return
        part.discard()
        raise ConnectionError("the file on the server has changed; starting again") from None
    with response:
        total = _total(response)
        if response.status == 206:
            first = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if first is None or int(first[1]) != start or total != note.get("total"):
                part.discard()
                raise ConnectionError("the file on the server has changed; starting again")
        else:
            start = 0
            part.begin({"url": url, "validator": _validator(response), "total": total})
        _require_room(part, (total or 0) - start + int(extra_room * (total or 0)))
        done = start
        with part.path.open("ab") as file:
            while block := response.read(_BLOCK):
                _write(file, block, part.path)
                done += len(block)
                if progress:
                    progress(done, total)
    if total is not None and done != total:
        raise ConnectionError(f"the connection was cut after {done:,} of {total:,} bytes")


def _total(response: Any) -> int | None:
    if response.status == 206:
        size = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        size = response.headers.get("Content-Length", "")
    return int(size) if size.isdecimal() else None


def _validator(response: Any) -> str | None:
    tag = response.headers.get("ETag", "")
    # HTTP allows only strong tags in If-Range.
    return tag if tag.startswith('"') else response.headers.get("Last-Modified")


def _require_room(part: _Part, wanted: int) -> None:
    free = shutil.disk_usage(part.path.parent).free
    if free < wanted:
        raise TapwordError(
            f"{part.path.parent} has {free / 1e9:.1f} GB free; {wanted / 1e9:.1f} GB are needed"
        )


def _write(file: Any, block: bytes, path: Path) -> None:
    try:
        file.write(block)
    except OSError as error:
        # Not the network's fault, so not a thing to retry.
        raise TapwordError(f"cannot write {path}: {error.strerror or error}") from error
