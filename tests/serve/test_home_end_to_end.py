"""A new home from the app's start to a corrected word, with the real programs around it.

The app's own script starts tapword, as in its image. The real wyoming-satellite plays takes into
the real Home Assistant, which streams them to tapword. A real browser teaches through ingress. Only
the Supervisor is a stand-in: its proxies of ingress and of Home Assistant's API.
"""

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tapword
from tests.browser import launched
from tests.serve.ingress_proxy import PROXY, proxied
from tests.serve.test_addon import FOLDER, script_environment
from tests.serve.test_home_assistant import clean, python_with
from tests.serve.test_wyoming import clip, said

# Home Assistant takes its time on a busy machine.
PATIENCE_S = 300
TOKEN = "the-Supervisor's-token"


class Lines:
    """What a program prints, as it comes."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self._new = queue.Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self._new.put(line)

    def wait(self, condition):
        """Give the first new line for which it holds."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._new.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("".join(self.seen)) from None
            self.seen.append(line)
            if condition(line):
                return line


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def programs():
    """Start programs, and end them."""
    started, readers = [], []

    def start(command, **options):
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        started.append(process)
        lines = Lines(process)
        readers.append(lines.thread)
        return process, lines

    yield start
    for process in reversed(started):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE_S)
        process.stdin.close()
    # Their readers end with them.
    for thread in readers:
        thread.join(20)
    for process in started:
        process.stdout.close()


class Speaker:
    """The room around the satellite's microphone: silence, or a clip that is put there."""

    def __init__(self, folder):
        self.folder = folder
        self.script = folder / "microphone.py"
        self.script.write_text(
            "import os, sys, time\n"
            "folder, due = sys.argv[1], time.monotonic()\n"
            "while True:\n"
            "    names = sorted(n for n in os.listdir(folder) if n.endswith('.raw'))\n"
            "    sound = bytes(2048)\n"
            "    if names:\n"
            "        path = os.path.join(folder, names[0])\n"
            "        sound = open(path, 'rb').read()\n"
            "        os.remove(path)\n"
            "    for start in range(0, len(sound), 2048):\n"
            "        sys.stdout.buffer.write(sound[start : start + 2048].ljust(2048, b'\\0'))\n"
            "        sys.stdout.flush()\n"
            "        due += 0.064\n"
            "        time.sleep(max(0, due - time.monotonic()))\n"
        )
        self._count = 0

    @property
    def command(self):
        return f"{sys.executable} {self.script} {self.folder}"

    def say(self, one, gap_s=1.0):
        self._count += 1
        path = self.folder / f"{self._count:03}.part"
        path.write_bytes(said([one], gap_s=gap_s).tobytes())
        path.rename(path.with_suffix(".raw"))
        while path.with_suffix(".raw").exists():
            time.sleep(0.05)

    def keep_saying(self, word, end):
        """Say a word again and again, as somebody who is asked for takes."""
        while not end.is_set():
            for number in (0, 2, 4, 6, 8):
                self.say(clip(word, number))
                if end.wait(1.5):
                    return


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
def test_a_word_is_taught_through_home_assistant(programs, tmp_path):
    yaml = pytest.importorskip("yaml", reason="needs the package pyyaml")
    home_assistant = python_with("homeassistant")
    satellite_python = python_with("wyoming_satellite")
    data, share, room = (tmp_path / name for name in ("data", "share", "room"))
    for folder in (data, share, room):
        folder.mkdir()
    options = yaml.safe_load((FOLDER / "config.yaml").read_text())["options"]
    (data / "options.json").write_text(json.dumps(options | {"events": True}))
    port, page_port, satellite_port, api_port = (free_port() for _ in range(4))
    environment = script_environment(tmp_path, data, share) | {
        "TAPWORD_URI": f"tcp://127.0.0.1:{port}",
        "TAPWORD_PORT": str(page_port),
        "TAPWORD_INGRESS": PROXY,
        "TAPWORD_API": f"http://127.0.0.1:{api_port}/core/api",
        "SUPERVISOR_TOKEN": TOKEN,
    }

    def start_app():
        app, lines = programs(["bash", FOLDER / "run.sh"], env=environment)
        lines.wait(lambda line: "token=" in line)
        return app, lines

    app, _ = start_app()
    speaker = Speaker(room)
    satellite = [
        *(satellite_python, "-m", "wyoming_satellite", "--no-zeroconf", "--name", "kitchen"),
        *("--uri", f"tcp://127.0.0.1:{satellite_port}", "--mic-command", speaker.command),
        *("--mic-command-samples-per-chunk", "1024"),
    ]
    # What they complain about is shown where the test fails.
    alone = {"env": clean(), "stderr": subprocess.STDOUT}
    kitchen, _ = programs(satellite, **alone)
    script = Path(__file__).with_name("home_assistant_satellite.py")
    hass, told = programs(
        [home_assistant, script, port, satellite_port, api_port, TOKEN],
        **alone,
        cwd=tmp_path,
    )
    told.wait(lambda line: line.startswith('{"ready"'))
    with (
        launched(tmp_path / "none.wav") as browser,
        proxied(page_port) as address,
    ):
        page = browser.new_page(locale="en-GB")
        page.set_default_timeout(1000 * PATIENCE_S)
        page.goto(address)
        # The stream of the real satellite, through the real Home Assistant.
        row = page.locator("#satellites li").first
        row.wait_for()
        row.get_by_role("button", name="Use as microphone").click()
        row.locator("[aria-pressed=true]").wait_for()
        page.locator("#word").fill("door")
        page.locator("#record").click()
        page.locator("#record.recording").wait_for()
        end = threading.Event()
        saying = threading.Thread(target=speaker.keep_saying, args=("door", end))
        saying.start()
        try:
            for _ in range(8):
                page.locator("#record.idle, #again:visible").first.wait_for()
                if page.locator("#record.idle").is_visible():
                    break
                page.locator("#again").click()
        finally:
            end.set()
            saying.join()
        assert "is ready" in page.locator("#verdict").inner_text()
        assert tapword.load(data / "home.tap").words == {"door": 5}
        # Home Assistant offers the word; it is chosen, said, and wakes the assistant.
        hass.stdin.write("door\n")
        hass.stdin.flush()
        assert json.loads(told.wait(lambda line: line.startswith('{"offered"')))["offered"] == [
            "door"
        ]
        assert not any("tapword_detected" in line for line in told.seen)
        row.get_by_text("Is being taught").wait_for(state="detached")
        # A change of the assistant aborts its runs. wyoming-satellite 1.0 does not start one again
        # by itself, as later versions do.
        os.killpg(kitchen.pid, signal.SIGTERM)
        row.get_by_text("Sends no sound now").wait_for()
        kitchen.wait(PATIENCE_S)
        programs(satellite, **alone)
        row.get_by_text("Sends no sound now").wait_for(state="detached")
        speaker.say(clip("door", 11))
        event = json.loads(told.wait(lambda line: line.startswith('{"event"')))["data"]
        assert event["word"] == "door" and event["latency_ms"] < 3000
        # It was none of the words: the blueprint's command, and the page shows it.
        app.stdin.write(json.dumps({"command": "reject", "entry": event["entry"]}) + "\n")
        app.stdin.flush()
        page.get_by_text("Taught as not “door”").first.wait_for()
    os.killpg(app.pid, signal.SIGTERM)
    app.wait(PATIENCE_S)
    start_app()
    model = tapword.load(data / "home.tap")
    assert model.words == {"door": 5} and model.vocabulary.negatives == {"door": 1}
