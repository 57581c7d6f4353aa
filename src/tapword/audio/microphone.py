"""Audio from a microphone in 16 kHz chunks; only this module knows sound devices."""

import contextlib
import importlib
import queue
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import soxr

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError, MissingExtra

# Audio that may wait for a busy reader, and how long a device may send nothing before it counts as
# unplugged.
QUEUE_S, SILENT_S = 10.0, 5.0
# Length of a chunk; usual for wake word detectors.
CHUNK_S = 0.08


class Device(NamedTuple):
    """A microphone: its number, name, channels, own rate in Hz, and whether it is the default."""

    number: int
    name: str
    channels: int
    rate: int
    default: bool


class Chunk(NamedTuple):
    """Samples (n,) float32, and whether audio was lost just before them."""

    samples: np.ndarray
    gap: bool


def devices() -> list[Device]:
    """List the microphones of this machine."""
    sounddevice = _sounddevice()
    default = sounddevice.default.device[0]
    found = []
    for number, one in enumerate(sounddevice.query_devices()):
        channels, rate = int(one["max_input_channels"]), round(one["default_samplerate"])
        if channels > 0:
            found.append(Device(number, str(one["name"]), channels, rate, number == default))
    return found


@contextlib.contextmanager
def open_stream(
    device: str | None = None,
    rate: int = SAMPLE_RATE,
    chunk_s: float = CHUNK_S,
    queue_s: float = QUEUE_S,
    silent_s: float = SILENT_S,
) -> Iterator[Iterator[Chunk]]:
    """Record from a microphone while the context lasts: an endless iterator of `Chunk`s.

    Parameters
    ----------
    device
        Number, name or part of the name of a device that `devices` lists; None for the default.
    rate
        Sample rate of the chunks; a device without it is resampled.
    chunk_s
        Approximate length of a chunk.
    queue_s, silent_s
        How much audio may wait for a busy reader (`Chunk.gap` marks a loss), and how long a device
        may send nothing before it counts as unplugged.
    """
    sounddevice = _sounddevice()
    chosen = _choose(device)
    own_rate, channels = _settings(sounddevice, chosen, rate)
    waiting: queue.Queue[Chunk] = queue.Queue(max(1, round(queue_s / chunk_s)))
    lost = False

    def callback(samples: np.ndarray, frames: int, time: Any, status: Any) -> None:
        nonlocal lost
        lost = lost or bool(status.input_overflow)
        try:
            # The driver reuses its array; the mean is a new one.
            waiting.put_nowait(Chunk(samples.mean(axis=1, dtype=np.float32), lost))
            lost = False
        except queue.Full:
            lost = True

    try:
        stream = sounddevice.InputStream(
            samplerate=own_rate,
            blocksize=round(own_rate * chunk_s),
            device=chosen.number,
            channels=channels,
            dtype="float32",
            callback=callback,
        )
        stream.start()
    except sounddevice.PortAudioError as error:
        raise _cannot_open(chosen, error) from error
    with stream:
        chunks = _read(waiting, chosen, silent_s)
        yield chunks if own_rate == rate else _resampled(chunks, own_rate, rate)


def _read(waiting: queue.Queue[Chunk], device: Device, silent_s: float) -> Iterator[Chunk]:
    while True:
        try:
            yield waiting.get(timeout=silent_s)
        except queue.Empty:
            raise InputError(
                f"microphone {device.name!r} has sent nothing for {silent_s:g} s; is it still "
                "plugged in?"
            ) from None


def _resampled(chunks: Iterator[Chunk], own_rate: int, rate: int) -> Iterator[Chunk]:
    resampler = soxr.ResampleStream(own_rate, rate, 1, dtype="float32")
    gap = False
    for chunk in chunks:
        gap = gap or chunk.gap
        samples = resampler.resample_chunk(chunk.samples)
        # The first chunks only fill the filter.
        if len(samples):
            yield Chunk(samples, gap)
            gap = False


def _choose(name: str | None) -> Device:
    known = devices()
    if not known:
        raise InputError(
            "no microphone was found; plug one in, and allow this program to use it in the "
            "system's settings"
        )
    if name is None:
        return next((device for device in known if device.default), known[0])
    wanted = name.strip().casefold()
    exact = [one for one in known if wanted in (str(one.number), one.name.casefold())]
    matches = exact or [one for one in known if wanted and wanted in one.name.casefold()]
    if len(matches) != 1:
        problem = "more than one microphone" if matches else "no microphone"
        listed = ", ".join(f"{one.number} {one.name!r}" for one in matches or known)
        raise InputError(f"{problem} named {name!r}; give a number or name of: {listed}")
    return matches[0]


def _settings(sounddevice: Any, device: Device, rate: int) -> tuple[int, int]:
    """Rate and channels to open a device with: mono at `rate` if it can, or its own."""
    refusal: Exception | None = None
    for channels in (1, device.channels):
        for own_rate in (rate, device.rate):
            try:
                sounddevice.check_input_settings(
                    device=device.number, channels=channels, dtype="float32", samplerate=own_rate
                )
                return own_rate, channels
            except sounddevice.PortAudioError as error:
                refusal = error
    raise _cannot_open(device, refusal)


def _cannot_open(device: Device, error: object) -> InputError:
    return InputError(
        f"microphone {device.name!r} cannot be opened: {error}; is another program using it?"
    )


def _sounddevice() -> Any:
    try:
        return importlib.import_module("sounddevice")
    except ImportError as error:
        raise MissingExtra("the microphone", "sounddevice", "mic") from error
    except OSError as error:
        raise InputError(
            f"the microphone needs the PortAudio library: {error}; install it with your system's "
            "packages (libportaudio2 on Debian, Ubuntu and Raspberry Pi OS)"
        ) from error
    except Exception as error:
        # PortAudio starts on import and raises its own error type.
        raise InputError(f"the sound system does not start: {error}") from error
