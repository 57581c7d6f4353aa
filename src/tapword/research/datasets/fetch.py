"""Download Speech Commands, verify it and unpack it atomically."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tarfile
import time
import urllib.error
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import filelock

from tapword.errors import InputError, TapwordError
from tapword.research.datasets.speech_commands import LISTS
from tapword.support import downloads
from tapword.support.atomic_files import PathLike

URL = "https://download.tensorflow.org/data/{archive}"
SHA256 = {
    "v0.01": "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d",
    "v0.02": "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
}
# File with the hash of the archive that a folder was unpacked from.
_MARK = ".archive_sha256"
# Limit of an archive: the larger one, v0.02, has 2.4 GB.
MAX_BYTES = 4 * 10**9
# Free space for unpacking, in multiples of the archive: about 1.5 are used.
_UNPACKED = 2.0
# HTTP statuses below 500 that are worth a retry: timeout, too early, too many requests.
_TRY_AGAIN = (408, 425, 429)

Progress = Callable[[int, int | None], None]


def fetch_speech_commands(
    version: str,
    to: PathLike,
    progress: Progress | None = None,
    urls: Sequence[str] | None = None,
    sha256: str | None = None,
    timeout_s: float = 30.0,
    retries: int = 3,
    backoff_s: float = 1.0,
) -> Path:
    """Download Google Speech Commands into a folder, unless it is there, and return its path.

    An interrupted download stays next to the folder as `<archive>.part` and is resumed by the next
    call. A downloaded archive is deleted once unpacked, or if its hash is wrong.

    Parameters
    ----------
    version
        "v0.01" or "v0.02".
    to
        Folder to make, atomically. A manually downloaded archive in it or next to it is used and
        kept.
    progress
        Called with the bytes downloaded and the total (None: unknown).
    urls, sha256
        Replace the official addresses and hash.
    timeout_s
        How long the server may be silent.
    retries, backoff_s
        Retries without progress per address, and the pause before the first, doubled each time.

    Examples
    --------
    >>> fetch_speech_commands("v3", "speech")
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no version 'v3' of Speech Commands; known: v0.01, v0.02
    """
    if version not in SHA256:
        raise InputError(f"no version {version!r} of Speech Commands; known: {', '.join(SHA256)}")
    if not hasattr(tarfile, "data_filter"):
        raise TapwordError("unpacking an archive safely needs Python 3.11.4 or newer")
    wanted = sha256 or SHA256[version]
    name = f"speech_commands_{version}.tar.gz"
    urls = [URL.format(archive=name)] if urls is None else list(urls)
    folder = Path(os.path.realpath(Path(to).expanduser()))
    archive = folder.with_name(name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Two programs must not download into one folder.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock"), timeout=1):
            if _is_there(folder, name, wanted):
                return folder
            by_hand = [path for path in (folder / name, archive) if path.is_file()]
            if not by_hand:
                problems = _download(urls, archive, progress, timeout_s, retries, backoff_s)
                if problems:
                    raise TapwordError(
                        f"could not download {'; '.join(problems)}. Without a network, download "
                        f"{urls[0]} elsewhere, copy it to {folder / name} and try again"
                    )
            found = by_hand[0] if by_hand else archive
            _check_hash(found, wanted, delete=not by_hand)
            _unpack(found, folder, wanted)
            if not by_hand:
                archive.unlink()
    except filelock.Timeout:
        raise TapwordError(f"another program is downloading into {folder}; wait for it") from None
    except OSError as error:
        raise TapwordError(f"cannot make {folder}: {error}") from error
    return folder


def _is_there(folder: Path, archive: str, wanted: str) -> bool:
    """Whether the data set is there; refuse a folder with other files."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    mark = folder / _MARK
    if all((folder / name).is_file() for name in LISTS.values()):
        if not mark.is_file():
            raise InputError(
                f"{folder} looks like Speech Commands of unknown version, not fetched by tapword: "
                "use it with --data, or give another folder"
            )
        if mark.read_text(encoding="utf-8").strip() != wanted:
            raise InputError(
                f"{folder} has another version of Speech Commands; give another folder"
            )
        return True
    if strange := sorted({path.name for path in folder.iterdir()} - {archive}):
        raise InputError(
            f"{folder} is neither empty nor Speech Commands (it has {strange[0]!r}); give a new "
            "folder"
        )
    return False


def _check_hash(archive: Path, wanted: str, delete: bool) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == wanted:
        return
    size = archive.stat().st_size
    if delete:
        archive.unlink()
    what = "it was deleted; try again" if delete else "delete it to have it downloaded"
    raise TapwordError(
        f"{archive} ({size:,} bytes) is damaged or not the official archive: its SHA-256 is "
        f"{found}, not {wanted}; {what}"
    )


def _unpack(archive: Path, folder: Path, mark: str) -> None:
    """Unpack next to the folder, then rename it into place."""
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        try:
            with tarfile.open(archive, "r:gz") as file:
                file.extractall(temporary, filter=_plain)
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise TapwordError(f"{archive} cannot be unpacked: {error}") from error
        for name in LISTS.values():
            if not (temporary / name).is_file():
                raise TapwordError(f"{archive} is not Speech Commands: there is no {name} in it")
        (temporary / _MARK).write_text(mark + "\n", encoding="utf-8")
        if folder.exists():
            if archive.parent == folder:
                archive.replace(temporary / archive.name)
            folder.rmdir()
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _plain(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """Allow files and folders below the target, nothing else."""
    if not (member.isreg() or member.isdir()):
        raise tarfile.SpecialFileError(member)
    return tarfile.data_filter(member, path)


def _download(
    urls: Sequence[str],
    target: Path,
    progress: Progress | None,
    timeout_s: float,
    retries: int,
    backoff_s: float,
) -> list[str]:
    """Download a file from the first address that works; otherwise return the problem of each."""
    part = target.with_name(f"{target.name}.part")
    problems = []
    end_s = downloads.deadline(MAX_BYTES)
    for url in urls:
        downloads.check_address(url)
        failures = 0
        while True:
            before = _size(part)
            try:
                _attempt(url, part, progress, timeout_s, end_s)
                part.replace(target)
                _note_of(part).unlink(missing_ok=True)
                return []
            except downloads.TooLarge as error:
                part.unlink(missing_ok=True)
                _note_of(part).unlink(missing_ok=True)
                problems.append(f"{url}: {error}")
                break
            except OSError as error:
                failures = 1 if _size(part) > before else failures + 1
                # A refusal such as 404 is final.
                status = error.code if isinstance(error, urllib.error.HTTPError) else 500
                refused = status < 500 and status not in _TRY_AGAIN
                if failures > retries or refused or isinstance(error, downloads.TooLate):
                    problems.append(f"{url}: {error}")
                    break
            time.sleep(backoff_s * 2 ** (failures - 1))
    return problems


def _attempt(
    url: str, part: Path, progress: Progress | None, timeout_s: float, end_s: float
) -> None:
    """Request the missing rest once; a lost connection raises OSError."""
    note: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        note = dict(json.loads(_note_of(part).read_text(encoding="utf-8")))
    # Resume only a part whose note has the same address.
    if note.get("url") != url:
        part.unlink(missing_ok=True)
    start = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if note.get("validator"):
            # The server sends a changed file whole.
            headers["If-Range"] = note["validator"]
    try:
        response = downloads.opened(url, headers, timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return
        _note_of(part).unlink(missing_ok=True)
        raise ConnectionError("the file on the server has changed; starting again") from None
    with response:
        sent = response.headers
        if response.status == 206:
            place = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", sent.get("Content-Range", ""))
            total = _number(place[2]) if place else None
            if place is None or int(place[1]) != start or total != note.get("total"):
                _note_of(part).unlink(missing_ok=True)
                raise ConnectionError("the file on the server has changed; starting again")
        else:
            start, total = 0, _number(sent.get("Content-Length", ""))
            # If-Range must have a strong tag.
            tag = sent.get("ETag", "")
            validator = tag if tag.startswith('"') else sent.get("Last-Modified")
            part.unlink(missing_ok=True)
            note = {"url": url, "validator": validator, "total": total}
            _note_of(part).write_text(json.dumps(note), encoding="utf-8")
        folder, wanted = part.parent, (1 + _UNPACKED) * (total or 0) - start
        if (free := shutil.disk_usage(folder).free) < wanted:
            raise TapwordError(
                f"{folder} has {free / 1e9:.1f} GB free; {wanted / 1e9:.1f} GB are needed"
            )
        done = start
        with part.open("ab") as file:
            for block in downloads.blocks(response, MAX_BYTES - start, end_s):
                try:
                    file.write(block)
                except OSError as error:
                    # A retry would not help.
                    reason = error.strerror or error
                    raise TapwordError(f"cannot write {part}: {reason}") from error
                done += len(block)
                if progress:
                    progress(done, total)
    if total is not None and done != total:
        raise ConnectionError(f"the connection was lost after {done:,} of {total:,} bytes")


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
