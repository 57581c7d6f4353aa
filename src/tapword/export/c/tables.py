"""Constant tables as C99 text, with the bytes they take."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS = {
    "float32": "float",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
}

_PLAIN = (string.ascii_letters + string.digits + " _-").encode()
_ESCAPED = [chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in range(256)]


class Tables:
    """Tables as they are written one after the other; `bytes` is what they take on the device."""

    def __init__(self) -> None:
        self.bytes = 0
        self._written: dict[str, str] = {}

    def add(self, name: str, values: Any, dtype: Any = np.float32, shared: bool = False) -> None:
        """Add an array; `shared` ones can be seen by the program."""
        array = np.ascontiguousarray(values, dtype=dtype)
        text = f"{KINDS[array.dtype.name]} {name}{_sizes(array)} = {_nested(array)};"
        self._put(name, array.nbytes, text, shared)

    def add_structures(self, name: str, kind: str, values: Any) -> None:
        """Add structures (n, members) of a type that is made of uint16_t alone."""
        array = np.asarray(values, dtype=np.uint16)
        self._put(name, array.nbytes, f"{kind} {name}[{len(array)}] = {_nested(array)};", False)

    def add_bytes(self, name: str, values: np.ndarray) -> None:
        """Add bytes (n, m) as strings, each with a 0 behind it.

        Compilers read strings thirty times as fast as numbers, and there are a million of these.
        """
        width = values.shape[1] + 1
        text = f"{KINDS[values.dtype.name]} {name}[{len(values)}][{width}] = {_strings(values)};"
        self._put(name, len(values) * width, text, False)

    def add_layers(self, name: str, layers: Sequence[np.ndarray]) -> None:
        """Add several arrays of bytes (n, m) behind each other, each as by `add_bytes`."""
        sizes = [(len(rows), rows.shape[1] + 1) for rows in layers]
        members = "\n".join(f"    uint8_t layer_{i}[{n}][{m}];" for i, (n, m) in enumerate(sizes))
        text = f"struct {{\n{members}\n}} {name} = {{{','.join(map(_strings, layers))}}};"
        self._put(name, sum(n * m for n, m in sizes), text, False)

    def add_words(self, name: str, content: bytes) -> None:
        """Add bytes without gaps, at a multiple of 8 bytes: as numbers, the lowest byte first."""
        array = np.frombuffer(content.ljust(-(-len(content) // 8) * 8, b"\0"), "<u8")
        self._put(
            name, array.nbytes, f"uint64_t {name}[{len(array)}] = {_hexadecimal(array)};", False
        )

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


def quote(word: str | bytes) -> str:
    r"""C string of a word or of bytes: all but plain letters, digits and spaces as octal numbers.

    Examples
    --------
    >>> print(quote('a"?é'))
    "a\042\077\303\251"
    """
    content = word.encode() if isinstance(word, str) else word
    return '"' + "".join(map(_ESCAPED.__getitem__, content)) + '"'


def _number(value: float | int) -> str:
    if isinstance(value, int):
        return str(value)
    # Nine digits bring back the very float32.
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _sizes(array: np.ndarray) -> str:
    return "".join(f"[{n}]" for n in array.shape)


def _strings(rows: np.ndarray) -> str:
    """Rows of bytes (n, m) as strings."""
    return "{" + ",\n".join(quote(row.tobytes()) for row in rows) + "}"


def _hexadecimal(array: np.ndarray) -> str:
    numbers = [f"0x{number:x}u" for number in array.tolist()]
    lines = [", ".join(numbers[start : start + 5]) for start in range(0, len(numbers), 5)]
    return "{" + ",\n".join(lines) + "}"


def _nested(array: np.ndarray) -> str:
    if array.ndim > 1:
        return "{" + ",\n".join(map(_nested, array)) + "}"
    numbers = list(map(_number, array.tolist()))
    lines = [", ".join(numbers[start : start + 8]) for start in range(0, len(numbers), 8)]
    return "{" + ",\n    ".join(lines) + "}"
