"""What a word may be called."""

import unicodedata
from collections.abc import Iterable

from tapword.errors import InputError

# Longer than any name a person would say, short enough for every list and message.
MOST_CHARACTERS = 200


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
    if not cleaned or len(cleaned) > MOST_CHARACTERS or not cleaned.isprintable():
        raise InputError(
            f"a word must be 1 to {MOST_CHARACTERS} printable characters, "
            f"got {word[: MOST_CHARACTERS + 20]!r}"
        )
    return cleaned


def case_variant(word: str, known: Iterable[str]) -> str | None:
    """Known word that is spelled as `word` but for capital letters; None where there is none.

    Examples
    --------
    >>> case_variant("Lamp", ["music", "lamp"])
    'lamp'
    >>> case_variant("lamp", ["lamp"]) is None
    True
    """
    folded = word.casefold()
    return next((one for one in known if one != word and one.casefold() == folded), None)
