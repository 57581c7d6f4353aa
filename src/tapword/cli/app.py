"""The `tapword` command itself: help, consoles, errors of one line and exit code 2."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

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
out = Console()
err = Console(stderr=True)
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


def main() -> None:
    """Run the command line; errors are one line and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see: {context.command_path} --help)" if context else ""
        code = _fail(error.format_message() + hint)
    except typer.Abort:
        code = 130
    except BrokenPipeError:
        code = 0
    except TapwordError as error:
        if state["debug"]:
            raise
        code = _fail(str(error))
    sys.exit(code)


def _fail(message: str) -> int:
    err.print(f"tapword: {message}", style="red", highlight=False, markup=False, soft_wrap=True)
    return 2
