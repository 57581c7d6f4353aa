"""What every pooling is: the frames of a clip in, one vector out, no state."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tapword.errors import InputError
from tapword.registry import Part

# Frames that a pooling may be asked for: over 15 minutes of the finest backbone's.
MAX_FRAMES = 100_000


class Pooling(Part, ABC):
    """Turns the frames of a clip into one vector; a subclass gives `_reduce`."""

    # Whether the number of frames must be agreed on before the vector's length is known.
    needs_length = False
    # Raised when the same arguments come to give other vectors: kept ones are computed anew.
    revision = 0
    # Whether `reduce_tensor` is written.
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
            wanted = f"{self.name} wants frames of shape (t, d) or (b, t, d), all at least 1"
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

        A pooling whose arguments set it gives it by arithmetic: a model file may name any number.
        """
        return self._reduce(np.zeros((1, 1, d), dtype=np.float32)).shape[1]

    def groups(self, d: int) -> list[int]:
        """Lengths of the vector's parts that are of a kind, each whitened by itself: here all."""
        return [self.dim(d)]

    def each(self, n: int) -> "Sequence[Pooling]":
        """Pooling of each of a backbone's `n` blocks: this one, unless it holds several."""
        return [self] * n

    def fixed(self, n_frames: int) -> Self:
        """Return this pooling for clips of `n_frames`: another one where it `needs_length`."""
        return self

    def stretched(self, second: int) -> Self:
        """Return this pooling for clips of any length, of which a second has `second` frames.

        Another one only where frames are taken by their place.
        """
        return self

    def reduce_tensor(self, frames: Any) -> Any:
        """Pool torch frames (b, t, d) float32 on their device, where `on_device` says so.

        Bringing frames back from a GPU takes longer than pooling them there.
        """
        raise InputError(f"{self.name} is not written for frames on a GPU")

    @abstractmethod
    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        """(b, t, d) float32, all finite -> (b, D) float32."""

    def _reduce_for_learning(self, frames: np.ndarray) -> np.ndarray:
        return self._reduce(frames)


class FixedLength(Pooling):
    """A pooling whose vector grows with the clip, so that the number of frames must be agreed on.

    A subclass takes `n_frames`; None stands for each clip's own number of frames.
    """

    needs_length = True
    if TYPE_CHECKING:
        n_frames: int | None

    def __post_init__(self) -> None:
        self._require_whole("n_frames", 1, MAX_FRAMES, none=True)

    def fixed(self, n_frames: int) -> Self:
        """Return this pooling with `n_frames` filled in where it was left open."""
        open_length = self.n_frames is None
        return dataclasses.replace(self, n_frames=n_frames) if open_length else self

    def dim(self, d: int) -> int:
        """Length D of the vector, where the number of frames is agreed on."""
        if self.n_frames is None:
            raise InputError(
                f"{self.name}: the vector's length depends on the number of frames; "
                f"give it, as in {self.name}:n_frames=49"
            )
        return self._kept(self.n_frames) * d

    def _kept(self, n_frames: int) -> int:
        """How many of so many frames are kept."""
        return n_frames
