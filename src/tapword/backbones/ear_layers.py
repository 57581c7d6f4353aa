"""The layers of `tapword_ear`, by numpy.

Arrays are (clips, time, bands, channels), so that a convolution of one step and band is a matrix
product. Depthwise ones are sums over shifted views, without copies of them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

# Called with the name and the input of every convolution.
Observer = Callable[[str, np.ndarray], None]
# Of a block: strides over bands and over time, and steps of look-ahead.
BlockKind = tuple[tuple[int, int], int]


def _layer(arrays: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Weight (time, bands, channels, out) and bias of a layer (out, channels, bands, time)."""
    weight, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
    return np.ascontiguousarray(weight.transpose(3, 2, 1, 0)), bias


def _mix(arrays: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Weight (channels, out) and bias of a layer of one step and band."""
    weight, bias = _layer(arrays, name)
    return weight[0, 0], bias


def _times(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Multiply (..., channels) by (channels, out) as one product."""
    return (x.reshape(-1, len(weight)) @ weight).reshape(*x.shape[:-1], -1)


class Window:
    """Takes the input of a convolution apart: earlier steps, and what is around the bands.

    Parameters
    ----------
    bands
        Of the input.
    steps, taps, channels
        Of the convolution: steps of time, and bands.
    stride
        Over bands and over time.
    """

    def __init__(self, bands: int, steps: int, taps: int, channels: int, stride: tuple[int, int]):
        self._bands, self._steps, self._taps, self._channels = bands, steps, taps, channels
        self._by_bands, self._by_time = stride
        self._edge = taps // 2
        self.bands_after = -(-bands // self._by_bands)

    def initial(self, clips: int) -> np.ndarray:
        """State (clips, steps - 1, bands, channels) before a stream."""
        shape = clips, self._steps - 1, self._bands, self._channels
        return np.zeros(shape, dtype=np.float32)

    def space(self, before: np.ndarray, time: int) -> tuple[np.ndarray, np.ndarray]:
        """Space for `time` steps after a state: all of it, and what to write (clips, time, ...)."""
        clips, earlier = before.shape[:2]
        end = self._edge + self._bands
        shape = clips, earlier + time, end + self._edge, self._channels
        whole = np.empty(shape, dtype=np.float32)
        if self._edge:
            whole[:, :, : self._edge] = whole[:, :, end:] = 0
        whole[:, :earlier, self._edge : end] = before
        return whole, whole[:, earlier:, self._edge : end]

    def state(self, whole: np.ndarray) -> np.ndarray:
        """Copy the last steps."""
        end = self._edge + self._bands
        return whole[:, whole.shape[1] - self._steps + 1 :, self._edge : end].copy()

    def views(self, whole: np.ndarray) -> np.ndarray:
        """Show each output's inputs: (clips, time, bands, steps, taps, channels)."""
        clips, time = whole.shape[:2]
        by_clip, by_step, by_band, by_channel = whole.strides
        time = -(-(time - self._steps + 1) // self._by_time)
        shape = clips, time, self.bands_after, self._steps, self._taps, self._channels
        strides = by_clip, self._by_time * by_step, self._by_bands * by_band
        # Like `sliding_window_view`, which takes longer than most of the products.
        return np.ndarray(shape, whole.dtype, whole, 0, (*strides, by_step, by_band, by_channel))


class First:
    """The first convolution: bands of one channel, with a ReLU."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], name: str, bands: int, stride: tuple[int, int]
    ):
        self._name = name
        weight, self._bias = _layer(arrays, name)
        steps, taps, _, out = weight.shape
        self._weight = weight.reshape(steps * taps, out)
        self._window = Window(bands, steps, taps, 1, stride)
        self.bands_after = self._window.bands_after

    def initial_state(self, clips: int) -> list[np.ndarray]:
        """State before a stream."""
        return [self._window.initial(clips)]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands, 1) and the new state."""
        whole, inner = self._window.space(state[0], x.shape[1])
        inner[:] = x
        if observe:
            observe(self._name, whole)
        views = self._window.views(whole)
        y = _times(views.reshape(*views.shape[:3], -1), self._weight)
        y += self._bias
        return np.maximum(y, 0, out=y), [self._window.state(whole)]


class Block:
    """Inverted residual block: expand, depthwise convolution, project, add the input.

    The depthwise convolution's bias is moved behind its ReLU, relu(a + b) = max(a, -b) + b, and
    into the next bias, which saves a pass over the numbers.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], name: str, bands: int, kind: BlockKind):
        self._name = name
        stride, ahead = kind
        self._widen, self._wide_bias = _mix(arrays, f"{name}.widen")
        look, look_bias = _layer(arrays, f"{name}.look")
        self._look = np.ascontiguousarray(look[:, :, 0])
        self._narrow, bias = _mix(arrays, f"{name}.narrow")
        steps, taps, wide = self._look.shape
        self._window = Window(bands, steps, taps, wide, stride)
        self.bands_after = self._window.bands_after
        self._least = -look_bias
        self._bias = bias + look_bias @ self._narrow
        self._channels = len(self._widen)
        self._adds = stride == (1, 1) and len(bias) == self._channels
        # The input waits for this long before it is added.
        self._waits = ahead if self._adds else 0
        self._bands = bands

    def initial_state(self, clips: int) -> list[np.ndarray]:
        """State before a stream."""
        waiting = np.zeros((clips, self._waits, self._bands, self._channels), dtype=np.float32)
        return [self._window.initial(clips), *([waiting] if self._waits else [])]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands, channels) and the new state."""
        whole, inner = self._window.space(state[0], x.shape[1])
        y = _times(x, self._widen)
        y += self._wide_bias
        np.maximum(y, 0, out=inner)
        kept = [self._window.state(whole)]
        y = np.einsum("ntbijc,ijc->ntbc", self._window.views(whole), self._look)
        np.maximum(y, self._least, out=y)
        if observe:
            observe(f"{self._name}.widen", x)
            observe(f"{self._name}.look", whole)
            observe(f"{self._name}.narrow", y - self._least)
        y = _times(y, self._narrow)
        y += self._bias
        if self._waits:
            x = np.concatenate([state[1], x], axis=1)
            kept.append(x[:, x.shape[1] - self._waits :].copy())
            x = x[:, : -self._waits]
        if self._adds:
            y += x
        return y, kept


class Layers:
    """All layers: blocks over bands, one that makes channels of the bands, blocks over time.

    Parameters
    ----------
    arrays
        Weights (out, channels, bands, time) and biases of each convolution, by name.
    bands
        Of the input.
    band_blocks, time_blocks
        Of each block over bands and over time.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        bands: int,
        band_blocks: Sequence[BlockKind],
        time_blocks: Sequence[BlockKind],
    ):
        first = First(arrays, "first", bands, (2, 2))
        self._over_bands: list[First | Block] = [first]
        self._over_time: list[Block] = []
        for index, kind in enumerate(band_blocks):
            bands = self._over_bands[-1].bands_after
            self._over_bands.append(Block(arrays, f"bands.{index}", bands, kind))
        for index, kind in enumerate(time_blocks):
            self._over_time.append(Block(arrays, f"time.{index}", 1, kind))
        flat, self._flat_bias = _mix(arrays, "flat")
        # The file has bands of channels, here are channels of bands.
        apart = flat.reshape(-1, self._over_bands[-1].bands_after, flat.shape[1])
        self._flat = np.ascontiguousarray(apart.transpose(1, 0, 2)).reshape(flat.shape)
        self._out, self._out_bias = _mix(arrays, "out")

    def initial_state(self, clips: int) -> list[np.ndarray]:
        """State before streams, side by side."""
        layers = [*self._over_bands, *self._over_time]
        return [array for layer in layers for array in layer.initial_state(clips)]

    def __call__(
        self, x: np.ndarray, state: Sequence[np.ndarray], observe: Observer | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute the next frames (clips, t, d) of x (clips, time, bands), and the new state."""
        kept: list[np.ndarray] = []

        def run(layer: First | Block, x: np.ndarray) -> np.ndarray:
            x, new = layer(x, list(state[len(kept) : len(kept) + 2]), observe)
            kept.extend(new)
            return x

        x = x[..., None]
        for layer in self._over_bands:
            x = run(layer, x)
        x = x.reshape(*x.shape[:2], 1, -1)
        if observe:
            observe("flat", x)
        x = _times(x, self._flat)
        x += self._flat_bias
        np.maximum(x, 0, out=x)
        for block in self._over_time:
            x = run(block, x)
        if observe:
            observe("out", x)
        x = _times(x, self._out)
        x += self._out_bias
        return x[:, :, 0], kept
