"""What the commands print: tables, JSON, warnings, progress."""

import contextlib
import json
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

# Tables that go into a file or a pipe keep their lines whole.
PIPED_WIDTH = 1000


def _console(stream: TextIO, **options: Any) -> Console:
    # Words and paths are shown as they are, whatever brackets and colons they hold.
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(markup=False, emoji=False, highlight=False, width=width, **options)


out = _console(sys.stdout)
err = _console(sys.stderr, stderr=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def cell(value: object) -> Text:
    """Cell of a table that holds a word or a path."""
    return Text(printable(value))


def warn(message: object) -> None:
    """Say on standard error what somebody should know, on one line."""
    err.print(f"warning: {printable(message)}", style="yellow", soft_wrap=True)


def progress_bar(quiet: bool = False) -> Progress:
    """Bar on standard error, gone when done; nothing where that is not a terminal."""
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
def progress_steps(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each thing that is reported by (what, done, all)."""
    with progress_bar(quiet) as bar:
        tasks: dict[str, TaskID] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield step
