"""Read files and arrays as 16 kHz mono float32; only this module knows formats and rates."""

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
import soxr

from tapword.audio import ffmpeg
from tapword.errors import InputError
from tapword.support.atomic_files import PathLike, why_not_file
from tapword.support.checks import in_range

SAMPLE_RATE = 16_000
MIN_S = 0.1
MAX_S = 30.0
OWN_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aif", ".aiff")
SUFFIXES = OWN_SUFFIXES + ffmpeg.SUFFIXES

_NONE = np.zeros(0, dtype=np.float32)
# Resampling may overshoot 1 a little; samples far above it are unscaled integers.
PEAK_LIMIT = 8.0
_RATES_HZ = 1_000, 768_000
# Channels cancel each other if their mean has less than this share of the power it would have if
# they were unrelated. A choice: 10 dB less is far from any two microphones in a room.
CANCELLED = 0.1
# Samples of all channels decoded at a time.
_BLOCK = 1 << 20
# Accepted formats, by libsndfile's names and by their first bytes. It reads two dozen more, some
# without a header; they are refused, because rarely used code has more bugs.
_FORMATS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "AIFF")
# Four of the beginnings of MP3 belong to AAC.
_BEGINNINGS = re.compile(
    rb"RIFF....WAVE|fLaC|OggS|ID3|\xff(?![\xf0\xf1\xf8\xf9])[\xe0-\xff]|FORM....AIF[FC]", re.DOTALL
)

log = logging.getLogger("tapword.audio")


def read(path: PathLike, max_s: float = MAX_S) -> np.ndarray:
    """Read a sound file as 16 kHz mono: the mean of its channels.

    If the channels cancel each other, the louder one is used, and the log says so.

    Parameters
    ----------
    path
        A WAV, FLAC, OGG/Opus, MP3 or AIFF file of any rate and channel count; with ffmpeg, also
        M4A, AAC, WebM or WMA.
    max_s
        Longest accepted clip, in seconds.

    Returns
    -------
    np.ndarray
        Shape (n,), float32, in [-1, 1].
    """
    with _opened(path) as file:
        parts = list(_parts(file, path, max(1, _BLOCK // file.channels), max_s))
    # Resampling may have added a sample to a clip of exactly the allowed length.
    return check(np.concatenate([_NONE, *parts]), name=str(path), max_s=max_s + MIN_S)


def blocks(path: PathLike, seconds: float = 10.0) -> Iterator[np.ndarray]:
    """Read a sound file of any length in blocks.

    Parameters
    ----------
    path
        As for `read`.
    seconds
        Length of each block but the last; approximate if the rate is not 16 kHz.

    Yields
    ------
    np.ndarray
        Shape (n,), float32 at 16 kHz; together they are the whole file.
    """
    with _opened(path) as file:
        yield from _parts(file, path, max(1, round(seconds * file.samplerate)))


def length_s(path: PathLike) -> float:
    """Length of a sound file by its header; a file that needs ffmpeg is decoded for it."""
    with _opened(path) as file:
        if not isinstance(file, ffmpeg.Decoder):
            return len(file) / float(file.samplerate)
        size = max(1, _BLOCK // file.channels)
        frames = sum(iter(lambda: len(file.read(size)), 0))
        return frames / float(file.samplerate)


def load(audio: PathLike | np.ndarray, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """Turn a path, or samples at `sample_rate`, into (n,) float32 at 16 kHz."""
    if isinstance(audio, (str, os.PathLike)):
        return read(audio)
    return check(audio, sample_rate)


def check(
    audio: np.ndarray, sample_rate: int = SAMPLE_RATE, name: str = "audio", max_s: float = MAX_S
) -> np.ndarray:
    """Refuse samples that cannot be speech; convert others to 16 kHz float32.

    Parameters
    ----------
    audio
        Shape (n,), float in [-1, 1] or int16.
    sample_rate
        Samples per second of `audio`.
    name
        Name for messages.
    max_s
        Longest accepted clip, in seconds.

    Returns
    -------
    np.ndarray
        Shape (m,), float32; never a view of `audio`.

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
        audio = as_float(audio)
    elif audio.dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            audio = audio.astype(np.float32)
    else:
        raise InputError(f"{name} must be float32, float64 or int16 samples, not {audio.dtype}")
    check_rate(sample_rate, "sample_rate")
    if not len(audio):
        raise InputError(f"{name} is empty")
    seconds = len(audio) / float(sample_rate)
    if seconds < MIN_S:
        raise InputError(
            f"{name} is {seconds * 1000:.0f} ms long; at least {MIN_S * 1000:.0f} ms are needed"
        )
    if seconds > max_s:
        raise InputError(f"{name} is {seconds:.1f} s long; the limit is {max_s:g} s")
    if check_peak(audio, name) == 0:
        raise InputError(f"{name} is all zeros: is the microphone muted?")
    if sample_rate != SAMPLE_RATE:
        audio = soxr.resample(audio, sample_rate, SAMPLE_RATE)
    return audio


def check_peak(samples: np.ndarray, name: str = "audio") -> float:
    """Largest magnitude of float samples (n,); refuse samples that are not in [-1, 1]."""
    largest = float(np.abs(samples).max(initial=0.0))
    if not np.isfinite(largest):
        raise InputError(f"{name} contains NaN or infinite samples")
    if largest > PEAK_LIMIT:
        raise InputError(
            f"{name} should lie in [-1, 1] but peaks at {largest:.0f}; "
            "divide 16-bit samples by 32768 or pass them as int16"
        )
    return largest


def as_float(samples: np.ndarray) -> np.ndarray:
    """16-bit samples (n,) as float32 in [-1, 1)."""
    return samples.astype(np.float32) / 32768.0


def find(path: PathLike) -> list[Path]:
    """List the sound files of a path: the file itself, or all below a folder, sorted."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    )


@contextlib.contextmanager
def _opened(path: PathLike) -> Iterator[soundfile.SoundFile | ffmpeg.Decoder]:
    """Open a sound file; errors while it is open name the file."""
    path = Path(path)
    found = why_not_file(path)
    if found is not None:
        found += ", not a sound file" if found == "is a folder" else ""
        raise InputError(f"{path} {found}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} cannot be read: permission denied")
    wanted = f"wanted one of {', '.join(suffix[1:] for suffix in OWN_SUFFIXES)}"
    refusal = f"{path} is not audio that can be read ({wanted})"
    try:
        with path.open("rb") as raw:
            start = raw.read(12)
        if not _BEGINNINGS.match(start):
            kind = ffmpeg.recognise(start)
            if kind is None:
                raise InputError(f"{refusal}: it does not begin like one")
            with ffmpeg.Decoder(path, kind) as decoder:
                check_rate(decoder.samplerate, f"{path}: its sample rate")
                yield decoder
            return
        # The absolute path, because libsndfile takes "-" for standard input. As bytes, because
        # soundfile refuses a name that is not UTF-8; on Windows names are text.
        whole = os.path.abspath(path)
        with soundfile.SoundFile(whole if os.name == "nt" else os.fsencode(whole)) as file:
            if file.format not in _FORMATS:
                raise InputError(f"{refusal}: it is {file.format_info}; convert it to WAV or FLAC")
            check_rate(file.samplerate, f"{path}: its sample rate")
            yield file
    except InputError:
        raise
    except (soundfile.SoundFileError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{refusal}: {getattr(error, 'error_string', error)}") from error


def check_rate(rate: object, name: str) -> None:
    """Refuse a sample rate that is out of range, in Hz."""
    low, high = _RATES_HZ
    if not in_range(rate, low, high):
        raise InputError(f"{name} must be between {low} and {high} Hz, got {rate!r}")


def _parts(
    file: soundfile.SoundFile | ffmpeg.Decoder, path: PathLike, size: int, max_s: float = np.inf
) -> Iterator[np.ndarray]:
    """Read a file in blocks of `size` frames at 16 kHz; refuse more than `max_s`."""
    rate = file.samplerate
    resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1) if rate != SAMPLE_RATE else None
    mixer = _Mixer(path, round(MIN_S * rate))
    frames, last = 0, False
    while not last:
        block = _mono(file, size, mixer)
        last = len(block) < size
        # A header may state a wrong length, so frames are counted.
        frames += len(block)
        if frames > max_s * rate:
            raise InputError(f"{path} is longer than the limit of {max_s:g} s; cut it into clips")
        check_peak(block, str(path))
        if resampler:
            block = resampler.resample_chunk(block, last=last)
        if len(block):
            yield block


def _mono(file: soundfile.SoundFile | ffmpeg.Decoder, most: int, mixer: "_Mixer") -> np.ndarray:
    """Mix at most `most` frames to one channel, (n,) float32, decoded in blocks.

    A single read would allocate memory for all samples that a header claims.
    """
    size = max(1, _BLOCK // file.channels)
    blocks = [_NONE]
    while most:
        wanted = min(size, most)
        block = file.read(wanted, dtype="float32", always_2d=True)
        blocks.append(mixer(block))
        most -= wanted
        if len(block) < wanted:
            break
    return np.concatenate(blocks)


class _Mixer:
    """Mean of a file's channels; once they cancel each other, the louder one to the end.

    Blocks of fewer than `least` frames say nothing.
    """

    def __init__(self, path: PathLike, least: int):
        self._path, self._least = path, least
        self._channel: int | None = None

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Mix frames (n, channels) to (n,) float32."""
        with np.errstate(over="ignore", invalid="ignore"):
            mixed = block.mean(axis=1)
            if self._channel is None and block.shape[1] > 1 and len(block) >= self._least:
                powers = np.square(block, dtype=np.float64).mean(axis=0)
                unrelated = powers.sum() / len(powers) ** 2
                if np.square(mixed, dtype=np.float64).mean() < CANCELLED * unrelated:
                    self._channel = int(powers.argmax())
                    log.warning("%s: its channels cancel each other; using the louder", self._path)
        return mixed if self._channel is None else block[:, self._channel].copy()
