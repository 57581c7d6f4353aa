"""Clips cut to one length: filled with silence, or centred on their sound."""

import numpy as np

from tapword.audio.files import SAMPLE_RATE

# Clips are centred on their sound in steps of 10 ms, by what lies within half a second.
HOP, REACH = 160, 50


def fill(audio: np.ndarray, seconds: float) -> np.ndarray:
    """Put silence behind a clip (n,) shorter than `seconds`; longer ones stay as they are."""
    missing = round(seconds * SAMPLE_RATE) - len(audio)
    return np.pad(audio, (0, missing)) if missing > 0 else audio


def align(audio: np.ndarray, seconds: float) -> np.ndarray:
    """Cut out `seconds` of a clip around the middle of its loudest sound.

    Parameters
    ----------
    audio
        Shape (n,). Where the window leaves the clip there is silence.
    seconds
        Length of the window.

    Returns
    -------
    np.ndarray
        Shape (round(seconds * 16000),), float32.

    Examples
    --------
    >>> clip = np.zeros(48_000, dtype=np.float32)
    >>> clip[30_000:32_000] = 0.5
    >>> float(np.flatnonzero(align(clip, 1.0)).mean())
    7959.5
    """
    loudness, offsets = centring(energies(audio))
    middle = int(np.argmax(loudness))
    # The middle is where what lies around stops pulling to the right: walk there.
    if offsets[middle] > 0:
        while offsets[middle] > 0:
            middle += 1
    else:
        while middle and offsets[middle - 1] <= 0:
            middle -= 1
    return cut(audio, middle * HOP, round(seconds * SAMPLE_RATE))


def decibels(power: np.ndarray | float) -> np.ndarray:
    """Levels of mean powers, in dB of full scale; silence is -100."""
    return 10 * np.log10(np.asarray(power) + 1e-10)


def energies(audio: np.ndarray) -> np.ndarray:
    """Energy of each 10 ms: (n,) -> (ceil(n / 160),) float64."""
    padded = np.pad(audio, (0, -len(audio) % HOP)).reshape(-1, HOP)
    return np.einsum("th,th->t", padded, padded, dtype=np.float64)


def centring(energy: np.ndarray, reach: int = REACH) -> tuple[np.ndarray, np.ndarray]:
    """Say of each point between 10 ms what lies within `reach` steps of it.

    Parameters
    ----------
    energy
        Shape (t,), as `energies` gives it.
    reach
        Steps on either side.

    Returns
    -------
    tuple of np.ndarray
        Energy there, (t + 1,), and how many steps to the right of the point its centre lies,
        (t + 1,); 0 in silence. A sound is centred where the second falls through 0.
    """
    n = len(energy)
    sums = np.concatenate([[0.0], np.cumsum(energy)])
    moments = np.concatenate([[0.0], np.cumsum(energy * (np.arange(n) + 0.5))])
    points = np.arange(n + 1)
    first, last = np.maximum(points - reach, 0), np.minimum(points + reach, n)
    around = sums[last] - sums[first]
    quiet = around <= 0
    centres = (moments[last] - moments[first]) / np.where(quiet, 1.0, around)
    return around, np.where(quiet, 0.0, centres - points)


def cut(audio: np.ndarray, middle: int, n: int) -> np.ndarray:
    """Take `n` samples around sample `middle`; silence where there are none."""
    shift = n // 2 - middle
    result = np.zeros(n, dtype=np.float32)
    kept = audio[max(0, -shift) : max(0, n - shift)]
    result[max(0, shift) : max(0, shift) + len(kept)] = kept
    return result
