"""Log-mel frames: no weights, and the front end of the speech embedding."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse

from tapword.backbones.base import Backbone
from tapword.errors import InputError

WINDOW = 400
STEP = 160
FFT = 512
BANDS = 32
LOW_HZ, HIGH_HZ = 60.0, 3800.0
FLOOR = 1e-3
MAX_PAD_S = 10.0


class Logmel(Backbone):
    """Log-mel energies, 32 every 10 ms; needs no weights.

    Parameters
    ----------
    pad_s
        Seconds of silence put on each side of the clip, at most 10.

    Examples
    --------
    >>> Logmel().frames(np.full(16000, 0.1, dtype=np.float32))[0].shape
    (98, 32)
    """

    dims = (BANDS,)
    params = 0

    def __init__(self, pad_s: float = 0.0):
        if not 0 <= pad_s <= MAX_PAD_S:
            raise InputError(f"pad_s must lie in 0..{MAX_PAD_S:g} seconds, got {pad_s}")
        self.pad_s = pad_s

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        pad = round(self.pad_s * self.sample_rate)
        return [log_mel(np.pad(audio, ((0, 0), (pad, pad))))]


def log_mel(
    audio: np.ndarray, bands: int = BANDS, low_hz: float = LOW_HZ, high_hz: float = HIGH_HZ
) -> np.ndarray:
    """Google's original front end of the speech embedding.

    Magnitude (not power) of 400-sample periodic-Hann windows every 160 samples, 32 triangular
    mel bands, natural logarithm of the sum plus 0.001.

    Parameters
    ----------
    audio
        Shape (..., n), float32 in [-1, 1], 16 kHz.
    bands, low_hz, high_hz
        How many bands, and from where to where, for networks that were trained on others.

    Returns
    -------
    np.ndarray
        Shape (..., 1 + (n - 400) // 160, bands), float32.
    """
    if audio.shape[-1] < WINDOW:
        raise InputError(f"audio has {audio.shape[-1]} samples; at least {WINDOW} are needed")
    window, weights = _tables(bands, low_hz, high_hz)
    windows = np.lib.stride_tricks.sliding_window_view(audio, WINDOW, axis=-1)[..., ::STEP, :]
    # Half of what the speech embedding is given is silence, whose energy is known.
    sounding = windows.any(axis=-1)
    padded = np.zeros((np.count_nonzero(sounding), FFT), dtype=np.float32)
    np.multiply(windows[sounding], window, out=padded[:, :WINDOW])
    magnitude = np.abs(scipy.fft.rfft(padded))
    # Each bin belongs to two bands at most. A dense product would be sixteen times the work and
    # wake BLAS threads, which then fight the network for the cores.
    energy = np.zeros((*sounding.shape, bands), dtype=np.float32)
    energy[sounding] = (weights @ magnitude.T).T
    return np.log(energy + np.float32(FLOOR))


@lru_cache(maxsize=8)
def _tables(bands: int, low_hz: float, high_hz: float) -> tuple[np.ndarray, Any]:
    """Window (400,) and sparse mel weights (bands, 257): triangles, the DC bin zero."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    bins = mel(np.linspace(0.0, 8000.0, FFT // 2 + 1))[:, None]
    edges = np.linspace(mel(low_hz), mel(high_hz), bands + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    rise = (bins - lower) / (centre - lower)
    fall = (upper - bins) / (upper - centre)
    weights = np.maximum(0.0, np.minimum(rise, fall))
    weights[0] = 0.0
    return window.astype(np.float32), scipy.sparse.csr_array(weights.T.astype(np.float32))
