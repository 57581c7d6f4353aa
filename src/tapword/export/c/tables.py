"""Constant tables as C99 text, with the bytes they take."""

import string
import struct
import zlib
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


# Before the content of a file of weights: magic, bytes of the content, its CRC-32.
WEIGHTS = struct.Struct("<8sII")
WEIGHTS_MAGIC = b"TAPWORDW"


class Tables:
    """Tables as they are written one after the other; `bytes` is what they take on the device.

    Parameters
    ----------
    packed
        Whether tables of bytes are put into one, without gaps.
    separate
        Whether that one is left out here: `weights` gives it.
    """

    def __init__(self, packed: bool = False, separate: bool = False) -> None:
        self.bytes = 0
        self._written: dict[str, str] = {}
        self._packed = bytearray() if packed or separate else None
        self._separate = separate
        self._places: dict[str, int] = {}

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
        """Add bytes (n, m): as strings, each with a 0 behind it, where they are not packed.

        Compilers read strings thirty times as fast as numbers, and there are a million of these.
        """
        if self._packed is not None:
            self._places[f"{name.removeprefix('tapword_').upper()}_AT"] = len(self._packed)
            self._packed += values.tobytes()
            self._packed += bytes(-len(self._packed) % 8)
            return
        width = values.shape[1] + 1
        text = f"{KINDS[values.dtype.name]} {name}[{len(values)}][{width}] = {_strings(values)};"
        self._put(name, len(values) * width, text, False)

    def add_layers(self, name: str, layers: Sequence[np.ndarray]) -> None:
        """Add several arrays of bytes (n, m) behind each other, each as by `add_bytes`."""
        sizes = [(len(rows), rows.shape[1] + 1) for rows in layers]
        members = "\n".join(f"    uint8_t layer_{i}[{n}][{m}];" for i, (n, m) in enumerate(sizes))
        text = f"struct {name} {{\n{members}\n}} {name} = {{{','.join(map(_strings, layers))}}};"
        self._put(name, sum(n * m for n, m in sizes), text, False)

    def add_names(self, name: str, words: Sequence[str], room: int) -> None:
        """Add words in UTF-8, in `room` bytes each."""
        body = ",\n    ".join(quote(word) for word in words)
        text = f"char {name}[{len(words)}][{room}] = {{\n    {body}}};"
        self._put(name, len(words) * room, text, False)

    def weights(self) -> bytes:
        """Give the file that holds what is packed."""
        content = bytes(self._packed or b"")
        return WEIGHTS.pack(WEIGHTS_MAGIC, len(content), zlib.crc32(content)) + content

    def settings(self) -> dict[str, Any]:
        """Macros for what is packed, and for the file that holds it."""
        found: dict[str, Any] = {
            "PACKED": int(self._packed is not None),
            "SEPARATE_WEIGHTS": int(self._separate),
        } | self._places
        if self._separate:
            content = self.weights()
            found["WEIGHTS_MAGIC"] = quote(WEIGHTS_MAGIC)
            found["WEIGHTS_BYTES"] = f"{len(content)}u"
            found["WEIGHTS_CRC"] = f"0x{zlib.crc32(content[WEIGHTS.size :]):x}u"
        return found

    def text(self) -> str:
        """All tables, and a macro for how many bytes the compiler gives them."""
        written = dict(self._written)
        if self._separate:
            written["tapword_bytes"] = "static const int8_t *tapword_bytes;"
        elif self._packed is not None:
            written["tapword_bytes"] = "#define tapword_bytes ((const int8_t *)tapword_packed)"
        sizes = " + \\\n     ".join(f"sizeof {name}" for name in self._written)
        return "\n".join([*written.values(), f"#define TAPWORD_TABLE_BYTES \\\n    ({sizes})\n"])

    def finish(self) -> None:
        """Add the table that holds what is packed."""
        if self._packed is not None and not self._separate:
            # At a multiple of 8 bytes, the lowest of each first.
            array = np.frombuffer(self._packed, "<u8")
            kind = f"uint64_t tapword_packed[{len(array)}]"
            self._put("tapword_packed", array.nbytes, f"{kind} = {_hexadecimal(array)};", False)

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
