"""Text made fit to be shown: what somebody else wrote, numbers of things and lists of names."""

from collections.abc import Sequence

# So many names are listed before the rest is counted.
LISTED = 3


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


def counted(number: int, noun: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "word"), counted(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """First few of the names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")
