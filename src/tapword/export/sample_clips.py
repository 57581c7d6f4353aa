"""Sounds by which the ranges of 8-bit numbers are set."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tapword.assets import CLIPS
from tapword.audio import files

# Of the shipped clips, every so many.
EVERY = 21
# Ranges set by clean clips alone cut off what louder voices and noisy rooms reach: on recordings
# of people, scores then differ about three times as much.
LEVELS, NOISES = (0.1, 0.3, 1.0, 3.0), (0.0, 0.003, 0.02, 0.1)


def demo_clips() -> list[np.ndarray]:
    """Read some of the shipped clips, each (n,)."""
    return [files.read(path) for path in sorted(CLIPS.glob("*/*.ogg"))[::EVERY]]


def in_rooms(clips: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Clips, each at a level and in white noise of another pair of the two."""
    rng = np.random.default_rng(0)
    rooms = itertools.cycle(itertools.product(NOISES, LEVELS))
    for clip, (noise, level) in zip(clips, rooms, strict=False):
        noisy = level * clip + noise * rng.standard_normal(len(clip))
        yield np.clip(noisy, -1, 1).astype(np.float32)
