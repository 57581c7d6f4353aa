"""Files that a run writes at its end: checked at its start, and each tried whatever the others do.

A run may take hours; a wrong path must neither be found at its end nor cost the other files.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tapword.errors import InputError


def check_outputs(paths: Iterable[Path | None]) -> None:
    """Refuse a path that could not be written; None is one that was not asked for."""
    for path in paths:
        if path is None:
            continue
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


def write_outputs(outputs: Iterable[tuple[Callable[[Path], None], Path | None]]) -> None:
    """Write each file that was asked for; say which failed after all were tried."""
    failures: list[Exception] = []
    for write, path in outputs:
        if path is not None:
            try:
                write(path)
            except Exception as error:
                failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise InputError("; ".join(map(str, failures))) from failures[0]
