"""The words of a board over a serial line, in frames that carry a length and a checksum.

The host asks and the board answers. `export/c/core/link.c` is the board's side. Other bytes, such
as a log, may stand between frames.
"""

import contextlib
import struct
import time
import zlib
from collections.abc import Iterator
from typing import Protocol

from tapword.errors import InputError, MissingExtra
from tapword.export.c import state as states

START = b"\x01tw"
# Kind, number, and length of the content, which follows; then a CRC-32 of all three.
HEAD = struct.Struct("<BBH")
SEAL = struct.Struct("<I")
STATUS = struct.Struct("<i")
PLACE = struct.Struct("<I")
# What the board says of itself: version of the line, fingerprint of its model, words, room for a
# state.
HELLO = struct.Struct("<IQII")
VERSION = 1
# The longest content of a frame.
FRAME_BYTES = 512
PART_BYTES = FRAME_BYTES - PLACE.size
BAUD = 115_200
# A board may start when its port is opened, and checks a take for seconds.
HELLO_S, ANSWER_S, TRIES = 2.0, 10.0, 5
# Ends a frame that was cut off on its way to the board.
FLUSH = bytes(len(START) + HEAD.size + FRAME_BYTES + SEAL.size)
# Codes of the C core.
REFUSALS = {
    -1: "it has room for fewer words: build its program with a larger TAPWORD_MAX_WORDS",
    -2: "a word is too long for it",
    -10: "the words were damaged on their way",
    -11: "its program has a model of other parts: export it again from this model",
    -12: "it has room for fewer words: build its program with a larger TAPWORD_MAX_WORDS",
    -15: "it has the words, but could not store them",
    -16: "it is teaching a word; try again when it is done",
}


class Port(Protocol):
    """A serial port, as pyserial has it."""

    timeout: float | None

    def read(self, size: int = 1) -> bytes:
        """Read bytes until there are `size` or time is over."""

    def write(self, data: bytes) -> int | None:
        """Write bytes."""


class Line:
    """A board behind a port; `name` is what messages call it."""

    def __init__(self, port: Port, name: str):
        self.port, self.name = port, name
        self._number = 0
        self._waiting = b""

    def read_state(self) -> bytes:
        """Read what the board learned."""
        self._hello()
        size = self._status("s")
        content = b""
        while len(content) < size:
            answer = self.ask("r", PLACE.pack(len(content)))
            part = answer[PLACE.size :]
            if not part or answer[: PLACE.size] != PLACE.pack(len(content)):
                raise InputError(f"{self.name}: the board ended the transfer")
            content += part
        self.ask("e")
        return content

    def write_state(self, content: bytes) -> None:
        """Replace what the board learned; it keeps its words unless all arrives and fits."""
        self._hello()
        self._status("l", PLACE.pack(len(content)))
        for start in range(0, len(content), PART_BYTES):
            self._status("w", PLACE.pack(start) + content[start : start + PART_BYTES])
        self._status("c")

    def ask(self, kind: str, content: bytes = b"", wait_s: float | None = None) -> bytes:
        """Ask for something until the board answers, and give the answer's content."""
        self._number = (self._number + 1) % 256
        body = HEAD.pack(ord(kind), self._number, len(content)) + content
        frame = START + body + SEAL.pack(zlib.crc32(body))
        for turn in range(TRIES):
            self.port.write(frame if turn == 0 else FLUSH + frame)
            answer = self._answer(kind, ANSWER_S if wait_s is None else wait_s)
            if answer is not None:
                return answer
        raise InputError(
            f"{self.name}: no board with tapword answers; check the port, and close other programs "
            "that use it"
        )

    def _hello(self) -> None:
        answer = self.ask("h", wait_s=HELLO_S)
        if len(answer) != HELLO.size or HELLO.unpack(answer)[0] != VERSION:
            raise InputError(f"{self.name}: the board speaks another version of this protocol")

    def _status(self, kind: str, content: bytes = b"") -> int:
        answer = self.ask(kind, content)
        status = STATUS.unpack(answer)[0] if len(answer) == STATUS.size else -10
        if status < 0:
            reason = REFUSALS.get(status, f"its code {status}")
            raise InputError(f"{self.name}: the board refused: {reason}")
        if status > states.MOST_BYTES:
            raise InputError(f"{self.name}: the board offers {status:,} bytes, too many")
        return status

    def _answer(self, kind: str, wait_s: float) -> bytes | None:
        """Read until the answer to the last question is there; None if time is over."""
        end_s = time.monotonic() + wait_s
        while True:
            while (found := self._frame()) is not None:
                answered, number, content = found
                if answered == ord(kind.upper()) and number == self._number:
                    return content
            left = end_s - time.monotonic()
            if left <= 0:
                return None
            self.port.timeout = left
            more = self.port.read(1)
            self.port.timeout = 0
            self._waiting += more + (self.port.read(4096) if more else b"")

    def _frame(self) -> tuple[int, int, bytes] | None:
        """Take a whole frame from what was read; other bytes before it are dropped."""
        while (start := self._waiting.find(START)) >= 0:
            self._waiting = self._waiting[start:]
            head = self._waiting[len(START) :]
            if len(head) < HEAD.size:
                return None
            kind, number, size = HEAD.unpack_from(head)
            whole = HEAD.size + size + SEAL.size
            if size <= FRAME_BYTES and len(head) < whole:
                return None
            if size <= FRAME_BYTES:
                body, [seal] = head[: HEAD.size + size], SEAL.unpack_from(head, HEAD.size + size)
                if zlib.crc32(body) == seal:
                    self._waiting = head[whole:]
                    return kind, number, body[HEAD.size :]
            # It was damaged, or is none: look behind its first byte.
            self._waiting = self._waiting[1:]
        self._waiting = self._waiting[-len(START) :]
        return None


def read(port: str) -> bytes:
    """Read what the board on a serial port learned."""
    with _opened(port) as line:
        return line.read_state()


def write(port: str, content: bytes) -> None:
    """Replace what the board on a serial port learned."""
    with _opened(port) as line:
        line.write_state(content)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[Line]:
    try:
        import serial
    except ImportError as error:
        raise MissingExtra("--port", "pyserial", "serial") from error
    try:
        with serial.Serial(name, BAUD, write_timeout=ANSWER_S) as port:
            yield Line(port, name)
    except (OSError, ValueError) as error:
        # pyserial's errors are of these kinds.
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot use {name}: {error}") from error
