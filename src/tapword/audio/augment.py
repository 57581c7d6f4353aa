"""Augmented copies of a clip: faster, slower, and with noise."""

import numpy as np
import soxr

from tapword.audio.align import cut, energies
from tapword.audio.files import SAMPLE_RATE

# Number of copies that `augmented` makes.
N_COPIES = 3
# Length of the first two, relative to the clip.
LENGTHS = 0.88, 1.12
# Level of the noise relative to the loudest quarter of a second, 25 steps of 10 ms.
NOISE_DB, LOUDEST = -10.0, 25
NOISE_SEED = 0


def augmented(clip: np.ndarray) -> list[np.ndarray]:
    """Make augmented copies of a clip (n,) with the same length and the same middle.

    The noise is the same for every clip, so that teaching is deterministic.

    Examples
    --------
    >>> [copy.shape for copy in augmented(np.full(16000, 0.1, dtype=np.float32))]
    [(16000,), (16000,), (16000,)]
    """
    made = []
    for length in LENGTHS:
        other = soxr.resample(clip, SAMPLE_RATE, SAMPLE_RATE * length)
        made.append(cut(other, len(other) // 2, len(clip)))
    power = np.sort(energies(clip))[-LOUDEST:].mean() / (SAMPLE_RATE // 100)
    noise = np.random.default_rng(NOISE_SEED).standard_normal(len(clip), dtype=np.float32)
    made.append(clip + noise * np.float32(np.sqrt(power) * 10 ** (NOISE_DB / 20)))
    return made
