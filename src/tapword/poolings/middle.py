"""MIDDLE: frames around the middle of a clip, or spread over a long one, in order."""

from typing import ClassVar

import numpy as np

from tapword.poolings.base import MAX_FRAMES, Pooling


class Middle(Pooling):
    """The n frames in the middle, one after the other: (t, d) -> (n * d,).

    Parameters
    ----------
    n
        Number of frames.
    frame_rate
        Frames in one second. A longer clip is divided into n equal parts and the middle frame of
        each is taken, so that the same parts of a phrase are compared at any speed. None: never.

    Notes
    -----
    Unlike moments, this depends on the order of frames, so clips must be aligned on their speech.
    If a clip has too few frames, its first and last are repeated.

    Examples
    --------
    >>> frames = np.arange(8.0)[:, None]
    >>> Middle(n=2).pool(frames), Middle(n=2, frame_rate=4).pool(frames)
    (array([3., 4.], dtype=float32), array([2., 6.], dtype=float32))
    """

    former_arguments: ClassVar = {"frame_rate": "second"}

    n: int = 6
    frame_rate: int | None = None

    def __post_init__(self) -> None:
        self._require_whole("n", 1, MAX_FRAMES)
        self._require_whole("frame_rate", 1, MAX_FRAMES, none=True)

    def dim(self, d: int) -> int:
        """Length of the vector: n * d."""
        return self.n * d

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, _ = frames.shape
        if self.frame_rate is not None and t > self.frame_rate:
            window = (2 * np.arange(self.n) + 1) * t // (2 * self.n)
        else:
            start = (t - self.n) // 2
            window = np.clip(np.arange(start, start + self.n), 0, t - 1)
        return frames[:, window].reshape(b, -1)
