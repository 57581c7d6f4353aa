"""ATTENTIVE: attentive statistics pooling, by position in a word and by learned attention."""

from typing import ClassVar

import numpy as np

from tapword.audio.align import MARGIN_S
from tapword.errors import InputError
from tapword.poolings.base import MAX_FRAMES, Pooling

# Share of a 1 s clip, around its middle, that is the word: as in the training of `tapword_ear`. A
# longer clip is a phrase with a margin on either side.
WORD = 0.65
# Added to variances, so that a feature that hardly varies does not count by how little.
VARIANCE_FLOOR = 1e-4
MAX_HEADS = 64


class Attentive(Pooling):
    """Mean, deviation and k attention heads: frames (t, d + k) give a vector ((2 + k) * d,).

    Parameters
    ----------
    centers
        Position of each head's centre, as a share of the word's length.
    widths
        Standard deviation of each head around its centre, as a share of the word's length.
    frame_rate
        Frames in one second. None: the whole clip is the word.

    Notes
    -----
    The last k numbers of a frame are attention logits, one for each head. A head is the mean of all
    frames with the weights softmax(logit - ((position - center) / width) ** 2 / 2), where position
    is a frame's place in the word. Mean and deviation are over the word alone; a frame that is
    partly in the word counts in part.
    The defaults are what `tapword_ear` learned from words of a second. In a longer clip the heads
    are spread evenly and logits are ignored (docs/phrases.md says why).

    References
    ----------
    Okabe, Koshinaka and Shinoda, "Attentive Statistics Pooling for Deep Speaker Embedding",
    Interspeech 2018.

    Examples
    --------
    >>> frames = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> Attentive(centers=(0.0,), widths=(0.1,)).pool(frames).round(3)
    array([2., 1., 1.], dtype=float32)
    """

    # Since revision 1, heads are spread evenly over a phrase.
    revision = 1
    former_name = "looks"
    former_arguments: ClassVar = {
        "centers": "places",
        "widths": "reaches",
        "frame_rate": "second",
    }

    centers: tuple[float, ...] = (-0.02, -0.03, 0.28, 0.63, 0.83)
    widths: tuple[float, ...] = (0.21, 0.29, 0.23, 0.17, 0.23)
    frame_rate: int | None = None

    def __post_init__(self) -> None:
        fits = 0 < len(self.centers) <= MAX_HEADS and all(map(np.isfinite, self.centers))
        self._require("centers", fits, f"1 to {MAX_HEADS} numbers")
        fits = len(self.widths) == len(self.centers) and all(0 < one < 1e3 for one in self.widths)
        self._require("widths", fits, "as many numbers above 0 as there are centers")
        self._require_whole("frame_rate", 1, MAX_FRAMES, none=True)

    def dim(self, d: int) -> int:
        """Length of the vector: (2 + k) * (d - k)."""
        k = len(self.centers)
        if d <= k:
            raise InputError(f"{self.name}: frames have {d} numbers; {k} heads need more")
        return (2 + k) * (d - k)

    def groups(self, d: int) -> list[int]:
        """Mean and deviation are of one kind, heads of another."""
        d -= len(self.centers)
        return [2 * d, len(self.centers) * d]

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, d = frames.shape
        dim, k = self.dim(d), len(self.centers)
        frames, logits = frames[..., :-k], frames[..., -k:]
        half = self._word(t) / 2
        first, last = t / 2 - half, t / 2 + half
        at = np.arange(t)
        inside = np.clip(np.minimum(last, at + 1) - np.maximum(first, at), 0, 1)
        inside = (inside / inside.sum()).astype(np.float32)
        # Deviations from the first frame are exactly 0 where nothing varies.
        z = frames - frames[:, :1]
        mean = inside @ z
        deviation = np.sqrt(inside @ np.square(z - mean[:, None]) + np.float32(VARIANCE_FLOOR))
        mean += frames[:, 0]
        position = (at + 0.5 - first) / (last - first)
        centers, widths = np.array(self.centers), np.array(self.widths)
        if self._is_long(t):
            centers, widths = evenly(k)
            logits = np.zeros_like(logits)
        z_position = (position[:, None] - centers) / widths
        weights = logits - np.square(z_position).astype(np.float32) / 2
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        heads = weights.transpose(0, 2, 1) @ frames
        return np.concatenate([mean[:, None], deviation[:, None], heads], axis=1).reshape(b, dim)

    def _word(self, t: int) -> float:
        """Frames of the word in a clip of `t` frames."""
        if self.frame_rate is None:
            return t
        if self._is_long(t):
            return t - 2 * MARGIN_S * self.frame_rate
        return min(t, WORD * self.frame_rate)

    def _is_long(self, t: int) -> bool:
        return self.frame_rate is not None and t > self.frame_rate


def evenly(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Centers and widths of k heads that divide a phrase among them.

    Examples
    --------
    >>> evenly(2)
    (array([0.25, 0.75]), array([0.25, 0.25]))
    """
    return (np.arange(k) + 0.5) / k, np.full(k, 0.5 / k)
