"""The words of a board at an http address: GET reads them, PUT replaces them."""

import urllib.error

from tapword.errors import InputError
from tapword.export.c import state as states
from tapword.support import downloads

SCHEMES = ("http://", "https://")
# Of an answer, which is a line of text.
ANSWER_BYTES = 1000
# A board listens, or checks a take, before it answers.
TIMEOUT_S = 30.0


def is_address(text: str) -> bool:
    """Whether a text is an address, and not the path of a file."""
    return text.startswith(SCHEMES)


def read(url: str) -> bytes:
    """Read what the board at an address learned."""
    try:
        with downloads.opened(url, timeout_s=TIMEOUT_S) as answer:
            content = b"".join(downloads.blocks(answer, states.MOST_BYTES))
            if answer.length:
                raise OSError(f"the connection was cut {answer.length:,} bytes before the end")
            return content
    except OSError as error:
        raise InputError(f"cannot read {url}: {_reason(error)}") from error


def write(url: str, content: bytes) -> None:
    """Replace what the board at an address learned."""
    try:
        with downloads.opened(url, timeout_s=TIMEOUT_S, put=content) as answer:
            b"".join(downloads.blocks(answer, ANSWER_BYTES))
    except OSError as error:
        raise InputError(f"cannot write {url}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """Say what went wrong, with what the board answered."""
    if not isinstance(error, urllib.error.HTTPError):
        return str(getattr(error, "reason", error))
    try:
        said = error.read(ANSWER_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        said = ""
    return f"{error.code} {said or error.reason}"
