"""Commands of automations, and events for them: with a stand-in for the Supervisor."""

import contextlib
import io
import json
import logging
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import tapword
from tapword.errors import InputError

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tapword.serve.home.commands import MAX_LINE_BYTES, Commands
from tapword.serve.home.events import Events
from tapword.serve.home.model import HomeModel
from tapword.serve.home.pages import Home
from tests.serve.home import PlayingSatellite, running_home
from tests.serve.test_wyoming import clip, said, teach_words

TOKEN = "the-Supervisor's-token"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
    return path


@contextlib.contextmanager
def supervisor(answer=200, location=None):
    """Stand for the Supervisor's proxy of Home Assistant's API, as both are documented.

    POST /core/api/events/TYPE with a bearer token and a JSON object fires an event, and is answered
    by a message; without the token it is refused.
    """
    fired = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = answer
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status = 401
            elif not self.path.startswith("/core/api/events/"):
                status = 404
            kind = self.path.rpartition("/")[2]
            fired.append((status, kind, json.loads(body)))
            content = json.dumps({"message": f"Event {kind} fired."}).encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/core/api", fired
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait(condition, patience_s=20):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def add(home, word="lamp", said=True):
    return home.entries.add(1, word, 0.6, 0.5, said, clip(word, 11), 88)


@pytest.fixture
def home(path):
    return Home(HomeModel(path))


def test_the_last_detection_is_rejected(home, path):
    commands = Commands(home)
    with pytest.raises(InputError, match="no word was detected"):
        commands.run('{"command": "reject"}')
    first, _ = add(home), add(home, "music", said=False)
    commands.run('{"command": "reject"}')
    assert first.take is not None
    assert tapword.load(path).vocabulary.negatives == {"lamp": 1}


def test_an_entry_is_taught_or_rejected(home, path):
    commands = Commands(home)
    first, second = add(home), add(home)
    commands.run(json.dumps({"command": "teach", "entry": second.number, "word": "lantern"}))
    commands.run(json.dumps({"command": "reject", "entry": first.number}))
    model = tapword.load(path)
    assert model.words["lantern"] == 1 and sum(model.vocabulary.negatives.values()) == 1
    with pytest.raises(InputError, match="corrected already"):
        commands.run(json.dumps({"command": "reject", "entry": first.number}))


def test_a_sensitivity_and_a_pause(home, path):
    commands = Commands(home)
    commands.run('{"command": "sensitivity", "word": "lamp", "value": 0.7}')
    commands.run('{"command": "sensitivity", "value": 0.4}')
    assert tapword.load(path).vocabulary.sensitivity_of("music") == 0.4
    commands.run('{"command": "pause", "seconds": 600}')
    assert 590 < home.satellites.paused_s <= 600
    commands.run('{"command": "pause", "seconds": 0}')
    assert home.satellites.paused_s == 0


@pytest.mark.parametrize(
    "line",
    [
        "",
        "reject",
        "[]",
        "{}",
        '{"command": "erase"}',
        '{"command": ["reject"]}',
        '{"command": "reject", "entry": true}',
        '{"command": "teach", "entry": 1}',
        '{"command": "sensitivity", "word": "lamp"}',
        '{"command": "sensitivity", "word": "door", "value": 0.5}',
        '{"command": "sensitivity", "value": 7}',
        '{"command": "pause", "seconds": -1}',
        '{"command": "pause", "seconds": 1e9}',
        '{"command": "pause", "seconds": NaN}',
        "[" * 3000,
    ],
)
def test_what_is_no_command_changes_nothing(home, path, line):
    add(home)
    before = path.read_bytes()
    with pytest.raises(InputError):
        Commands(home).run(line)
    assert path.read_bytes() == before and home.satellites.paused_s == 0


def test_commands_come_by_line_and_a_bad_one_stops_none(home, path, caplog):
    caplog.set_level(logging.INFO, "tapword")
    lines = [b"nonsense", b"", b"x" * 3 * MAX_LINE_BYTES, b"\xff\xfe", b'{"command": "reject"}']
    add(home)
    Commands(home)._follow(io.BytesIO(b"\n".join(lines)))
    assert tapword.load(path).vocabulary.negatives == {"lamp": 1}
    assert caplog.text.count("command refused") == 3


def test_events_reach_home_assistant_and_its_answer_reaches_us(path):
    with supervisor() as (address, fired), running_home(path) as home:
        home.home.satellites.noted.append(Events(address, TOKEN).note)
        commands = Commands(home.home)
        with PlayingSatellite(home.port) as satellite:
            satellite.say(said([clip("lamp", 11)]))
            wait(lambda: any(kind == "tapword_detected" for _, kind, _ in fired))
        status, _, event = next(one for one in fired if one[1] == "tapword_detected")
        assert status == 200
        assert event["word"] == "lamp" and event["score"] >= event["threshold"]
        assert 50 <= event["confidence"] <= 100
        assert event["satellite"] == "127.0.0.1 #1" and 0 < event["latency_ms"] < 3000
        commands.run(json.dumps({"command": "reject", "entry": event["entry"]}))
    assert tapword.load(path).vocabulary.negatives == {"lamp": 1}


def test_a_near_miss_is_another_event(home):
    with supervisor() as (address, fired):
        events = Events(address, TOKEN)
        for heard in (True, False):
            events.note(add(home, said=heard).state() | {"name": "kitchen"})
        wait(lambda: len(fired) == 2)
    assert [kind for _, kind, _ in fired] == ["tapword_detected", "tapword_near_miss"]
    assert fired[0][2] == {
        "word": "lamp",
        "score": 0.6,
        "threshold": 0.5,
        "confidence": 88,
        "entry": 1,
        "satellite": "kitchen",
    }


def test_a_home_assistant_that_refuses_is_logged_once(home, caplog):
    entry = add(home).state() | {"name": ""}
    with supervisor() as (elsewhere, theirs):
        # The token goes to one address alone.
        with supervisor(307, f"{elsewhere}/events/tapword_detected") as (address, fired):
            events = Events(address, TOKEN)
            for _ in range(3):
                events.note(entry)
            wait(lambda: len(fired) == 3)
            time.sleep(0.1)
        assert theirs == []
    assert caplog.text.count("did not take an event: 307") == 1


@pytest.mark.parametrize("address", ["", "supervisor", "ftp://a/b", "http://", "http://a:b/"])
def test_what_is_no_address_of_an_api(address):
    with pytest.raises(InputError, match="address of Home Assistant's API"):
        Events(address, TOKEN)


@pytest.mark.parametrize("token", ["", "a\nb", "schlüssel"])
def test_a_token_is_needed(token):
    with pytest.raises(InputError, match="SUPERVISOR_TOKEN"):
        Events("http://supervisor/core/api", token)


def test_the_command_reads_commands_from_standard_input(path):
    command = [sys.executable, "-m", "tapword", "home", path, "--port", "0", "--commands"]
    process = subprocess.Popen(
        [*map(str, command), "--uri", "tcp://127.0.0.1:0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        while "token=" not in process.stdout.readline():
            pass
        process.stdin.write('{"command": "sensitivity", "word": "lamp", "value": 0.7}\n')
        process.stdin.flush()
        wait(lambda: tapword.load(path).vocabulary.sensitivity_of("lamp") == 0.7)
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
