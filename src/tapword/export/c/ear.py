"""The network of `tapword_ear` as tables that the C code walks through."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapword.backbones import tapword_ear
from tapword.backbones.logmel import STEP
from tapword.backbones.tapword_ear import TapwordEar
from tapword.export.c.tables import Tables


class Block(NamedTuple):
    """A block of the network, as block.h has it."""

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
        """Bands that go out."""
        return self.bands // self.band_step

    @property
    def state(self) -> int:
        """Numbers that are kept of earlier steps."""
        waiting = self.bands * self.inputs if self.ahead else 0
        return (self.steps - 1) * self.bands * self.wide + waiting


def add_ear(tables: Tables, ear: TapwordEar) -> dict[str, Any]:
    """Add weights and shapes of the ear; give what the C code is told by #define."""
    arrays = ear.network.arrays
    first, bands = arrays["first.weight"], tapword_ear.BANDS // 2
    band_blocks = _blocks(arrays, "bands", tapword_ear.BAND_BLOCKS, bands)
    time_blocks = _blocks(arrays, "time", tapword_ear.TIME_BLOCKS, 1)
    blocks, flat = [*band_blocks, *time_blocks], band_blocks[-1].bands_after
    names = {
        kind: [f"{kind}.{i}.{part}" for i in range(count) for part in ("widen", "look", "narrow")]
        for kind, count in (("bands", len(band_blocks)), ("time", len(time_blocks)))
    }
    layers = [_layer(arrays, name) for name in ("first", *names["bands"])]
    layers.append(_layer(arrays, "flat", flat))
    layers += [_layer(arrays, name) for name in (*names["time"], "out")]
    tables.add_structures("tapword_blocks", "tapword_block", blocks)
    tables.add_layers("tapword_ear_weights", layers)
    return {
        "EAR_HOP": tapword_ear.HOP,
        "EAR_OVERLAP": tapword_ear.OVERLAP,
        "EAR_LATE": tapword_ear.LATE,
        "EAR_SHIFT": f"{tapword_ear.SHIFT}f",
        "EAR_SCALE": f"{tapword_ear.SCALE}f",
        "EAR_TAPS": first.shape[-1],
        "EAR_MELS": first.shape[-1] - 1 + tapword_ear.HOP // STEP,
        "EAR_BANDS": bands,
        "EAR_BLOCKS": len(blocks),
        "EAR_FLAT": len(band_blocks),
        "EAR_FLAT_INPUTS": flat * band_blocks[-1].outputs,
        "EAR_STATE": sum(block.state for block in blocks),
        "EAR_STEP": max(max(b.bands * b.inputs, b.bands_after * b.outputs) for b in blocks),
        "EAR_WIDE": max(block.bands * block.wide for block in blocks),
        "EAR_LOOKED": max(bands * first[0].size, *(b.bands_after * b.wide for b in blocks)),
        "EAR_ROW": max(rows.shape[1] // 2 for rows in layers),
    }


def ear_floats(settings: dict[str, Any]) -> int:
    """Numbers of 4 bytes in the structure of interface.h."""
    names = ("OVERLAP", "HOP", "STATE", "STEP", "STEP", "WIDE", "LOOKED", "ROW")
    own = sum(settings[f"EAR_{name}"] for name in names)
    return 2 * settings["FFT"] + settings["EAR_MELS"] * settings["BANDS"] + own


def _blocks(
    arrays: Mapping[str, np.ndarray], kind: str, described: Sequence[tuple], bands: int
) -> list[Block]:
    """Blocks of one kind, as `tapword_ear` describes them, the first of which has so many bands."""
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


def _layer(arrays: Mapping[str, np.ndarray], name: str, bands: int = 1) -> np.ndarray:
    """Biases, then weights of a layer's outputs for each input: rows of float16, as bytes.

    Inputs of a layer that looks around are steps of bands; those of one that takes all `bands` as
    channels are bands of channels.
    """
    weight, bias = arrays[f"{name}.weight"], arrays[f"{name}.bias"]
    out, channels, high, wide = weight.shape
    # (out, channels, bands, high, wide) -> wide, high, bands, channels, out
    parted = weight.reshape(out, channels // bands, bands, high, wide)
    rows = parted.transpose(4, 3, 2, 1, 0).reshape(-1, out)
    return np.ascontiguousarray(np.concatenate([bias[None], rows]), dtype="<f2").view(np.uint8)
