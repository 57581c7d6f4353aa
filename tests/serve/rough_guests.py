"""Guests of the servers under load: those who keep to the protocol, and those who do not.

Each is called as guest(place, dice), over and over: the place is a port, the studio's a port and a
token, and `dice` is a seeded random generator. An OSError means that the server hung up.
"""

import base64
import concurrent.futures
import contextlib
import functools
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from typing import NamedTuple

import numpy as np

from tapword.assets import CLIPS
from tapword.audio import files as audio

WORDS = ("coffee", "lamp", "music")
# 503: the studio has no place left.
BUSY = 503


def clip(word: str, number: int) -> np.ndarray:
    return audio.read(sorted((CLIPS / word).glob("*.ogg"))[number])


@functools.cache
def samples(*words: str) -> bytes:
    """Words with pauses around them and a little noise, s16le."""
    quiet = np.zeros(11_200, dtype=np.float32)
    sound = np.concatenate([quiet, *(part for word in words for part in (clip(word, 11), quiet))])
    sound = sound + np.random.default_rng(0).normal(0, 1e-3, len(sound))
    return (np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0))


def reset(line: socket.socket) -> None:
    """Let the connection break off rather than end."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def begin_many(port: int, first: bytes) -> None:
    """Begin on many connections, end on none; half of them are reset."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connect(port)) for _ in range(20)]
        for line in lines:
            line.sendall(first)
        time.sleep(0.5)
        for line in lines[::2]:
            reset(line)


# The studio, which is a port and a token.


class Place(NamedTuple):
    port: int
    token: str

    def head(self, method: str, path: str, more: str = "") -> bytes:
        """Head of a request that shows the token, but for the empty line at its end."""
        host = f"127.0.0.1:{self.port}"
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
            f"Authorization: Bearer {self.token}\r\n{more}"
        ).encode()


def request(
    place: Place, method: str, path: str, body: bytes = b"", length: int | None = None
) -> tuple[int, bytes]:
    """Ask the studio; give the status and the body."""
    length = len(body) if length is None else length
    more = f"Content-Length: {length}\r\nConnection: close\r\n\r\n"
    with connect(place.port) as line:
        line.sendall(place.head(method, path, more) + body)
        answer = b""
        while part := line.recv(1 << 16):
            answer += part
    if not answer:
        raise ConnectionError("hung up")
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), content


def web_page(place, dice):
    status, content = request(place, "GET", dice.choice(("/", "/api/state", "/static/main.js")))
    assert status in (200, BUSY) and content


def web_teach(place, dice):
    status, _ = request(place, "POST", f"/api/learn?word={dice.choice(WORDS)}", samples("lamp"))
    assert status in (200, BUSY)


def web_too_large(place, dice):
    """Send more than is taken; the studio may hang up before all of it was sent."""
    with contextlib.suppress(ConnectionError):
        claim = dice.choice((None, 10**12))
        status, content = request(place, "POST", "/api/learn?word=x", bytes(1 << 20), claim)
        assert status in (413, BUSY) and content


def web_slow(place, dice):
    """Send a request letter by letter, and go without a word."""
    with connect(place.port) as line:
        for letter in b"POST /api/learn?word=lamp HTTP/1.1\r\nHost: 127":
            line.sendall(bytes([letter]))
            time.sleep(0.05)


def web_half_open(place, dice):
    begin_many(place.port, b"GET /api/state HTTP/1.1\r\nHost: ")


def web_unread(place, dice):
    """Ask for the model many times and read none of it."""
    with connect(place.port) as line:
        line.sendall(20 * place.head("GET", "/api/model", "\r\n"))
        time.sleep(0.5)


@contextlib.contextmanager
def live(place: Place):
    """Open the studio's live line, by hand: what follows need not be WebSocket frames."""
    key = base64.b64encode(os.urandom(16)).decode()
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    )
    with connect(place.port) as line:
        line.sendall(place.head("GET", "/api/live", upgrade))
        if b" 101 " not in line.recv(4096):
            raise ConnectionError("no place")
        yield line


def frame(content: bytes, first: int = 0x82, length: int | None = None) -> bytes:
    """Make a masked WebSocket frame: the mask is zero, the length what is claimed."""
    size = len(content) if length is None else length
    return struct.pack(">BBQ", first, 0xFF, size) + bytes(4) + content


def web_listen(place, dice):
    """Send sound as a page does; read what comes, or nothing of it."""
    sound, reads = samples("lamp", "music"), dice.random() < 0.5
    with live(place) as line:
        line.sendall(frame(b'{"type": "listen"}', 0x81))
        for start in range(0, len(sound), 2560):
            line.sendall(frame(sound[start : start + 2560]))
            if reads:
                line.recv(1 << 16)


def web_record(place, dice):
    """Record a take as a page does; keep it, throw it away, or leave in the middle."""
    sound = samples("lamp")
    with live(place) as line:
        line.sendall(frame(b'{"type": "record", "id": 1}', 0x81))
        for start in range(0, len(sound), 2560):
            line.sendall(frame(sound[start : start + 2560]))
        command = dice.choice(
            (
                b'{"type": "cancel"}',
                b'{"type": "keep", "id": 1, "word": "lamp", "anyway": true}',
                b"",
            )
        )
        if command:
            line.sendall(frame(command, 0x81))
            line.recv(1 << 16)


def web_broken_frames(place, dice):
    with live(place) as line:
        line.sendall(
            dice.choice(
                (
                    dice.randbytes(500),
                    frame(b"abc"),
                    frame(b"\xff\xfe", 0x81),
                    frame(b"[" * 1900, 0x81),
                    frame(b'{"type": "correct", "id": 9, "word": null}', 0x81),
                    frame(bytes(1 << 16)),
                    frame(b"", length=1 << 62),
                    frame(b"part", 0x02),
                    frame(b"reserved", 0xF5),
                    b"\x82\x04open",
                )
            )
        )
        line.settimeout(0.5)
        while line.recv(1 << 16):
            pass


# Those who mean harm; the first four have no token.


def web_refused(place, dice):
    """Go on with what was refused, a little at a time."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connect(place.port)) for _ in range(60)]
        head = f"POST /api/learn?word=x HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\n"
        for line in lines:
            line.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode())
        drip(lines)


def web_dripped_heads(place, dice):
    """Begin requests and go on with them a little at a time."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connect(place.port)) for _ in range(60)]
        for line in lines:
            line.sendall(b"GET / HTTP/1.1\r\nX: ")
        drip(lines)


def drip(lines: list[socket.socket]) -> None:
    """Send a byte now and then until the server has hung up on all."""
    end = time.monotonic() + 2
    while lines and time.monotonic() < end:
        time.sleep(0.1)
        for line in list(lines):
            try:
                line.sendall(b"x")
            except OSError:
                lines.remove(line)


def web_flood(place, dice):
    """Come and go as fast as can be, with a token that is wrong."""
    for _ in range(100):
        with connect(place.port) as line:
            line.sendall(f"GET /?token=x HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\n\r\n".encode())
            reset(line)


def web_tiny_chunks(place, dice):
    """Send a body that is all seams."""
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(place.port) as line:
        line.sendall(head.encode() + 50_000 * b"1\r\nx\r\n")


def web_unread_downloads(place, dice):
    """Ask for the model many times on many lines, and read none of it."""
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            line = stack.enter_context(connect(place.port))
            line.sendall(20 * place.head("GET", "/api/model", "\r\n"))
        time.sleep(2)


def web_tiny_frames(place, dice):
    """Send sound sample by sample, and read nothing."""
    with live(place) as line:
        line.settimeout(2)
        line.sendall(frame(b'{"type": "listen"}', 0x81))
        for _ in range(20):
            line.sendall(1_000 * b"\x82\x82\0\0\0\0\x01\x01")


def web_pings(place, dice):
    """Ask for answers as fast as can be, and read none."""
    with live(place) as line:
        line.settimeout(2)
        for _ in range(100):
            line.sendall(1_000 * (b"\x89\xfd\0\0\0\0" + bytes(125)))


def web_empty_parts(place, dice):
    """Send a message of empty parts without end."""
    with live(place) as line:
        line.settimeout(2)
        line.sendall(b"\x02\x80\0\0\0\0" + 10_000 * b"\0\x80\0\0\0\0")


HOSTILE = [
    *(web_refused, web_dripped_heads, web_flood, web_tiny_chunks),
    *(web_unread_downloads, web_tiny_frames, web_tiny_frames, web_pings, web_empty_parts),
]

STUDIO = [
    *(web_page, web_page, web_teach, web_too_large, web_slow, web_half_open, web_unread),
    *(web_listen, web_listen, web_record, web_broken_frames, web_broken_frames),
]

# The Wyoming service: a line of JSON, then as many bytes of data and payload as it says.


def event(kind: object, payload: bytes = b"", **more: object) -> bytes:
    header = {"type": kind, "payload_length": len(payload)} | more
    return json.dumps(header).encode() + b"\n" + payload


def chunk(sound: bytes) -> bytes:
    return event("audio-chunk", sound, data={"rate": 16_000, "width": 2, "channels": 1})


def described(port: int) -> list[str]:
    """Ask the service for its words."""
    with connect(port) as line, line.makefile("rb") as answer:
        line.sendall(event("describe"))
        header = json.loads(answer.readline() or b"{}")
        if not header:
            raise ConnectionError("no place")
        data = json.loads(answer.read(header["data_length"]))
    return [word["name"] for word in data["wake"][0]["models"]]


def wake_describe(port, dice):
    assert set(described(port)) == set(WORDS)


def wake_listen(port, dice):
    """Send a word and wait until it is heard."""
    word = dice.choice(WORDS)
    sound = samples(word)
    with connect(port) as line, line.makefile("rb") as answers:
        line.sendall(event("audio-start", data={"rate": 16_000, "width": 2, "channels": 1}))
        for start in range(0, len(sound), 2560):
            line.sendall(chunk(sound[start : start + 2560]))
        line.sendall(event("audio-stop"))
        header = json.loads(answers.readline() or b"{}")
        if header:
            data = json.loads(answers.read(header.get("data_length") or 0) or b"{}")
            assert (header["type"], data.get("name")) == ("detection", word)


def wake_garbage(port, dice):
    with connect(port) as line:
        line.sendall(
            dice.choice(
                (
                    dice.randbytes(2000),
                    b"GET / HTTP/1.1\r\n\r\n",
                    b"{" * 100_000,
                    b"[" * 5_000 + b"\n",
                    event(7),
                    event("audio-chunk", data=[1]),
                    event("audio-chunk", b"odd", data={"rate": 16_000, "width": 2, "channels": 1}),
                    event("audio-start", data={"rate": -1, "width": 99, "channels": "many"}),
                    event("detect", data={"names": 3}),
                    event("describe", payload_length=1 << 40),
                    event("describe", payload_length=-5, data_length="x"),
                )
            )
        )
        line.settimeout(0.5)
        while line.recv(1 << 16):
            pass


def wake_half_open(port, dice):
    begin_many(port, event("audio-chunk", payload_length=2560) + bytes(100))


def wake_unread(port, dice):
    """Ask without ever reading, until the service hangs up."""
    with contextlib.suppress(ConnectionError), connect(port) as line:
        line.settimeout(1)
        for _ in range(2_000):
            line.sendall(event("describe"))


def wake_slow(port, dice):
    with connect(port) as line:
        for letter in event("describe"):
            line.sendall(bytes([letter]))
            time.sleep(0.05)


# Each of these goes on sending what costs a careless service the most.
WIDE = {"rate": 192_000, "width": 4, "channels": 8}
NAMES = json.dumps({"names": [f"name {number}" for number in range(70_000)]}).encode()
FLOODS = {
    "tiny chunks": chunk(b"\1\0") * 1000,
    "empty chunks": chunk(b"") * 1000,
    "wide sound": event("audio-chunk", bytes(range(256)) * 3750, data=WIDE),
    "a recording": chunk(samples(*WORDS)),
    "names": event("detect", data_length=len(NAMES)) + NAMES,
    "many names": event("detect", data={"names": [f"\x1b[{n}m" for n in range(90)]}),
    "questions": event("describe") * 100,
    "garbage": b"\x1b]0;title\x07" * 1000 + b"\n",
}


def flood(port: int, content: bytes, seconds: float) -> None:
    """Send the same again and again, on a new connection whenever the service hangs up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), connect(port) as line:
            line.settimeout(1)
            while time.monotonic() < end:
                line.sendall(content)
        time.sleep(0.01)


def wake_flood(port, dice):
    flood(port, FLOODS[dice.choice(sorted(FLOODS))], 1.0)


def heard_after(port: int, address: str = "127.0.0.1") -> float:
    """Say a word live, 80 ms at a time; give the seconds from its beginning to the detection."""
    sound = samples("lamp")
    with connect(port, address) as line, line.makefile("rb") as answers:
        begun = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            answer = thread.submit(lambda: (answers.readline(), time.perf_counter()))
            for start in range(0, len(sound), 2560):
                time.sleep(max(0.0, begun + start / 32_000 - time.perf_counter()))
                line.sendall(chunk(sound[start : start + 2560]))
            header, at = answer.result()
    assert b'"detection"' in header, header
    return at - begun


WYOMING = [
    *(wake_describe, wake_listen, wake_listen, wake_listen, wake_garbage, wake_garbage),
    *(wake_half_open, wake_unread, wake_slow, wake_flood, wake_flood),
]


def come_again(guest, place, seed: int) -> None:
    dice = random.Random(seed)
    while True:
        with contextlib.suppress(OSError):
            guest(place, dice)
        # A server that hangs up at once is not asked more than a thousand times a second.
        time.sleep(0.001)


if __name__ == "__main__":
    # Attack a studio, given its port and token, until this process is ended.
    attacked = Place(int(sys.argv[1]), sys.argv[2])
    for number, hostile in enumerate(HOSTILE):
        threading.Thread(target=come_again, args=(hostile, attacked, number)).start()
