"""Check paths, and write files atomically."""

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from tapword.errors import InputError

PathLike = str | os.PathLike[str]


def why_not_file(path: PathLike) -> str | None:
    """Say why a path is not a plain file, as the end of a sentence that starts with the path.

    Examples
    --------
    >>> why_not_file("/nowhere/at/all")
    'does not exist'
    >>> why_not_file("/")
    'is a folder'
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be reached: {getattr(error, 'strerror', None) or error}"
    if stat.S_ISREG(mode):
        return None
    return "is a folder" if stat.S_ISDIR(mode) else "is not a plain file"


def check_writable(path: PathLike) -> None:
    """Refuse a path that cannot be written, before long work starts."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    # A plain file is replaced, which needs a writable folder; a device is written to.
    plain = os.path.isfile(target) or not os.path.exists(target)
    if os.path.isdir(target):
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: its folder does not exist")
    if not os.access(folder if plain else target, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")


def atomic_write(
    path: PathLike,
    content: bytes,
    check: Callable[[Path], None] | None = None,
    mode: int | None = None,
) -> None:
    """Write a file completely or not at all.

    A link stays a link, a replaced file keeps its permissions unless `mode` sets them, and a pipe
    or terminal is written to directly. `check` gets the new file before it replaces the old one,
    and may raise. Raises `OSError`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = _beside(target)
    if mode is None and target.exists():
        mode = stat.S_IMODE(target.stat().st_mode)
    try:
        # The system applies the umask. The new file is never more readable than the old one.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(temporary, flags, 0o666 if mode is None else mode & 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        if check is not None:
            check(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def backup(path: Path, kept: Path) -> None:
    """Keep the file at `path` under a second name, before it is replaced."""
    temporary = _beside(path)
    try:
        try:
            os.link(path, temporary)
        except OSError:
            # Not every file system has hard links.
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copyfile(path, temporary)
            shutil.copymode(path, temporary)
        os.replace(temporary, kept)
    finally:
        # Replacing does nothing if both are the same file already.
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Name of a temporary file in the same folder."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")


def write(path: PathLike, content: bytes) -> None:
    """Write a file like `atomic_write`; raise `InputError` with the reason if it fails."""
    try:
        atomic_write(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def clean_temp(path: Path) -> None:
    """Remove temporary files that a killed write of this file left behind.

    Hold the file's lock, so that no other process is writing it.
    """
    left = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.new")
    with contextlib.suppress(OSError):
        for name in filter(left.fullmatch, os.listdir(path.parent)):
            os.unlink(path.parent / name)


def _sync_folder(folder: Path) -> None:
    # Windows cannot open a folder, and does not need this.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
