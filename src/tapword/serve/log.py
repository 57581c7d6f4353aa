"""The log of a service: nothing a client sends can break its lines or fill the disk."""

import logging
import time
from collections.abc import Callable

from tapword.support.text import printable

# Longer lines are cut: only what a client sent makes a message that long.
MAX_LINE_CHARACTERS = 500
# About clients: 20 of them that say a word every ten seconds make 120.
MAX_LINES_PER_MINUTE = 300


class SingleLineFormatter(logging.Formatter):
    """Make every message one line of printable characters, of limited length."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the message, without a traceback."""
        return _cut(super().formatMessage(record))

    def formatException(self, ei) -> str:  # type: ignore[no-untyped-def]
        """Format a traceback, line by line."""
        return "\n".join(map(_cut, super().formatException(ei).splitlines()))


class LineRateFilter(logging.Filter):
    """Limit the lines per minute of one logger; the last one says that lines are left out."""

    def __init__(
        self,
        name: str,
        limit: int = MAX_LINES_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(name)
        self._limit, self._clock = limit, clock
        self._since, self._count = clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is logged."""
        if not super().filter(record):
            return True
        if self._clock() - self._since >= 60:
            self._since, self._count = self._clock(), 0
        self._count += 1
        if self._count == self._limit:
            record.msg = (
                f"{record.getMessage()}; further lines about clients are left out for a minute"
            )
            record.args = ()
        return self._count <= self._limit


def set_up(verbose: bool, *clients: str) -> None:
    """Log to standard error; `clients` name the loggers of messages that clients cause."""
    handler = logging.StreamHandler()
    handler.setFormatter(SingleLineFormatter("%(asctime)s %(levelname)s %(message)s"))
    for name in clients:
        handler.addFilter(LineRateFilter(name))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("tapword").setLevel(logging.DEBUG if verbose else logging.INFO)


def _cut(line: str) -> str:
    cut = printable(line[:MAX_LINE_CHARACTERS])
    return cut if len(line) <= MAX_LINE_CHARACTERS else f"{cut} …"
