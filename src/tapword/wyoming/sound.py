"""Sound as clients send it: raw samples of any rate, width and number of channels."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import soxr

from tapword.audio import SAMPLE_RATE
from tapword.errors import InputError

RATES_HZ = 8_000, 192_000
# Type, offset and full scale of a sample by its bytes; three bytes are filled up to four.
_SAMPLES = {1: ("u1", 128, 2**7), 2: ("<i2", 0, 2**15), 3: ("<i4", 0, 2**31), 4: ("<i4", 0, 2**31)}
_MOST_CHANNELS = 8


class Format(NamedTuple):
    """How samples lie in bytes: samples a second, bytes of one, channels."""

    rate: int
    width: int
    channels: int

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Format":
        """Read the format an event names; refuse what cannot be converted."""
        rate, width, channels = (data.get(key) for key in cls._fields)
        if type(rate) is not int or not RATES_HZ[0] <= rate <= RATES_HZ[1]:
            low, high = RATES_HZ
            raise InputError(f"rate must be between {low} and {high} Hz, got {_short(rate)}")
        if type(width) is not int or width not in _SAMPLES:
            raise InputError(f"width must be 1, 2, 3 or 4 bytes, got {_short(width)}")
        if type(channels) is not int or not 1 <= channels <= _MOST_CHANNELS:
            raise InputError(f"channels must be 1 to {_MOST_CHANNELS}, got {_short(channels)}")
        return cls(rate, width, channels)

    @property
    def second_bytes(self) -> int:
        """Bytes of one second."""
        return self.rate * self.width * self.channels


class Sound(NamedTuple):
    """Some sound of a client.

    Attributes
    ----------
    samples
        Whole samples of all channels.
    format
        What they are.
    timestamp_ms
        When they were recorded by the client's clock, where it says so.
    lost_s
        How much sound is missing between the one before and this.
    """

    samples: bytes
    format: Format
    timestamp_ms: int | None = None
    lost_s: float = 0.0

    @classmethod
    def of(cls, data: dict[str, Any], payload: bytes) -> "Sound":
        """Take the sound out of an audio chunk's data and payload."""
        format = Format.of(data)
        if len(payload) % (format.width * format.channels):
            raise InputError(
                f"a chunk must hold whole samples of {format.channels} x {format.width} bytes, "
                f"got {len(payload)} bytes"
            )
        return cls(payload, format, timestamp(data))

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.format.second_bytes

    def split(self) -> Iterator["Sound"]:
        """Give it in pieces of at most a second."""
        yield self._replace(samples=self.samples[: self.format.second_bytes])
        for start in range(self.format.second_bytes, len(self.samples), self.format.second_bytes):
            piece = self.samples[start : start + self.format.second_bytes]
            yield Sound(piece, self.format)


class Converter:
    """Bring a stream of one format to 16 kHz mono, without seams between its pieces.

    Examples
    --------
    >>> Converter(Format(16_000, 2, 2))(np.array([100, 300, -200, 0], dtype="<i2").tobytes())
    array([ 0.00610352, -0.00305176], dtype=float32)
    """

    def __init__(self, format: Format):
        self.format = format
        self._resampler = None
        if format.rate != SAMPLE_RATE:
            self._resampler = soxr.ResampleStream(format.rate, SAMPLE_RATE, 1, dtype="float32")

    def __call__(self, samples: bytes, last: bool = False) -> np.ndarray:
        """Convert the next samples: (n,) float32 in [-1, 1]; `last` gives what was held back."""
        if self.format.width == 3:
            three = np.frombuffer(samples, dtype=np.uint8).reshape(-1, 3)
            samples = np.pad(three, ((0, 0), (1, 0))).tobytes()
        kind, offset, scale = _SAMPLES[self.format.width]
        values = np.frombuffer(samples, dtype=kind).reshape(-1, self.format.channels)
        mono = (values.mean(axis=1, dtype=np.float64) - offset) / scale
        audio = mono.astype(np.float32)
        if self._resampler is None:
            return audio
        return self._resampler.resample_chunk(audio, last=last)


def timestamp(data: dict[str, Any]) -> int | None:
    """Milliseconds by the client's clock; None where it says nothing that makes sense."""
    found = data.get("timestamp")
    return found if type(found) is int and abs(found) < 2**53 else None


def _short(value: Any) -> str:
    return repr(value)[:60]
