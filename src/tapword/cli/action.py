"""The command that `tapword listen --exec` runs for each event."""

import contextlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import unicodedata
from collections.abc import Callable
from pathlib import PurePath
from types import TracebackType
from typing import NamedTuple, Self

from tapword.cli.console import err, warn
from tapword.errors import InputError
from tapword.listening.decider import Event
from tapword.support.text import counted

# Commands that run at a time. Set by hand: more than a person starts by voice, few enough for a
# small computer.
AT_ONCE = 8
# How often to poll commands at the end, and when to say that we wait for them.
LOOK_S, SOON_S = 0.02, 0.5
VALUES: dict[str, Callable[[Event], str]] = {
    "word": lambda event: event.word,
    "score": lambda event: f"{event.score:.2f}",
    "confidence": lambda event: "" if event.confidence is None else str(event.confidence),
    "start": lambda event: f"{event.start_s:.2f}",
    "end": lambda event: f"{event.end_s:.2f}",
}
PLACE = re.compile(r"\{(\w+)\}")
# Programs that run an argument as code, and options that are followed by code.
INTERPRETERS = {"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "env", "eval"}
INTERPRETERS |= {"node", "osascript", "perl", "python", "ruby"}
CODE = re.compile(r"-\w*[cerpS]\w*|--(eval|print|split-string)")
SEPARATOR = re.compile("[ '\N{RIGHT SINGLE QUOTATION MARK}-]")
# Stands in an argument for a word that is not a plain name. Not empty: `ssh host ''` would run what
# it reads.
INSTEAD = "TAPWORD_WORD"
# Remember the last line, the process groups of running commands; end them when the input ends.
GUARD = 'while read -r line; do groups=$line; done; [ -z "$groups" ] || kill -s TERM -- $groups'


class Running(NamedTuple):
    """A running command, and the word it was started for."""

    process: subprocess.Popen[bytes]
    word: str


class Action:
    """Run a command for each event, in the background and without a shell.

    As a context manager, it waits at the end for commands that still run; Ctrl-C then ends them.
    If tapword is killed meanwhile, they end with it.

    Parameters
    ----------
    text
        Command, split into arguments as a shell would; {word}, {score}, {confidence}, {start} and
        {end} are replaced inside the arguments, so a word never becomes two arguments. A word that
        is not a plain name never becomes one at all: it comes on standard input.
    may_wait
        Whether to wait while `AT_ONCE` commands run; otherwise the event starts none.
    """

    def __init__(self, text: str, may_wait: bool):
        self.arguments = _checked(text)
        self.may_wait = may_wait
        self._names_word = any("{word}" in one for one in self.arguments)
        self._running: list[Running] = []
        self._reported: set[str] = set()
        self._guard = _Guard()

    def __call__(self, event: Event) -> None:
        """Start the command for an event."""
        self.look()
        while self.may_wait and len(self._running) >= AT_ONCE:
            time.sleep(LOOK_S)
            self.look()
        if len(self._running) >= AT_ONCE:
            warn(f"no command was started for {event.word}: {AT_ONCE} are still running")
            return
        values = {name: value(event) for name, value in VALUES.items()}
        told = {f"TAPWORD_{name.upper()}": value for name, value in values.items()}
        by_input = self._names_word and not is_plain(event.word)
        if by_input:
            self._report(event.word)
            values["word"] = INSTEAD
        arguments = [PLACE.sub(lambda place: values[place[1]], one) for one in self.arguments]
        try:
            # The command gets no sound from the pipe, and no Ctrl-C: it has its own process group.
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE if by_input else subprocess.DEVNULL,
                env=os.environ | told,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            warn(f"the command for {event.word} could not be started: {error}")
            return
        self._running.append(Running(process, event.word))
        self._tell_guard()
        if process.stdin is not None:
            # It fits into the pipe; the command may end without reading it.
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(f"{event.word}\n".encode())

    def _report(self, word: str) -> None:
        """Say once of a word that it is not passed as an argument."""
        if word not in self._reported:
            self._reported.add(word)
            warn(
                f"{word} is not a plain name, so it is not passed as an argument: the command "
                f"gets it as ${INSTEAD} and on standard input"
            )

    def look(self) -> None:
        """Report commands that have failed since the last call."""
        ended = [one for one in self._running if one.process.poll() is not None]
        if ended:
            self._running = [one for one in self._running if one not in ended]
            self._tell_guard()
        for process, word in ended:
            status = process.returncode
            if status:
                how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
                warn(f"the command for {word} failed: {how}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for commands that still run; Ctrl-C ends them."""
        try:
            self._wait(SOON_S)
            if self._running:
                number = counted(len(self._running), "command")
                err.print(f"waiting for {number}; press Ctrl-C to stop")
            self._wait()
        except KeyboardInterrupt:
            for one in self._running:
                _end(one.process)
            self._wait()
        finally:
            self._guard.close()

    def _tell_guard(self) -> None:
        self._guard.update([one.process.pid for one in self._running])

    def _wait(self, at_most_s: float = math.inf) -> None:
        end = time.monotonic() + at_most_s
        self.look()
        while self._running and time.monotonic() < end:
            time.sleep(LOOK_S)
            self.look()


class _Guard:
    """A shell that ends the commands when tapword is gone, whatever ended it."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None

    def update(self, groups: list[int]) -> None:
        """Tell it the process groups of the running commands."""
        # Without a shell, as on Windows, commands outlive a tapword that is killed.
        with contextlib.suppress(OSError):
            if self._shell is None:
                # In its own group, so Ctrl-C does not end it.
                self._shell = subprocess.Popen(
                    ["sh", "-c", GUARD], stdin=subprocess.PIPE, bufsize=0, process_group=0
                )
            assert self._shell.stdin is not None
            self._shell.stdin.write(" ".join(f"-{group}" for group in groups).encode() + b"\n")

    def close(self) -> None:
        """End it, and with it the commands that still run."""
        if self._shell is not None:
            self._shell.communicate()


def is_plain(word: str) -> bool:
    """Whether a word is letters, digits and marks, with single separators between them.

    Examples
    --------
    >>> [is_plain(word) for word in ("o'clock", "T-shirt 2", "-rf", "a -c", "$(id)")]
    [True, True, False, False, False]
    """
    kinds = [[unicodedata.category(one) for one in part] for part in SEPARATOR.split(word)]
    return all(part and all(kind[0] in "LM" or kind == "Nd" for kind in part) for part in kinds)


def _checked(text: str) -> list[str]:
    """Split a command into arguments; refuse one that cannot be started."""
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--exec {text!r} is not a command: {error}") from error
    if not arguments:
        raise InputError("--exec needs a command")
    unknown = [name for one in arguments for name in PLACE.findall(one) if name not in VALUES]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in VALUES)
        raise InputError(
            f"--exec replaces {known}, got {{{unknown[0]}}}; put a command with other braces into "
            "a script"
        )
    program = arguments[0]
    if PLACE.search(program):
        raise InputError(f"--exec must name a program, got {program!r}")
    if _becomes_code(arguments):
        raise InputError(
            "--exec: a word must not be run as code; for a shell or an interpreter, use the "
            'environment variable instead: "$TAPWORD_WORD"'
        )
    if shutil.which(program) is None:
        raise InputError(
            f"--exec: program {program!r} was not found; for a shell's built-in commands, use "
            "sh -c '...'"
        )
    return arguments


def _becomes_code(arguments: list[str]) -> bool:
    """Check whether an interpreter would run a word as code."""
    names = [PurePath(one).name.rstrip("0123456789.") for one in arguments]
    found = next((at for at, name in enumerate(names) if name in INTERPRETERS), len(names))
    # The first argument that is not an option is code or a script; the rest are its arguments.
    code = True
    for one in arguments[found + 1 :]:
        option = one.startswith("-")
        if PLACE.search(one) and code:
            return True
        code = CODE.fullmatch(one) is not None or (code and option)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and everything it has started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
