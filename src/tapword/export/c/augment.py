"""Tables for augmented copies in C, as `audio.augment` makes them."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import soxr

from tapword.audio.augment import LENGTHS, LOUDEST, N_COPIES, NOISE_DB, NOISE_SEED
from tapword.audio.files import SAMPLE_RATE
from tapword.export.c.tables import Tables

# A kernel ends after its last number of this size: float32's rounding.
SMALLEST = 1e-7
# Start of the normal distribution's tail in numpy's ziggurat of 256 strips for float32.
TAIL_START = 3.6541528853610087963519472518


def add_augment(tables: Tables, halves: bool = False) -> dict[str, Any]:
    """Add the tables of augmented copies, kernels in 16 bits if `halves`; return their macros."""
    speeds, kernels, start = [], [], 0
    for length in LENGTHS:
        ratio = Fraction(length).limit_denominator(100)
        kernel, edge = _kernel(length, ratio)
        up, down = ratio.numerator, ratio.denominator
        speeds.append((up, down, len(kernel) // up, len(edge), start))
        kernels += [kernel, edge.reshape(-1)]
        start += kernel.size + edge.size
    tables.add("tapword_speeds", speeds, np.uint16)
    made = np.concatenate(kernels)
    if halves:
        tables.add("tapword_kernels", made.astype(np.float16).view(np.uint16), np.uint16)
    else:
        tables.add("tapword_kernels", made)
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


def _kernel(length: float, ratio: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Kernel by which soxr makes a clip `length` times as long, which is `ratio`.

    Returns
    -------
    tuple of np.ndarray
        The kernel from its middle on, (half_width * ratio.numerator,): the response to a single
        sample. And the first samples of the response to each of the clip's first samples,
        (n, half_width), where soxr does not have enough samples for the kernel yet.
    """
    up, down = ratio.numerator, ratio.denominator
    n = 400 * down
    found = np.zeros(n * up)
    for place in range(n // 2, n // 2 + down):
        response = _response(n, place, length)
        np.add.at(found, np.abs(np.arange(len(response)) * down - place * up), response)
    found[1:] /= 2  # both sides, which are the same
    half_width = int(np.flatnonzero(np.abs(found) > SMALLEST)[-1] // up + 1)
    first = np.stack(
        [_response(n, place, length)[:half_width] for place in range(half_width)], axis=1
    )
    distance = np.abs(np.subtract.outer(np.arange(half_width) * down, np.arange(half_width) * up))
    other = np.abs(first - found[distance]).max(axis=1) > 10 * SMALLEST
    # The beginning of a slower copy is outside of the clip.
    edge = first[: np.flatnonzero(other)[-1] + 1] if length < 1 and other.any() else first[:0]
    return found[: half_width * up], edge


def _response(n: int, place: int, length: float) -> np.ndarray:
    """Resample n samples of which one is 1."""
    clip = np.zeros(n, dtype=np.float32)
    clip[place] = 1.0
    return soxr.resample(clip, SAMPLE_RATE, SAMPLE_RATE * length)


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
