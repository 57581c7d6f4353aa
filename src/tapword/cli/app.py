"""The `tapword` command: help, and errors in one line with exit code 2."""

import dataclasses
import importlib
import inspect
import io
import re
import shlex
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from tapword import registry
from tapword.cli import complete
from tapword.cli.commands import COMMANDS
from tapword.cli.console import err, show_warnings
from tapword.errors import TapwordError
from tapword.support.text import printable, use_a_dot
from tapword.version import __version__

KEYWORD = inspect.Parameter.KEYWORD_ONLY


class _Flags:
    """Commands whose help does not show the type of a flag."""

    def get_params(self, context: Any) -> list[Any]:
        """List the parameters, flags without a type."""
        params = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class Command(_Flags, typer.core.TyperCommand):
    """A command."""


class Group(_Flags, typer.core.TyperGroup):
    """The `tapword` command itself: it lists commands, and imports the one that is given."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self._files: dict[str, str] = {}
        for panel, commands in COMMANDS.items():
            for name, (file, text) in commands.items():
                self._files[name] = file
                self.commands[name] = Command(name, help=text, rich_help_panel=panel)

    def resolve_command(self, context: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command that is run or completed, with its parameters."""
        name, found, rest = super().resolve_command(context, args)
        return name, self.load(args[0]) if found else None, rest

    def load(self, name: str) -> Any:
        """Import the file of a command and make it, with its parameters."""
        importlib.import_module(f"tapword.cli.{self._files[name]}")
        return typer.main.get_command(_registered[name])


SETTINGS: dict[str, Any] = {
    "rich_markup_mode": "markdown",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(name="tapword", cls=Group, **SETTINGS)
# Name -> an application of this command alone.
_registered: dict[str, typer.Typer] = {}


def option(metavar: str, text: str, *names: str, **rules: Any) -> Any:
    """Describe an option: the name of its value, and what it does."""
    return typer.Option(*names, metavar=metavar, help=text, **rules)


def flag(names: str, text: str) -> Any:
    """Describe an option without a value, which no environment variable sets."""
    return typer.Option(names, help=text, allow_from_autoenv=False)


def argument(metavar: str, text: str, **rules: Any) -> Any:
    """Describe an argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, **rules)


state = {"debug": False}


PartFiles = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "Python file to load your own parts from; it is run. Repeat for several files.",
        "--part",
        allow_from_autoenv=False,
    ),
]


def command(
    name: str | None = None, environment: bool = False, parts: bool = True
) -> Callable[[Callable[..., None]], Any]:
    """Make a function a command; its dataclass arguments are groups of options.

    With `environment`, the variable TAPWORD_OPTION sets what --option VALUE would. With `parts`,
    the command takes --part.
    """
    settings = {"auto_envvar_prefix": "TAPWORD"} if environment else {}

    def register(function: Callable[..., None]) -> Callable[..., None]:
        known = name or function.__name__
        alone = _registered[known] = typer.Typer(add_completion=False, **SETTINGS)
        alone.command(known, cls=Command, context_settings=settings)(grouped(function, parts))
        return function

    return register


def grouped(function: Callable[..., None], parts: bool = False) -> Callable[..., None]:
    """Let a command take dataclasses: their fields become options, as if they were its own.

    With `parts` it also takes files of parts, which are loaded first.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if dataclasses.is_dataclass(hints[name]):
            groups[name] = hints[name]
            own = typing.get_type_hints(hints[name], include_extras=True)
            for field in dataclasses.fields(hints[name]):
                lacking = field.default is dataclasses.MISSING
                default = inspect.Parameter.empty if lacking else field.default
                parameters.append((field.name, own[field.name], default))
        else:
            parameters.append((name, hints[name], parameter.default))
    if parts:
        parameters.append(("part", PartFiles, None))
    for name, hint, _ in parameters:
        if name in complete.BY_PARAMETER:
            [described] = hint.__metadata__
            described.autocompletion = described.autocompletion or complete.BY_PARAMETER[name]

    def call(**given: Any) -> None:
        for path in given.pop("part", None) or ():
            registry.load_file(path)
        for name, kind in groups.items():
            fields = dataclasses.fields(kind)
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields})
        function(**given)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__annotations__ = {name: hint for name, hint, _ in parameters}
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, KEYWORD, default=default, annotation=hint)
            for name, hint, default in parameters
        ]
    )
    return call


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    debug: Annotated[bool, flag("--debug", "Show tracebacks.")] = False,
    version: Annotated[bool, flag("--version", "Print the version.")] = False,
) -> None:
    """Keyword spotting that keeps learning on the device.

    Say a new word a few times, and tapword knows it. It learns one sample at a time, keeps no
    recording, and does not forget the words it learned before.

    **Teach** two words from recordings, then **predict**:

        tapword learn home.tap lamp lamp1.wav lamp2.wav lamp3.wav

        tapword learn home.tap music recordings/music/

        tapword predict home.tap new.wav

    A model is one file. It holds statistics of the words, never a recording. Parts are written
    `NAME:key=value,key=value`, as in `--pooling tap:R=3`; `tapword list` lists them with their
    arguments. `tapword demo` shows everything in under a minute.
    """
    state["debug"] = debug
    if version:
        print(__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line. Errors are one line, with exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # The name of a file may hold bytes that are not text; printing it must not fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    show_warnings()
    try:
        code = app(prog_name="tapword", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        code = 0
    except Exception as error:
        if state["debug"] and not hasattr(error, "format_message"):
            raise
        code = _fail(_explain(error))
    sys.exit(code)


def _explain(error: Exception) -> str:
    if isinstance(error, TapwordError):
        return str(error)
    # Usage errors of typer format themselves.
    show = getattr(error, "format_message", None)
    if show is not None:
        context, said = getattr(error, "ctx", None), show()
        # The message need not contain what was typed.
        number = re.search("valid (float|number)", said)
        hints = (use_a_dot(one.rpartition("=")[2]) for one in sys.argv[1:])
        hint = next(filter(None, hints), "") if number else ""
        return said + hint + (f" (see: {context.command_path} --help)" if context else "")
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    kind = type(error).__name__
    return f"unexpected error: {kind}: {error} (--debug shows where it happened)"


def command_line() -> str:
    """Get the command that is running, as it can be typed again."""
    return shlex.join(["tapword", *sys.argv[1:]])


def _fail(message: str) -> int:
    line = printable(" ".join(message.splitlines()))
    err.print(f"tapword: {line}", style="red", soft_wrap=True)
    return 2
