"""An exported header with a program around it, which takes orders and gives answers."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tapword import Spotter
from tapword.export.c import header as c_header
from tapword.export.c.amalgamation import ram
from tapword.listening.decider import Event

WARNINGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
# Events that one call of a listener has room for.
ROOM = 100
DRIVER = Path(__file__).with_name("export_driver.c")


def compile_c(*arguments: str | Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    subprocess.run([compiler, *WARNINGS, "-O2", *arguments, "-lm"], check=True)


class Device:
    """An exported header, compiled; orders are given all at once and answered in their order."""

    def __init__(self, spotter: Spotter, folder: Path, *flags: str, **options):
        self.prepare(c_header.build(spotter, **options), folder)
        compile_c(*flags, f"-I{folder}", DRIVER, "-o", self.program)

    def prepare(self, header: c_header.Header, folder: Path) -> None:
        """Write a header where the compiler finds it."""
        self.header, self.program = header, folder / "device"
        (folder / "model.h").write_text(header.text, encoding="utf-8")
        self.orders, self.answer, self.place = b"", b"", 0

    @property
    def ram(self) -> list[int]:
        """Bytes of the model and of a listener."""
        return ram(self.header.text)

    def order(self, letter: str, *parts) -> None:
        """Numbers go as float32 behind their count; texts behind their length."""
        self.orders += letter.encode()
        for part in parts:
            if isinstance(part, str):
                part = part.encode()
                self.orders += len(part).to_bytes(4, "little") + part
            else:
                self.orders += np.ascontiguousarray(part).tobytes()

    def run(self) -> None:
        done = subprocess.run([self.program], input=self.orders, capture_output=True, check=True)
        self.orders, self.answer, self.place = b"", done.stdout, 0

    def take(self, count: int, dtype="<f4") -> np.ndarray:
        result = np.frombuffer(self.answer, dtype, count, self.place)
        self.place += result.nbytes
        return result

    def number(self) -> int:
        return int(self.take(1, "<i4")[0])


class Listening(Device):
    """A device that listens; what it heard is read in the order in which it was asked to."""

    def listen(self, sound: np.ndarray, chunk: int, room: int = ROOM) -> None:
        self.order("P", np.uint32(chunk), np.uint32(room), *counted(sound))

    def whole(self, sound: np.ndarray, chunk: int = 1_280) -> None:
        self.order("B")
        self.listen(sound, chunk)
        self.order("F", np.uint32(ROOM))

    def heard(self, words: list[str]) -> list[Event | int]:
        """Events, and errors, of one order."""
        found: list[Event | int] = []
        while number := self.number():
            if number < 0:
                found.append(number)
                continue
            word, sure = self.number(), self.number()
            [score], times = self.take(1), self.take(2, "<f8")
            found.append(Event(words[word], *times.tolist(), float(score), sure))
        return found


def counted(array: np.ndarray) -> list:
    return [np.uint32(len(array)), array.astype(np.float32)]
