"""The network of `ear_s` and `tapword_ear` as tables for C."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapword.backbones import tapword_ear
from tapword.backbones.logmel import STEP
from tapword.backbones.tapword_ear import TapwordEar
from tapword.export.c.tables import Tables
from tapword.export.sample_clips import demo_clips, in_rooms


class Block(NamedTuple):
    """A block of the network, as internal.h has it."""

    inputs: int
    wide: int
    outputs: int
    bands: int
    taps: int
    steps: int
    band_step: int
    time_step: int
    adds: bool
    ahead: int

    @property
    def bands_after(self) -> int:
        """Bands of its output."""
        return self.bands // self.band_step

    @property
    def state(self) -> int:
        """Numbers of earlier steps that its filter needs."""
        return (self.steps - 1) * self.bands * self.wide

    @property
    def waiting(self) -> int:
        """Numbers of its input that wait until they are added to its output."""
        return self.bands * self.inputs if self.ahead else 0


class Layer(NamedTuple):
    """A layer: biases (out,), and weights (inputs, out), float32.

    Inputs of a filter are steps of bands; those of a layer that takes all bands as channels are
    bands of channels.
    """

    bias: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], name: str, bands: int = 1) -> "Layer":
        """Take a layer that takes `bands` as channels."""
        weight, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
        out, channels, high, wide = weight.shape
        # (out, channels, bands, high, wide) -> wide, high, bands, channels, out
        parted = weight.reshape(out, channels // bands, bands, high, wide)
        return cls(bias, parted.transpose(4, 3, 2, 1, 0).reshape(-1, out))

    def halves(self) -> np.ndarray:
        """Write the biases, then each input's weights: rows of float16, as bytes."""
        rows = np.concatenate([self.bias[None], self.rows])
        return np.ascontiguousarray(rows, dtype="<f2").view(np.uint8)


def add_ear(tables: Tables, ear: TapwordEar, eight_bits: bool = False) -> dict[str, Any]:
    """Add weights and shapes of the ear; return its macros."""
    arrays = ear.network.arrays
    first, bands = arrays["first.weight"], tapword_ear.BANDS // 2
    band_blocks = _blocks(arrays, "bands", tapword_ear.BAND_BLOCKS, bands)
    time_blocks = _blocks(arrays, "time", tapword_ear.time_blocks(arrays), 1)
    blocks, flat = [*band_blocks, *time_blocks], band_blocks[-1].bands_after
    layers = {
        name: Layer.of(arrays, name, flat if name == "flat" else 1)
        for name in ("first", *_names("bands", band_blocks), "flat", *_names("time", time_blocks))
    } | {"out": Layer.of(arrays, "out")}
    tables.add_structures("tapword_blocks", "tapword_block", blocks)
    halves = list(layers.values())[:1] if eight_bits else list(layers.values())
    tables.add_layers("tapword_ear_weights", [layer.halves() for layer in halves])
    if eight_bits:
        factors, content = in_bytes(ear, layers)
        tables.add("tapword_ear_factors", factors.view(np.uint16), np.uint16)
        tables.add_bytes("tapword_ear_bytes", np.frombuffer(content, np.int8)[None])
    return {
        "EIGHT_BITS": int(eight_bits),
        "EAR_HOP": tapword_ear.HOP,
        "EAR_OVERLAP": tapword_ear.OVERLAP,
        "EAR_LATENCY": tapword_ear.LATENCY_FRAMES,
        "EAR_SILENCE": ear.silence_before,
        "EAR_SHIFT": f"{tapword_ear.SHIFT}f",
        "EAR_SCALE": f"{tapword_ear.SCALE}f",
        "EAR_TAPS": first.shape[-1],
        "EAR_MELS": first.shape[-1] - 1 + tapword_ear.HOP // STEP,
        "EAR_BANDS": bands,
        "EAR_BLOCKS": len(blocks),
        "EAR_FLAT": len(band_blocks),
        "EAR_FLAT_INPUTS": flat * band_blocks[-1].outputs,
        "EAR_STATE": sum(block.state for block in blocks),
        "EAR_WAITING": sum(block.waiting for block in blocks),
        # The first layer's input lies there, too.
        "EAR_STEP": max(
            bands * first[0].size,
            *(max(b.bands * b.inputs, b.bands_after * b.outputs) for b in blocks),
        ),
        "EAR_WIDE": max(block.bands * block.wide for block in blocks),
        "EAR_FILTERED": max(block.bands_after * block.wide for block in blocks),
        "EAR_ROW": max(len(layer.bias) for layer in halves),
        "EAR_SUMS": max(block.wide for block in blocks),
    }


def in_bytes(ear: TapwordEar, layers: Mapping[str, Layer]) -> tuple[np.ndarray, bytes]:
    """Write all layers but the first in 8 bits.

    Returns
    -------
    tuple
        For each layer with float input, a factor and an addend that quantise it; for each output
        of every layer, a factor and an addend for its sum: float16. And the weights: a row for each
        output of a layer that mixes channels, one for each input of a filter.
    """
    names = list(layers)[1:]
    heard = ranges(ear)
    factors: list[np.ndarray] = []
    content = b""
    for name in names:
        if not name.endswith(("look", "narrow")):
            # The scale of the bytes is the factor that the layer multiplies its input by.
            step, zero = heard[name]
            heard[name] = 1 / float(np.float16(1 / step)), zero
    for name, behind in zip(names, [*names[1:], ""], strict=True):
        layer, looks = layers[name], name.endswith("look")
        (step, zero), (out, out_zero) = heard[name], (1.0, 0)
        if name.endswith(("widen", "look")):
            out, out_zero = heard[behind]
        if not name.endswith(("look", "narrow")):
            factors.append(np.array([1 / step, zero]))
        largest = np.maximum(np.abs(layer.rows).max(axis=0), 1e-6)
        factor = _raised(largest / 127 * step / out)
        weights = np.rint(layer.rows / (factor * out / step)).astype(np.int8)
        addend = layer.bias / out + out_zero
        if not looks:
            # These sums are of bytes as they are; a filter subtracts their zero, -128, itself.
            addend = addend - factor * zero * weights.sum(axis=0, dtype=np.int64)
        factors.append(np.stack([factor, addend], axis=1).ravel())
        content += (weights if looks else weights.T).tobytes()
    return np.concatenate(factors).astype(np.float16), content


def _raised(numbers: np.ndarray) -> np.ndarray:
    """Round up to float16."""
    nearest = numbers.astype(np.float16)
    return np.where(nearest < numbers, np.nextafter(nearest, np.float16(np.inf)), nearest).astype(
        np.float64
    )


def ranges(ear: TapwordEar) -> dict[str, tuple[float, int]]:
    """Scale and zero of the input of each layer.

    A byte b stands for (b - zero) * scale. The range covers the layer's input on demo clips at
    several levels and in noise.
    """
    network, state = ear.network, ear.network.initial_state(1)
    low: dict[str, float] = {}
    high: dict[str, float] = {}

    def observe(name: str, x: np.ndarray) -> None:
        low[name] = min(low.get(name, 0.0), float(x.min()))
        high[name] = max(high.get(name, 0.0), float(x.max()))

    for clip in in_rooms(demo_clips()):
        missing = -len(clip) % tapword_ear.HOP + tapword_ear.LATENCY_FRAMES * tapword_ear.HOP
        before = tapword_ear.OVERLAP + ear.silence_before * tapword_ear.HOP
        mel = tapword_ear.mel_features(np.pad(clip, (before, missing))[None])
        network(mel, state, observe)
    scales = {name: max((high[name] - low[name]) / 255, 1e-12) for name in low}
    return {name: (scale, round(-128 - low[name] / scale)) for name, scale in scales.items()}


def _names(kind: str, blocks: Sequence[Block]) -> list[str]:
    parts = ("widen", "look", "narrow")
    return [f"{kind}.{index}.{part}" for index in range(len(blocks)) for part in parts]


def _blocks(
    arrays: Mapping[str, np.ndarray], kind: str, described: Sequence[tuple], bands: int
) -> list[Block]:
    """Blocks of one kind, as `tapword_ear` describes them; the first has this many bands."""
    blocks = []
    for index, ((band_step, time_step), ahead) in enumerate(described):
        wide, inputs = arrays[f"{kind}.{index}.widen.weight"].shape[:2]
        taps, steps = arrays[f"{kind}.{index}.look.weight"].shape[2:]
        outputs = len(arrays[f"{kind}.{index}.narrow.bias"])
        adds = inputs == outputs and (band_step, time_step) == (1, 1)
        shape = inputs, wide, outputs, bands, taps, steps, band_step, time_step
        blocks.append(Block(*shape, adds, ahead if adds else 0))
        bands = blocks[-1].bands_after
    return blocks
