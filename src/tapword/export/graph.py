"""A small hand for writing ONNX graphs: one call a node, names made on the way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple, str] = {}

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; give the output's name."""
        from onnx import helper

        output = f"{kind}_{len(self.nodes) + len(self.constants)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
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
        """Put in another graph, as far as `outputs` hang on it; give their names here.

        Parameters
        ----------
        model
            The other graph.
        inputs
            Its inputs' names -> tensors of this graph.
        outputs
            Names of its tensors that are wanted.
        """
        from onnx import NodeProto, TensorProto

        prefix = f"part_{len(self.nodes)}/"
        needed = set(outputs)
        kept = []
        for node in reversed(model.graph.node):
            if needed & set(node.output):
                needed |= set(node.input)
                kept.append(node)
        for node in reversed(kept):
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = prefix + (node.name or node.output[0])
            copy.input[:] = [inputs.get(name, name and prefix + name) for name in node.input]
            copy.output[:] = [prefix + name for name in node.output]
            self.nodes.append(copy)
        for tensor in model.graph.initializer:
            if tensor.name in needed:
                renamed = TensorProto()
                renamed.CopyFrom(tensor)
                renamed.name = prefix + tensor.name
                self.constants.append(renamed)
        return [prefix + name for name in outputs]

    def model(
        self,
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Mapping[str, tuple[str, Sequence[int | str]]],
        metadata: dict[str, str],
    ) -> Any:
        """Make the file's content.

        Parameters
        ----------
        inputs
            Name -> shape; all are float32.
        outputs
            Name -> tensor of this graph and its shape; all are float32.
        metadata
            Key -> text.
        """
        import onnx
        from onnx import TensorProto, helper

        nodes = list(self.nodes)
        for name, (tensor, _) in outputs.items():
            nodes.append(helper.make_node("Identity", [tensor], [name], name=name))
        shapes = {name: shape for name, (_, shape) in outputs.items()}

        def tensors(side: Mapping[str, Sequence[int | str]]) -> list[Any]:
            kind = TensorProto.FLOAT
            return [helper.make_tensor_value_info(name, kind, side[name]) for name in side]

        graph = helper.make_graph(
            nodes, "tapword", tensors(inputs), tensors(shapes), self.constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tapword",
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model
