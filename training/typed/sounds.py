# ruff: noqa: RUF001 (phonetic signs look like letters)
"""From phonemes to the ear's frames: what the network is given, and the network."""

import collections
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from speller import MARKS, NONE, VOWELS

# The sources that it learns from, which differ by microphones, rooms and ways of speaking.
SOURCES = ("real", "flite", "kokoro")
STOPS, HISSES = frozenset("pbtdkɡqcɟʔɾ"), frozenset("szʃʒfvθðxçh")
FRAMES, FRAME_S, FEATURES = 25, 0.04, 101
# Frames on either side that the network sees, and half the time over which sounds are blended.
AROUND, BLEND_S = 6, 0.03
N_SOUNDS, EMBEDDED, HIDDEN = 70, 40, 192
N_OTHER = 12 + len(SOURCES)
# Times of the given frames, within the second of a clip.
TIMES = (np.arange(-AROUND, FRAMES + AROUND) + 0.5) * FRAME_S


class Sound(NamedTuple):
    """A sound of a word: its sign, whether it is long, whether it has a stress."""

    sign: str
    long: bool
    stressed: bool


def sounds_of(phonemes: str) -> list[Sound]:
    """Split phonemes in IPA."""
    found: list[Sound] = []
    stressed = False
    for sign in phonemes:
        if sign in "ˈˌ":
            stressed = True
        elif sign == "ː" and found:
            found[-1] = found[-1]._replace(long=True)
        elif sign not in MARKS + NONE:
            found.append(Sound(sign, False, stressed and sign in VOWELS))
            stressed = stressed and sign not in VOWELS
    return found


def seconds_of(sounds: Sequence[Sound]) -> np.ndarray:
    """Estimate how long each sound (n,) lasts in a word that stands alone, by ear and by eye."""
    lengths = []
    for sound in sounds:
        if sound.sign in VOWELS:
            length = 0.075 + 0.04 * sound.stressed + 0.04 * sound.long
        else:
            length = 0.06 if sound.sign in STOPS else 0.085 if sound.sign in HISSES else 0.065
        lengths.append(length)
    result = np.array(lengths)
    result[-2:] *= 1.35
    return result


class Inputs:
    """What the network is given for a word: which sound is said when.

    Parameters
    ----------
    phonemes
        Of all words of the list, whose most frequent signs get a code.
    """

    def __init__(self, phonemes: Sequence[str]):
        counts = collections.Counter(sound.sign for word in phonemes for sound in sounds_of(word))
        # 0 and 1: before and after the word; 2: a rare sign.
        self.codes = {sign: 3 + k for k, (sign, _) in enumerate(counts.most_common(N_SOUNDS))}

    @cached_property
    def width(self) -> int:
        """Numbers for each frame."""
        return 3 + len(self.codes) + N_OTHER

    def of(self, phonemes: str, span: Sequence[float], source: Sequence[float]) -> np.ndarray:
        """Frames (37, width) of a word that is said within a span of seconds, by a source (3,)."""
        sounds, (start, end) = sounds_of(phonemes), span
        n, lengths = len(sounds), seconds_of(sounds)
        lengths *= (end - start) / lengths.sum()
        edges = start + np.concatenate([[0], np.cumsum(lengths)])
        first, last = np.concatenate([[-9], edges]), np.concatenate([edges, [9]])
        share = np.minimum(last, TIMES[:, None] + BLEND_S) - np.maximum(
            first, TIMES[:, None] - BLEND_S
        )
        share = np.clip(share, 0, None) / (2 * BLEND_S)
        which = np.zeros((n + 2, 3 + len(self.codes)))
        codes = [0, *(self.codes.get(sound.sign, 2) for sound in sounds), 1]
        which[np.arange(n + 2), codes] = 1
        stressed, long = (
            [0, *(getattr(one, k) for one in sounds), 0] for k in ("stressed", "long")
        )
        padded = np.array([0.5, *lengths, 0.5])
        at = np.clip(np.searchsorted(edges, TIMES), 0, n + 1)
        inside = (at > 0) & (at <= n)
        others = [
            share @ np.array(stressed),
            share @ np.array(long),
            share @ (5 * padded),
            np.where(inside, (TIMES - np.concatenate([[0], edges])[at]) / padded[at], 0),
            inside,
            np.clip(TIMES - start, -0.3, 0.8),
            np.clip(end - TIMES, -0.3, 0.8),
            np.full(len(TIMES), end - start),
            TIMES - 0.5,
            np.ones(len(TIMES)),
            np.full(len(TIMES), n / 10),
            np.full(len(TIMES), 5 * lengths.mean()),
            *(np.full(len(TIMES), one) for one in source),
        ]
        return np.hstack([share @ which, np.array(others).T]).astype(np.float32)


class Mouth(torch.nn.Module):
    """Two layers over time: given frames (b, 37, width) -> the ear's frames (b, 25, 101)."""

    def __init__(self, width: int):
        super().__init__()
        self.embed = torch.nn.Linear(width, EMBEDDED)
        self.around = torch.nn.Conv1d(EMBEDDED, HIDDEN, 2 * AROUND + 1)
        self.hidden = torch.nn.Linear(HIDDEN, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, FEATURES)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Compute the ear's frames, standardised."""
        h = self.around(self.embed(given).transpose(1, 2)).transpose(1, 2)
        h = torch.nn.functional.gelu(h)
        frames: torch.Tensor = self.out(h + torch.nn.functional.gelu(self.hidden(h)))
        return frames
