"""Base class of poolings: the frames of a clip in, one vector out, no state."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tapword.errors import InputError
from tapword.registry import Part

# Largest number of frames in an argument: over 15 minutes at the backbones' highest frame rate.
MAX_FRAMES = 100_000


class Pooling(Part, ABC):
    """Turn the frames of a clip into one vector; a subclass defines `_reduce`.

    Attributes
    ----------
    needs_length
        Whether the vector's length depends on the number of frames.
    revision
        Increased when the same arguments give other vectors, so that cached ones are not used.
    on_device
        Whether `reduce_tensor` is available.
    """

    needs_length = False
    revision = 0
    on_device = False

    def pool(self, frames: np.ndarray) -> np.ndarray:
        """Pool one clip, (t, d) -> (D,) float32, or clips of one length, (b, t, d) -> (b, D)."""
        return self._checked(frames, self._reduce)

    def pool_for_learning(self, frames: np.ndarray) -> np.ndarray:
        """Pool clips to learn from: as `pool`, unless the pooling draws at random."""
        return self._checked(frames, self._reduce_for_learning)

    def _checked(
        self, frames: np.ndarray, reduce: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        frames = np.asarray(frames)
        if frames.ndim not in (2, 3) or 0 in frames.shape:
            wanted = f"{self.name} needs frames of shape (t, d) or (b, t, d), all at least 1"
            raise InputError(f"{wanted}; got shape {frames.shape}")
        frames = frames.astype(np.float32, copy=False)
        # A sum is NaN or infinite if a number is; a huge sum may also overflow, so look again.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(frames.sum())
        if suspicious and not np.isfinite(frames).all():
            raise InputError(f"{self.name}: frames contain NaN or infinite numbers")
        return reduce(frames) if frames.ndim == 3 else reduce(frames[None])[0]

    def dim(self, d: int) -> int:
        """Length D of the vector for frames of `d` numbers.

        A pooling whose arguments set it computes it by arithmetic, without allocating memory.
        """
        return self._reduce(np.zeros((1, 1, d), dtype=np.float32)).shape[1]

    def groups(self, d: int) -> list[int]:
        """Lengths of the parts of the vector that are whitened separately; here all in one."""
        return [self.dim(d)]

    def per_block(self, n: int) -> "Sequence[Pooling]":
        """Pooling for each of a backbone's `n` blocks: this one, unless it combines several."""
        return [self] * n

    def with_length(self, n_frames: int) -> Self:
        """Return this pooling for clips of `n_frames`; a new one only if it `needs_length`."""
        return self._filled("n_frames", n_frames)

    def with_frame_rate(self, frame_rate: int) -> Self:
        """Return this pooling for clips of any length, with this many frames per second.

        A new one only if it picks frames by their position.
        """
        return self._filled("frame_rate", frame_rate)

    def _filled(self, key: str, value: int) -> Self:
        """Return this pooling with `value` for an argument that it has and that is None."""
        return self if getattr(self, key, value) is not None else replace(self, **{key: value})

    def reduce_tensor(self, frames: Any) -> Any:
        """Pool torch frames (b, t, d) float32 on their device, if `on_device`.

        Copying frames from a GPU takes longer than pooling them there.
        """
        raise InputError(f"{self.name} does not support frames on a GPU")

    @abstractmethod
    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        """(b, t, d) float32, all finite -> (b, D) float32."""

    def _reduce_for_learning(self, frames: np.ndarray) -> np.ndarray:
        return self._reduce(frames)


class FixedLength(Pooling):
    """A pooling whose vector grows with the clip, unless `n_frames` is given.

    A subclass has an argument `n_frames`; None means each clip's own number of frames.
    """

    needs_length = True
    if TYPE_CHECKING:
        n_frames: int | None

    def __post_init__(self) -> None:
        self._require_whole("n_frames", 1, MAX_FRAMES, none=True)

    def dim(self, d: int) -> int:
        """Length D of the vector, if `n_frames` is given."""
        if self.n_frames is None:
            raise InputError(
                f"{self.name}: the vector's length depends on the number of frames; "
                f"give it, as in {self.name}:n_frames=49"
            )
        return self._kept(self.n_frames) * d

    def _kept(self, n_frames: int) -> int:
        """Return how many of `n_frames` frames are kept."""
        return n_frames
