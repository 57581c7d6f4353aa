"""Text for messages: printable, counted and listed."""

import re
from collections.abc import Sequence

# Number of names that are listed before the rest is counted.
LISTED = 3


def printable(value: object) -> str:
    r"""Escape characters that a terminal cannot show on one line, as `repr` does.

    Examples
    --------
    >>> print(printable("a\nb\udcff"))
    a\nb\udcff
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(value)
    )


def counted(number: int, noun: str) -> str:
    """Write a number and its noun, in the plural if needed.

    Examples
    --------
    >>> counted(1, "word"), counted(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def use_a_dot(text: str) -> str:
    """Write what to type instead of a number with a comma, as the end of a message.

    Examples
    --------
    >>> use_a_dot("0,7"), use_a_dot("0;7")
    ('; use a dot: 0.7', '')
    """
    comma = re.fullmatch(r"[-+]?\d*,\d+", text.strip())
    return f"; use a dot: {text.strip().replace(',', '.')}" if comma else ""


def listed(names: Sequence[str]) -> str:
    """First few names, and the number of the others.

    Examples
    --------
    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")
