"""Audio as clients send it: raw samples of any rate, width and number of channels."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import soxr

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError

# What an event's format may name: lowest, highest, and the range in words.
_ACCEPTED = {
    "rate": (8_000, 192_000, "between 8000 and 192000 Hz"),
    "width": (1, 4, "1, 2, 3 or 4 bytes"),
    "channels": (1, 8, "1 to 8"),
}
# Type, offset and full scale of a sample by its bytes; three bytes are filled up to four.
_SAMPLES = {1: ("u1", 128, 2**7), 2: ("<i2", 0, 2**15), 3: ("<i4", 0, 2**31), 4: ("<i4", 0, 2**31)}


class Format(NamedTuple):
    """Sample rate, bytes per sample, channels."""

    rate: int
    width: int
    channels: int

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Format":
        """Read the format of an event; refuse what cannot be converted."""
        for key, (lowest, highest, wanted) in _ACCEPTED.items():
            value = data.get(key)
            if type(value) is not int or not lowest <= value <= highest:
                raise InputError(f"{key} must be {wanted}, got {repr(value)[:60]}")
        return cls(data["rate"], data["width"], data["channels"])

    @property
    def bytes_per_s(self) -> int:
        """Bytes per second."""
        return self.rate * self.width * self.channels


class RawChunk(NamedTuple):
    """Audio as a client sent it: whole samples of all channels."""

    samples: bytes
    format: Format
    # When it was recorded, on the client's clock, if it says so.
    timestamp_ms: int | None = None

    @classmethod
    def of(cls, data: dict[str, Any], payload: bytes) -> "RawChunk":
        """Read the data and payload of an audio chunk."""
        format = Format.of(data)
        if len(payload) % (format.width * format.channels):
            raise InputError(
                f"a chunk must contain whole samples of {format.channels} x {format.width} bytes, "
                f"got {len(payload)} bytes"
            )
        return cls(payload, format, timestamp(data))

    @property
    def seconds(self) -> float:
        """Its duration."""
        return len(self.samples) / self.format.bytes_per_s

    def split(self) -> Iterator["RawChunk"]:
        """Split it into chunks of at most 1 s; none if it is empty."""
        step = self.format.bytes_per_s
        for start in range(0, len(self.samples), step):
            at = None if start else self.timestamp_ms
            yield RawChunk(self.samples[start : start + step], self.format, at)


class ConvertedChunk(NamedTuple):
    """A chunk after conversion, which takes the same memory for all clients."""

    # (n,) float32 at 16 kHz; a resampler delays some samples until the next chunk.
    audio: np.ndarray
    # Duration of what was sent.
    seconds: float
    timestamp_ms: int | None = None
    # How much is missing since the chunk before; None if it follows directly.
    lost_s: float | None = None
    # When it arrived, on the service's clock.
    arrived_s: float = 0.0


class Converter:
    """Convert a stream of one format to 16 kHz mono, without seams between chunks.

    Examples
    --------
    >>> Converter(Format(16_000, 2, 2))(np.array([100, 300, -200, 0], dtype="<i2").tobytes())
    array([ 0.00610352, -0.00305176], dtype=float32)
    """

    def __init__(self, format: Format):
        self.format = format
        same = format.rate == SAMPLE_RATE
        self._resampler = None if same else soxr.ResampleStream(format.rate, SAMPLE_RATE, 1)

    def __call__(self, samples: bytes, last: bool = False) -> np.ndarray:
        """Convert the next samples to (n,) float32 in [-1, 1]; `last` adds the delayed ones."""
        if self.format.width == 3:
            three = np.frombuffer(samples, dtype=np.uint8).reshape(-1, 3)
            samples = np.pad(three, ((0, 0), (1, 0))).tobytes()
        kind, offset, scale = _SAMPLES[self.format.width]
        values = np.frombuffer(samples, dtype=kind).reshape(-1, self.format.channels)
        mono = (values.mean(axis=1, dtype=np.float64) - offset) / scale
        audio = mono.astype(np.float32)
        return self._resampler.resample_chunk(audio, last=last) if self._resampler else audio


def timestamp(data: dict[str, Any]) -> int | None:
    """Milliseconds on the client's clock; None without a valid timestamp."""
    found = data.get("timestamp")
    return found if type(found) is int and abs(found) < 2**53 else None
