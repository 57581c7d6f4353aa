"""What stands in the way of reading a path as a file."""

import os
import stat


def obstacle(path: str | os.PathLike[str]) -> str | None:
    """Say why a path is not a plain file, as the end of a sentence that begins with it.

    Examples
    --------
    >>> obstacle("/nowhere/at/all")
    'does not exist'
    >>> obstacle("/")
    'is a folder'
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be reached: {getattr(error, 'strerror', None) or error}"
    if stat.S_ISREG(mode):
        return None
    return "is a folder" if stat.S_ISDIR(mode) else "is not a plain file"
