"""Commands of automations, one JSON object per line.

Home Assistant's action `hassio.addon_stdin` writes them to the standard input of the app:

    {"command": "reject"}                                  the last detection was none of the words
    {"command": "reject", "entry": 12}                     the same of an entry of the list
    {"command": "teach", "entry": 12, "word": "lamp"}      it was this word
    {"command": "sensitivity", "word": "lamp", "value": 0.6}
    {"command": "pause", "seconds": 600}                   detect nothing for a time; 0 ends it
"""

import io
import json
import logging
import threading
import time
from collections.abc import Callable
from types import NoneType
from typing import Any

from tapword.errors import InputError, TapwordError
from tapword.serve.home.pages import Home
from tapword.serve.studio.history import History
from tapword.support.checks import in_range

log = logging.getLogger("tapword.serve.home")

MAX_LINE_BYTES = 4000
MAX_PAUSE_S = 24 * 3600.0
# Between two commands: a flood of them must not delay the detection of words.
PACE_S = 0.05

Number = (int, float)


class Commands:
    """Run the commands of automations on a home."""

    def __init__(self, home: Home):
        self.home = home
        # Name, arguments with their types and defaults, and what runs it.
        self._commands: dict[str, tuple[dict[str, tuple[type, ...]], Callable[..., None]]] = {
            "reject": ({"entry": (int, NoneType)}, self.reject),
            "teach": ({"entry": (int, NoneType), "word": (str,)}, self.teach),
            "sensitivity": ({"word": (str, NoneType), "value": Number}, self.sensitivity),
            "pause": ({"seconds": Number}, self.pause),
        }

    def run(self, text: str | bytes) -> None:
        """Run a command; an error says what is wrong with it."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict) or given.get("command") not in list(self._commands):
            raise InputError(
                'a command must be JSON such as {"command": "reject"}; known: '
                + ", ".join(self._commands)
            )
        arguments, method = self._commands[given["command"]]
        values = [given.get(name) for name in arguments]
        # Not isinstance: True and False would pass for numbers.
        if not all(
            type(value) in types for value, types in zip(values, arguments.values(), strict=True)
        ):
            wanted = ", ".join(arguments)
            raise InputError(f"the command {given['command']} needs {wanted}")
        method(*values)

    def reject(self, entry: int | None = None) -> None:
        """Learn that an entry, or the last detection, is none of the words."""
        self._correct(entry, None)

    def teach(self, entry: int | None, word: str) -> None:
        """Learn an entry, or the last detection, as a word."""
        self._correct(entry, word)

    def _correct(self, entry: int | None, word: str | None) -> None:
        entries = self.home.entries
        number = entries.last_said().number if entry is None else entry
        entries.correct(number, word, History())
        self.home.model_changed()

    def sensitivity(self, word: str | None, value: float) -> None:
        """Set the sensitivity of a word, or of all."""
        self.home.model.set_sensitivity(word, value)
        self.home.model_changed()

    def pause(self, seconds: float) -> None:
        """Detect nothing for a time."""
        if not in_range(seconds, 0, MAX_PAUSE_S):
            raise InputError(f"seconds must be in 0..{MAX_PAUSE_S:g}, got {seconds!r}")
        self.home.satellites.pause(seconds)

    def attempt(self, text: str | bytes) -> None:
        """Run a command; log what came of it."""
        try:
            self.run(text)
            log.info(
                "command: %s", text.decode(errors="replace") if isinstance(text, bytes) else text
            )
        except TapwordError as error:
            log.warning("command refused: %s", error)
        except Exception:
            log.exception("a command failed")

    def follow(self, descriptor: int) -> None:
        """Run what comes on a file descriptor, until it ends, in a thread of its own."""
        # Without a buffer: its lock would be held by the thread when Python ends.
        stream = io.FileIO(descriptor, closefd=False)
        threading.Thread(target=self._follow, args=(stream,), name="commands", daemon=True).start()

    def _follow(self, stream: io.IOBase) -> None:
        while line := stream.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                log.warning("command refused: longer than %d bytes", MAX_LINE_BYTES)
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_LINE_BYTES)
            elif line.strip():
                self.attempt(line.strip())
                time.sleep(PACE_S)


def event_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Give what automations are told of an entry."""
    names = ("word", "score", "threshold", "confidence", "latency_ms")
    told = {name: entry[name] for name in names if name in entry}
    return told | {"entry": entry["id"], "satellite": entry["name"]}
