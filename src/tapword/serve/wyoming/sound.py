"""Sound as clients send it: raw samples of any rate, width and number of channels."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import soxr

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError

# What an event's format may name: the lowest, the highest, and how to say it.
_ACCEPTED = {
    "rate": (8_000, 192_000, "between 8000 and 192000 Hz"),
    "width": (1, 4, "1, 2, 3 or 4 bytes"),
    "channels": (1, 8, "1 to 8"),
}
# Type, offset and full scale of a sample by its bytes; three bytes are filled up to four.
_SAMPLES = {1: ("u1", 128, 2**7), 2: ("<i2", 0, 2**15), 3: ("<i4", 0, 2**31), 4: ("<i4", 0, 2**31)}


class Format(NamedTuple):
    """How samples lie in bytes: samples a second, bytes of one, channels."""

    rate: int
    width: int
    channels: int

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Format":
        """Read the format an event names; refuse what cannot be converted."""
        for key, (lowest, highest, wanted) in _ACCEPTED.items():
            value = data.get(key)
            if type(value) is not int or not lowest <= value <= highest:
                raise InputError(f"{key} must be {wanted}, got {repr(value)[:60]}")
        return cls(data["rate"], data["width"], data["channels"])

    @property
    def second_bytes(self) -> int:
        """Bytes of one second."""
        return self.rate * self.width * self.channels


class Raw(NamedTuple):
    """Some sound as a client sent it: whole samples of all channels."""

    samples: bytes
    format: Format
    # When it was recorded by the client's clock, where it says so.
    timestamp_ms: int | None = None

    @classmethod
    def of(cls, data: dict[str, Any], payload: bytes) -> "Raw":
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

    def split(self) -> Iterator["Raw"]:
        """Give it in pieces of at most a second; none where it is empty."""
        step = self.format.second_bytes
        for start in range(0, len(self.samples), step):
            at = None if start else self.timestamp_ms
            yield Raw(self.samples[start : start + step], self.format, at)


class Sound(NamedTuple):
    """The same once it was converted: what waits to be heard takes the same memory for all."""

    # (n,) float32 at 16 kHz; a resampler holds some back, which comes with the next.
    audio: np.ndarray
    # How long what was sent lasts.
    seconds: float
    timestamp_ms: int | None = None
    # How much is missing between the sound before and this; None where this follows on it.
    lost_s: float | None = None


class Converter:
    """Bring a stream of one format to 16 kHz mono, without seams between its pieces.

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
        """Convert the next samples: (n,) float32 in [-1, 1]; `last` gives what was held back."""
        if self.format.width == 3:
            three = np.frombuffer(samples, dtype=np.uint8).reshape(-1, 3)
            samples = np.pad(three, ((0, 0), (1, 0))).tobytes()
        kind, offset, scale = _SAMPLES[self.format.width]
        values = np.frombuffer(samples, dtype=kind).reshape(-1, self.format.channels)
        mono = (values.mean(axis=1, dtype=np.float64) - offset) / scale
        audio = mono.astype(np.float32)
        return self._resampler.resample_chunk(audio, last=last) if self._resampler else audio


def timestamp(data: dict[str, Any]) -> int | None:
    """Milliseconds by the client's clock; None where it says nothing that makes sense."""
    found = data.get("timestamp")
    return found if type(found) is int and abs(found) < 2**53 else None
