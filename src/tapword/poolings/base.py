"""What every pooling is: the frames of a clip in, one vector out, no state."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tapword.errors import InputError
from tapword.registry import Part


class Pooling(Part, ABC):
    """A subclass gives `dim` and `_reduce`, which sees clips of one length only."""

    def pool(
        self, frames: np.ndarray, lengths: np.ndarray | None = None, learning: bool = False
    ) -> np.ndarray:
        """Pool one clip or a batch.

        Parameters
        ----------
        frames
            Shape (t, d), or (b, t, d) for a batch.
        lengths
            Shape (b,): how many frames of each clip are real; the rest is padding and is never
            looked at. None means all.
        learning
            Whether the vector will be learned from; matters to stochastic pooling alone.

        Returns
        -------
        np.ndarray
            Shape (D,) or (b, D), float32, with D = `dim(d)`.
        """
        frames = np.asarray(frames)
        if frames.ndim not in (2, 3) or 0 in frames.shape:
            raise InputError(
                f"{self.name} wants frames of shape (t, d) or (b, t, d), all at least 1; "
                f"got shape {frames.shape}"
            )
        frames = frames.astype(np.float32, copy=False)
        # One sum tells of NaN and infinity in a single pass; only a huge sum needs a second look.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(frames.sum())
        batch = frames if frames.ndim == 3 else frames[None]
        b, t, d = batch.shape
        if lengths is None:
            if suspicious:
                self._refuse_nan(batch)
            result = self._reduce(batch, learning)
            return result if frames.ndim == 3 else result[0]
        lengths = np.asarray(lengths)
        if lengths.shape != (b,) or lengths.dtype.kind not in "iu":
            raise InputError(f"lengths must be {b} whole numbers, got {lengths!r}")
        if lengths.min() < 1 or lengths.max() > t:
            raise InputError(f"lengths must lie in 1..{t}, got {lengths.min()}..{lengths.max()}")
        result = np.empty((b, self.dim(d)), dtype=np.float32)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            clips = batch[rows, :length]
            if suspicious:
                self._refuse_nan(clips)
            result[rows] = self._reduce(clips, learning)
        return result if frames.ndim == 3 else result[0]

    @abstractmethod
    def dim(self, d: int) -> int:
        """Length D of the vector for frames of `d` numbers."""

    def each(self, n: int) -> "Sequence[Pooling]":
        """Pooling of each of a backbone's `n` blocks: this one, unless a pooling holds several."""
        return [self] * n

    def fixed(self, n_frames: int) -> Self:
        """Return this pooling for clips of `n_frames`; only poolings of fixed length differ."""
        return self

    def reduce_tensor(self, frames: Any) -> Any:
        """Pool torch frames (b, t, d) float32 on their device, or None where that is not written.

        Bringing frames back from a GPU takes longer than pooling them there.
        """
        return None

    @abstractmethod
    def _reduce(self, frames: np.ndarray, learning: bool) -> np.ndarray:
        """(b, t, d) float32, every frame real -> (b, D) float32."""

    def _refuse_nan(self, frames: np.ndarray) -> None:
        if not np.isfinite(frames).all():
            raise InputError(f"{self.name}: frames contain NaN or infinite numbers")

    def _require_whole(self, key: str, minimum: int) -> None:
        """Refuse an argument that is not a whole number of at least `minimum`."""
        value: Any = getattr(self, key)
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise InputError(f"{self.name}: {key} must be a whole number, got {value!r}")
        if value < minimum:
            raise InputError(f"{self.name}: {key} must be at least {minimum}, got {value!r}")


class FixedLength(Pooling):
    """A pooling whose vector grows with the clip, so that the number of frames must be agreed on.

    A subclass takes `n_frames` and stores it; None stands for each clip's own number of frames.
    """

    n_frames: int | None

    def fixed(self, n_frames: int) -> Self:
        """Return this pooling with `n_frames` filled in where it was left open."""
        if self.n_frames is not None:
            return self
        filled = copy.copy(self)
        filled.n_frames = n_frames
        filled._require_whole("n_frames", 1)
        return filled

    def _agreed(self) -> int:
        if self.n_frames is None:
            raise InputError(
                f"{self.name}: the vector's length depends on the number of frames; "
                f"give it, as in {self.name}:n_frames=49"
            )
        return self.n_frames
