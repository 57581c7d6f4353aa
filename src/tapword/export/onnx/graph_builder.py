"""Build ONNX graphs: one call per node, with generated tensor names."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapword.backbones.onnx_files import onnx_package

# The versions of the speech embedding's file, which every recent runtime supports.
OPSET, IR_VERSION = 13, 7


class GraphBuilder:
    """The nodes and constants of a graph under construction.

    Examples
    --------
    >>> graph = GraphBuilder()
    >>> graph.add("Mul", "audio", graph.constant(2.0, np.float32))
    'Mul_1'
    """

    def __init__(self) -> None:
        onnx_package("an ONNX file")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple, str] = {}

    def add(self, kind: str, *inputs: str, unused: int = 0, **attributes: Any) -> str:
        """Add a node with some `unused` outputs; return the name of its first output."""
        from onnx import helper

        output = f"{kind}_{len(self.nodes) + len(self.constants)}"
        outputs = [output, *(f"{output}_{number}" for number in range(1, unused + 1))]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=output, **attributes))
        return output

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant; equal constants share a name."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"constant_{len(self.nodes) + len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def ints(self, *values: int) -> str:
        """Constant (n,) of integers."""
        return self.constant(values)

    def floats(self, value: Any) -> str:
        """Constant of float32, any shape."""
        return self.constant(value, np.float32)

    def cast(self, value: str, dtype: Any) -> str:
        """Cast a tensor to another type."""
        from onnx import helper

        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def length(self, value: str, axis: int = 0) -> str:
        """Size of an axis, shape (1,)."""
        return self.add("Gather", self.add("Shape", value), self.ints(axis))

    def slice(self, value: str, start: str, end: str, axis: int = 0) -> str:
        """Slice an axis from `start` to `end`, both of shape (1,)."""
        return self.add("Slice", value, start, end, self.ints(axis))

    def reshape(self, value: str, *shape: int) -> str:
        """Reshape a tensor."""
        return self.add("Reshape", value, self.ints(*shape))

    def sum(self, value: str, axis: int, keep: bool = True) -> str:
        """Sum over an axis."""
        return self.add("ReduceSum", value, self.ints(axis), keepdims=int(keep))

    def arange(self, count: str) -> str:
        """Integers 0, 1, ... below `count`, which has shape (1,)."""
        end = self.add("Squeeze", count, self.ints(0))
        return self.add("Range", self.constant(0), end, self.constant(1))

    def include(self, model: Any, inputs: dict[str, str], outputs: Sequence[str]) -> list[str]:
        """Include the nodes of another model that compute `outputs`; return their names here.

        `inputs` maps inputs of the other model to tensors of this graph.
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
        """Make the model of float32 inputs (name -> shape) and outputs (name -> tensor, shape)."""
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
