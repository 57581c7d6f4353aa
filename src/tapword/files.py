"""Files of any kind: why a path is none, and writing one whole or not at all."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from tapword.errors import InputError

PathLike = str | os.PathLike[str]


def obstacle(path: PathLike) -> str | None:
    """Say why a path is not a plain file, as the end of a sentence that begins with it.

    Examples
    --------
    >>> obstacle("/nowhere/at/all")
    'does not exist'
    >>> obstacle("/")
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


def write_whole(path: PathLike, content: bytes) -> None:
    """Write a file whole or not at all.

    A link stays a link, a file that is replaced keeps its permissions, and what is no plain file
    (a pipe, a terminal) is written to as it is. Raises `OSError`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        # The system takes the umask off these permissions.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write(path: PathLike, content: bytes) -> None:
    """Write a file as `write_whole` does, and refuse what cannot be written with its reason."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def sweep(path: Path) -> None:
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
