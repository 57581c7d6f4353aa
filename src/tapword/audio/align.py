"""Find the sound in a clip; cut clips around it or pad them with silence."""

import numpy as np

from tapword.audio.files import SAMPLE_RATE

# Clips are centred on their sound in steps of 10 ms (160 samples), by the half second on each side.
HOP, HALF_WINDOW = 160, 50
# Set by trial on phrases of speechocean762 in silence and at 20 and 10 dB SNR, and on wake words in
# real rooms (docs/phrases.md). Levels are averaged over SMOOTH steps.
SMOOTH = 7
# A step is silent if it is DEEPEST_DB below the loudest step, or at most ABOVE_DB over the quietest
# tenth. The second limit stays at least LEAST_DB below the loudest step, so a clip of even level is
# all sound. Steps at or below NOTHING_DB are digital silence and do not count as the quietest.
DEEPEST_DB, ABOVE_DB, LEAST_DB, NOTHING_DB = 26.0, 5.0, 12.0, -97.0
# A longer pause, in steps, ends the sound.
PAUSE = 50
# Margin on either side of a clip that is cut around more than a second of sound.
MARGIN_S = 0.1


def fill(audio: np.ndarray, seconds: float) -> np.ndarray:
    """Pad a clip (n,) at its end with silence to at least `seconds`."""
    missing = round(seconds * SAMPLE_RATE) - len(audio)
    return np.pad(audio, (0, missing)) if missing > 0 else audio


def extent(audio: np.ndarray) -> tuple[int, int]:
    """Find the start and end of the loudest sound of a clip (n,), in samples.

    Pauses of up to half a second belong to it. A clip of even level is one sound.

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


def other_sound(audio: np.ndarray) -> tuple[float, float]:
    """Measure sound outside a clip's `extent`, and the longest pause inside, in seconds.

    Only sound within 12 dB of the loudest counts.

    Examples
    --------
    >>> clip = np.zeros(64_000, dtype=np.float32)
    >>> clip[10_000:20_000] = clip[24_000:30_000] = 0.5
    >>> clip[50_000:52_000] = 0.5
    >>> [round(seconds, 2) for seconds in other_sound(clip)]
    [0.19, 0.19]
    """
    steps, level = sounding(audio)
    first, last = (sample / HOP for sample in extent(audio))
    inside = steps[(steps >= first) & (steps < last)]
    loud = level[np.setdiff1d(steps, inside)] >= level.max() - LEAST_DB
    pause = int(np.diff(inside).max(initial=1)) - 1
    return float(loud.sum()) * HOP / SAMPLE_RATE, pause * HOP / SAMPLE_RATE


def sounding(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the steps of a clip (n,) with sound, (s,), and the level of each step, (t,)."""
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
        Shape (n,). Beyond its ends there is silence.
    seconds
        Length of the result.

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
    return cut(audio, centre(audio), round(seconds * SAMPLE_RATE))


def centre(audio: np.ndarray) -> int:
    """Find the middle of a clip's (n,) loudest sound, in samples."""
    loudness, offsets = centring(energies(audio))
    middle = int(np.argmax(loudness))
    # The middle is where the offset of the energy's centre changes its sign: walk there.
    if offsets[middle] > 0:
        while offsets[middle] > 0:
            middle += 1
    else:
        while middle and offsets[middle - 1] <= 0:
            middle -= 1
    return middle * HOP


def decibels(power: np.ndarray | float) -> np.ndarray:
    """Levels of mean powers in dBFS; silence is -100."""
    return 10 * np.log10(power + 1e-10)


def energies(audio: np.ndarray) -> np.ndarray:
    """Energy of each 10 ms: (n,) -> (ceil(n / 160),) float64."""
    missing = -len(audio) % HOP
    padded = (np.pad(audio, (0, missing)) if missing else audio).reshape(-1, HOP)
    return np.einsum("th,th->t", padded, padded, dtype=np.float64)


def centring(
    energy: np.ndarray, half_window: int | np.ndarray = HALF_WINDOW
) -> tuple[np.ndarray, np.ndarray]:
    """Energy around each point between steps, and where its centre is.

    Parameters
    ----------
    energy
        Shape (t,), as `energies` gives it.
    half_window
        Number of steps on either side; several, (k, 1), give results (k, t + 1).

    Returns
    -------
    tuple of np.ndarray
        Energy within the window, (t + 1,), and the offset of its centre from the point, in steps to
        the right, (t + 1,); 0 in silence. A sound is centred where the offset falls through 0.
    """
    n = len(energy)
    sums = np.concatenate([[0.0], np.cumsum(energy)])
    moments = np.concatenate([[0.0], np.cumsum(energy * (np.arange(n) + 0.5))])
    points = np.arange(n + 1)
    first, last = np.maximum(points - half_window, 0), np.minimum(points + half_window, n)
    around = sums[last] - sums[first]
    quiet = around <= 0
    centres = (moments[last] - moments[first]) / np.where(quiet, 1.0, around)
    return around, np.where(quiet, 0.0, centres - points)


def cut(audio: np.ndarray, middle: int, n: int) -> np.ndarray:
    """Cut `n` samples around sample `middle`, with silence beyond the ends."""
    shift = n // 2 - middle
    result = np.zeros(n, dtype=np.float32)
    kept = audio[max(0, -shift) : max(0, n - shift)]
    result[max(0, shift) : max(0, shift) + len(kept)] = kept
    return result
