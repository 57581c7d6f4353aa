"""Augmented copies in C: what `audio.augment` does to a clip, as tables."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import soxr

from tapword.audio.augment import LENGTHS, LOUDEST, N_COPIES, NOISE_DB, NOISE_SEED
from tapword.audio.files import SAMPLE_RATE
from tapword.export.c.tables import Tables

# Beyond its last number of this size a kernel is 0: float32's rounding.
SMALLEST = 1e-7
# Where the normal distribution's tail begins in numpy's ziggurat of 256 strips for float32.
TAIL_START = 3.6541528853610087963519472518


def add_copies(tables: Tables) -> dict[str, Any]:
    """Add what copies are made with; give what the C code is told by #define."""
    kernels = [_kernel(length) for length in LENGTHS]
    starts = np.cumsum([0, *(len(kernel) for _, kernel in kernels)])
    speeds = [
        (ratio.numerator, ratio.denominator, len(kernel) // ratio.numerator, start)
        for (ratio, kernel), start in zip(kernels, starts, strict=False)
    ]
    tables.add("tapword_speeds", speeds, np.uint16)
    tables.add("tapword_kernels", np.concatenate([kernel for _, kernel in kernels]))
    inner, widest, heights = _ziggurat()
    tables.add("tapword_inner", inner, np.uint32)
    tables.add("tapword_widest", widest)
    tables.add("tapword_heights", heights)
    seed = np.random.default_rng(NOISE_SEED).bit_generator.state["state"]
    return {
        "COPIES": N_COPIES,
        "LOUDEST": LOUDEST,
        "NOISE_SHARE": 10 ** (NOISE_DB / 20),
        "TAIL_START": TAIL_START,
        **_halves("SEED", seed["state"]),
        **_halves("SEED_STEP", seed["inc"]),
    }


def _kernel(length: float) -> tuple[Fraction, np.ndarray]:
    """Kernel by which soxr makes a clip `length` times as long, from its middle on.

    It is what comes of a single sample, wherever that lies; there are as many numbers a sample as
    the length's fraction has parts above.
    """
    ratio = Fraction(length).limit_denominator(100)
    up, down = ratio.numerator, ratio.denominator
    n = 400 * down
    found = np.zeros(n * up)
    for place in range(n // 2, n // 2 + down):
        clip = np.zeros(n, dtype=np.float32)
        clip[place] = 1.0
        heard = soxr.resample(clip, SAMPLE_RATE, SAMPLE_RATE * length)
        np.add.at(found, np.abs(np.arange(len(heard)) * down - place * up), heard)
    found[1:] /= 2  # both sides, which are alike
    reach = np.flatnonzero(np.abs(found) > SMALLEST)[-1] // up + 1
    return ratio, found[: reach * up]


def _ziggurat() -> tuple[list[int], list[float], list[float]]:
    """Give strips of equal area under the normal density, as numpy has them.

    Marsaglia and Tsang (2000). Of each, the number of 23 bits below which all lies inside, the
    width of a unit of it, and the density at its edge.
    """

    def density(x: float) -> float:
        return math.exp(-0.5 * x * x)

    edge = TAIL_START
    area = edge * density(edge) + math.sqrt(math.pi / 2) * math.erfc(edge / math.sqrt(2))
    edges = [edge]
    for _ in range(254):
        edges.append(math.sqrt(-2 * math.log(area / edges[-1] + density(edges[-1]))))
    # The lowest strip with the tail is as wide as would give its area; the highest is the last.
    edges = [area / density(edge), *edges[:0:-1], edge]
    units = 2**23
    inner = [int(edge / edges[0] * units), 0]
    inner += [int(edges[i - 1] / edges[i] * units) for i in range(2, 256)]
    heights = [1.0, *map(density, edges[1:])]
    return inner, [width / units for width in edges], heights


def _halves(name: str, number: int) -> dict[str, str]:
    """Give a number of 128 bits in two of 64."""
    parts = {"HIGH": number >> 64, "LOW": number % 2**64}
    return {f"{name}_{half}": f"{part:#x}u" for half, part in parts.items()}
