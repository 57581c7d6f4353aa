"""The network of `ear_s` and `tapword_ear` as an ONNX graph."""

from collections.abc import Mapping

import numpy as np

from tapword.backbones.onnx_files import OnnxWriter
from tapword.backbones.tapword_ear import BAND_BLOCKS, BANDS, time_blocks


class EarGraph(OnnxWriter):
    """The network as an ONNX graph: `mel` and the state give `frames` and the new state.

    The state's arrays are named `before_0`, `before_1`, ... and `after_0`, `after_1`, ...

    Parameters
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution.

    Attributes
    ----------
    states
        Shapes (channels, bands, time) of the state's arrays.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        super().__init__()
        self.states: list[tuple[int, int, int]] = []
        self._arrays = arrays
        self._kept: list[str] = []
        x = self.input("mel", ["batch", 1, BANDS, "time"])
        x = self._convolution(x, "first", (2, 2), bands=BANDS)
        bands = BANDS // 2
        for index, (stride, ahead) in enumerate(BAND_BLOCKS):
            x = self._block(x, f"bands.{index}", stride, ahead, bands)
            bands //= stride[0]
        # All bands of all channels become channels.
        x = self.node("Reshape", x, self.constant(np.array([0, -1, 1, 0])))
        x = self._convolution(x, "flat")
        for index, (stride, ahead) in enumerate(time_blocks(arrays)):
            x = self._block(x, f"time.{index}", stride, ahead, 1)
        x = self._convolution(x, "out", relu=False)
        self.output(x, "frames", ["batch", len(arrays["out.bias"]), 1, "frames"])
        for index, (name, shape) in enumerate(zip(self._kept, self.states, strict=True)):
            self.output(name, f"after_{index}", ["batch", *shape])

    def _block(self, x: str, name: str, stride: tuple[int, int], ahead: int, bands: int) -> str:
        """Inverted residual block: expand, depthwise convolution, project, add the input."""
        y = self._convolution(x, f"{name}.widen")
        y = self._convolution(y, f"{name}.look", stride, bands, depthwise=True)
        y = self._convolution(y, f"{name}.narrow", relu=False)
        channels = self._arrays[f"{name}.widen.weight"].shape[1]
        if stride != (1, 1) or len(self._arrays[f"{name}.narrow.bias"]) != channels:
            return y
        if ahead:
            # The input is delayed by the look-ahead before it is added.
            x = self._last(self._after(x, ahead, channels, bands), ahead, but=True)
        return self.node("Add", x, y)

    def _convolution(
        self,
        x: str,
        name: str,
        stride: tuple[int, int] = (1, 1),
        bands: int = 1,
        depthwise: bool = False,
        relu: bool = True,
    ) -> str:
        weight, bias = (
            self._arrays[f"{name}.{kind}"].astype(np.float32) for kind in ("weight", "bias")
        )
        out, channels, high, wide = weight.shape
        if wide > 1:
            x = self._after(x, wide - 1, out if depthwise else channels, bands)
        edge = high // 2
        x = self.node(
            "Conv",
            x,
            self.constant(weight),
            self.constant(bias),
            group=out if depthwise else 1,
            strides=stride,
            pads=(edge, 0, edge, 0),
        )
        return self.node("Relu", x) if relu else x

    def _after(self, x: str, count: int, channels: int, bands: int) -> str:
        """Put the state's steps before `x`, and keep the last `count` steps as the new state."""
        shape = (channels, bands, count)
        before = self.input(f"before_{len(self.states)}", ["batch", *shape])
        self.states.append(shape)
        x = self.node("Concat", before, x, axis=3)
        self._kept.append(self._last(x, count))
        return x

    def _last(self, x: str, count: int, but: bool = False) -> str:
        """Take the last `count` steps of time, or all but them."""
        ends = (0, -count) if but else (-count, np.iinfo(np.int64).max)
        places = [self.constant(np.array([place])) for place in (*ends, 3)]
        return self.node("Slice", x, *places)
