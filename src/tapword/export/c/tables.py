"""Constant tables as C99 text, with the bytes they take."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS = {"float32": "float", "int8": "int8_t", "uint16": "uint16_t", "uint32": "uint32_t"}


class Tables:
    """Tables as they are written one after the other; `bytes` is what they take on the device."""

    def __init__(self) -> None:
        self.bytes = 0
        self._written: dict[str, str] = {}

    def add(self, name: str, values: Any, dtype: Any = np.float32, shared: bool = False) -> None:
        """Add an array; `shared` ones can be seen by the program."""
        array = np.ascontiguousarray(values, dtype=dtype)
        sizes = "".join(f"[{n}]" for n in array.shape)
        text = f"{KINDS[array.dtype.name]} {name}{sizes} = {_nested(array)};"
        self._put(name, array.nbytes, text, shared)

    def add_names(self, name: str, words: Sequence[str], room: int) -> None:
        """Add words in UTF-8, in `room` bytes each."""
        body = ",\n    ".join(quote(word) for word in words)
        text = f"char {name}[{len(words)}][{room}] = {{\n    {body}}};"
        self._put(name, len(words) * room, text, False)

    def text(self) -> str:
        """All tables, and how many bytes the compiler gives them."""
        sizes = " + \\\n     ".join(f"sizeof {name}" for name in self._written)
        return "\n".join(
            [*self._written.values(), f"#define TAPWORD_TABLE_BYTES \\\n    ({sizes})\n"]
        )

    def _put(self, name: str, size: int, text: str, shared: bool) -> None:
        self.bytes += size
        self._written[name] = ("" if shared else "static ") + "const " + text


def quote(word: str) -> str:
    r"""C string of a word: all but plain letters, digits and spaces as octal bytes.

    Examples
    --------
    >>> print(quote('a"?é'))
    "a\042\077\303\251"
    """
    plain = (string.ascii_letters + string.digits + " _-").encode()
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in word.encode()) + '"'


def _number(value: float | int) -> str:
    if isinstance(value, int):
        return str(value)
    # Nine digits bring back the very float32.
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _nested(array: np.ndarray) -> str:
    if array.ndim > 1:
        return "{" + ",\n".join(map(_nested, array)) + "}"
    numbers = list(map(_number, array.tolist()))
    lines = [", ".join(numbers[start : start + 8]) for start in range(0, len(numbers), 8)]
    return "{" + ",\n    ".join(lines) + "}"
