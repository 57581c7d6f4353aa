"""Where the sound of a clip lies, and clips cut around it or filled with silence."""

import numpy as np

from tapword.audio.files import SAMPLE_RATE

# Clips are centred on their sound in steps of 10 ms, by what lies within half a second.
HOP, REACH = 160, 50
# The extent of a sound, set by trial on phrases of speechocean762 in silence and in noise of 20 and
# 10 dB, and on wake words in real rooms (docs/phrases.md). Levels are taken over so many steps.
SMOOTH = 7
# What lies so far below the loudest level is silence; and what is no more than the second above the
# quietest tenth, but not if that would be less than the third below the loudest: such a clip is
# sound all over. Steps at the fourth or below hold nothing at all, as software puts it around
# sound; they say nothing of how quiet the room was.
DEEPEST_DB, ABOVE_DB, LEAST_DB, NOTHING_DB = 26.0, 5.0, 12.0, -97.0
# A longer pause, in steps, ends the sound.
PAUSE = 50
# A clip that is cut around sound of more than a second has so many seconds more on either side.
MARGIN_S = 0.1


def fill(audio: np.ndarray, seconds: float) -> np.ndarray:
    """Put silence behind a clip (n,) shorter than `seconds`; longer ones stay as they are."""
    missing = round(seconds * SAMPLE_RATE) - len(audio)
    return np.pad(audio, (0, missing)) if missing > 0 else audio


def extent(audio: np.ndarray) -> tuple[int, int]:
    """Find from where to where the loudest sound of a clip (n,) goes, in samples.

    Pauses of up to half a second are part of it. A clip that is quiet all over is one sound.

    Examples
    --------
    >>> clip = np.zeros(64_000, dtype=np.float32)
    >>> clip[10_000:20_000] = clip[24_000:30_000] = 0.5
    >>> clip[50_000:52_000] = 0.5
    >>> extent(clip)
    (9440, 30560)
    """
    steps, level = sounding(audio)
    loudest = int(np.argmax(level))
    ends = np.append(np.flatnonzero(np.diff(steps) > PAUSE), len(steps) - 1)
    last = int(ends[np.searchsorted(steps[ends], loudest)])
    first = int(ends[ends < last][-1]) + 1 if (ends < last).any() else 0
    return int(steps[first]) * HOP, min((int(steps[last]) + 1) * HOP, len(audio))


def besides(audio: np.ndarray) -> tuple[float, float]:
    """Say what a clip (n,) holds besides: seconds of other loud sound, and of the longest pause.

    Other sound lies outside of the clip's `extent` and comes within 12 dB of the loudest; the pause
    lies inside.

    Examples
    --------
    >>> clip = np.zeros(64_000, dtype=np.float32)
    >>> clip[10_000:20_000] = clip[24_000:30_000] = 0.5
    >>> clip[50_000:52_000] = 0.5
    >>> [round(seconds, 2) for seconds in besides(clip)]
    [0.19, 0.19]
    """
    steps, level = sounding(audio)
    first, last = (sample / HOP for sample in extent(audio))
    inside = steps[(steps >= first) & (steps < last)]
    loud = level[np.setdiff1d(steps, inside)] >= level.max() - LEAST_DB
    pause = int(np.diff(inside).max(initial=1)) - 1
    return float(loud.sum()) * HOP / SAMPLE_RATE, pause * HOP / SAMPLE_RATE


def sounding(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the steps of a clip (n,) that are not silent, (s,), and the level of each step, (t,)."""
    energy = energies(audio)
    around = np.cumsum(np.pad(energy, (SMOOTH // 2 + 1, SMOOTH // 2)))
    level = decibels((around[SMOOTH:] - around[:-SMOOTH]) / (SMOOTH * HOP))
    nothing = int(np.sum(level <= NOTHING_DB))
    tenth = nothing + (len(level) - nothing) // 10
    quiet = np.sort(level)[min(tenth, len(level) - 1)]
    least = max(level.max() - DEEPEST_DB, min(quiet + ABOVE_DB, level.max() - LEAST_DB))
    return np.flatnonzero(level >= least), level


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
