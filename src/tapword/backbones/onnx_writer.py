"""Write a network of convolutions as an ONNX file in memory, for onnxruntime.

ONNX is protobuf, and these few lines write the little that is needed. The package `onnx` is twenty
times the size of our networks.
"""

from collections.abc import Sequence

import numpy as np

# Versions of the file format and of the operators that every supported onnxruntime reads.
_IR, _OPSET = 8, 17
_FLOAT, _INT64 = 1, 7
# Kinds of attributes.
_INT, _INTS = 2, 7


class OnnxWriter:
    """A graph of operators; each method adds one and returns the name of its result.

    Examples
    --------
    >>> graph = OnnxWriter()
    >>> x = graph.input("x", ["batch", 2])
    >>> graph.output(graph.node("Relu", x), "y", ["batch", 2])
    >>> len(graph.content()) > 0
    True
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._names = 0

    def input(self, name: str, shape: Sequence[int | str]) -> str:
        """Declare an input of floats; lengths that vary have a name instead of a number."""
        self._inputs.append(_value(name, shape))
        return name

    def output(self, source: str, name: str, shape: Sequence[int | str]) -> None:
        """Make a result an output."""
        self.node("Identity", source, name=name)
        self._outputs.append(_value(name, shape))

    def constant(self, values: np.ndarray) -> str:
        """Add numbers: float32, or int64 for shapes and places."""
        name = self._name()
        kind = _INT64 if values.dtype == np.int64 else _FLOAT
        dims = b"".join(_number(1, length) for length in values.shape)
        content = _text(8, name) + _bytes(9, np.ascontiguousarray(values).tobytes())
        self._constants.append(dims + _number(2, kind) + content)
        return name

    def node(
        self, operator: str, *inputs: str, name: str = "", **attributes: int | Sequence[int]
    ) -> str:
        """Add an operator; attributes are whole numbers or lists of them."""
        name = name or self._name()
        content = b"".join(_text(1, one) for one in inputs) + _text(2, name) + _text(4, operator)
        for key, value in attributes.items():
            if isinstance(value, int):
                attribute = _number(3, value) + _number(20, _INT)
            else:
                attribute = b"".join(_number(8, one) for one in value) + _number(20, _INTS)
            content += _bytes(5, _text(1, key) + attribute)
        self._nodes.append(content)
        return name

    def content(self, also: Sequence[str] = ()) -> bytes:
        """Write the file; the results `also` become outputs, too."""
        graph = _text(2, "network")
        outputs = self._outputs + [_value(name) for name in also]
        parts = (1, self._nodes), (5, self._constants), (11, self._inputs), (12, outputs)
        graph += b"".join(_bytes(field, one) for field, many in parts for one in many)
        return _number(1, _IR) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, _OPSET))

    def _name(self) -> str:
        self._names += 1
        return f"_{self._names}"


def _value(name: str, shape: Sequence[int | str] | None = None) -> bytes:
    """Describe a tensor of floats, with or without its shape."""
    kind = _number(1, _FLOAT)
    if shape is not None:
        dims = (
            _bytes(1, _text(2, length) if isinstance(length, str) else _number(1, length))
            for length in shape
        )
        kind += _bytes(2, b"".join(dims))
    return _text(1, name) + _bytes(2, _bytes(1, kind))


def _number(field: int, value: int) -> bytes:
    """Write a whole number that is not negative."""
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth bit set."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])
