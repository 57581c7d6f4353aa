"""What each size computes and keeps: multiply-adds, bytes and peak memory."""

import networks
import numpy as np
from timing import alternate

from tapword.errors import InputError
from tapword.spotter.spotter import Spotter

PRODUCT = 512


def machine_rate() -> float:
    """Multiply-adds per second of this machine's matrix product, on one core."""
    a = np.ones((PRODUCT, PRODUCT), dtype=np.float32)
    return PRODUCT**3 / (alternate({"product": lambda: a @ a}, 10)["product"] / 1000)


def count(times: dict[str, float]) -> list[dict]:
    """Figures of each size; `times` are measured milliseconds of a later prediction here."""
    rows = []
    for size, here_ms in times.items():
        try:
            spotter = Spotter(size=size)
            work = sum(map(networks.multiply_adds, spotter.encoder.backbones))
        except (InputError, ImportError):
            continue
        rows.append(
            {
                "size": size,
                "multiply_adds": work,
                "weight_bytes": sum(map(networks.weight_bytes, spotter.encoder.backbones)),
                "peak_bytes": networks.peak_bytes(size),
                "here_ms": here_ms,
            }
        )
    return rows
