"""Decode formats that libsndfile does not read with ffmpeg, if it is installed."""

import os
import re
import shlex
import shutil
import subprocess
import threading
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from tapword.errors import InputError
from tapword.support.atomic_files import PathLike

SUFFIXES = (".m4a", ".aac", ".webm", ".wma")
# A choice: ffmpeg decodes a second of sound in milliseconds, so after this time it hangs.
TIMEOUT_S = 30.0


class Format(NamedTuple):
    """A file format: its common name, ffmpeg's name, and the first bytes of its files."""

    name: str
    demuxer: str
    beginning: re.Pattern[bytes]


# ffmpeg is told the format: it knows hundreds, and some refer to other files and addresses.
FORMATS = (
    Format("M4A or MP4", "mov", re.compile(rb"....ftyp", re.DOTALL)),
    Format("AAC", "aac", re.compile(rb"\xff[\xf0\xf1\xf8\xf9]")),
    Format("WebM", "matroska", re.compile(rb"\x1aE\xdf\xa3")),
    Format("WMA", "asf", re.compile(rb"0&\xb2u\x8ef\xcf\x11")),
)


def recognise(start: bytes) -> Format | None:
    """Format of a file by its first 12 bytes; None if it is none of these."""
    return next((kind for kind in FORMATS if kind.beginning.match(start)), None)


class Decoder:
    """A file decoded by ffmpeg to one channel; read like a `soundfile.SoundFile`.

    Parameters
    ----------
    path
        The file.
    kind
        Its format.
    rate
        Sample rate of the output.
    """

    channels = 1

    def __init__(self, path: PathLike, kind: Format, rate: int):
        program = shutil.which("ffmpeg")
        if program is None:
            raise InputError(
                f"{path} is {kind.name} sound, which ffmpeg decodes: install ffmpeg, or convert "
                "the file to WAV or FLAC"
            )
        self.path, self.samplerate = path, rate
        # With the protocol first, no file name can pass for an option or an address.
        source = b"file:" + os.fsencode(os.path.abspath(path))
        self._process = subprocess.Popen(
            [
                *(program, "-nostdin", "-v", "quiet", "-protocol_whitelist", "file"),
                *("-f", kind.demuxer, "-i", source if os.name != "nt" else os.fsdecode(source)),
                *("-map", "0:a:0", "-ac", "1", "-ar", str(rate), "-f", "f32le", "pipe:1"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def read(self, frames: int, dtype: str = "float32", always_2d: bool = True) -> np.ndarray:
        """Decode the next samples, (n, 1) float32; fewer than `frames` only at the end."""
        assert self._process.stdout is not None
        watch = threading.Timer(TIMEOUT_S, self._process.kill)
        watch.start()
        try:
            data = self._process.stdout.read(4 * frames)
            ended = len(data) < 4 * frames
            failed = ended and self._process.wait() != 0
        finally:
            watch.cancel()
        if failed:
            raise InputError(
                f"{self.path} could not be decoded by ffmpeg; to see why: "
                f"ffmpeg -i {shlex.quote(str(self.path))} clip.wav"
            )
        return np.frombuffer(data[: len(data) // 4 * 4], dtype="<f4").reshape(-1, 1)
