"""Processor time of `tapword home` while satellites stream a quiet room and a page is open.

    python benchmarks/home_load.py [SATELLITES] [SECONDS]

Linux only: it reads /proc.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tapword import Spotter
from tapword.assets import CLIPS

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.serve.home import PlayingSatellite

WORDS = ["lamp", "music", "coffee"]


def cpu_s(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(found(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1000


def found(pattern: str, text: str) -> re.Match[str]:
    """Search for what must be there."""
    match = re.search(pattern, text)
    if not match:
        raise ValueError(f"no {pattern} in {text!r}")
    return match


def drain(page: ClientConnection) -> None:
    """Read what a page is sent."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            page.recv()


def main(satellites: int = 8, seconds: float = 60) -> None:
    """Measure, and print the share of one core."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model = Path(folder, "home.tap")
        spotter = Spotter()
        for word in WORDS:
            clips = sorted((CLIPS / word).glob("*_0.ogg"))[:5]
            spotter.learn_many(clips, [word] * len(clips))
        spotter.save(model)
        command = [sys.executable, "-m", "tapword", "home", str(model), "--port", "0"]
        process = subprocess.Popen(
            [*command, "--uri", "tcp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout
        text = ""
        while "token=" not in text:
            text += process.stdout.readline()
        port = int(found(r"port (\d+)", text)[1])
        origin, token = found(r"(http://\S+)/\?token=(\S+)", text).groups()
        for number in range(satellites):
            stack.enter_context(PlayingSatellite(port, f"127.0.0.{10 + number}"))
        live = f"{origin.replace('http', 'ws')}/api/live"
        headers = {"authorization": f"Bearer {token}"}
        page = stack.enter_context(connect(live, origin=Origin(origin), additional_headers=headers))
        threading.Thread(target=drain, args=(page,), daemon=True).start()
        time.sleep(5)
        before, began = cpu_s(process.pid), time.monotonic()
        time.sleep(seconds)
        used = (cpu_s(process.pid) - before) / (time.monotonic() - began)
        print(
            f"{satellites} satellites and a page: {100 * used:.1f}% of one core, "
            f"{memory_mb(process.pid):.0f} MB"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("satellites", nargs="?", type=int, default=8)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    main(**vars(parser.parse_args()))
