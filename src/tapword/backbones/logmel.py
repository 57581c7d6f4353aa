"""Log-mel frames: a backbone without weights, and the input of other backbones."""

from functools import lru_cache

import numpy as np

from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.support.threads import one_blas_thread

# As in the training of Google's speech embedding: windows of 25 ms every 10 ms and the length of
# their Fourier transform, in samples; mel bands and their range; what is added to energies.
WINDOW, STEP, FFT = 400, 160, 512
BANDS, LOW_HZ, HIGH_HZ = 32, 60.0, 3800.0
FLOOR = 1e-3
MAX_PAD_S = 10.0
# Windows that are transformed together: more take longer each, outside a core's cache.
AT_ONCE = 128


class Logmel(Backbone):
    """Log-mel energies, 32 every 10 ms, without weights.

    Parameters
    ----------
    pad_s
        Seconds of silence to add on each side of the clip, at most 10.

    Examples
    --------
    >>> Logmel().frames(np.full(16000, 0.1, dtype=np.float32))[0].shape
    (98, 32)
    """

    dims = (BANDS,)
    params = 0

    pad_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.pad_s <= MAX_PAD_S:
            raise InputError(f"pad_s must lie in 0..{MAX_PAD_S:g} seconds, got {self.pad_s}")
        self._pad = round(self.pad_s * self.sample_rate)
        self.min_samples = max(1, WINDOW - 2 * self._pad)

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [log_mel(np.pad(audio, ((0, 0), (self._pad, self._pad))))]


@one_blas_thread
def log_mel(
    audio: np.ndarray, bands: int = BANDS, low_hz: float = LOW_HZ, high_hz: float = HIGH_HZ
) -> np.ndarray:
    """Compute the log-mel energies that Google trained the speech embedding on.

    Audio (..., n), float32 in [-1, 1] at 16 kHz, gives (..., 1 + (n - 400) // 160, bands) float32:
    magnitude (not power) of 400-sample periodic-Hann windows every 160 samples, triangular mel
    bands, natural logarithm of the sum plus 0.001. Other networks have other bands.
    """
    if audio.shape[-1] < WINDOW:
        raise InputError(f"audio has {audio.shape[-1]} samples; at least {WINDOW} are needed")
    window, weights = tables(bands, low_hz, high_hz)
    windows = np.lib.stride_tricks.sliding_window_view(audio, WINDOW, axis=-1)[..., ::STEP, :]
    # Half of the speech embedding's input is silence, whose energy is known.
    sounding = windows.any(axis=-1)
    loud = windows[sounding]
    energies = np.empty((len(loud), bands), dtype=np.float32)
    padded = np.zeros((min(len(loud), AT_ONCE), FFT), dtype=np.float32)
    for start in range(0, len(loud), AT_ONCE):
        some = loud[start : start + AT_ONCE]
        np.multiply(some, window, out=padded[: len(some), :WINDOW])
        # Before numpy 2 the transform is in float64.
        magnitude = np.abs(np.fft.rfft(padded[: len(some)])).astype(np.float32, copy=False)
        energies[start : start + AT_ONCE] = magnitude @ weights.T
    energy = np.zeros((*sounding.shape, bands), dtype=np.float32)
    energy[sounding] = energies
    return np.log(energy + np.float32(FLOOR))


@lru_cache(maxsize=8)
def tables(bands: int, low_hz: float, high_hz: float) -> tuple[np.ndarray, np.ndarray]:
    """Window (400,) and mel weights (bands, 257): triangles, with 0 for a constant."""
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
    return window.astype(np.float32), weights.T.astype(np.float32)
