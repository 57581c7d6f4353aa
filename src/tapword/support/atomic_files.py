"""Files of any kind: why a path is none, and writing one whole or not at all."""

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
    """Say why a path is not a plain file, as the end of a sentence that begins with it.

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
    """Refuse a path that could not be written, before the work whose result goes there."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    # A plain file is replaced, which its folder must allow; a device is written to.
    plain = os.path.isfile(target) or not os.path.exists(target)
    if os.path.isdir(target):
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: its folder does not exist")
    if not os.access(folder if plain else target, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")


def atomic_write(
    path: PathLike, content: bytes, check: Callable[[Path], None] | None = None
) -> None:
    """Write a file whole or not at all.

    A link stays a link, a file that is replaced keeps its permissions, and what is no plain file
    (a pipe, a terminal) is written to as it is. `check` is given the new file before it takes its
    place, and may raise. Raises `OSError`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = _beside(target)
    mode = _mode(target)
    try:
        # The system takes the umask off these permissions; nobody may read meanwhile what nobody
        # may read after.
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
    """Give the file at `path` a second name, which stays when another takes its place."""
    temporary = _beside(path)
    try:
        try:
            os.link(path, temporary)
        except OSError:
            # Not every disk knows second names.
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copyfile(path, temporary)
            shutil.copymode(path, temporary)
        os.replace(temporary, kept)
    finally:
        # Where both are one file already, replacing does nothing.
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Name for a file that is being made, in the folder of the one it is to become."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")


def _mode(path: Path) -> int | None:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def write(path: PathLike, content: bytes) -> None:
    """Write a file as `atomic_write` does, and refuse what cannot be written with its reason."""
    try:
        atomic_write(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def clean_temp(path: Path) -> None:
    """Remove what a write of this file that was killed left beside it.

    Nobody else may be writing it: hold its lock.
    """
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
