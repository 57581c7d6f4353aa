"""Files and arrays in, 16 kHz mono float32 out: the only room that knows formats and rates."""

import numbers
import os
from pathlib import Path

import numpy as np
import soundfile
import soxr

from tapword.errors import InputError

SAMPLE_RATE = 16_000
MIN_S = 0.1
MAX_S = 30.0
SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3")

# Resampling may overshoot 1 a little; anything far above it is integer samples not yet scaled.
_PEAK_LIMIT = 8.0


def read(path: str | os.PathLike[str], max_s: float = MAX_S) -> np.ndarray:
    """Read a sound file as 16 kHz mono.

    Parameters
    ----------
    path
        A WAV, FLAC, OGG/Opus or MP3 file of any rate and channel count.
    max_s
        Longest clip that is accepted, in seconds.

    Returns
    -------
    np.ndarray
        Shape (n,), float32, in [-1, 1].
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder, not a sound file" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} cannot be read: permission denied")
    try:
        # soundfile would refuse a name that is not UTF-8; on Windows names are text.
        with soundfile.SoundFile(path if os.name == "nt" else os.fsencode(path)) as file:
            rate = file.samplerate
            # Never trust a header's length: read up to the limit and see whether more comes.
            limit = int(max_s * rate)
            samples = file.read(limit + 1, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, TypeError, ValueError, OSError) as error:
        formats = ", ".join(suffix[1:] for suffix in SUFFIXES)
        why = getattr(error, "error_string", error)
        raise InputError(
            f"{path} is not audio that can be read (wanted one of {formats}): {why}"
        ) from error
    if len(samples) > limit:
        raise InputError(f"{path} is longer than the limit of {max_s:g} s; cut it into clips")
    return check(samples.mean(axis=1), rate, name=str(path), max_s=max_s)


def load(audio: str | os.PathLike[str] | np.ndarray, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """Take a path or an array of samples at `sample_rate`; give back (n,) float32 at 16 kHz."""
    if isinstance(audio, (str, os.PathLike)):
        return read(audio)
    return check(audio, sample_rate)


def check(
    audio: np.ndarray,
    sample_rate: int = SAMPLE_RATE,
    name: str = "audio",
    max_s: float = MAX_S,
) -> np.ndarray:
    """Refuse samples that cannot be speech; bring the rest to 16 kHz float32.

    Parameters
    ----------
    audio
        Shape (n,), float in [-1, 1] or int16.
    sample_rate
        Samples per second of `audio`.
    name
        What the messages call it.
    max_s
        Longest clip that is accepted, in seconds.

    Returns
    -------
    np.ndarray
        Shape (m,), float32; never a view that would let the caller's array be changed.

    Examples
    --------
    >>> check(np.full(8000, 0.5), sample_rate=8000).shape
    (16000,)
    >>> check(np.zeros(16000, dtype=np.float32))
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: audio is all zeros: is the microphone muted?
    """
    if not isinstance(audio, np.ndarray):
        raise InputError(f"{name} must be a path or a numpy array, not {type(audio).__name__}")
    if audio.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,), one channel of samples; got shape {audio.shape}"
        )
    if audio.dtype == np.int16:
        audio = audio.astype(np.float32) / 32768.0
    elif audio.dtype in (np.float32, np.float64):
        audio = audio.astype(np.float32)
    else:
        raise InputError(f"{name} must be float32, float64 or int16 samples, not {audio.dtype}")
    if not isinstance(sample_rate, numbers.Real) or not 1_000 <= sample_rate <= 768_000:
        raise InputError(f"sample_rate must be between 1000 and 768000 Hz, got {sample_rate!r}")
    if not len(audio):
        raise InputError(f"{name} is empty")
    seconds = len(audio) / sample_rate
    if seconds < MIN_S:
        raise InputError(
            f"{name} is {seconds * 1000:.0f} ms long; at least {MIN_S * 1000:.0f} ms are needed"
        )
    if seconds > max_s:
        raise InputError(f"{name} is {seconds:.1f} s long; the limit is {max_s:g} s")
    if not np.isfinite(audio).all():
        raise InputError(f"{name} contains NaN or infinite samples")
    peak = float(np.abs(audio).max())
    if peak == 0:
        raise InputError(f"{name} is all zeros: is the microphone muted?")
    if peak > _PEAK_LIMIT:
        raise InputError(
            f"{name} should lie in [-1, 1] but peaks at {peak:.0f}; "
            "divide 16-bit samples by 32768 or pass them as int16"
        )
    if sample_rate != SAMPLE_RATE:
        audio = soxr.resample(audio, sample_rate, SAMPLE_RATE)
    return audio


def fill(audio: np.ndarray, seconds: float) -> np.ndarray:
    """Put silence behind a clip (n,) shorter than `seconds`; longer ones stay as they are."""
    missing = round(seconds * SAMPLE_RATE) - len(audio)
    return np.pad(audio, (0, missing)) if missing > 0 else audio


def find(path: str | os.PathLike[str]) -> list[Path]:
    """Sound files named by a path: the file itself, or every one below a folder, sorted."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    )
