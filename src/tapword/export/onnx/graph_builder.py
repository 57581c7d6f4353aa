"""Build the graphs of exported ONNX files: shorthands, and parts of other models."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapword.backbones.onnx_files import TENSOR_TYPES, OnnxWriter, onnx_package


class GraphBuilder(OnnxWriter):
    """An `OnnxWriter` for exports, whose result is checked.

    Examples
    --------
    >>> graph = GraphBuilder()
    >>> graph.node("Mul", "audio", graph.constant(2.0, np.float32))
    'Mul_1'
    """

    def __init__(self) -> None:
        self._onnx = onnx_package("an ONNX file")
        super().__init__()
        self._known: dict[tuple, str] = {}

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant; equal constants share a name."""
        array = np.asarray(value, dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = super().constant(array)
        return self._known[key]

    def ints(self, *values: int) -> str:
        """Constant (n,) of integers."""
        return self.constant(values)

    def floats(self, value: Any) -> str:
        """Constant of float32, any shape."""
        return self.constant(value, np.float32)

    def cast(self, value: str, dtype: Any) -> str:
        """Cast a tensor to another type."""
        return self.node("Cast", value, to=TENSOR_TYPES[np.dtype(dtype).name])

    def length(self, value: str, axis: int = 0) -> str:
        """Size of an axis, shape (1,)."""
        return self.node("Gather", self.node("Shape", value), self.ints(axis))

    def slice(self, value: str, start: str, end: str, axis: int = 0) -> str:
        """Slice an axis from `start` to `end`, both of shape (1,)."""
        return self.node("Slice", value, start, end, self.ints(axis))

    def reshape(self, value: str, *shape: int) -> str:
        """Reshape a tensor."""
        return self.node("Reshape", value, self.ints(*shape))

    def sum(self, value: str, axis: int, keep: bool = True) -> str:
        """Sum over an axis."""
        return self.node("ReduceSum", value, self.ints(axis), keepdims=int(keep))

    def arange(self, count: str) -> str:
        """Integers 0, 1, ... below `count`, which has shape (1,)."""
        end = self.node("Squeeze", count, self.ints(0))
        return self.node("Range", self.constant(0), end, self.constant(1))

    def include(self, model: Any, inputs: dict[str, str], outputs: Sequence[str]) -> list[str]:
        """Include the nodes of another model that compute `outputs`; return their names here.

        `inputs` maps inputs of the other model to tensors of this graph.
        """
        prefix = f"part_{len(self._nodes)}/"
        needed = set(outputs)
        kept = []
        for node in reversed(model.graph.node):
            if needed & set(node.output):
                needed |= set(node.input)
                kept.append(node)
        for node in map(copy.deepcopy, reversed(kept)):
            node.name = prefix + (node.name or node.output[0])
            node.input[:] = [inputs.get(name, name and prefix + name) for name in node.input]
            node.output[:] = [prefix + name for name in node.output]
            self._nodes.append(node.SerializeToString())
        for tensor in map(copy.deepcopy, model.graph.initializer):
            if tensor.name in needed:
                tensor.name = prefix + tensor.name
                self._constants.append(tensor.SerializeToString())
        return [prefix + name for name in outputs]

    def model(
        self,
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Mapping[str, tuple[str, Sequence[int | str]]],
        metadata: dict[str, str],
    ) -> Any:
        """Make the model of float32 inputs (name -> shape) and outputs (name -> tensor, shape)."""
        for name, shape in inputs.items():
            self.input(name, shape)
        for name, (tensor, shape) in outputs.items():
            self.output(tensor, name, shape)
        model = self._onnx.load_model_from_string(self.content(metadata=metadata))
        self._onnx.checker.check_model(model)
        return model
