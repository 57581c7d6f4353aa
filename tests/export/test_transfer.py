"""The words of a board move home and back, by a serial line and by http."""

import contextlib
import http.server
import os
import pty
import re
import socket
import struct
import subprocess
import threading
import time
import tty
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tapword import Spotter
from tapword.errors import InputError
from tapword.export.boards import line
from tapword.export.c import state as states
from tapword.export.c.amalgamation import SOURCES
from tests.export.test_board import compile_board, said


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return compile_board(tmp_path_factory.mktemp("board"), "board_driver.c")


def taught(*words: str) -> Spotter:
    spotter = states.new("diagonal")
    for word in words:
        spotter.learn(said(word, 0), word)
    return spotter


@contextlib.contextmanager
def board(program: Path, folder: Path) -> Iterator[str]:
    """Run a board on one end of a pseudo-terminal, and give the path of the other."""
    ours, theirs = pty.openpty()
    far, near = pty.openpty()
    for end in (ours, theirs, far, near):
        tty.setraw(end)
    pump = [
        threading.Thread(target=copy, args=ends, daemon=True) for ends in ((ours, far), (far, ours))
    ]
    for thread in pump:
        thread.start()
    command = [program, os.ttyname(theirs)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as running:
        try:
            yield os.ttyname(near)
        finally:
            running.kill()
            for end in (ours, theirs, far, near):
                os.close(end)


def copy(source: int, target: int) -> None:
    with contextlib.suppress(OSError):
        while part := os.read(source, 4096):
            os.write(target, part)


class Wire:
    """A port without pyserial; `hurt` changes what comes from the board or goes there."""

    def __init__(self, path: str, hurt=lambda data, sent: data):
        self.end = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self.timeout: float | None = None
        self.hurt, self.turn = hurt, 0

    def read(self, size: int = 1) -> bytes:
        import select

        if not select.select([self.end], [], [], self.timeout)[0]:
            return b""
        return self.hurt(os.read(self.end, size), False)

    def write(self, data: bytes) -> int:
        return os.write(self.end, self.hurt(data, True))

    def close(self) -> None:
        os.close(self.end)


@pytest.fixture
def wire(program, tmp_path) -> Iterator[line.Line]:
    with board(program, tmp_path) as path, contextlib.closing(Wire(path)) as port:
        yield line.Line(port, path)


def words_in(content: bytes) -> list[str]:
    return list(states.load("board", content).words)


def test_words_go_to_a_board_and_back(wire):
    assert words_in(wire.read_state()) == []
    content = states.dump(taught("lamp", "door"))
    assert len(content) > 10 * line.PART_BYTES
    wire.write_state(content)
    assert wire.read_state() == content


def test_a_board_keeps_words_that_came_over_the_line(program, tmp_path):
    content = states.dump(taught("lamp"))
    for turn in range(2):
        with board(program, tmp_path) as path, contextlib.closing(Wire(path)) as port:
            found = line.Line(port, path)
            assert words_in(found.read_state()) == (["lamp"] if turn else [])
            if not turn:
                found.write_state(content)


def test_frames_that_are_damaged_or_lost_are_asked_for_again(wire, monkeypatch):
    monkeypatch.setattr(line, "ANSWER_S", 0.2)
    monkeypatch.setattr(line, "HELLO_S", 0.2)
    turns = iter(range(10**6))

    def hurt(data: bytes, sent: bool) -> bytes:
        turn = next(turns)
        if turn % 31 == 3:
            return b"" if turn % 2 else data[: len(data) // 2]
        if turn % 41 == 5:
            return bytes([data[0] ^ 64]) + data[1:]
        return data

    content = states.dump(taught("lamp"))
    wire.port.hurt = hurt
    wire.write_state(content)
    assert wire.read_state() == content


def test_a_transfer_that_breaks_off_changes_nothing(wire):
    content = states.dump(taught("lamp"))
    wire.write_state(content)
    other = states.dump(taught("music", "door"))
    wire._status("l", line.PLACE.pack(len(other)))
    wire._status("w", line.PLACE.pack(0) + other[:500])
    with pytest.raises(InputError, match="damaged on their way"):
        wire._status("c")
    with pytest.raises(InputError, match="damaged on their way"):
        wire.write_state(other[:-1] + b"x")
    assert wire.read_state() == content


def test_a_board_refuses_what_does_not_fit(wire):
    many = states.new("diagonal")
    vector = said("lamp", 0)[:672]
    for number in range(9):
        many.learner.learn_one(vector + number, f"word {number}")
    for content, message in (
        (states.dump(many), "room for fewer words"),
        (other_parts(), "a model of other parts"),
        (b"x" * 100, "damaged on their way"),
    ):
        with pytest.raises(InputError, match=message):
            wire.write_state(content)
    assert words_in(wire.read_state()) == []


def other_parts() -> bytes:
    """Give the state of a model with another fingerprint."""
    content = bytearray(states.dump(taught("lamp")))
    content[8] ^= 1
    content[-4:] = struct.pack("<I", zlib.crc32(content[:-4]))
    return bytes(content)


def test_where_no_board_is_there_is_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr(line, "HELLO_S", 0.05)
    end, other = pty.openpty()
    tty.setraw(other)
    wire = Wire(os.ttyname(other))
    with contextlib.closing(wire), pytest.raises(InputError, match="no board with tapword answers"):
        line.Line(wire, "/dev/x").read_state()
    os.close(end)
    os.close(other)


def test_refusals_are_codes_of_the_core():
    named = re.findall(r"#define (TAPWORD_\w+) \((-\d+)\)", (SOURCES / "tapword.h").read_text())
    codes = {int(code): name for name, code in named}
    assert [codes[code].removeprefix("TAPWORD_") for code in line.REFUSALS] == [
        *("FULL", "BAD_WORD", "BAD_STATE", "OTHER_STATE", "NO_ROOM", "NOT_STORED", "BUSY")
    ]


def test_the_commands_use_a_port(run, program, tmp_path):
    pytest.importorskip("serial")
    model, back = tmp_path / "home.tap", tmp_path / "back.tap"
    taught("lamp", "door").save(model)
    with board(program, tmp_path) as path:
        code, out, err = run("export", model, "--port", path)
        assert code == 0 and "2 words" in out, err
        code, out, err = run("import", "--port", path, back)
        assert code == 0 and "2 words, 2 samples" in out, err
    assert Spotter.load(back).words == {"lamp": 1, "door": 1}
    for arguments, message in (
        (("export", model, "x.bin", "--port", path), "either OUT, or --port"),
        (("export", model), "either OUT, or --port"),
        (("export", model, "--port", path, "--to", "arduino"), "--to writes a folder"),
        (("import", "--port", path, back, back), "takes the place of STATE"),
        (("import", back), "give OUT"),
        (("import", "--port", tmp_path / "none", back), "cannot use"),
    ):
        code, _, err = run(*arguments)
        assert code == 2 and message in err


# Http.


class Words(http.server.BaseHTTPRequestHandler):
    """A board that answers, and misbehaves as its path says."""

    kept = b""

    def do_GET(self) -> None:
        content = type(self).kept
        self.send_response(200)
        size = 10**9 if self.path == "/huge" else len(content) + (self.path == "/cut")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/elsewhere":
            self.send_response(307)
            self.send_header("Location", "/words")
        elif self.path == "/full":
            self.send_response(400)
        else:
            self.send_response(200)
            type(self).kept = content
        said = b"TAPWORD_FULL: no room" if self.path == "/full" else b"ok"
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    Words.kept = states.dump(taught("lamp"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Words) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_commands_use_an_address(run, address, tmp_path):
    model, back = tmp_path / "home.tap", tmp_path / "back.tap"
    code, out, err = run("import", f"{address}/words", back)
    assert code == 0 and "1 word, 1 sample" in out, err
    taught("music", "door").save(model)
    code, out, err = run("export", model, f"{address}/words")
    assert code == 0 and "2 words" in out, err
    assert words_in(Words.kept) == ["music", "door"]
    before = back.read_bytes()
    for path, message in (("cut", "1 byte"), ("huge", "offered")):
        code, _, err = run("import", f"{address}/{path}", back)
        assert code == 2 and message in err and back.read_bytes() == before
    for path, message in (("full", "400 TAPWORD_FULL: no room"), ("elsewhere", "307")):
        code, _, err = run("export", model, f"{address}/{path}")
        assert code == 2 and message in err
    assert words_in(Words.kept) == ["music", "door"]


def test_a_board_that_does_not_answer_ends_in_a_message(run, tmp_path, monkeypatch):
    from tapword.export.boards import address as addresses

    monkeypatch.setattr(addresses, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/words"
        began = time.monotonic()
        code, _, err = run("import", url, tmp_path / "new.tap")
        assert code == 2 and f"cannot read {url}" in err
        assert time.monotonic() - began < 20
    assert not (tmp_path / "new.tap").exists()
