"""The log of a service: what strangers send can neither break its lines nor fill the disk."""

import logging
import time
from collections.abc import Callable

from tapword.support.text import printable

# Longer lines are cut: no message of ours is that long without what a stranger sent.
LINE_CHARACTERS = 500
# About clients; 20 of them who say a word every ten seconds make 120.
LINES_A_MINUTE = 300


class OneLine(logging.Formatter):
    """Every message is one line of printable characters, and not too long."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the line without the traceback that may follow."""
        return _cut(super().formatMessage(record))

    def formatException(self, ei) -> str:  # type: ignore[no-untyped-def]
        """Format a traceback: its lines stay lines."""
        return "\n".join(map(_cut, super().formatException(ei).splitlines()))


class FewLines(logging.Filter):
    """Let only so many lines of one logger pass in a minute; the last says that others follow."""

    def __init__(
        self,
        name: str,
        most: int = LINES_A_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(name)
        self._most, self._clock = most, clock
        self._since, self._count = clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a line passes."""
        if not super().filter(record):
            return True
        if self._clock() - self._since >= 60:
            self._since, self._count = self._clock(), 0
        self._count += 1
        if self._count == self._most:
            record.msg = (
                f"{record.getMessage()}; the next lines about clients are left out for a minute"
            )
            record.args = ()
        return self._count <= self._most


def set_up(clients: str, verbose: bool) -> None:
    """Log to standard error; `clients` is the name of the logger that clients can make talk."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(FewLines(clients))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("tapword").setLevel(logging.DEBUG if verbose else logging.INFO)


def _cut(line: str) -> str:
    cut = printable(line[:LINE_CHARACTERS])
    return cut if len(line) <= LINE_CHARACTERS else f"{cut} …"
