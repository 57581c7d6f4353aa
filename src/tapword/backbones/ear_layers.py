"""The layers of `tapword_ear`, by numpy.

Arrays are (clips, time, bands, channels), so that a convolution of one step and band is a matrix
product. Depthwise ones are sums over shifted views, without copies of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Called with the name and the input of every convolution.
Observer = Callable[[str, np.ndarray], None]
# Of a block: strides over bands and over time, and steps of look-ahead.
BlockKind = tuple[tuple[int, int], int]


class Weights(NamedTuple):
    """Of a convolution: (time, bands, channels, out), or (time, bands, channels) if depthwise."""

    weight: np.ndarray
    bias: np.ndarray

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], name: str, depthwise: bool = False) -> "Weights":
        """Take a layer (out, channels, bands, time) of a weight file."""
        weight, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
        turned = np.ascontiguousarray(weight.transpose(3, 2, 1, 0))
        return cls(turned[:, :, 0] if depthwise else turned, bias)

    def mix(self, x: np.ndarray) -> np.ndarray:
        """Mix channels (..., channels) at each step and band, and add the bias."""
        channels, out = self.weight.shape[-2:]
        y = x.reshape(-1, channels) @ self.weight.reshape(channels, out)
        y += self.bias
        return y.reshape(*x.shape[:-1], out)


class Padded(NamedTuple):
    """Input of a convolution over time and bands: earlier steps before it, zeros around the bands.

    Attributes
    ----------
    values
        Shape (clips, steps - 1 + time, edge + bands + edge, channels).
    inner
        The same without the zeros.
    """

    values: np.ndarray
    inner: np.ndarray

    @classmethod
    def after(cls, before: np.ndarray, time: int, edge: int) -> "Padded":
        """Make space for `time` steps after the state `before` (clips, steps - 1, bands, c)."""
        clips, earlier, bands, channels = before.shape
        values = np.empty((clips, earlier + time, bands + 2 * edge, channels), dtype=np.float32)
        values[:, :, :edge] = values[:, :, edge + bands :] = 0
        inner = values[:, :, edge : edge + bands]
        inner[:, :earlier] = before
        return cls(values, inner)

    def windows(self, shape: Sequence[int], stride: tuple[int, int]) -> np.ndarray:
        """View of each output's inputs: (clips, time, bands, *shape, channels)."""
        windows = np.lib.stride_tricks.sliding_window_view(self.values, shape, axis=(1, 2))
        by_bands, by_time = stride
        return windows[:, ::by_time, ::by_bands].transpose(0, 1, 2, 4, 5, 3)

    def end(self, count: int) -> np.ndarray:
        """The last steps, a copy."""
        return self.inner[:, self.inner.shape[1] - count :].copy()


class First:
    """The first convolution: bands of one channel, with a ReLU."""

    def __init__(self, arrays: Mapping[str, np.ndarray], name: str, stride: tuple[int, int]):
        self._name, self._stride = name, stride
        self._weights = Weights.of(arrays, name)
        self.out = self._weights.weight.shape[-1]

    def states(self, bands: int) -> list[tuple[int, ...]]:
        """Shapes (time, bands, channels) of its state."""
        return [(len(self._weights.weight) - 1, bands, 1)]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands, 1) and the new state."""
        steps, taps, _, out = self._weights.weight.shape
        padded = Padded.after(state[0], x.shape[1], taps // 2)
        padded.inner[:, steps - 1 :] = x
        if observe:
            observe(self._name, padded.values)
        windows = padded.windows((steps, taps), self._stride)
        y = windows.reshape(-1, steps * taps) @ self._weights.weight.reshape(-1, out)
        y += self._weights.bias
        np.maximum(y, 0, out=y)
        return y.reshape(*windows.shape[:3], out), [padded.end(steps - 1)]


class Block:
    """Inverted residual block: expand, depthwise convolution, project, add the input."""

    def __init__(self, arrays: Mapping[str, np.ndarray], name: str, kind: BlockKind):
        self._name = name
        self._stride, ahead = kind
        self._widen = Weights.of(arrays, f"{name}.widen")
        self._look = Weights.of(arrays, f"{name}.look", depthwise=True)
        self._narrow = Weights.of(arrays, f"{name}.narrow")
        self.channels, self.out = self._widen.weight.shape[2], len(self._narrow.bias)
        self._adds = self._stride == (1, 1) and self.out == self.channels
        # The input waits for this long before it is added.
        self._waits = ahead if self._adds else 0

    def states(self, bands: int) -> list[tuple[int, ...]]:
        """Shapes (time, bands, channels) of its state."""
        steps, _, wide = self._look.weight.shape
        waiting = [(self._waits, bands, self.channels)] if self._waits else []
        return [(steps - 1, bands, wide), *waiting]

    def __call__(
        self, x: np.ndarray, state: list[np.ndarray], observe: Observer | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute x (clips, time, bands, channels) and the new state."""
        steps, taps, _ = self._look.weight.shape
        padded = Padded.after(state[0], x.shape[1], taps // 2)
        np.maximum(self._widen.mix(x), 0, out=padded.inner[:, steps - 1 :])
        kept = [padded.end(steps - 1)]
        windows = padded.windows((steps, taps), self._stride)
        y = np.einsum("ntbijc,ijc->ntbc", windows, self._look.weight)
        y += self._look.bias
        np.maximum(y, 0, out=y)
        if observe:
            observe(f"{self._name}.widen", x)
            observe(f"{self._name}.look", padded.values)
            observe(f"{self._name}.narrow", y)
        y = self._narrow.mix(y)
        if self._waits:
            x = np.concatenate([state[1], x], axis=1)
            kept.append(x[:, -self._waits :].copy())
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

    Attributes
    ----------
    states
        Shapes (time, bands, channels) of the state's arrays.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        bands: int,
        band_blocks: Sequence[BlockKind],
        time_blocks: Sequence[BlockKind],
    ):
        self._first = First(arrays, "first", (2, 2))
        self._over_bands = [
            Block(arrays, f"bands.{index}", kind) for index, kind in enumerate(band_blocks)
        ]
        self._over_time = [
            Block(arrays, f"time.{index}", kind) for index, kind in enumerate(time_blocks)
        ]
        # States of each layer, in the order of the layers.
        counts = [self._first.states(bands)]
        bands = -(-bands // 2)
        for block, (stride, _) in zip(self._over_bands, band_blocks, strict=True):
            counts.append(block.states(bands))
            bands = -(-bands // stride[0])
        counts += [block.states(1) for block in self._over_time]
        self._counts = [len(shapes) for shapes in counts]
        self.states = [shape for shapes in counts for shape in shapes]
        flat, bias = Weights.of(arrays, "flat")
        # The file has bands of channels, here are channels of bands.
        channels, out = flat.shape[2] // bands, flat.shape[3]
        turned = flat.reshape(channels, bands, out).transpose(1, 0, 2).reshape(flat.shape)
        self._flat = Weights(np.ascontiguousarray(turned), bias)
        self._out = Weights.of(arrays, "out")

    def __call__(
        self, x: np.ndarray, state: Sequence[np.ndarray], observe: Observer | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute the next frames (clips, t, d) of x (clips, time, bands), and the new state."""
        waiting, kept = iter(state), []
        counts = iter(self._counts)

        def run(layer: First | Block, x: np.ndarray) -> np.ndarray:
            own = [next(waiting) for _ in range(next(counts))]
            x, new = layer(x, own, observe)
            kept.extend(new)
            return x

        x = run(self._first, x[..., None])
        for block in self._over_bands:
            x = run(block, x)
        x = x.reshape(*x.shape[:2], 1, -1)
        if observe:
            observe("flat", x)
        x = self._flat.mix(x)
        np.maximum(x, 0, out=x)
        for block in self._over_time:
            x = run(block, x)
        if observe:
            observe("out", x)
        return self._out.mix(x)[:, :, 0], kept
