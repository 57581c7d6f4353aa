"""Text that somebody else wrote, made fit to be shown."""


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
