"""The studio's server: what it teaches, whom it lets in, what it never does."""

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import anyio
import numpy as np
import pytest

import tapword
from tapword import modelfile
from tapword.errors import InputError
from tests.conftest import tone

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tapword.web import certificate, guard, live, patience, serving, word_map
from tapword.web.listener import CLIP_AGE_S, MOST_CLIPS, Listener
from tapword.web.server import CLIP_S, studio
from tapword.web.shared_model import SharedModel

HOST = "127.0.0.1:8642"
HOME = {"origin": f"http://{HOST}"}
LIVE = f"ws://{HOST}/api/live"
SMALL = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "ridge"}


def take(sound: np.ndarray, silence_s: float = 0.4) -> bytes:
    """Samples as the page sends them: a word with silence around, s16le."""
    quiet = np.zeros(round(silence_s * 16_000), dtype=np.float32)
    hiss = np.random.default_rng(0).normal(0, 1e-3, len(sound) + 2 * len(quiet))
    samples = np.concatenate([quiet, sound, quiet]) + hiss
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    return folder / "home.tap"


@pytest.fixture
def model(path):
    return SharedModel(path, SMALL)


def client_of(model, host="127.0.0.1", token=None, base=f"http://{HOST}"):
    return TestClient(studio(model, host, token), base_url=base, headers=HOME)


@pytest.fixture
def client(model):
    with client_of(model) as client:
        yield client


def learn(client, word, pitch=300, **query):
    return client.post("/api/learn", content=take(tone(pitch, 0.5)), params={"word": word} | query)


def words(answer):
    return {entry["word"]: entry["count"] for entry in answer.json()["words"]}


# Teaching.


def test_teach_rename_forget(client, path):
    assert client.get("/api/state").json()["words"] == []
    assert not path.exists()
    for pitch in (300, 310, 320):
        assert learn(client, " lamp ", pitch).status_code == 200
    answer = learn(client, "музыка", 1200)
    assert words(answer) == {"lamp": 3, "музыка": 1} == tapword.load(path).words
    renamed = client.post("/api/rename", json={"old": "музыка", "new": "radio"})
    assert words(renamed) == {"lamp": 3, "radio": 1}
    assert words(client.post("/api/forget", json={"word": "lamp"})) == {"radio": 1}
    assert tapword.load(path).words == {"radio": 1}


def test_a_take_is_examined(client):
    good = client.post("/api/examine", content=take(tone(300, 0.5))).json()
    assert good["problem"] is None and good["speech"]
    assert 0.3 < good["start_s"] < good["end_s"] < 1.0
    silent = client.post("/api/examine", content=take(np.zeros(8000))).json()
    assert "no speech" in silent["problem"] and not silent["speech"]
    cut = client.post("/api/examine", content=take(tone(300, 0.5))[2 * 9600 :]).json()
    assert "cut off" in cut["problem"]


def test_a_bad_take_is_kept_only_on_demand(client):
    cut = take(tone(300, 0.5))[2 * 9600 :]
    answer = client.post("/api/learn", content=cut, params={"word": "lamp"})
    assert answer.status_code == 422 and "cut off" in answer.json()["error"]
    answer = client.post("/api/learn", content=cut, params={"word": "lamp", "anyway": "1"})
    assert words(answer) == {"lamp": 1}
    silent = take(np.zeros(8000))
    answer = client.post("/api/learn", content=silent, params={"word": "lamp", "anyway": "1"})
    assert answer.status_code == 422 and "no speech" in answer.json()["error"]


@pytest.mark.parametrize("word", ["", "  ", "a\nb", "x" * 201])
def test_words_that_cannot_be_shown_are_refused(client, word):
    answer = learn(client, word)
    assert answer.status_code == 422 and "printable characters" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path_", "body", "status", "said"),
    [
        ("/api/forget", {"word": "lamp"}, 422, "nothing is taught yet"),
        ("/api/rename", {"old": "lamp", "new": "x"}, 422, "nothing is taught yet"),
        ("/api/forget", {"word": 3}, 422, "must be JSON with the texts word"),
        ("/api/rename", ["lamp"], 422, "must be JSON with the texts old, new"),
        ("/api/nothing", {}, 404, "Not Found"),
    ],
)
def test_requests_that_cannot_be_met(client, path_, body, status, said):
    answer = client.post(path_, json=body)
    assert answer.status_code == status and said in answer.json()["error"]
    assert client.get("/api/model").status_code == 422


def test_unknown_words(client):
    learn(client, "lamp")
    for path_, body in (
        ("/api/forget", {"word": "lam"}),
        ("/api/rename", {"old": "lam", "new": "x"}),
    ):
        answer = client.post(path_, json=body)
        assert answer.status_code == 422 and "no word 'lam' is taught" in answer.json()["error"]


# The model file, shared with others.


def test_others_change_the_file(client, path):
    learn(client, "lamp")
    with client.websocket_connect(LIVE, headers=HOME) as line:
        wait_for_words(line, {"lamp": 1})
        with tapword.Spotter.edit(path) as other:
            other.learn(tone(1200), "music")
        news = wait_for_words(line, {"lamp": 1, "music": 1})
        assert news["revision"] == modelfile.revision(path)
        learn(client, "lamp")
        wait_for_words(line, {"lamp": 2, "music": 1})
        path.unlink()
        wait_for_words(line, {})


def wait_for_words(line, wanted):
    """Read the line until it tells of these words; a page may be told twice of one change."""
    while True:
        message = line.receive_json()
        if message["type"] == "model" and words_of(message) == wanted:
            return message


def words_of(message):
    return {entry["word"]: entry["count"] for entry in message["words"]}


def test_two_tabs_and_a_program_lose_nothing(client, path):
    learn(client, "start")
    turns = 8

    def teach_elsewhere():
        code = (
            "import numpy as np, sys, tapword\n"
            f"for turn in range({turns}):\n"
            "    with tapword.Spotter.edit(sys.argv[1]) as spotter:\n"
            "        spotter.learn(np.sin(np.arange(8000) * 0.3).astype('f4'), 'elsewhere')\n"
        )
        subprocess.run([sys.executable, "-c", code, path], check=True)

    def teach_here(word):
        for _ in range(turns):
            assert learn(client, word).status_code == 200

    threads = [
        threading.Thread(target=teach_elsewhere),
        threading.Thread(target=teach_here, args=("one",)),
        threading.Thread(target=teach_here, args=("two",)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tapword.load(path).words == {"start": 1, "elsewhere": turns, "one": turns, "two": turns}


def test_a_file_that_turns_bad_is_told_of(client, path):
    learn(client, "lamp")
    good = path.read_bytes()
    path.write_bytes(good[:-100])
    assert "is not a tapword model" in client.get("/api/state").json()["problem"]
    path.write_bytes(re.sub(rb'(\\"format\\": )\d', rb"\g<1>9", good))
    assert "in format 9" in client.get("/api/state").json()["problem"]
    answer = learn(client, "lamp")
    assert answer.status_code == 409 and "upgrade" in answer.json()["error"]
    path.write_bytes(good)
    state = client.get("/api/state").json()
    assert state["problem"] is None and words_of(state) == {"lamp": 1}
    path.write_bytes(good[:-100])
    assert client.get("/api/state").json()["problem"]
    path.unlink()
    state = client.get("/api/state").json()
    assert state["problem"] is None and words_of(state) == {}


def test_a_locked_file_is_told_of(client, path, monkeypatch):
    learn(client, "lamp")
    monkeypatch.setattr(modelfile.locked.__wrapped__, "__defaults__", (0.1,))
    with modelfile.locked(path):
        answer = learn(client, "lamp")
    assert answer.status_code == 409 and "locked by another program" in answer.json()["error"]
    assert learn(client, "lamp").status_code == 200


def test_download_and_upload(client, path, tmp_path):
    learn(client, "lamp")
    answer = client.get("/api/model")
    assert answer.content == path.read_bytes()
    assert "filename*=UTF-8''home.tap" in answer.headers["content-disposition"]
    other = tapword.Spotter(**SMALL)
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    content = (tmp_path / "other.tap").read_bytes()
    added = client.post("/api/model", content=content, params={"how": "add"})
    assert words(added) == {"lamp": 1, "music": 1}
    seen = added.json()["revision"]
    learn(client, "lamp")
    stale = {"how": "replace", "revision": seen}
    answer = client.post("/api/model", content=content, params=stale)
    assert answer.status_code == 409 and "changed meanwhile" in answer.json()["error"]
    assert tapword.load(path).words == {"lamp": 2, "music": 1}
    fresh = {"how": "replace", "revision": client.get("/api/state").json()["revision"]}
    assert words(client.post("/api/model", content=content, params=fresh)) == {"music": 1}
    assert tapword.load(path).words == {"music": 1}


def test_an_upload_makes_a_model_where_there_is_none(client, path, tmp_path):
    other = tapword.Spotter(**SMALL)
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    content = (tmp_path / "other.tap").read_bytes()
    assert words(client.post("/api/model", content=content, params={"how": "replace"})) == {
        "music": 1
    }


def test_uploads_that_cannot_be_used(client, path, tmp_path):
    learn(client, "lamp")
    before = path.read_bytes()
    other = tapword.Spotter("logmel:pad_s=0.1", "tap:R=2", "ridge")
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    revision = {"revision": modelfile.revision(path)}
    for content, how, said in (
        (b"", "add", "not a tapword model"),
        (b"nonsense" * 100, "replace", "the uploaded file is not a tapword model"),
        ((tmp_path / "other.tap").read_bytes(), "replace", "another backbone"),
        (before, "both", "how must be add or replace"),
    ):
        answer = client.post("/api/model", content=content, params={"how": how} | revision)
        assert answer.status_code in (409, 422) and said in answer.json()["error"]
        assert str(tempfile.gettempdir()) not in answer.json()["error"]
    assert path.read_bytes() == before


# Whom it lets in.


def test_own_page(client):
    page = client.get("/")
    assert page.status_code == 200 and "tapword" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert f"ws://{HOST}" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for name in ("main.js", "style.css", "capture.js", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/../server.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere():
    static = Path(guard.__file__).parent / "static"
    for file in static.iterdir():
        text = file.read_text()
        outside = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside and "https://" not in outside, file.name
    page = (static / "index.html").read_text()
    assert " style=" not in page and " onclick=" not in page and "<script>" not in page


def test_colours_are_told_apart():
    """Text on every ground it stands on: a contrast of 4.5 at least, light and dark."""
    text = (Path(guard.__file__).parent / "static" / "style.css").read_text()
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    ]
    assert len(schemes) == 2
    for colours in schemes:
        for ink in ("ink", "soft", "accent", "warn", "danger"):
            for ground in ("card", "ground", "field"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
        assert contrast(colours["ink"], colours["tint"]) >= 4.5


def contrast(one, two):
    """Ratio of the lighter luminance to the darker, by the rule of WCAG 2."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ np.array([0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "192.168.0.7:8642", ""])
def test_other_names_are_turned_away(client, host):
    answer = client.get("/api/state", headers={"host": host})
    assert answer.status_code == 421 and "words" not in answer.text
    with pytest.raises(WebSocketDisconnect):
        client.websocket_connect(
            f"ws://{host or HOST}/api/live", headers=HOME | {"host": host}
        ).__enter__()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:9999", None]
)
def test_other_pages_are_turned_away(client, path, origin):
    headers = {} if origin is None else {"origin": origin}
    del client.headers["origin"]
    sound = take(tone(300, 0.5))
    for target in ("/api/learn?word=x", "/api/forget", "/api/rename", "/api/model?how=add"):
        assert client.post(target, content=sound, headers=headers).status_code == 403
    assert not path.exists()
    with pytest.raises(WebSocketDisconnect) as refused:
        client.websocket_connect(LIVE, headers=headers).__enter__()
    assert refused.value.code == 1008


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]:8642", "LOCALHOST:1"])
def test_this_machine_by_any_of_its_names(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 200


def test_token(model):
    token, base = "s3cret-token", "http://192.168.0.7:8642"
    line_address = "ws://192.168.0.7:8642/api/live"
    with client_of(model, "0.0.0.0", token, base) as client:
        client.headers["origin"] = base
        for target in ("/", "/api/state", "/static/main.js", "/api/model", "/?token=wrong"):
            answer = client.get(target)
            assert answer.status_code == 401 and "token" in answer.text
        assert learn(client, "lamp").status_code == 401
        with pytest.raises(WebSocketDisconnect):
            client.websocket_connect(line_address, headers={"origin": base}).__enter__()
        assert client.get(f"/api/state?token={token}").status_code == 401
        right, wrong = ({"authorization": f"Bearer {text}"} for text in (token, token + "x"))
        assert client.get("/api/state", headers=right).status_code == 200
        assert client.get("/api/state", headers=wrong).status_code == 401
        answer = client.get(f"/?token={token}", follow_redirects=False)
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie
        # From here on the cookie will do.
        assert client.get("/").status_code == 200
        assert learn(client, "lamp").status_code == 200
        with client.websocket_connect(line_address, headers={"origin": base}) as line:
            assert words_of(line.receive_json()) == {"lamp": 1}


def test_an_open_studio_answers_to_addresses_and_its_own_names(model):
    token = "s3cret"
    with client_of(model, "0.0.0.0", token, "http://192.168.0.7") as client:
        client.headers["authorization"] = f"Bearer {token}"
        for host in ("10.1.2.3:80", "[fe80::1]:80", "localhost", socket.gethostname()):
            assert client.get("/api/state", headers={"host": host}).status_code == 200
        for host in ("evil.example", "10.1.2.3.evil.example", "1.2.3", "a:b"):
            assert client.get("/api/state", headers={"host": host}).status_code == 421


# What it refuses to swallow.


def test_large_bodies(client, path):
    too_long = np.zeros(round((CLIP_S + 0.1) * 16_000), dtype="<i2").tobytes()
    for target in ("/api/examine", "/api/learn?word=x"):
        answer = client.post(target, content=too_long)
        assert answer.status_code == 413 and "10 s of sound" in answer.json()["error"]
    # A body that does not say how large it is.
    answer = client.post("/api/examine", content=(bytes(100_000) for _ in range(10)))
    assert answer.status_code == 413
    answer = client.post("/api/forget", content=b'{"word": "' + b"x" * 10_000 + b'"}')
    assert answer.status_code == 413
    answer = client.post("/api/examine", content=b"123")
    assert answer.status_code == 422 and "16-bit" in answer.json()["error"]
    answer = client.post("/api/examine", content=b"")
    assert answer.status_code == 422 and "shorter than 100 ms" in answer.json()["error"]


def test_a_large_model_is_refused(client, monkeypatch):
    monkeypatch.setattr("tapword.web.server.MODEL_BYTES", 1000)
    answer = client.post("/api/model?how=add", content=bytes(1001))
    assert answer.status_code == 413 and "1,000 bytes" in answer.json()["error"]


@pytest.mark.parametrize(
    ("kind", "content", "code"),
    [
        ("bytes", b"123", 1003),
        ("bytes", b"", 1003),
        ("bytes", bytes(2 * 16_001), 1009),
        ("text", "no JSON", 1008),
        ("text", "[" * 1500, 1008),
        ("text", "x" * 3000, 1008),
        ("text", "[1]", 1008),
        ("text", '{"type": "dance"}', 1008),
        ("text", '{"type": ["listen"]}', 1008),
        ("text", '{"type": "correct", "event": 1}', 1008),
        ("text", '{"type": "correct", "event": true, "word": "x"}', 1008),
        ("text", '{"type": "correct", "event": 1, "word": 2}', 1008),
        ("text", '{"type": "missed"}', 1008),
    ],
)
def test_broken_messages_end_the_line(client, kind, content, code):
    with client.websocket_connect(LIVE, headers=HOME) as line:
        line.receive_json()
        line.send({"type": "websocket.receive", kind: content})
        with pytest.raises(WebSocketDisconnect) as closed:
            line.receive_json()
    assert closed.value.code == code
    with client.websocket_connect(LIVE, headers=HOME) as line:
        assert line.receive_json()["type"] == "model"


def test_too_many_pages(client, monkeypatch):
    monkeypatch.setattr(live, "MOST_LINES", 1)
    with client.websocket_connect(LIVE, headers=HOME) as line:
        line.receive_json()
        with pytest.raises(WebSocketDisconnect) as refused:
            client.websocket_connect(LIVE, headers=HOME).__enter__()
        assert refused.value.code == 1013
    with client.websocket_connect(LIVE, headers=HOME) as line:
        assert line.receive_json()["type"] == "model"


# What it keeps.

_written: list[str] | None = None


def _note_writing(event, arguments):
    if event == "open" and _written is not None:
        path, mode, flags = arguments
        writes = any(letter in (mode or "") for letter in "wax+")
        writes = writes or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes and not isinstance(path, int):
            _written.append(os.fsdecode(path))


@pytest.fixture
def written(monkeypatch, tmp_path):
    """Every path that this process opens for writing, seen by the interpreter itself."""
    global _written
    if not hasattr(_note_writing, "added"):
        sys.addaudithook(_note_writing)
        _note_writing.added = True
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    _written = []
    yield _written
    _written = None
    assert not list(scratch.iterdir())


def test_sound_is_never_written(path, written):
    with client_of(SharedModel(path)) as client:
        teach_and_listen(client, path)
    assert {Path(name).parent for name in written} == {path.parent}
    assert all(Path(name).name.startswith(".home.tap") for name in written), written
    assert {file.name for file in path.parent.iterdir()} <= {"home.tap", ".home.tap.lock"}


def teach_and_listen(client, path):
    sounds = [take(tone(pitch, 0.5)) for pitch in (300, 320, 340, 1000, 1100, 1200)]
    for index, sound in enumerate(sounds):
        client.post("/api/examine", content=sound)
        word = "low" if index < 3 else "high"
        assert client.post("/api/learn", content=sound, params={"word": word}).status_code == 200
    with client.websocket_connect(LIVE, headers=HOME) as line:
        line.receive_json()
        line.send_json({"type": "listen"})
        for sound in sounds:
            for start in range(0, len(sound) - 2560, 2560):
                line.send_bytes(sound[start : start + 2560])
        line.send_json({"type": "missed", "word": "high"})
        while (answer := line.receive_json())["type"] != "missed":
            pass
        assert "error" not in answer
    assert tapword.load(path).words == {"low": 3, "high": 4}


def test_the_file_holds_statistics_only(client, path):
    sounds = [take(tone(pitch, 0.5)) for pitch in (300, 320, 340, 360)]
    sizes = []
    for sound in sounds:
        client.post("/api/learn", content=sound, params={"word": "low"})
        sizes.append(path.stat().st_size)
    # Header fields like the number of writings may grow by a digit; a clip would be 16,000 bytes.
    assert max(sizes) - min(sizes) < 64
    content = path.read_bytes()
    for sound in sounds:
        samples = np.frombuffer(sound, dtype="<i2")
        for kind in ("<i2", "<f4", "<f8"):
            scaled = samples if kind == "<i2" else samples / 32768
            spoken = scaled.astype(kind)[8000:12000]
            assert not any(spoken[at : at + 8].tobytes() in content for at in range(0, 3992, 97))
    _, arrays = modelfile.read(path)
    assert max(array.shape[0] for name, array in arrays.items() if name != "scatter") < 1000


# Listening, with a detector that hears what it is told to.


class Heard:
    """Stands for the detector: an event whenever the chunk's peak is above a half."""

    def __init__(self, spotter):
        self.spotter = spotter
        self.scores = {}
        self.seconds = 0.0

    @property
    def words(self):
        return list(self.spotter.words)

    @property
    def thresholds(self):
        return dict.fromkeys(self.words, 0.5)

    def __call__(self, chunk):
        self.seconds += len(chunk) / 16_000
        peak = float(np.abs(chunk).max())
        self.scores = {self.words[0]: peak} if peak > 0.01 else {}
        if peak <= 0.5:
            return []
        return [
            type(
                "E",
                (),
                dict(
                    word=self.words[0], start_s=self.seconds - 0.5, end_s=self.seconds, score=peak
                ),
            )
        ]


@pytest.fixture
def listener(model, client, monkeypatch):
    monkeypatch.setattr("tapword.web.listener.Detector", Heard)
    learn(client, "lamp")
    learn(client, "music", 1200)
    clock = [0.0]
    made = Listener(model, lambda: clock[0])
    made.clock_value = clock
    return made


def chunks(sound):
    samples = np.frombuffer(sound, dtype="<i2")
    return [samples[start : start + 1280] for start in range(0, len(samples), 1280)]


def loud(pitch=300):
    return take(3 * tone(pitch, 0.5))


def test_an_event_is_put_right(listener, path):
    messages = [message for chunk in chunks(loud()) for message in listener.hear(chunk)]
    events = [message for message in messages if message["type"] == "event"]
    assert events and events[0]["word"] == "lamp" and 0.2 < events[0]["end_s"] < 1.3
    scores = [message["scores"] for message in messages if message["type"] == "heard"]
    assert {} in scores and any("lamp" in row for row in scores)
    listener.correct(events[-1]["id"], "music")
    assert tapword.load(path).words == {"lamp": 1, "music": 2}
    with pytest.raises(InputError, match="gone already"):
        listener.correct(events[-1]["id"], "music")
    listener.correct(events[0]["id"], "new")
    assert tapword.load(path).words == {"lamp": 1, "music": 2, "new": 1}


def test_times_go_on_when_the_model_changes(listener):
    first = [m for chunk in chunks(loud()) for m in listener.hear(chunk) if m["type"] == "event"]
    listener.model.learn(tone(500), "third")
    again = [m for chunk in chunks(loud()) for m in listener.hear(chunk) if m["type"] == "event"]
    shift = again[0]["start_s"] - first[0]["start_s"]
    assert shift == pytest.approx(len(loud()) / 2 / 16_000, abs=0.09)
    assert listener.thresholds == {"lamp": 0.5, "music": 0.5, "third": 0.5}


def test_clips_are_let_go(listener):
    for _ in range(MOST_CLIPS):
        for chunk in chunks(loud()):
            listener.hear(chunk)
    assert len(listener.clips) == MOST_CLIPS
    assert all(len(clip.audio) < 1.5 * 16_000 for clip in listener.clips.values())
    listener.clock_value[0] = CLIP_AGE_S - 1
    kept = listener.let_go()
    assert len(kept) == MOST_CLIPS
    listener.clock_value[0] = CLIP_AGE_S + 1
    assert listener.let_go() == [] and not listener.clips
    with pytest.raises(InputError, match="gone already"):
        listener.correct(kept[-1], None)


def test_a_missed_word(listener, path):
    for chunk in chunks(take(tone(300, 0.5))):
        listener.hear(chunk)
    listener.missed("lamp")
    assert tapword.load(path).words == {"lamp": 2, "music": 1}
    with pytest.raises(InputError, match="no speech was heard"):
        listener.missed("lamp")
    for chunk in chunks(take(tone(300, 0.5))):
        listener.hear(chunk)
    listener.pause()
    with pytest.raises(InputError, match="no speech was heard"):
        listener.missed("lamp")


def test_listening_over_the_line(listener, client):
    with client.websocket_connect(LIVE, headers=HOME) as line:
        line.receive_json()
        line.send_json({"type": "listen"})
        assert line.receive_json() == {"type": "listen", "thresholds": {"lamp": 0.5, "music": 0.5}}
        for chunk in chunks(loud()):
            line.send_bytes(chunk.tobytes())
        while (event := line.receive_json())["type"] != "event":
            assert event["type"] == "heard"
        line.send_json({"type": "correct", "event": event["id"], "word": "music"})
        line.send_json({"type": "correct", "event": 999, "word": None})
        wait_for_words(line, {"lamp": 1, "music": 2})
        answers = []
        while len(answers) < 2:
            message = line.receive_json()
            if message["type"] == "correct":
                answers.append(message)
        assert answers[0] == {"type": "correct", "event": event["id"], "word": "music"}
        assert "gone already" in answers[1]["error"]


def test_a_detector_that_fails_does_not_break_the_line(listener, client, monkeypatch):
    def fail(self, chunk):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Heard, "__call__", fail)
    with client.websocket_connect(LIVE, headers=HOME) as line:
        line.receive_json()
        line.send_bytes(bytes(2560))
        assert "ZeroDivisionError: by zero" in line.receive_json()["error"]
        line.send_json({"type": "gap"})
        assert line.receive_json() == {"type": "gap"}


# Pages that are slow.


def test_scores_give_way_and_news_do_not():
    outbox = live.Outbox()
    for time_s in range(3 * live.MOST_SCORES):
        outbox.put({"type": "heard", "time_s": time_s})
        if time_s % 10 == 0:
            outbox.put({"type": "event", "id": time_s})
    waiting = list(outbox._waiting)
    assert [m["id"] for m in waiting if m["type"] == "event"] == list(range(0, 75, 10))
    heard = [m["time_s"] for m in waiting if m["type"] == "heard"]
    assert heard == list(range(2 * live.MOST_SCORES, 3 * live.MOST_SCORES))
    assert not outbox.full
    for _ in range(live.MOST_MESSAGES):
        outbox.put({"type": "event"})
    assert outbox.full


class Stuck:
    """A page that connects, asks for nothing and takes nothing."""

    async def accept(self):
        pass

    async def receive(self):
        await anyio.sleep_forever()

    async def send_text(self, text):
        await anyio.sleep_forever()


def test_a_page_that_takes_nothing_is_given_up(model, monkeypatch):
    monkeypatch.setattr(live, "SEND_TIMEOUT_S", 0.05)
    lines = live.Lines(model)

    async def main():
        with anyio.fail_after(5):
            await lines.serve(Stuck())

    anyio.run(main)
    assert not lines.open


def test_a_slow_page_on_a_real_line(listener, model, monkeypatch):
    """A page that sends and never reads is given up, holds little, and slows nobody down."""
    httpx = pytest.importorskip("httpx2")
    many = {f"a rather long word with the number {number}": 0.5 for number in range(500)}

    def talk(self, chunk):
        self.scores = many
        return []

    monkeypatch.setattr(Heard, "__call__", talk)
    monkeypatch.setattr(live, "SEND_TIMEOUT_S", 1.0)
    waiting, put = [], live.Outbox.put

    def watched(self, message):
        put(self, message)
        waiting.append(len(self._waiting))

    monkeypatch.setattr(live.Outbox, "put", watched)
    server, listening, address = serving.prepare(model)
    open_lines = server.config.app.state.lines.open
    running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    running.start()
    try:
        origin = address.urls[0].rstrip("/")
        port = listening.getsockname()[1]
        with socket.socket() as slow, httpx.Client(base_url=origin) as other:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(3)
            slow.connect(("127.0.0.1", port))
            slow.sendall(
                f"GET /api/live HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: {origin}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            assert slow.recv(12) == b"HTTP/1.1 101"
            frame = b"\x82\xfe" + (2560).to_bytes(2, "big") + bytes(4) + bytes(2560)
            with pytest.raises(OSError):
                while True:
                    slow.sendall(frame)
            assert other.get("/api/state").status_code == 200
            # Long before the line is found dead for not answering pings.
            give_up = time.monotonic() + 15
            while open_lines and time.monotonic() < give_up:
                time.sleep(0.05)
            assert not open_lines
    finally:
        server.should_exit = True
        running.join()
        listening.close()
    assert 2 < max(waiting) <= live.MOST_SCORES + 2


def test_connections_that_ask_for_nothing_are_closed(model, monkeypatch):
    httpx = pytest.importorskip("httpx2")
    monkeypatch.setattr(patience, "BEGIN_S", 0.5)
    server, listening, address = serving.prepare(model)
    running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    running.start()
    port = listening.getsockname()[1]
    idle = []
    try:
        with httpx.Client(base_url=address.urls[0].rstrip("/")) as other:
            # A page that is already open, with a request behind it, is left alone.
            assert other.get("/api/state").status_code == 200
            for beginning in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n") * 110:
                idle.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                idle[-1].sendall(beginning)
            for connection in idle:
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(100) == b""
            assert other.get("/api/state").status_code == 200
    finally:
        for connection in idle:
            connection.close()
        server.should_exit = True
        running.join()
        listening.close()


# The map.


def test_map_of_words(client):
    for word, pitches in (("low", (300, 310)), ("lower", (290, 305)), ("high", (3000, 3100))):
        for pitch in pitches:
            answer = learn(client, word, pitch)
    points = {point["word"]: point for point in answer.json()["map"]["points"]}
    assert points["low"]["nearest"] == "lower" and points["lower"]["nearest"] == "low"
    assert points["high"]["distance"] > points["low"]["distance"]
    assert points["high"]["verdict"] == "well apart"
    place = {word: np.array([point["x"], point["y"]]) for word, point in points.items()}
    near = np.linalg.norm(place["low"] - place["lower"])
    assert near < np.linalg.norm(place["low"] - place["high"])
    assert max(abs(float(value)) for xy in place.values() for value in xy) <= 1


def test_distances_are_in_takes_of_one_word(rng):
    """Means of the same word taught twice lie at 0, whatever the number of takes."""
    scale = rng.uniform(0.5, 5, 400)
    centres = scale * rng.normal(0, 1, (2, 400)) * np.array([[0.0], [2.0]])
    for n in (2, 50):
        samples = centres[:, None] + scale * rng.normal(0, 1, (2, n, 400))
        means, counts = samples.mean(axis=1), np.array([n, n])
        apart = word_map.distances(means, counts, scale**2)[0, 1]
        assert apart == pytest.approx(2 / np.sqrt(2), rel=0.15)
    same = scale * rng.normal(0, 1, (2, 3, 400))
    apart = word_map.distances(same.mean(axis=1), np.array([3, 3]), scale**2)[0, 1]
    assert apart < 0.35


def test_layout_keeps_distances_of_a_plane(rng):
    places = rng.normal(0, 1, (7, 2))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    found = word_map.layout(apart)
    again = np.linalg.norm(found[:, None] - found[None], axis=2)
    off = ~np.eye(7, dtype=bool)
    ratio = again[off] / apart[off]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


@pytest.mark.parametrize("learner", ["ncm", "slda", "slda:scatter=per-word", "perceptron", "cbcl"])
def test_every_learner_is_shown(path, learner):
    model = SharedModel(path, {"backbone": "logmel", "pooling": "avg", "learner": learner})
    for word, pitch in (("low", 300), ("high", 2000), ("low", 310)):
        model.learn(tone(pitch), word)
    state = json.loads(json.dumps(model.state()))
    assert words_of(state) == {"low": 2, "high": 1}
    if learner in ("ncm", "slda", "slda:scatter=per-word"):
        assert [point["word"] for point in state["map"]["points"]] == ["low", "high"]


# The server on a port.


def test_a_port_in_use():
    with serving.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot use port {port}.*--port 0"):
            serving.bind("127.0.0.1", port)
    for port in (-1, 65_536):
        with pytest.raises(InputError, match=r"must lie in 0\.\.65535"):
            serving.bind("127.0.0.1", port)
    with pytest.raises(InputError, match="no address named"):
        serving.bind("no.such.host.invalid", 0)


def test_a_certificate_for_the_phone(tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="needs the extra web")
    public, key, fingerprint = certificate.self_signed(["192.168.0.7", "localhost"])
    der = ssl.PEM_cert_to_DER_cert(public.decode())
    assert hashlib.sha256(der).hexdigest().upper() == fingerprint.replace(":", "")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    modes = {}
    load = ssl.SSLContext.load_cert_chain

    def look(self, certfile, keyfile):
        modes[Path(keyfile).name] = stat.S_IMODE(Path(keyfile).stat().st_mode)
        return load(self, certfile, keyfile)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    assert isinstance(certificate.context(public, key), ssl.SSLContext)
    assert modes == {"key.pem": 0o600} and not list(scratch.iterdir())


def start(*arguments):
    """Run the command; its process and the address it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tapword", "studio", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl+C" in line:
            break
    found = re.findall(r"https?://\S+", "".join(lines))
    assert found, "".join(lines)
    return process, found, "".join(lines)


def finish(process):
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert "The studio is closed." in output and "Traceback" not in output
    return output


def test_the_command_serves_with_token_and_tls(path):
    pytest.importorskip("cryptography", reason="needs the extra web")
    httpx = pytest.importorskip("httpx2")
    process, urls, output = start("--model", path, "--host", "0.0.0.0", "--tls-self-signed")
    try:
        local = next(url for url in urls if "localhost" in url)
        address, token = local.split("/?token=")
        port = int(address.rpartition(":")[2])
        shown = ssl.get_server_certificate(("127.0.0.1", port))
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest().upper()
        assert digest in output.replace(":", "")
        context = ssl.create_default_context(cadata=shown)
        context.check_hostname = True
        with httpx.Client(base_url=address, verify=context) as client:
            assert client.get("/").status_code == 401
            # Nobody may speak for the client in a header.
            forged = {"x-forwarded-proto": "http", "x-forwarded-host": "evil.example"}
            assert client.get("/", headers=forged).status_code == 401
            answer = client.get(f"/?token={token}", follow_redirects=True)
            assert answer.status_code == 200 and "tapword" in answer.text
            origin = {"origin": address}
            answer = client.post(
                "/api/learn?word=lamp", content=take(tone(300, 0.5)), headers=origin
            )
            assert words(answer) == {"lamp": 1}
            [cookie] = answer.request.headers["cookie"].split("; ")
        from websockets.sync.client import connect

        live_address = address.replace("https", "wss") + "/api/live"
        with connect(
            live_address, ssl=context, origin=address, additional_headers={"cookie": cookie}
        ) as line:
            assert words_of(json.loads(line.recv())) == {"lamp": 1}
            line.send("nonsense")
            with pytest.raises(Exception, match="1008"):
                line.recv()
        for headers, who in (({}, address), ({"cookie": cookie}, "https://evil.example")):
            with (
                pytest.raises(Exception, match="403"),
                connect(live_address, ssl=context, origin=who, additional_headers=headers),
            ):
                pass
    finally:
        finish(process)


def test_the_command_closes_while_a_page_is_open(path):
    pytest.importorskip("websockets")
    from websockets.sync.client import connect

    process, [url], output = start("--model", path)
    assert "token" not in url and "secure pages only" not in output
    address = url.rstrip("/")
    with connect(address.replace("http", "ws") + "/api/live", origin=address) as line:
        assert json.loads(line.recv())["type"] == "model"
        finish(process)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tls-cert", "a.pem"], "belong together"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem", "--tls-self-signed"], "not both"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem"], "cannot be used for TLS"),
        (["--model", "nowhere/home.tap"], "its folder does not exist"),
        (["--model", "bad.tap"], "bad.tap"),
        (["--size", "huge"], "no size named 'huge'"),
        (["--port", "70000"], "must lie in 0..65535"),
    ],
)
def test_what_the_command_refuses(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    Path("bad.tap").write_text("nonsense")
    code, _, error = run("studio", *arguments)
    assert code == 2 and said in error and error.count("\n") == 1


def test_the_command_names_the_extra(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "starlette", None)
    code, _, error = run("studio")
    assert code == 2 and "pip install 'tapword[web]'" in error
