"""A home under attack from all sides: its port for satellites, its page, and its commands."""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

import tapword
from tapword.serve.studio.ingress import HEADER
from tests.conftest import ROOT
from tests.serve import rough_guests
from tests.serve.ingress_proxy import PATH, PROXY
from tests.serve.rough_guests import (
    FLOODS,
    HOSTILE,
    WORDS,
    Place,
    come_again,
    connect,
    flood,
    frame,
    heard_after,
    live,
    request,
    wake_garbage,
    wake_half_open,
    wake_slow,
    wake_unread,
    web_broken_frames,
    web_half_open,
    web_slow,
    web_too_large,
)
from tests.serve.test_wyoming import teach_words

# What an honest answer may take longer than alone, in the best of the rounds.
DELAY_S = 0.25
MEMORY_MB = 150.0
LOG_BYTES = 150_000
IDLE = 64
# An address has a share of the connections: the attackers have another.
SATELLITE = "127.0.0.9"
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="reads memory from /proc"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "home.tap"
    teach_words(path, WORDS)
    return path


@contextlib.contextmanager
def served(path, log):
    """Run the command as the app does; give its process, the port of its service and its page."""
    command = [sys.executable, "-u", "-m", "tapword", "home", str(path), "--port", "0"]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, "--uri", "tcp://127.0.0.1:0", "--ingress", PROXY, "--commands"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"MALLOC_ARENA_MAX": "2"},
        ) as process,
    ):
        try:
            text = ""
            while not (page := re.search(r":(\d+)/\?token=(\S+)", text)):
                text += process.stdout.readline()
            port = int(re.search(r"port (\d+)", text)[1])
            yield process, port, Place(int(page[1]), page[2])
            assert process.poll() is None
        finally:
            process.terminate()
            # Nobody reads further commands, so what is left of them cannot be flushed.
            with contextlib.suppress(OSError):
                process.stdin.close()


@contextlib.contextmanager
def attack(port: int, place: Place, each: int):
    """Run all attackers in a process of their own, which takes no time of the honest ones."""
    command = [sys.executable, "-m", "tests.serve.test_home_hostile", port, *place, each]
    with subprocess.Popen(list(map(str, command)), cwd=ROOT) as process:
        try:
            yield
        finally:
            process.kill()


def begin_attack(port: int, place: Place, each: int) -> None:
    """Begin what goes on until this process is ended."""
    for content in FLOODS.values():
        for _ in range(each):
            threading.Thread(target=flood, args=(port, content, 3600.0)).start()
    for guests, where in ((ON_THE_PAGE, place), (ON_THE_SERVICE, port)):
        for number, guest in enumerate(guests):
            threading.Thread(target=come_again, args=(guest, where, number)).start()


def memory_mb(process) -> float:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forged(place, dice) -> bytes:
    """Claim from elsewhere to be Home Assistant's proxy: to read, to teach, and to listen in."""
    method, target = dice.choice(
        (("GET", "/"), ("GET", "/api/home"), ("POST", "/api/home/correct"), ("GET", "/api/live"))
    )
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: homeassistant.local\r\n{HEADER}: {PATH}\r\n"
        "X-Remote-User-Id: 1\r\nX-Forwarded-For: 172.30.32.2\r\n"
        "Origin: http://homeassistant.local\r\nContent-Length: 30\r\n\r\n"
    )
    with connect(place.port) as line:
        line.sendall(head.encode() + b'{"id": 1, "word": "stolen"}   ')
        answer = line.recv(1 << 16)
    assert b" 403 " in answer.partition(b"\r\n")[0] or not answer, answer
    return answer


def deaf(place, dice):
    """Use satellites as microphones, one after the other, and read nothing of their sound."""
    with live(place) as line:
        line.settimeout(2)
        for number in (1, 2, 10**9, 3, None):
            command = json.dumps({"type": "satellite", "id": number})
            line.sendall(frame(command.encode(), 0x81))
            time.sleep(dice.random())


ON_THE_PAGE = [
    *(*HOSTILE, forged, forged, deaf, deaf),
    *(web_too_large, web_slow, web_half_open, web_broken_frames),
]
ON_THE_SERVICE = [wake_garbage, wake_half_open, wake_unread, wake_slow]

# None of them changes anything.
COMMANDS = [
    "nonsense",
    "{" * 3000,
    "x" * 9000,
    json.dumps({"command": "reject", "entry": 10**9}),
    json.dumps({"command": "teach", "entry": 10**9, "word": "stolen"}),
    json.dumps({"command": "sensitivity", "word": "none", "value": 0.5}),
    json.dumps({"command": "pause", "seconds": 0}),
    "\x1b]0;title\x07",
]


def command_flood(process, end):
    """Write commands as fast as they are read."""
    with contextlib.suppress(OSError, ValueError):
        while not end.is_set():
            process.stdin.write("\n".join(COMMANDS) + "\n")
            process.stdin.flush()


def page_waits(place) -> float:
    begun = time.monotonic()
    assert request(place, "GET", "/api/home")[0] == 200
    return time.monotonic() - begun


def under_attack(path, log, rounds: int, each: int):
    """Give honest delays alone and beside all attacks, memory taken, and the log."""
    with served(path, log) as (process, port, place), contextlib.ExitStack() as stack:
        alone = [heard_after(port, SATELLITE) for _ in range(3)]
        page_alone = [page_waits(place) for _ in range(3)]
        assert all(b" 403 " in forged(place, random.Random(n)) for n in range(8))
        before = memory_mb(process)
        for _ in range(IDLE):
            stack.enter_context(connect(port))
        end = threading.Event()
        stack.callback(end.set)
        threading.Thread(target=command_flood, args=(process, end), daemon=True).start()
        stack.enter_context(attack(port, place, each))
        time.sleep(2)
        beside, page_beside, most = [], [], before
        for _ in range(rounds):
            beside.append(heard_after(port, SATELLITE))
            page_beside.append(page_waits(place))
            most = max(most, memory_mb(process))
        end.set()
        assert set(rough_guests.described(port)) == set(WORDS)
        delays = np.array(beside) - min(alone), np.array(page_beside) - min(page_alone)
        return *delays, most - before, log.read_text()


def check(path, log, words_s, page_s, memory, statistic):
    print(f"words {words_s} s, page {page_s} s later; {memory:.0f} MB; {len(log)} bytes of log")
    assert statistic(words_s) < DELAY_S and statistic(page_s) < DELAY_S
    assert memory < MEMORY_MB
    assert len(log) < LOG_BYTES and log.isascii() and "\x1b" not in log and "Traceback" not in log
    assert set(tapword.load(path).words) == set(WORDS)


def test_no_attack_on_a_home_delays_anybody(path, tmp_path):
    found = under_attack(path, tmp_path / "log", rounds=3, each=1)
    # The best of three: this machine has other things to do, too.
    words_s, page_s, memory, log = found
    check(path, log, words_s, page_s, memory, np.min)


@pytest.mark.soak
def test_a_home_withstands_twice_as_much_for_longer(path, tmp_path):
    words_s, page_s, memory, log = under_attack(path, tmp_path / "log", rounds=15, each=2)
    check(path, log, words_s, page_s, memory, np.median)


if __name__ == "__main__":
    attacked, page, token, of_each = sys.argv[1:]
    begin_attack(int(attacked), Place(int(page), token), int(of_each))
