"""Writes ONNX graphs: one call per node, and tensors are named on the way."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapword.backbones.sessions import onnx_package

# The speech embedding's own version, which every runtime of the last years knows.
OPSET, IR_VERSION = 13, 7


class Graph:
    """Nodes and constants of a graph as it grows.

    Examples
    --------
    >>> graph = Graph()
    >>> graph.add("Mul", "audio", graph.constant(2.0, np.float32))
    'Mul_1'
    """

    def __init__(self) -> None:
        onnx_package("an ONNX file")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple, str] = {}

    def add(self, kind: str, *inputs: str, unused: int = 0, **attributes: Any) -> str:
        """Add a node; give the name of its first output, besides which some may be unused."""
        from onnx import helper

        output = f"{kind}_{len(self.nodes) + len(self.constants)}"
        outputs = [output, *(f"{output}_{number}" for number in range(1, unused + 1))]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=output, **attributes))
        return output

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant; equal ones share a name."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"constant_{len(self.nodes) + len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def ints(self, *values: int) -> str:
        """Constant (n,) of whole numbers."""
        return self.constant(values)

    def floats(self, value: Any) -> str:
        """Constant of float32, of any shape."""
        return self.constant(value, np.float32)

    def cast(self, value: str, dtype: Any) -> str:
        """Change a tensor's type."""
        from onnx import helper

        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def length(self, value: str, axis: int = 0) -> str:
        """Size of an axis, shape (1,)."""
        return self.add("Gather", self.add("Shape", value), self.ints(axis))

    def slice(self, value: str, start: str, end: str, axis: int = 0) -> str:
        """Part of an axis; `start` and `end` are of shape (1,)."""
        return self.add("Slice", value, start, end, self.ints(axis))

    def reshape(self, value: str, *shape: int) -> str:
        """Give a tensor another shape."""
        return self.add("Reshape", value, self.ints(*shape))

    def sum(self, value: str, axis: int, keep: bool = True) -> str:
        """Sum over an axis."""
        return self.add("ReduceSum", value, self.ints(axis), keepdims=int(keep))

    def points(self, count: str) -> str:
        """Whole numbers 0, 1, ... below `count`, which is of shape (1,)."""
        end = self.add("Squeeze", count, self.ints(0))
        return self.add("Range", self.constant(0), end, self.constant(1))

    def include(self, model: Any, inputs: dict[str, str], outputs: Sequence[str]) -> list[str]:
        """Include what another model needs for some of its tensors; give their names here.

        `inputs` says which tensors of this graph are the other's inputs.
        """
        prefix = f"part_{len(self.nodes)}/"
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
            self.nodes.append(node)
        for tensor in model.graph.initializer:
            if tensor.name in needed:
                self.constants.append(copy.deepcopy(tensor))
                self.constants[-1].name = prefix + tensor.name
        return [prefix + name for name in outputs]

    def model(
        self,
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Mapping[str, tuple[str, Sequence[int | str]]],
        metadata: dict[str, str],
    ) -> Any:
        """Make the file's content of inputs (name -> shape) and outputs (name -> tensor, shape).

        All of these are float32; metadata are keys with texts.
        """
        import onnx
        from onnx import TensorProto, helper

        def named(name: str, shape: Sequence[int | str]) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        ends = [
            helper.make_node("Identity", [tensor], [name], name=name)
            for name, (tensor, _) in outputs.items()
        ]
        graph = helper.make_graph(
            [*self.nodes, *ends],
            "tapword",
            [named(name, shape) for name, shape in inputs.items()],
            [named(name, shape) for name, (_, shape) in outputs.items()],
            self.constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="tapword"
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model
