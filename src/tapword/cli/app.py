"""The `tapword` command itself: help, consoles, errors of one line and exit code 2."""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
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

import tapword
from tapword.errors import TapwordError

# typer brings click, or from 0.20 on its own copy of it: the class is the same by this road.
ClickException: type[Any] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="tapword",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Words and paths are shown as they are, whatever brackets and colons they hold.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(markup=False, emoji=False, highlight=False, stderr=True)
state = {"debug": False}

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Keyword spotting that keeps learning on the device.

    Say a new word a few times; from then on it is known. One sample at a time, one pass, no
    recording kept, and the words learned before are not forgotten.

    **Teach** two words from recordings, and **ask**:

        tapword learn home.tap lamp lamp1.wav lamp2.wav lamp3.wav

        tapword learn home.tap music recordings/music/

        tapword predict home.tap new.wav

    A model is one file; it holds statistics of the words and never a recording. Parts are named
    `NAME:key=value,key=value` everywhere, as in `--pooling tap:R=3`; `tapword list poolings` shows
    them with their arguments. `tapword demo` shows the whole in under a minute.
    """
    state["debug"] = debug
    if version:
        print(tapword.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def printable(value: object) -> str:
    r"""Text that any terminal shows on one line: what cannot be printed is escaped as in `repr`.

    Examples
    --------
    >>> print(printable("a\nb\udcff"))
    a\nb\udcff
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(value)
    )


def cell(value: object) -> Text:
    """Cell of a table that holds a word or a path."""
    return Text(printable(value))


def progress_bar() -> Progress:
    """Bar on standard error, gone when done; nothing where that is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


@contextlib.contextmanager
def progress_steps() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each thing that is reported by (what, done, all)."""
    with progress_bar() as bar:
        tasks: dict[str, TaskID] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield step


def main() -> None:
    """Run the command line; errors are one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A file's name may hold bytes that are no text; showing it must not fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see: {context.command_path} --help)" if context else ""
        code = _fail(error.format_message() + hint)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        code = 0
    except Exception as error:
        if state["debug"]:
            raise
        code = _fail(_explain(error))
    sys.exit(code)


def _explain(error: Exception) -> str:
    if isinstance(error, TapwordError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    kind = type(error).__name__
    return f"unexpected error: {kind}: {error} (--debug shows where it happened)"


def _fail(message: str) -> int:
    line = printable(" ".join(message.splitlines()))
    err.print(f"tapword: {line}", style="red", soft_wrap=True)
    return 2
