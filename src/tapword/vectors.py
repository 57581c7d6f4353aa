"""Backbone and pooling together: clips -> vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword import audio
from tapword.backbones.base import Backbone
from tapword.copies import COPIES, copies
from tapword.errors import InputError
from tapword.poolings.base import Pooling

# Shorter clips are filled with silence, so that a word's vector does not hang on the trimming.
CLIP_S = 1.0
COPIED_AT_ONCE = 16


class Hearing(NamedTuple):
    """How clips are heard.

    Attributes
    ----------
    align
        Centred on their speech, for one second; otherwise as they are.
    copies
        Those that are learned from, together with copies of them.
    """

    align: bool = False
    copies: bool = False


PLAIN = Hearing()


def block_poolings(pooling: Pooling, backbone: Backbone) -> list[Pooling]:
    """Pooling of each block; those of fixed length take a 1 s clip's number of frames."""
    poolings = list(pooling.each(len(backbone.dims)))
    if all(type(part).fixed is Pooling.fixed for part in poolings):
        return poolings
    second = np.zeros(backbone.sample_rate, dtype=np.float32)
    blocks = zip(poolings, backbone.frames(second), strict=True)
    return [part.fixed(len(block)) for part, block in blocks]


def prepare(clip: np.ndarray, align: bool) -> np.ndarray:
    """Bring a clip (n,) to the length that backbones expect; where asked, centred on its speech."""
    return audio.align(clip, CLIP_S) if align else audio.fill(clip, CLIP_S)


def pool_audio(
    backbone: Backbone,
    poolings: Sequence[Sequence[Pooling]],
    audios: Sequence[np.ndarray],
    learning: bool,
    with_copies: bool = False,
) -> list[np.ndarray]:
    """Pass clips through a backbone once and pool them in several ways.

    Parameters
    ----------
    backbone
        Whose frames.
    poolings
        Each a list with one pooling for each block.
    audios
        Clips (n,) float32.
    learning
        Whether the vectors will be learned from.
    with_copies
        Give the mean of each clip's vector and those of its copies.

    Returns
    -------
    list of np.ndarray
        (n, D) float32 for each of `poolings`.
    """
    if with_copies and len(audios):
        parts = []
        # Frames of all copies of many long clips would take too much memory.
        for start in range(0, len(audios), COPIED_AT_ONCE):
            clips = audios[start : start + COPIED_AT_ONCE]
            every = [sound for clip in clips for sound in (clip, *copies(clip))]
            made = pool_audio(backbone, poolings, every, learning)
            parts.append([X.reshape(len(clips), 1 + COPIES, -1).mean(axis=1) for X in made])
        return [np.concatenate(same) for same in zip(*parts, strict=True)]
    on_device = _pool_on_device(backbone, poolings, audios)
    if on_device is not None:
        return on_device
    frames = backbone.frames_many(audios)
    return [pool_clips(blocks, frames, learning) for blocks in poolings]


def _pool_on_device(
    backbone: Backbone, poolings: Sequence[Sequence[Pooling]], audios: Sequence[np.ndarray]
) -> list[np.ndarray] | None:
    """Pool frames on the GPU they lie on; None where they do not, or a pooling cannot."""
    every = [pooling for blocks in poolings for pooling in blocks]
    if any(type(pooling).reduce_tensor is Pooling.reduce_tensor for pooling in every):
        return None
    order: list[int] = []
    vectors: list[list[np.ndarray]] = [[] for _ in poolings]
    for indices, batch in backbone.batches(audios):
        tensors = backbone.tensors(batch)
        if tensors is None:
            return None
        order.extend(indices)
        for found, blocks in zip(vectors, poolings, strict=True):
            sides = zip(blocks, tensors, strict=True)
            found.append(np.hstack([p.reduce_tensor(t).cpu().numpy() for p, t in sides]))
            if not np.isfinite(found[-1]).all():
                raise InputError(
                    f"{backbone.name}: frames contain NaN or infinite numbers; half precision may "
                    "have overflowed: try half=false"
                )
    if not order:
        return None
    back = np.argsort(order)
    return [np.concatenate(found)[back] for found in vectors]


def pool_clips(
    poolings: Sequence[Pooling], clips: Sequence[Sequence[np.ndarray]], learning: bool
) -> np.ndarray:
    """Pool the blocks of clips, blocks side by side; clips of one length share a call.

    Parameters
    ----------
    poolings
        One for each block.
    clips
        Blocks (t_i, d_i) of each clip, as `frames_many` gives them.
    learning
        Whether the vectors will be learned from.

    Returns
    -------
    np.ndarray
        Shape (n, D), float32.
    """
    by_length: dict[int, list[int]] = {}
    for index, blocks in enumerate(clips):
        by_length.setdefault(len(blocks[0]), []).append(index)
    result: np.ndarray | None = None
    for rows in by_length.values():
        vectors = np.hstack(
            [
                pooling.pool(np.stack([clips[row][block] for row in rows]), learning=learning)
                for block, pooling in enumerate(poolings)
            ]
        )
        if result is None:
            result = np.empty((len(clips), vectors.shape[1]), dtype=np.float32)
        result[rows] = vectors
    return np.empty((0, 0), dtype=np.float32) if result is None else result
