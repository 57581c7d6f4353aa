"""One taught model, one file: safetensors with a JSON header, written whole or not at all.

The header stands in safetensors' metadata under "tapword": format number, version, words and
counts, parts with their arguments, hashes of the backbones' weights, and which writing of the file
this is (`generation` for people, `revision` for programs). Nothing in a file is ever executed.
"""

import contextlib
import json
import os
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
import safetensors
import safetensors.numpy

from tapword.errors import ModelFileError

FORMAT = 1
LOCK_TIMEOUT_S = 30.0


class Model(NamedTuple):
    """What a file holds: the JSON header and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


@contextlib.contextmanager
def locked(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the right to write `path`, against other threads and processes.

    The lock is a file beside it (`.NAME.lock`), because the model itself is replaced by each
    write. The system releases it when a process dies.
    """
    path = resolve(path)
    if not path.parent.is_dir():
        raise ModelFileError(f"cannot write {path}: the folder {path.parent} does not exist")
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout_s)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ModelFileError(
            f"{path} has been locked by another program for {timeout_s:g} s; try again when it "
            "is done"
        ) from None
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def resolve(path: str | os.PathLike[str]) -> Path:
    """Absolute path with links followed, so that a link stays a link when its target changes."""
    return Path(os.path.realpath(path))


def write(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Write a model whole or not at all; call it inside `locked`.

    Returns
    -------
    dict
        The header as written, with a new `revision`.
    """
    path = resolve(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = header | {
        "format": FORMAT,
        "revision": uuid.uuid4().hex,
        "checksum": _checksum(arrays),
    }
    content = safetensors.numpy.save(arrays, {"tapword": json.dumps(header, ensure_ascii=False)})
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    _sync_folder(path.parent)
    return header


def read(path: str | os.PathLike[str]) -> Model:
    """Read a model; every way a file can be wrong has its own message."""
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ModelFileError(f"no model file: {path} {what}")
    try:
        # Sizes in the header are checked against the file's before any memory is taken.
        with safetensors.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            header = _header(path, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is not a tapword model, or it was cut short or damaged: {error}"
        ) from error
    if header.get("checksum") != _checksum(arrays):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; use a backup")
    return Model(header, arrays)


def revision(path: Path) -> str | None:
    """Which writing of the file is on disk; None where there is no file."""
    if not os.path.lexists(path):
        return None
    try:
        with safetensors.safe_open(path, framework="np") as file:
            return _header(path, file.metadata() or {}).get("revision")
    except (safetensors.SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} exists and is not a tapword model: {error}") from error


def _header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    if "tapword" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not a tapword model")
    try:
        header = json.loads(metadata["tapword"])
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise ModelFileError(f"{path} is damaged: its header has no format number")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by tapword {header.get('version', '?')} in format "
            f"{header['format']}; this tapword reads up to {FORMAT}: "
            "upgrade with pip install -U tapword"
        )
    words = header.get("words")
    if not isinstance(words, dict) or not all(
        word and isinstance(n, int) and not isinstance(n, bool) and n >= 0
        for word, n in words.items()
    ):
        raise ModelFileError(f"{path} is damaged: its header has no list of words")
    return header


def _checksum(arrays: dict[str, np.ndarray]) -> int:
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(arrays[name].reshape(-1).view(np.uint8).data, value)
    return value


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, or what the umask gives a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _sync_folder(folder: Path) -> None:
    # Windows cannot open a folder, and needs no such call.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
