"""One taught model, one file: safetensors with a JSON header, written whole or not at all.

The header stands in safetensors' metadata under "tapword":

| key | what |
|---|---|
| format, version | number of this layout, and the tapword that wrote it |
| generation, revision | which writing of the file this is, for people and for programs |
| words, negatives | word -> how many samples were taught as it, and as not it |
| rows | [word, whether negative] of each row of the arrays, where there are negatives |
| calibrated | word -> threshold measured on recordings without it |
| backbones, poolings, learner | parts with their arguments, backbones with their weights' hash |
| align, augment, whitening | what is done to clips, and hashes of what whitens their vectors |
| dim | numbers per vector |
| checksum | of the arrays |

"crc32" beside it seals the header itself and the table of arrays, so that no flipped bit renames a
word. Nothing in a file is ever executed, and sizes are looked at before memory is taken.
"""

import contextlib
import json
import os
import unicodedata
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
import safetensors
import safetensors.numpy

from tapword import registry
from tapword.errors import ModelFileError
from tapword.files import PathLike, obstacle, sweep, write_whole
from tapword.learners.base import Learner, Row

FORMAT = 2
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


def resolve(path: PathLike) -> Path:
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
        "format": FORMAT,
        "revision": uuid.uuid4().hex,
        "checksum": checksum(arrays),
    }
    try:
        content = safetensors.numpy.save(arrays, metadata(header, arrays))
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"cannot write {path}: {error}") from error
    _check_sizes(path, len(content), int.from_bytes(content[:8], "little"))
    try:
        write_whole(path, content)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        sweep(path)
    return header


def read(path: PathLike) -> Model:
    """Read a model; every way a file can be wrong has its own message."""
    path = Path(path)
    try:
        with _opened(path) as file:
            found = file.metadata()
            header = _parse(path, found)
            _check_arrays(path, _most_bytes(path, header))
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
    if header.get("checksum") != checksum(arrays):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; use a backup")
    # Files from before headers were sealed have none.
    if found.get("crc32", "") not in ("", seal(found["tapword"], arrays)):
        raise ModelFileError(f"{path} is damaged: its header was changed; use a backup")
    return Model(header, arrays)


def revision(path: Path) -> str | None:
    """Which writing of the file is on disk; None where there is no file."""
    if not os.path.lexists(path):
        return None
    try:
        with _opened(path) as file:
            return _parse(path, file.metadata()).get("revision")
    except (safetensors.SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} exists and is not a tapword model: {error}") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file whose sizes are not out of bounds; what it claims of itself is not trusted."""
    require_file(path)
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


def require_file(path: Path) -> None:
    """Refuse a path where no model file can be."""
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


def checksum(arrays: dict[str, np.ndarray]) -> int:
    """Checksum of the arrays' numbers."""
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(arrays[name].reshape(-1).view(np.uint8).data, value)
    return value


def metadata(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Give safetensors' metadata: the header as JSON, and its seal."""
    text = json.dumps(header, ensure_ascii=False, default=_plain)
    return {"tapword": text, "crc32": seal(text, arrays)}


def seal(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Checksum of the header's text and of the arrays' names, types and shapes."""
    table = [f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in sorted(arrays)]
    return f"{zlib.crc32(repr([text, *table]).encode()):08x}"


def _parse(path: Path, found: dict[str, str] | None) -> dict[str, Any]:
    """Take the header out of safetensors' metadata; refuse what tapword would not have written."""
    if not found or "tapword" not in found:
        raise ModelFileError(f"{path} is a safetensors file, but not a tapword model")
    try:
        header = json.loads(found["tapword"], object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or not _whole(header.get("format"), 1):
        raise ModelFileError(f"{path} is damaged: its header has no format number")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by tapword {header.get('version', '?')} in format "
            f"{header['format']}; this tapword reads up to {FORMAT}: "
            "upgrade with pip install -U tapword"
        )
    if not _is_table(header.get("words")):
        raise ModelFileError(f"{path} is damaged: its header has no list of words")
    if header["format"] == 1:
        header = _from_format_1(header)
    header = {"negatives": {}, "rows": None} | header
    try:
        if (
            not _is_table(header["negatives"])
            or not header["negatives"].keys() <= header["words"].keys()
        ):
            raise ValueError(header["negatives"])
        if header["rows"] is not None:
            header["rows"] = [Row(str(word), bool(negative)) for word, negative in header["rows"]]
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: its negatives are not of its words") from error
    if not _whole(header.get("generation", 0)) or not isinstance(header.get("revision", ""), str):
        raise ModelFileError(f"{path} is damaged: its header does not say which writing it is")
    for parts in (header.get("backbones"), header.get("poolings"), [header.get("learner")]):
        if not isinstance(parts, list) or not all(map(_is_part, parts)):
            raise ModelFileError(
                f"{path} names parts that cannot be made: {str(parts)[:200]} should be a list of "
                "names with arguments"
            )
    return header


def _from_format_1(header: dict[str, Any]) -> dict[str, Any]:
    """Bring a header of before to today's names: negatives stood among the words, with a sign."""
    sign = "¬"
    rows = [[word.removeprefix(sign), word.startswith(sign)] for word in header["words"]]
    counts = list(zip(rows, header["words"].values(), strict=True))
    return header | {
        "words": {word: n for (word, negative), n in counts if not negative},
        "negatives": {word: n for (word, negative), n in counts if negative},
        "rows": rows,
        "augment": header.get("copies", False),
        "whitening": header.get("prior") or [],
    }


def _most_bytes(path: Path, header: dict[str, Any]) -> int:
    """How many bytes the state of a header's learner can take with its words."""
    try:
        if header["dim"] is None:
            return 0
        learner: Learner = registry.restore("learners", header["learner"])
        return learner.bytes_for(
            int(header["dim"]), len(header["words"]) + len(header["negatives"])
        )
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} names parts that cannot be made: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; refuse a name that comes twice, of which one would go."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name comes twice")
    return result


def _whole(value: Any, minimum: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**63


def _is_table(value: Any) -> bool:
    """Whether this is word -> count."""
    return isinstance(value, dict) and all(
        _shows(word) and _whole(count) for word, count in value.items()
    )


def _shows(word: str) -> bool:
    # Control characters would act on a terminal; halves of a surrogate pair cannot be written.
    return bool(word) and not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word)


def _is_part(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("name"), str)
        and isinstance(part.get("arguments"), dict)
    )


def _plain(value: Any) -> Any:
    """Write a number of numpy's as Python's own; nothing else is there that JSON lacks."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written as JSON")
