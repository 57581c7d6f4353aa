"""Which sizes a Raspberry Pi can run: multiply-adds, bytes and estimated time."""

import networks
import numpy as np
from timing import alternate

from tapword.errors import InputError
from tapword.spotter.spotter import Spotter

# One core: clock in GHz, float32 multiply-adds per cycle of its vector unit; memory in MB.
BOARDS = {
    "Pi Zero 2 W (Cortex-A53)": (1.0, 4, 512),
    "Pi 4 (Cortex-A72)": (1.5, 4, 2000),
    "Pi 5 (Cortex-A76)": (2.4, 8, 4000),
}
PRODUCT = 512


def machine_rate() -> float:
    """Multiply-adds per second of this machine's matrix product, on one core."""
    a = np.ones((PRODUCT, PRODUCT), dtype=np.float32)
    return PRODUCT**3 / (alternate({"product": lambda: a @ a}, 10)["product"] / 1000)


def count(times: dict[str, float]) -> list[dict]:
    """Figures of each size; `times` are measured milliseconds of a later prediction here."""
    rate, rows = machine_rate(), []
    for size, here_ms in times.items():
        try:
            spotter = Spotter(size=size)
            work = sum(map(networks.multiply_adds, spotter.encoder.backbones))
        except (InputError, ImportError):
            continue
        # Fraction of the peak rate that is reached; assumed to be the same on boards.
        share = work / (here_ms / 1000) / rate
        rows.append(
            {
                "size": size,
                "multiply_adds": work,
                "weight_bytes": sum(map(networks.weight_bytes, spotter.encoder.backbones)),
                "peak_bytes": networks.peak_bytes(size),
                "here_ms": here_ms,
                "share": share,
                "boards_ms": {
                    board: 1000 * work / (share * ghz * 1e9 * each)
                    for board, (ghz, each, _) in BOARDS.items()
                },
            }
        )
    return rows
