"""What is done when a word is heard: the command of `tapword listen --exec`."""

import contextlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import PurePath
from types import TracebackType
from typing import NamedTuple, Self

from tapword.cli.console import err, warn
from tapword.errors import InputError
from tapword.listening.decider import Event
from tapword.support.text import counted

# So many commands run at a time, by choice: more than a person starts by voice, few enough for a
# small computer.
AT_ONCE = 8
# How often commands are looked at that are waited for, and how long until that is said.
LOOK_S, SOON_S = 0.02, 0.5
VALUES: dict[str, Callable[[Event], str]] = {
    "word": lambda event: event.word,
    "score": lambda event: f"{event.score:.2f}",
    "start": lambda event: f"{event.start_s:.2f}",
    "end": lambda event: f"{event.end_s:.2f}",
}
PLACE = re.compile(r"\{(\w+)\}")
# Programs that run an argument, or split it anew; and options after which it is the next one.
INTERPRETERS = {"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "env", "eval"}
INTERPRETERS |= {"node", "osascript", "perl", "python", "ruby"}
CODE = re.compile(r"-\w*[cerpS]\w*|--(eval|print|split-string)")


class Running(NamedTuple):
    """A command that was started, and the word it was started for."""

    process: subprocess.Popen[bytes]
    word: str


class Action:
    """A command that is started for each event, beside the listening and without a shell.

    Used as a context, it waits for the commands that still run when listening has ended. Ctrl-C
    reaches those only then, and ends them.

    Parameters
    ----------
    text
        Command, split into arguments as a shell would; {word}, {score}, {start} and {end} are
        replaced inside the arguments, so that a word never becomes two of them.
    may_wait
        Whether listening may wait where `AT_ONCE` commands run; otherwise the event starts none.
    """

    def __init__(self, text: str, may_wait: bool):
        self.arguments = _checked(text)
        self.may_wait = may_wait
        self._running: list[Running] = []

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
        arguments = [PLACE.sub(lambda place: values[place[1]], one) for one in self.arguments]
        told = {f"TAPWORD_{name.upper()}": value for name, value in values.items()}
        try:
            # Sound from a pipe is not for the command; a group of its own keeps Ctrl-C from it.
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, env=os.environ | told, process_group=0
            )
        except (OSError, ValueError) as error:
            warn(f"the command for {event.word} could not be started: {error}")
        else:
            self._running.append(Running(process, event.word))

    def look(self) -> None:
        """Say which commands have failed since the last look."""
        ended = [one for one in self._running if one.process.poll() is not None]
        self._running = [one for one in self._running if one not in ended]
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
                err.print(f"waiting for {number}; Ctrl-C ends what still runs")
            self._wait()
        except KeyboardInterrupt:
            for one in self._running:
                _end(one.process)
            self._wait()

    def _wait(self, at_most_s: float = math.inf) -> None:
        end = time.monotonic() + at_most_s
        self.look()
        while self._running and time.monotonic() < end:
            time.sleep(LOOK_S)
            self.look()


def _checked(text: str) -> list[str]:
    """Arguments of a command that can be started."""
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--exec {text!r} is not a command: {error}") from error
    if not arguments:
        raise InputError("--exec must be a command, got nothing")
    unknown = [name for one in arguments for name in PLACE.findall(one) if name not in VALUES]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in VALUES)
        raise InputError(
            f"--exec knows {known}, got {{{unknown[0]}}}; a command with other braces goes into "
            "a script"
        )
    program = arguments[0]
    if PLACE.search(program):
        raise InputError(f"--exec must name its program, got {program!r}")
    if _becomes_code(arguments):
        raise InputError(
            "--exec: what a word is called must not become code; in a command that a shell or "
            'an interpreter reads, write "$TAPWORD_WORD" or what it calls that variable'
        )
    if shutil.which(program) is None:
        raise InputError(
            f"--exec: no program {program!r} was found; built-in commands of a shell are "
            "written as: sh -c '...'"
        )
    return arguments


def _becomes_code(arguments: list[str]) -> bool:
    """Whether a known interpreter would read a word as code: in an option or where code stands."""
    names = [PurePath(one).name.rstrip("0123456789.") for one in arguments]
    found = next((at for at, name in enumerate(names) if name in INTERPRETERS), len(names))
    # The first argument that is no option is code or a script; what follows is given to it.
    code = True
    for one in arguments[found + 1 :]:
        option = one.startswith("-")
        if PLACE.search(one) and code:
            return True
        code = CODE.fullmatch(one) is not None or (code and option)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
