"""Decode formats that libsndfile does not read with ffmpeg, if it is installed."""

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from tapword.errors import InputError
from tapword.support.atomic_files import PathLike

SUFFIXES = (".m4a", ".aac", ".webm", ".wma")
# How long ffmpeg may take, beyond the length of the sound. A choice: it decodes a second of sound
# in milliseconds.
TIMEOUT_S = 30.0
# Memory that ffmpeg may take; it takes 52 MB for each of these formats (5.1, Linux).
MAX_BYTES = 256 * 2**20
# Header of an AU file: name, offset of the samples, their size, coding, rate, channels.
_HEADER = struct.Struct(">4s5I")
_FLOAT32 = 6


class Format(NamedTuple):
    """A file format: its common name, ffmpeg's name and decoders, and how its files begin."""

    name: str
    demuxer: str
    decoders: tuple[str, ...]
    beginning: re.Pattern[bytes]


# ffmpeg is told the format and the decoders. It knows hundreds: some formats refer to other files
# and addresses, and rarely used decoders have more bugs.
FORMATS = (
    Format("M4A or MP4", "mov", ("aac", "alac"), re.compile(rb"....ftyp", re.DOTALL)),
    Format("AAC", "aac", ("aac",), re.compile(rb"\xff[\xf0\xf1\xf8\xf9]")),
    Format("WebM", "matroska", ("opus", "vorbis"), re.compile(rb"\x1aE\xdf\xa3")),
    Format("WMA", "asf", ("wmav1", "wmav2", "wmapro"), re.compile(rb"0&\xb2u\x8ef\xcf\x11")),
)


def recognise(start: bytes) -> Format | None:
    """Format of a file by its first 12 bytes; None if it is none of these."""
    return next((kind for kind in FORMATS if kind.beginning.match(start)), None)


class Decoder:
    """A file decoded by ffmpeg; read like a `soundfile.SoundFile`, as a context manager.

    Parameters
    ----------
    path
        The file.
    kind
        Its format.

    Attributes
    ----------
    samplerate, channels
        Of the file. ffmpeg does not change them: a resampler for a rate of 250 MHz, which 32 kB can
        claim, took 2 GB.
    """

    def __init__(self, path: PathLike, kind: Format):
        program = shutil.which("ffmpeg")
        if program is None:
            raise InputError(
                f"{path} is {kind.name} sound, which ffmpeg decodes: install ffmpeg, or convert "
                "the file to WAV or FLAC"
            )
        self.path, self.kind = path, kind
        self.samplerate = self.channels = 0
        self._waited_s = self._decoded_s = 0.0
        # With the protocol first, no file name can pass for an option or an address.
        source = b"file:" + os.fsencode(os.path.abspath(path))
        self._process = subprocess.Popen(
            [
                *(program, "-nostdin", "-v", "quiet", "-max_alloc", str(MAX_BYTES)),
                *("-protocol_whitelist", "file", "-codec_whitelist", ",".join(kind.decoders)),
                *("-threads", "1", "-vn", "-sn", "-dn"),
                *("-f", kind.demuxer, "-i", source if os.name != "nt" else os.fsdecode(source)),
                *("-map", "0:a:0", "-map_metadata", "-1", "-c:a", "pcm_f32be", "-f", "au"),
                "pipe:1",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        _limit_memory(self._process.pid)

    def __enter__(self) -> Self:
        try:
            self.samplerate, self.channels = self._header()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def read(self, frames: int, dtype: str = "float32", always_2d: bool = True) -> np.ndarray:
        """Decode the next samples, (n, channels); fewer than `frames` only at the end."""
        size = 4 * self.channels
        data = self._read(size * frames)
        samples = np.frombuffer(data[: len(data) // size * size], dtype=">f4")
        self._decoded_s += len(samples) / self.channels / self.samplerate
        return samples.astype(np.float32).reshape(-1, self.channels)

    def _header(self) -> tuple[int, int]:
        """Read the rate and the channels of what follows."""
        header = self._read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise self._failure()
        name, offset, _, coding, rate, channels = _HEADER.unpack(header)
        if (name, coding) != (b".snd", _FLOAT32) or not rate or not channels:
            raise self._failure()
        self._read(max(0, offset - _HEADER.size))
        return rate, channels

    def _read(self, size: int) -> bytes:
        """Read bytes from ffmpeg; fewer than `size` only at the end."""
        assert self._process.stdout is not None
        start_s = time.monotonic()
        left_s = TIMEOUT_S + self._decoded_s - self._waited_s
        watch = threading.Timer(max(0.0, left_s), self._process.kill)
        watch.start()
        try:
            data = self._process.stdout.read(size)
            failed = len(data) < size and self._process.wait() != 0
        finally:
            watch.cancel()
            self._waited_s += time.monotonic() - start_s
        if failed:
            raise self._failure()
        return data

    def _failure(self) -> InputError:
        # Without advice to try ffmpeg by hand, where none of these limits would hold.
        known = " or ".join(self.kind.decoders)
        return InputError(
            f"{self.path} could not be decoded by ffmpeg: it is damaged, or its sound is not "
            f"{known}; save it as WAV or FLAC in the program that made it"
        )

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _limit_memory(process_id: int) -> None:
    """Limit the memory of a process that was just started, where the system can: on Linux.

    Elsewhere ffmpeg's own limit on each allocation remains.
    """
    if sys.platform == "linux":
        import resource

        # It may have ended, or have a lower limit.
        with contextlib.suppress(OSError):
            resource.prlimit(process_id, resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
