"""Model files: safetensors with a JSON header, written completely or not at all.

The header is in safetensors' metadata under "tapword"; `model_header` describes it. "crc32" seals
it together with the table of arrays, so damage cannot rename a word. A file is read from front to
back. Each part is validated before the next is read: sizes, table, header, arrays. Nothing in a
file is ever executed, and sizes are checked before memory is allocated.
"""

import contextlib
import json
import math
import os
import shlex
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import filelock
import numpy as np
import safetensors.numpy

from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner
from tapword.spotter import model_header, undo
from tapword.support import atomic_files
from tapword.support.atomic_files import PathLike
from tapword.support.text import counted

LOCK_TIMEOUT_S = 30.0
# No learner has a larger state by default, and no list of words needs a larger header: 2 MB hold
# about 60,000 words, and become up to 80 MB of objects.
MAX_GB = 4.0
MAX_HEADER_MB = 2
# safetensors' names of types -> numpy's.
TYPES = {"BOOL": "?", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
TYPES |= {f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "IU" for n in (1, 2, 4, 8)}
NO_MODEL = "is not a tapword model, or it was cut short or damaged"
# More than any array has; checked before the product of its axes.
MAX_AXES, MAX_AXIS = 4, 2**40


class Model(NamedTuple):
    """Content of a file: the JSON header and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Entry(NamedTuple):
    """Entry of an array in a file's table."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.dtype.itemsize * math.prod(self.shape)


@contextlib.contextmanager
def locked(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock on `path`, against other threads and processes.

    The lock is a file beside it (`.NAME.lock`), because each write replaces the model. The system
    releases it when a process dies.
    """
    path = resolve(path)
    if not os.path.isdir(path.parent):
        raise ModelFileError(f"cannot write {path}: the folder {path.parent} does not exist")
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout_s)
    try:
        # Often, to find a gap between the writes of many others.
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


def resolve(path: PathLike) -> Path:
    """Absolute path with links followed, so a write replaces the target and not the link."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"no file can be called {str(path)[:200]!r}: {error}") from error


def backup(path: PathLike) -> Path:
    """Path of the file that the last write replaced, if it was kept."""
    path = resolve(path)
    return path.with_name(f"{path.name}.bak")


def write(
    path: Path,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    forgot: bool = False,
    step: str | None = None,
) -> dict[str, Any]:
    """Write a model completely or not at all; call it inside `locked`.

    It is read back before it replaces the old file, which is kept as `backup`, unless that contains
    words or negatives that the model no longer has. `forgot` says that something was forgotten even
    if the names are the same. `step` describes the change in the undo file, which keeps the old
    file, too. Without it, forgetting removes the undo file.

    Returns
    -------
    dict
        The header as written, with a new `revision`.
    """
    path = resolve(path)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = header | {
        "format": model_header.format_for(header),
        "revision": uuid.uuid4().hex,
        "checksum": checksum(arrays),
    }
    try:
        content = pack(header, arrays)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"cannot write {path}: {error}") from error
    _check_sizes(path, len(content), int.from_bytes(content[:8], "little"))

    def check(written: Path) -> None:
        try:
            found = read(written)
            load_learner(written, found)
        except ModelFileError as error:
            reason = str(error).replace(str(written), "what was written")
            raise ModelFileError(f"not saved, {path} stays as it was: {reason}") from error
        if found.header["revision"] != header["revision"]:
            raise ModelFileError(f"not saved, {path} stays as it was: another file was read back")
        forgets = _back_up(path, set() if forgot else _names(found.header))
        if step is not None:
            undo.record(path, step, _revision_or_none(path), header["revision"])
        elif forgets:
            undo.write(path, [])
        elif undo.path_of(path).exists():
            undo.expire(path)

    try:
        atomic_files.atomic_write(path, content, check)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        atomic_files.clean_temp(path)
        atomic_files.clean_temp(undo.path_of(path))
    return header


def take_back(path: PathLike, n: int = 1) -> list[undo.Step]:
    """Restore the model as it was `n` steps ago, and return these steps, the latest first.

    A model that another program changed since is left alone.
    """
    with locked(Path(path)):
        path = resolve(path)
        found, steps = undo.read(path), undoable(path)[::-1]
        if not found:
            raise InputError(
                f"there is nothing to undo in {path}; `tapword undo` takes back changes by other "
                f"commands, for {undo.MAX_DAYS} days"
            )
        if not steps:
            raise InputError(
                f"{path} was changed by another program since the last command, and undo would "
                "lose that change; nothing was undone"
            )
        if n > len(steps):
            raise InputError(
                f"only {counted(len(steps), 'change')} to {path} can be undone, got {n}"
            )
        state = steps[-n].state.tobytes()
        # It may contain what was undone.
        kept = backup(path)
        try:
            if state:
                atomic_files.atomic_write(path, state, lambda new: _require_good(new, path))
            else:
                path.unlink()
            kept.unlink(missing_ok=True)
            undo.write(path, steps[:-n])
        except OSError as error:
            raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    return steps[: -n - 1 : -1]


def undoable(path: PathLike) -> list[undo.Step]:
    """List the steps that `take_back` would undo, the latest first."""
    path = resolve(path)
    return undo.leading_to(undo.read(path), revision(path))[::-1]


def erase(path: PathLike) -> bool:
    """Remove the backup and the undo file; return whether there was one."""
    with locked(Path(path)):
        found = [one for one in (backup(path), undo.path_of(resolve(path))) if one.exists()]
        for one in found:
            one.unlink()
    return bool(found)


def _require_good(written: Path, path: Path) -> None:
    try:
        load_learner(written, read(written))
    except ModelFileError as error:
        reason = str(error).replace(str(written), "the earlier model")
        raise ModelFileError(f"not undone, {path} stays as it was: {reason}") from error


def _revision_or_none(path: Path) -> str | None:
    """Revision of a file, or None if there is none or it is damaged."""
    with contextlib.suppress(ModelFileError):
        return revision(path)
    return None


def _names(header: dict[str, Any]) -> set[tuple[str, str]]:
    """Names of a header's words, negatives and synthetic clips."""
    return {(key, word) for key in ("words", "negatives", "synthetic") for word in header[key]}


def _back_up(path: Path, known: set[tuple[str, str]]) -> bool:
    """Keep the file that is about to be replaced, if nothing in it was forgotten.

    If it cannot be read, the earlier backup is kept on the same condition. Returns whether
    something was forgotten.
    """
    kept = backup(path)
    for found in (path, kept):
        with contextlib.suppress(ModelFileError), _opened(found) as (_, _, header):
            forgets = not _names(header) <= known
            break
    else:
        forgets = True
    if forgets:
        kept.unlink(missing_ok=True)
    elif found == path:
        atomic_files.backup(path, kept)
    return forgets


def read(path: PathLike) -> Model:
    """Read a model; every kind of damage has its own message."""
    path = Path(path)
    try:
        with _opened(path) as (file, table, header):
            _check_arrays(path, header, sum(entry.nbytes for entry in table.values()))
            arrays = {name: _read_array(file, entry) for name, entry in table.items()}
    except MemoryError as error:
        raise ModelFileError(f"cannot read {path}: it does not fit into memory") from error
    if header.get("checksum") != checksum(arrays):
        raise ModelFileError(_damaged(path, "is damaged: its checksum does not match"))
    return Model(header, arrays)


def load_learner(path: PathLike, model: Model) -> Learner:
    """Make the learner of a model with all it learned; it takes over the arrays."""
    header, arrays = model
    learner = model_header.make_learner(path, header)
    try:
        learner.load_state(
            arrays,
            header["words"],
            header["negatives"],
            header["rows"],
            take_over=True,
            synthetic=header["synthetic"],
        )
    except MemoryError as error:
        raise ModelFileError(f"cannot read {path}: it does not fit into memory") from error
    except (InputError, ModelFileError) as error:
        raise ModelFileError(f"{path} cannot be used: {error}") from error
    if learner.dim != header["dim"]:
        raise ModelFileError(
            f"{path} is damaged: its header has vectors of {header['dim']} numbers, its arrays "
            f"of {learner.dim}"
        )
    return learner


def revision(path: Path) -> str | None:
    """Revision of the file on disk, from its header; None without a file."""
    if not os.path.lexists(path):
        return None
    with _opened(path) as (_, _, header):
        return header.get("revision")


def words(path: Path) -> list[str]:
    """Words of the file on disk, from its header."""
    with _opened(path) as (_, _, header):
        return list(header["words"])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, dict[str, Entry], dict[str, Any]]]:
    """Open a file, validate all before its arrays, and leave it there."""
    require_file(path)
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise ModelFileError(_damaged(path, "is empty (0 bytes)"))
            start = file.read(8)
            header_size = int.from_bytes(start, "little")
            _check_sizes(path, size, header_size)
            if size < 8 + header_size:
                raise ModelFileError(_damaged(path, NO_MODEL))
            content = file.read(header_size)
            found, table = _parse_table(path, content, size - 8 - header_size)
            yield file, table, _header(path, found, table)
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error


def _parse_table(path: Path, content: bytes, size: int) -> tuple[dict[str, str], dict[str, Entry]]:
    """Read safetensors' own header: metadata, and the table of arrays of `size` bytes together."""
    try:
        rows = json.loads(content.decode(), object_pairs_hook=model_header.unique)
        found = rows.pop("__metadata__", {})
        if not all(isinstance(text, str) for text in found.values()):
            raise ValueError("its metadata is not text")
        table, end = {}, 0
        for name, row in sorted(rows.items(), key=lambda item: item[1]["data_offsets"]):
            shape = tuple(row["shape"])
            right = all(type(n) is int and 0 <= n <= MAX_AXIS for n in shape)
            if not right or len(shape) > MAX_AXES or len(row) != 3:
                raise ValueError(f"an array of shape {model_header.excerpt(shape)}")
            entry = Entry(np.dtype(TYPES[row["dtype"]]), shape)
            start, end = end, end + entry.nbytes
            if row["data_offsets"] != [start, end]:
                raise ValueError("its arrays are not contiguous")
            table[name] = entry
        if end != size:
            raise ValueError(f"{end} bytes of arrays are announced, {size} are there")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"{NO_MODEL} ({str(error)[: model_header.MAX_EXCERPT]})"
        raise ModelFileError(_damaged(path, reason)) from error
    return found, table


def _header(path: Path, found: dict[str, str], table: dict[str, Entry]) -> dict[str, Any]:
    """Return tapword's header from the metadata, if its seal matches."""
    if "tapword" not in found:
        raise ModelFileError(f"{path} is a safetensors file, but not a tapword model")
    header = model_header.parse(path, found["tapword"])
    # A seal with a damaged name does not count; the metadata has no other keys.
    sealed = found.keys() == {"tapword", "crc32"}
    if sealed and found["crc32"] != seal(found["tapword"], table):
        raise ModelFileError(_damaged(path, "is damaged: its header was changed"))
    if not sealed and (header["format"] >= model_header.SEALED or len(found) > 1):
        raise ModelFileError(_damaged(path, "is damaged: its header was changed, or never sealed"))
    return model_header.validate(path, header)


def _check_arrays(path: Path, header: dict[str, Any], held: int) -> None:
    """Refuse arrays far from the size of the header's learner and words."""
    learner, rows = model_header.make_learner(path, header), 0
    least = most = 0
    if header["dim"] is not None:
        rows = sum(len(header[key]) for key in ("words", "negatives", "synthetic"))
        least = learner.min_bytes(header["dim"], rows)
        most = learner.bytes_for(header["dim"], rows)
    if held > 2 * most + 1_000_000 or held < least // 2:
        wanted = f"at most {most}" if held > most else f"at least {least}"
        raise ModelFileError(
            f"{path} holds {held} bytes of arrays, its learner and {rows} rows need {wanted}: it "
            "is damaged or no tapword model"
        )


def _read_array(file: BinaryIO, entry: Entry) -> np.ndarray:
    array = np.empty(entry.shape, entry.dtype)
    place = array.reshape(-1).view(np.uint8)
    while len(place):
        # One call reads at most 2 GB.
        n = file.readinto(place)  # type: ignore[attr-defined]
        if not n:
            break
        place = place[n:]
    return array


def require_file(path: Path) -> None:
    """Refuse a path that cannot be a model file."""
    found = atomic_files.why_not_file(path)
    if found is not None:
        missing = found == "does not exist"
        hint = (
            f"; create it with: tapword learn {shlex.quote(str(path))} WORD FILES"
            if missing
            else ""
        )
        raise ModelFileError(f"no model file: {path} {found}{hint}")


def _damaged(path: Path, how: str) -> str:
    """Explain that a file cannot be read, and what to do."""
    kept = backup(path)
    if atomic_files.why_not_file(kept) is None:
        return (
            f"{path} {how}; {kept} is the model as it was before the last change: copy it to {path}"
        )
    return f"{path} {how}; use a backup"


def _check_sizes(path: Path, size: int, header_size: int) -> None:
    if size > MAX_GB * 1e9:
        raise ModelFileError(f"{path}: {size / 1e9:.1f} GB; a model has at most {MAX_GB:g} GB")
    if size >= 8 + header_size > MAX_HEADER_MB * 1e6:
        raise ModelFileError(
            f"{path}: a header of {header_size / 1e6:.0f} MB; a model's has at most "
            f"{MAX_HEADER_MB} MB"
        )


def checksum(arrays: dict[str, np.ndarray]) -> int:
    """Checksum of the arrays' numbers."""
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(arrays[name].reshape(-1).view(np.uint8).data, value)
    return value


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return a file's bytes: the header as JSON with its seal, and the arrays."""
    text = json.dumps(header, ensure_ascii=False, default=_plain)
    return safetensors.numpy.save(arrays, {"tapword": text, "crc32": seal(text, arrays)})


def seal(text: str, arrays: Mapping[str, np.ndarray | Entry]) -> str:
    """Checksum of the header's text and of the arrays' names, types and shapes."""
    table = [f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in sorted(arrays)]
    return f"{zlib.crc32(repr([text, *table]).encode()):08x}"


def _plain(value: Any) -> Any:
    """Convert numpy's numbers for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written as JSON")
