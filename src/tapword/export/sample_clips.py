"""Sample clips that set the ranges of 8-bit numbers."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tapword.assets import CLIPS
from tapword.audio import files

# Every n-th of the shipped clips.
EVERY = 21
# Clean clips alone would clip louder voices and noise: on recordings of people, the errors of
# scores would be about three times as large.
LEVELS, NOISES = (0.1, 0.3, 1.0, 3.0), (0.0, 0.003, 0.02, 0.1)


def demo_clips() -> list[np.ndarray]:
    """Read some of the shipped clips, each (n,)."""
    return [files.read(path) for path in sorted(CLIPS.glob("*/*.ogg"))[::EVERY]]


def in_rooms(clips: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Clips with a level and white noise each, of all pairs in turn."""
    rng = np.random.default_rng(0)
    rooms = itertools.cycle(itertools.product(NOISES, LEVELS))
    for clip, (noise, level) in zip(clips, rooms, strict=False):
        noisy = level * clip + noise * rng.standard_normal(len(clip))
        yield np.clip(noisy, -1, 1).astype(np.float32)
