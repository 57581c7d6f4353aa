"""The layers of `ear_s` and `tapword_ear`, by numpy.

Arrays are (clips, time, bands * channels), so that a convolution of one step and band is a matrix
product. Depthwise ones are sums over shifted views, without copies of them. numpy adds, multiplies
and compares long rows faster than short ones, so what each channel has is repeated for the bands.
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
    """Multiply the channels of each band by (channels, out), as one product."""
    return (x.reshape(-1, len(weight)) @ weight).reshape(*x.shape[:2], -1)


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
        self._steps, self._taps, self._channels = steps, taps, channels
        self._by_bands, self._by_time = stride
        self._edge, self._row = taps // 2 * channels, bands * channels
        self.bands_after = -(-bands // self._by_bands)
        # Neighbouring outputs have neighbouring inputs, unless there is a stride.
        self.together = bands if self._by_bands == 1 else 1

    def initial(self, clips: int) -> np.ndarray:
        """State (clips, steps - 1, bands * channels) before a stream."""
        return np.zeros((clips, self._steps - 1, self._row), dtype=np.float32)

    def space(self, before: np.ndarray, time: int) -> tuple[np.ndarray, np.ndarray]:
        """Space for `time` steps after a state: all of it, and what to write (clips, time, ...)."""
        clips, earlier = before.shape[:2]
        end = self._edge + self._row
        whole = np.empty((clips, earlier + time, end + self._edge), dtype=np.float32)
        if self._edge:
            whole[..., : self._edge] = whole[..., end:] = 0
        whole[:, :earlier, self._edge : end] = before
        return whole, whole[:, earlier:, self._edge : end]

    def state(self, whole: np.ndarray) -> np.ndarray:
        """Copy the last steps."""
        end = self._edge + self._row
        return whole[:, whole.shape[1] - self._steps + 1 :, self._edge : end].copy()

    def views(self, whole: np.ndarray) -> np.ndarray:
        """Show the inputs of each output: (clips, time, bands, steps, taps, channels).

        Bands `together` look like one with the channels of all.
        """
        clips, time = whole.shape[:2]
        by_clip, by_step, each = whole.strides
        by_tap = each * self._channels
        time = -(-(time - self._steps + 1) // self._by_time)
        bands, channels = self.bands_after // self.together, self.together * self._channels
        shape = clips, time, bands, self._steps, self._taps, channels
        strides = by_clip, self._by_time * by_step, self._by_bands * by_tap, by_step, by_tap, each
        # Like `sliding_window_view`, which takes longer than most of the products.
        return np.ndarray(shape, whole.dtype, whole, 0, strides)


class First:
    """The first convolution: bands of one channel, with a ReLU."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], name: str, bands: int, stride: tuple[int, int]
    ):
        self._name = name
        weight, bias = _layer(arrays, name)
        steps, taps, _, out = weight.shape
        self._weight = weight.reshape(steps * taps, out)
        self._window = Window(bands, steps, taps, 1, stride)
        self.bands_after = self._window.bands_after
        self._bias = np.tile(bias, self.bands_after)
        self._zeros = np.zeros_like(self._bias)

    def initial_state(self, clips: int) -> list[np.ndarray]:
        """State before a stream."""
        return [self._window.initial(clips)]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands) and the new state."""
        whole, inner = self._window.space(state[0], x.shape[1])
        inner[:] = x
        if observe:
            observe(self._name, whole)
        y = _times(self._window.views(whole), self._weight)
        y += self._bias
        return np.maximum(y, self._zeros, out=y), [self._window.state(whole)]


class Block:
    """Inverted residual block: expand, depthwise convolution, project, add the input.

    The depthwise convolution's bias is moved behind its ReLU, relu(a + b) = max(a, -b) + b, and
    into the next bias, which saves a pass over the numbers.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], name: str, bands: int, kind: BlockKind):
        self._name = name
        stride, ahead = kind
        self._widen, wide_bias = _mix(arrays, f"{name}.widen")
        look, look_bias = _layer(arrays, f"{name}.look")
        self._narrow, bias = _mix(arrays, f"{name}.narrow")
        steps, taps, _, wide = look.shape
        self._window = Window(bands, steps, taps, wide, stride)
        self.bands_after = self._window.bands_after
        self._wide_bias = np.tile(wide_bias, bands)
        # A maximum with 0 takes twice as long as with a row of zeros.
        self._zeros = np.zeros_like(self._wide_bias)
        self._look = np.tile(look[:, :, 0], self._window.together)
        self._least = np.tile(-look_bias, self.bands_after)
        self._bias = np.tile(bias + look_bias @ self._narrow, self.bands_after)
        self._adds = stride == (1, 1) and len(bias) == len(self._widen)
        # The input waits for this long before it is added.
        self._waits = ahead if self._adds else 0
        self._row = bands * len(self._widen)

    def initial_state(self, clips: int) -> list[np.ndarray]:
        """State before a stream."""
        waiting = np.zeros((clips, self._waits, self._row), dtype=np.float32)
        return [self._window.initial(clips), *([waiting] if self._waits else [])]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands * channels) and the new state."""
        whole, inner = self._window.space(state[0], x.shape[1])
        y = _times(x, self._widen)
        y += self._wide_bias
        np.maximum(y, self._zeros, out=inner)
        kept = [self._window.state(whole)]
        y = np.einsum("ntbijc,ijc->ntbc", self._window.views(whole), self._look)
        y = y.reshape(*y.shape[:2], -1)
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
        self._zeros = np.zeros_like(self._flat_bias)
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

        for layer in self._over_bands:
            x = run(layer, x)
        if observe:
            observe("flat", x)
        x = _times(x, self._flat)
        x += self._flat_bias
        np.maximum(x, self._zeros, out=x)
        for block in self._over_time:
            x = run(block, x)
        if observe:
            observe("out", x)
        x = _times(x, self._out)
        x += self._out_bias
        return x, kept
