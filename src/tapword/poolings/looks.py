"""LOOKS: mean, deviation and a few looks at a word, each by place and by what stands out there."""

import dataclasses
from typing import Self

import numpy as np

from tapword.audio.align import MARGIN_S
from tapword.errors import InputError
from tapword.poolings.base import MOST_FRAMES, Pooling

# Of a clip of a second, the share around its middle that is a word: what the ear was asked for in
# training. A longer clip is a phrase with a margin on either side.
WORD = 0.65
# So that a feature that hardly varies does not count by how little.
SMALLEST = 1e-4
MOST_LOOKS = 64


class Looks(Pooling):
    """Mean, deviation and looks: frames (t, d + k), of which k say where to look -> ((2 + k) * d,).

    Parameters
    ----------
    places
        Where each look is centred, as a share of the word's length.
    reaches
        How far around that it looks, as a share of the word's length.
    second
        Frames of one second; None takes all of a clip for the word.

    Notes
    -----
    The last k numbers of a frame, one for each place, say how much each look is drawn to it. A look
    is the mean of the frames weighed by exp(draw - ((share - place) / reach) ** 2 / 2), where share
    is where the frame lies in the word. Mean and deviation are over the word, a frame that it
    covers in part counting in part; the looks see the whole clip.
    The defaults are what the network `tapword_ear` learned, from words of a second. In a longer
    clip the looks lie evenly, and nothing draws them (docs/phrases.md has why).

    Examples
    --------
    >>> frames = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> Looks(places=(0.0,), reaches=(0.1,)).pool(frames).round(3)
    array([2., 1., 1.], dtype=float32)
    """

    # Since this one, looks at a phrase lie evenly.
    revision = 1

    places: tuple[float, ...] = (-0.02, -0.03, 0.28, 0.63, 0.83)
    reaches: tuple[float, ...] = (0.21, 0.29, 0.23, 0.17, 0.23)
    second: int | None = None

    def __post_init__(self) -> None:
        fits = 0 < len(self.places) <= MOST_LOOKS and all(map(np.isfinite, self.places))
        self._require("places", fits, f"1 to {MOST_LOOKS} numbers")
        fits = len(self.reaches) == len(self.places) and all(0 < one < 1e3 for one in self.reaches)
        self._require("reaches", fits, "as many numbers above 0 as there are places")
        self._require_whole("second", 1, MOST_FRAMES, none=True)

    def stretched(self, second: int) -> Self:
        """Return this pooling for clips of any length, of which a second has so many frames."""
        return dataclasses.replace(self, second=second) if self.second is None else self

    def dim(self, d: int) -> int:
        """Length of the vector: (2 + k) * (d - k)."""
        k = len(self.places)
        if d <= k:
            raise InputError(f"{self.name}: frames have {d} numbers; {k} looks need more")
        return (2 + k) * (d - k)

    def groups(self, d: int) -> list[int]:
        """Mean and deviation are of one kind, looks of another."""
        d -= len(self.places)
        return [2 * d, len(self.places) * d]

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        b, t, d = frames.shape
        dim, k = self.dim(d), len(self.places)
        frames, draw = frames[..., :-k], frames[..., -k:]
        half = self._word(t) / 2
        first, last = t / 2 - half, t / 2 + half
        at = np.arange(t)
        inside = np.clip(np.minimum(last, at + 1) - np.maximum(first, at), 0, 1)
        inside = (inside / inside.sum()).astype(np.float32)
        # Deviations from the first frame are exactly 0 where nothing varies.
        z = frames - frames[:, :1]
        mean = inside @ z
        deviation = np.sqrt(inside @ np.square(z - mean[:, None]) + np.float32(SMALLEST))
        mean += frames[:, 0]
        share = (at + 0.5 - first) / (last - first)
        places, reaches = np.array(self.places), np.array(self.reaches)
        if self._is_long(t):
            places, reaches = evenly(k)
            draw = np.zeros_like(draw)
        far = (share[:, None] - places) / reaches
        weights = draw - np.square(far).astype(np.float32) / 2
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        looks = weights.transpose(0, 2, 1) @ frames
        return np.concatenate([mean[:, None], deviation[:, None], looks], axis=1).reshape(b, dim)

    def _word(self, t: int) -> float:
        """Frames of the word in a clip of `t` frames."""
        if self.second is None:
            return t
        if self._is_long(t):
            return t - 2 * MARGIN_S * self.second
        return min(t, WORD * self.second)

    def _is_long(self, t: int) -> bool:
        return self.second is not None and t > self.second


def evenly(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and reaches of k looks that share a phrase among them.

    Examples
    --------
    >>> evenly(2)
    (array([0.25, 0.75]), array([0.25, 0.25]))
    """
    return (np.arange(k) + 0.5) / k, np.full(k, 0.5 / k)
