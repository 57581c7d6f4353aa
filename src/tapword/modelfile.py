"""One taught model, one file: safetensors with a JSON header, written whole or not at all.

The header stands in safetensors' metadata under "tapword": format number, version, words and
counts, parts with their arguments, hashes of the backbones' weights, and which writing of the file
this is (`generation` for people, `revision` for programs). Its `checksum` is that of the arrays;
"crc32" beside it seals the header itself and the table of arrays, so that no flipped bit renames a
word. Nothing in a file is ever executed, and sizes are looked at before memory is taken.
"""

import contextlib
import os
import re
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
import safetensors
import safetensors.numpy

from tapword import modelheader
from tapword.errors import ModelFileError
from tapword.files import obstacle

LOCK_TIMEOUT_S = 30.0
# No learner takes a larger state unless told to, and no list of words needs a larger header.
MAX_GB = 4.0
MAX_HEADER_MB = 16


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
    if not os.path.isdir(path.parent):
        raise ModelFileError(f"cannot write {path}: the folder {path.parent} does not exist")
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout_s)
    try:
        # Often, so that one who waits finds the moments between the writes of a busy crowd.
        lock.acquire(poll_interval=0.01)
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
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"no file can be called {str(path)[:200]!r}: {error}") from error


def write(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Write a model whole or not at all; call it inside `locked`.

    Returns
    -------
    dict
        The header as written, with a new `revision`.
    """
    path = resolve(path)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = header | {
        "format": modelheader.FORMAT,
        "revision": uuid.uuid4().hex,
        "checksum": _checksum(arrays),
    }
    try:
        content = safetensors.numpy.save(arrays, modelheader.metadata(header, arrays))
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"cannot write {path}: {error}") from error
    _check_sizes(path, len(content), int.from_bytes(content[:8], "little"))
    try:
        descriptor, temporary = tempfile.mkstemp(".new", f".{path.name}.", path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        _sweep(path)
    _sync_folder(path.parent)
    return header


def read(
    path: str | os.PathLike[str], most_bytes: Callable[[dict[str, Any]], int] | None = None
) -> Model:
    """Read a model; every way a file can be wrong has its own message.

    Parameters
    ----------
    path
        What `write` wrote.
    most_bytes
        How many bytes the arrays of a model with this header can take; a file that holds more is
        refused before they are read.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            metadata = file.metadata()
            header = modelheader.parse(path, metadata)
            if most_bytes is not None:
                _check_arrays(path, most_bytes(header))
            # Where there is no room safetensors panics; numpy says so.
            np.empty(path.stat().st_size, dtype=np.uint8)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    except MemoryError as error:
        raise ModelFileError(f"cannot read {path}: it does not fit into memory") from error
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is not a tapword model, or it was cut short or damaged: {error}"
        ) from error
    if header.get("checksum") != _checksum(arrays):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; use a backup")
    # Files from before headers were sealed have none.
    if metadata.get("crc32", "") not in ("", modelheader.seal(metadata["tapword"], arrays)):
        raise ModelFileError(f"{path} is damaged: its header was changed; use a backup")
    return Model(header, arrays)


def revision(path: Path) -> str | None:
    """Which writing of the file is on disk; None where there is no file."""
    if not os.path.lexists(path):
        return None
    try:
        with _opened(path) as file:
            return modelheader.parse(path, file.metadata()).get("revision")
    except (safetensors.SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} exists and is not a tapword model: {error}") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file whose sizes are not out of bounds; what it claims of itself is not trusted."""
    _require_file(path)
    with open(path, "rb") as file:
        _check_sizes(path, os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little"))
    # Here shapes and offsets are checked against the file's size, before any memory is taken.
    with safetensors.safe_open(path, framework="np") as file:
        yield file


def _check_arrays(path: Path, most: int) -> None:
    with open(path, "rb") as file:
        held = os.fstat(file.fileno()).st_size - 8 - int.from_bytes(file.read(8), "little")
    if held > 2 * most + 1_000_000:
        raise ModelFileError(
            f"{path} holds {held} bytes of arrays, its learner and words need at most {most}: it "
            "is damaged or no tapword model"
        )


def _require_file(path: Path) -> None:
    found = obstacle(path)
    if found is not None:
        raise ModelFileError(f"no model file: {path} {found}")


def _check_sizes(path: Path, size: int, header_size: int) -> None:
    if size > MAX_GB * 1e9:
        raise ModelFileError(f"{path}: {size / 1e9:.1f} GB; a model has at most {MAX_GB:g} GB")
    if size >= 8 + header_size > MAX_HEADER_MB * 1e6:
        raise ModelFileError(
            f"{path}: a header of {header_size / 1e6:.0f} MB; a model's has at most "
            f"{MAX_HEADER_MB} MB"
        )


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


def _sweep(path: Path) -> None:
    """Remove what a write that failed or was killed left beside the file."""
    left = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.new")
    with contextlib.suppress(OSError):
        for name in filter(left.fullmatch, os.listdir(path.parent)):
            os.unlink(path.parent / name)


def _sync_folder(folder: Path) -> None:
    # Windows cannot open a folder, and needs no such call.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
