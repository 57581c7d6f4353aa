"""The encoder: clips -> vectors, through backbones, poolings and whitening."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapword import registry
from tapword.audio.align import MARGIN_S, align, cut, extent, fill
from tapword.audio.augment import N_COPIES, augmented
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.spotter import whitening as whitening_module
from tapword.spotter.cohort import Cohort
from tapword.spotter.thresholds import LINE, Line
from tapword.spotter.vocabulary import CLIP_S, MAX_S
from tapword.spotter.whitening import Whitening, join
from tapword.support.atomic_files import PathLike
from tapword.support.threads import one_blas_thread

Audio = PathLike | np.ndarray

# Batch size of a backbone everywhere, so vectors are the same everywhere.
CLIPS_AT_ONCE = 32
# Batch size of clips with augmented copies, whose frames are in memory together.
AUGMENTED_AT_ONCE = 16
# Cosine to white noise from which a whitened vector is noise alone. By training/constants.py, 98%
# of words, clean or at 10 dB, stay below 0.45. Of six recordings of noise, 98% of the seconds are
# above 0.94, except a bike (0.75), dishes (0.64) and a cat (0.49). Words in louder noise are in
# between.
NOISE_COSINE = 0.75


class Preparation(NamedTuple):
    """How clips are prepared for a backbone.

    Attributes
    ----------
    align
        Cut each clip around its speech, at least one second; otherwise use the whole clip.
    augment
        Teach each clip as the mean of itself and its augmented copies.
    """

    align: bool = False
    augment: bool = False


PLAIN = Preparation()


@dataclass(frozen=True, eq=False)
class Encoded:
    """Clips as vectors; iterating and indexing return rows as `Encoded`.

    Attributes
    ----------
    vectors
        Shape (n, D), float32: every block of every backbone, side by side.
    seconds
        Shape (n,), float32: length of each prepared clip; 1 if clips are not aligned.

    Examples
    --------
    >>> encoded = Encoded.one_second(np.eye(3, dtype=np.float32))
    >>> len(encoded[1:]), [int(one.vectors.argmax()) for one in encoded]
    (2, [0, 1, 2])
    """

    vectors: np.ndarray
    seconds: np.ndarray

    @classmethod
    def one_second(cls, vectors: np.ndarray) -> "Encoded":
        """Vectors (n, D) of clips that count as one second each."""
        return cls(vectors, np.full(len(vectors), CLIP_S, dtype=np.float32))

    @classmethod
    def concatenate(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """Join the rows of several, at least one."""
        return cls(
            np.concatenate([part.vectors for part in parts]),
            np.concatenate([part.seconds for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: int | slice | Sequence[int] | np.ndarray) -> "Encoded":
        if isinstance(rows, int | np.integer):
            rows = [int(rows)]
        return Encoded(self.vectors[rows], self.seconds[rows])

    def __iter__(self) -> Iterator["Encoded"]:
        return (self[row] for row in range(len(self)))


class Encoder:
    """Backbones side by side, each with its pooling and whitening, if there is one.

    Parameters
    ----------
    backbones, poolings
        Names with arguments or parts; one pooling for each backbone, or one for all.
    preparation
        How clips are prepared.
    whitening
        "shipped", "none" or `Whitening`s, one of them for each backbone.
    """

    def __init__(
        self,
        backbones: Sequence[str | Backbone],
        poolings: Sequence[str | Pooling],
        preparation: Preparation,
        whitening: str | Sequence[Whitening],
    ):
        if not backbones:
            raise InputError("a spotter needs at least one backbone")
        if len(poolings) == 1:
            poolings = list(poolings) * len(backbones)
        if len(poolings) != len(backbones):
            raise InputError(
                f"got {len(poolings)} poolings for {len(backbones)} backbones: give one for all, "
                "or one for each"
            )
        self.backbones: list[Backbone] = [registry.make("backbones", part) for part in backbones]
        self.poolings: list[Pooling] = [registry.make("poolings", part) for part in poolings]
        self.preparation = preparation
        self.whitenings = self._choose(whitening)

    def __repr__(self) -> str:
        steps = [name for name, done in self.preparation._asdict().items() if done]
        steps.append(" | ".join(f"{b.spec} -> {p.spec}" for b, p in self.parts))
        if self.whitenings:
            steps.append("whitening")
        return " -> ".join(steps)

    @property
    def parts(self) -> list[tuple[Backbone, Pooling]]:
        """Each backbone with its pooling."""
        return list(zip(self.backbones, self.poolings, strict=True))

    def prepare(self, clip: np.ndarray, path: PathLike | None = None) -> np.ndarray:
        """Bring a clip (n,) to the length that backbones expect; an error names its `path`."""
        try:
            return prepare(clip, self.preparation.align)
        except InputError as error:
            raise error if path is None else InputError(f"{path}: {error}") from error

    @one_blas_thread
    def encode(self, clips: Sequence[np.ndarray], learning: bool = False) -> Encoded:
        """Encode prepared clips (n,) float32; `learning` augments them."""
        if not len(clips) and not any(pooling.needs_length for pooling in self.poolings):
            return Encoded.one_second(np.zeros((0, self.dim()), dtype=np.float32))
        parts = zip(self.backbones, self._block_poolings, strict=True)
        return self.join(
            [
                encode_each(backbone, [poolings], clips, self.preparation, learning)[0]
                for backbone, poolings in parts
            ]
        )

    def join(self, parts: Sequence[Encoded]) -> Encoded:
        """Put what `encode_each` gave for each backbone side by side, whitened."""
        return Encoded(join([part.vectors for part in parts], self.whitenings), parts[0].seconds)

    @one_blas_thread
    def encode_from(self, first: np.ndarray | None, clip: np.ndarray) -> Encoded:
        """Encode a prepared clip (n,) whose first part of the vector (D_1,) may be known."""
        if first is None:
            return self.encode([clip])
        vectors = [first[None]]
        for index, backbone in enumerate(self.backbones[1:], 1):
            vectors.append(self._pool(index, [backbone.frames(clip)]))
        seconds = len(clip) / SAMPLE_RATE if self.preparation.align else CLIP_S
        return Encoded(np.hstack(vectors), np.array([seconds], dtype=np.float32))

    def encode_first(self, clip: np.ndarray) -> np.ndarray:
        """Return the first backbone's part of the vector (D_1,) of a prepared clip (n,)."""
        return self.pool_first([self.backbones[0].frames(clip)])[0]

    @one_blas_thread
    def pool_first(self, clips: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        """Return the first backbone's part of vectors (n, D_1) from its frames of clips."""
        return self._pool(0, clips)

    def _pool(self, index: int, clips: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        """Return one backbone's part of vectors (n, D_i) from its frames of clips."""
        vectors = pool_clips(self._block_poolings[index], clips, learning=False)
        if not self.whitenings:
            return vectors
        factor = whitening_module.weights(self.whitenings)[index]
        return self.whitenings[index](vectors) * np.float32(factor)

    @one_blas_thread
    def is_noise(self, vectors: np.ndarray) -> np.ndarray:
        """Whether vectors (n, D) are noise alone, (n,) bool; False without whitening.

        Noise may be near a word that was taught from noisy clips. The first backbone's part of the
        vectors is enough.
        """
        if not self.whitenings:
            return np.zeros(len(vectors), dtype=bool)
        first = vectors[:, : len(self.noise)]
        return first @ self.noise >= NOISE_COSINE * np.linalg.norm(first, axis=1)

    @functools.cached_property
    def noise(self) -> np.ndarray:
        """Direction of white noise in the first backbone's whitened vectors, (D_1,)."""
        noise = np.random.default_rng(0).standard_normal(SAMPLE_RATE, dtype=np.float32)
        x = self.encode_first(noise * np.float32(0.05))
        return x / np.linalg.norm(x)

    @property
    def cohort(self) -> Cohort | None:
        """Windows of running speech as vectors; None if the whitenings have none."""
        return _cohort(tuple(self.whitenings))

    @functools.cached_property
    def first_cohort(self) -> Cohort | None:
        """The same windows by the first backbone's part of their vectors."""
        if self.cohort is None:
            return None
        return self.cohort.first(len(self.whitenings[0].mean))

    @property
    def line(self) -> Line:
        """Of the thresholds of scores that are normalised by the cohort."""
        return self.whitenings[0].line if len(self.whitenings) == 1 else LINE

    def dim(self) -> int:
        """Numbers per vector."""
        return sum(sum(group_lengths(*part)) for part in self.parts)

    def stored(self) -> dict[str, Any]:
        """Describe the parts for a model file."""
        return {
            "backbones": [
                registry.store(backbone, skip=backbone.machine_arguments)
                | {"weights_sha256": backbone.weights_sha256}
                for backbone in self.backbones
            ],
            "poolings": [registry.store(pooling) for pooling in self.poolings],
            **self.preparation._asdict(),
            "whitening": [one.sha256 for one in self.whitenings],
        }

    @functools.cached_property
    def _block_poolings(self) -> list[list[Pooling]]:
        """Pooling of each block of each backbone."""
        return [
            block_poolings(pooling, backbone, self.preparation.align)
            for backbone, pooling in self.parts
        ]

    def _choose(self, whitening: str | Sequence[Whitening]) -> list[Whitening]:
        if whitening == "none":
            return []
        if isinstance(whitening, str):
            if whitening != "shipped":
                raise InputError(
                    f"whitening must be shipped, none or Whitenings, got {whitening!r}"
                )
            shipped = [whitening_module.shipped(backbone.name) for backbone in self.backbones]
            whitening = [one for one in shipped if one is not None]
        chosen = []
        for backbone, pooling in self.parts:
            found = whitening_module.choose(whitening, backbone, pooling, self.preparation.align)
            if found is None:
                aligned = " aligned" if self.preparation.align else ""
                raise InputError(
                    f"no whitening for {backbone.spec} -> {pooling.spec}{aligned}; the presets "
                    "have one, and `tapword whitening` makes one for `evaluate` and Python"
                )
            chosen.append(found)
        return chosen


@functools.lru_cache(maxsize=3)
def _cohort(whitenings: tuple[Whitening, ...]) -> Cohort | None:
    """Return the cohort of whitenings, made once for all encoders that share them."""
    if not whitenings:
        return None
    words = whitening_module.join_windows(whitenings, [one.cohort for one in whitenings])
    phrases = whitening_module.join_windows(whitenings, [one.phrases for one in whitenings])
    projection = whitenings[0].projection
    if projection is not None and len(whitenings) > 1:
        raise InputError("a cohort's projection works with one backbone only")
    how = projection, whitenings[0].cohort_weight, whitenings[0].cohort_nearest
    return None if words is None else Cohort(words, phrases, *how)


def prepare(clip: np.ndarray, aligned: bool) -> np.ndarray:
    """Bring a clip (n,) to the length that backbones expect; `aligned`: cut around its speech."""
    if not aligned:
        return fill(clip, CLIP_S)
    start, end = extent(clip)
    seconds = (end - start) / SAMPLE_RATE
    if seconds < CLIP_S or len(clip) <= CLIP_S * SAMPLE_RATE:
        return align(clip, CLIP_S)
    if seconds > MAX_S:
        raise InputError(
            f"{seconds:.2f} s of sound without a pause: a word or phrase lasts at most {MAX_S:g} "
            "s; `tapword listen` finds words in longer recordings"
        )
    return cut(clip, (start + end) // 2, end - start + round(2 * MARGIN_S * SAMPLE_RATE))


def block_poolings(pooling: Pooling, backbone: Backbone, align: bool = False) -> list[Pooling]:
    """Pooling of each block, for clips that are `align`ed or not.

    Those that depend on the number of frames get that of a 1 s clip.
    """
    poolings = list(pooling.per_block(len(backbone.dims)))
    needs_rate = align and any(part.with_frame_rate(1) is not part for part in poolings)
    if not needs_rate and not any(part.needs_length for part in poolings):
        return poolings
    one_second = backbone.frames(np.zeros(backbone.sample_rate, dtype=np.float32))
    counts = [len(block) for block in one_second]
    poolings = [part.with_length(n) for part, n in zip(poolings, counts, strict=True)]
    if align:
        poolings = [part.with_frame_rate(n) for part, n in zip(poolings, counts, strict=True)]
    return poolings


def group_lengths(backbone: Backbone, pooling: Pooling) -> list[int]:
    """Lengths of a vector's groups: at least one for each block of the backbone."""
    poolings = zip(block_poolings(pooling, backbone), backbone.dims, strict=True)
    return [length for part, d in poolings for length in part.groups(d)]


def encode_each(
    backbone: Backbone,
    poolings: Sequence[Sequence[Pooling]],
    clips: Sequence[np.ndarray],
    preparation: Preparation,
    learning: bool,
) -> list[Encoded]:
    """Encode prepared clips (n,) by one backbone and each of several poolings, not whitened.

    Parameters
    ----------
    backbone, clips
        Frames of these clips.
    poolings
        Each a list with one pooling for each block.
    preparation, learning
        Whether `clips` are aligned. To learn from them, they may be augmented: the vector is then
        the mean of those of a clip and of its copies.
    """
    if learning and preparation.augment and len(clips):
        parts = []
        # Frames of all copies of many long clips would take too much memory.
        for start in range(0, len(clips), AUGMENTED_AT_ONCE):
            some = clips[start : start + AUGMENTED_AT_ONCE]
            every = [copy for clip in some for copy in (clip, *augmented(clip))]
            made = pool_audio(backbone, poolings, every, learning)
            parts.append([X.reshape(len(some), 1 + N_COPIES, -1).mean(axis=1) for X in made])
        vectors = [np.concatenate(same) for same in zip(*parts, strict=True)]
    else:
        vectors = pool_audio(backbone, poolings, clips, learning)
    if not preparation.align:
        return [Encoded.one_second(X) for X in vectors]
    seconds = np.array([len(clip) for clip in clips], dtype=np.float32) / SAMPLE_RATE
    return [Encoded(X, seconds) for X in vectors]


def pool_audio(
    backbone: Backbone,
    poolings: Sequence[Sequence[Pooling]],
    clips: Sequence[np.ndarray],
    learning: bool,
) -> list[np.ndarray]:
    """Pass clips through a backbone once, and pool them in several ways: vectors (n, D) of each."""
    on_device = _pool_on_device(backbone, poolings, clips)
    if on_device is not None:
        return on_device
    frames = backbone.frames_many(clips)
    return [pool_clips(blocks, frames, learning) for blocks in poolings]


def _pool_on_device(
    backbone: Backbone, poolings: Sequence[Sequence[Pooling]], clips: Sequence[np.ndarray]
) -> list[np.ndarray] | None:
    """Pool frames on their GPU; None if they are not on one, or a pooling cannot."""
    if not all(pooling.on_device for blocks in poolings for pooling in blocks):
        return None
    order: list[int] = []
    vectors: list[list[np.ndarray]] = [[] for _ in poolings]
    for indices, batch in backbone.batches(clips):
        tensors = backbone.tensors(batch)
        if tensors is None:
            return None
        order.extend(indices)
        for found, blocks in zip(vectors, poolings, strict=True):
            pairs = zip(blocks, tensors, strict=True)
            found.append(np.hstack([p.reduce_tensor(t).cpu().numpy() for p, t in pairs]))
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
    """Pool the blocks (t_i, d_i) of clips, side by side: (n, D) float32.

    There is one pooling for each block; clips of one length share a call.
    """
    by_length: dict[int, list[int]] = {}
    for index, blocks in enumerate(clips):
        by_length.setdefault(len(blocks[0]), []).append(index)
    result: np.ndarray | None = None
    functions = [part.pool_for_learning if learning else part.pool for part in poolings]
    for rows in by_length.values():
        vectors = np.hstack(
            [
                pool(np.stack([clips[row][block] for row in rows]))
                for block, pool in enumerate(functions)
            ]
        )
        if result is None:
            result = np.empty((len(clips), vectors.shape[1]), dtype=np.float32)
        result[rows] = vectors
    return np.empty((0, 0), dtype=np.float32) if result is None else result
