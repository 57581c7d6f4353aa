"""What a word may be called."""

import unicodedata
from collections.abc import Container

from tapword.errors import InputError

# Longest new word in UTF-8, which the C core has room for. Model files may contain longer ones.
MAX_WORD_BYTES = 64


def spelling(text: str) -> str:
    """One spelling for names that look the same: keyboards, disks and lists differ in Unicode form.

    Examples
    --------
    >>> spelling("cafe" + chr(0x301)) == "caf" + chr(0xE9)
    True
    """
    return unicodedata.normalize("NFC", text).strip()


def clean_word(word: str) -> str:
    """Give a word its one spelling; refuse what cannot be shown.

    Examples
    --------
    >>> clean_word(" lamp ")
    'lamp'
    """
    if not isinstance(word, str):
        raise InputError(f"a word must be a string, got {word!r}")
    cleaned = spelling(word)
    if not cleaned or not cleaned.isprintable():
        raise InputError(
            f"a word must be printable characters, got {word[:MAX_WORD_BYTES]!r}", code="bad_word"
        )
    return cleaned


def clean_new_word(word: str, known: Container[str] = ()) -> str:
    """Clean a word, and refuse it if it is too long, unless it is known already.

    Examples
    --------
    >>> clean_new_word("x" * 65)
    Traceback (most recent call last):
    tapword.errors.InputError: a word must be at most 64 bytes of UTF-8, got 65 bytes
    """
    cleaned = clean_word(word)
    size = len(cleaned.encode())
    if size > MAX_WORD_BYTES and cleaned not in known:
        raise InputError(
            f"a word must be at most {MAX_WORD_BYTES} bytes of UTF-8, got {size} bytes",
            code="word_too_long",
            params={"max_bytes": MAX_WORD_BYTES},
        )
    return cleaned
