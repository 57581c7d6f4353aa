"""Output of the commands: tables, JSON, warnings, progress."""

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tapword.support.text import printable

# Tables written to a file or a pipe are not wrapped.
PIPED_WIDTH = 1000


def _console(stream: TextIO, **options: Any) -> Console:
    # Brackets and colons in words and paths are printed as they are.
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(markup=False, emoji=False, highlight=False, width=width, **options)


out = _console(sys.stdout)
err = _console(sys.stderr, stderr=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def cell(value: object) -> Text:
    """Make a table cell of a word or a path."""
    return Text(printable(value))


def warn(message: object) -> None:
    """Print a warning on standard error, on one line."""
    err.print(f"warning: {printable(message)}", style="yellow", soft_wrap=True)


class _Warnings(logging.Handler):
    """Print warnings of the library as those of a command."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one."""
        warn(record.getMessage())


_warnings = _Warnings(logging.WARNING)


def show_warnings() -> None:
    """Print what the library says about sound files as warnings of the command."""
    logger = logging.getLogger("tapword.audio")
    logger.addHandler(_warnings)
    logger.propagate = False


def progress_bar(quiet: bool = False) -> Progress:
    """Make a progress bar on standard error, removed when done; none if that is no terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )


@contextlib.contextmanager
def activity(what: str, quiet: bool = False) -> Iterator[None]:
    """Show a bar for a task of unknown length; print nothing else within this context."""
    with progress_bar(quiet) as bar:
        bar.add_task(what, total=None)
        yield


@contextlib.contextmanager
def progress_steps(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each task that is reported as (name, done, total)."""
    with progress_bar(quiet) as bar:
        tasks: dict[str, TaskID] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield step
