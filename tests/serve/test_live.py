"""The live line: listening, recording a take, and pages that are slow."""

import base64
import json
import socket
import time

import anyio
import numpy as np
import pytest

import tapword
from tapword.audio.endpoint import SETTINGS
from tapword.errors import InputError
from tapword.listening.decider import Candidate, Event
from tapword.spotter import session
from tapword.spotter.thresholds import Scores
from tapword.support.issues import Issue
from tests.conftest import tone
from tests.serve.conftest import (
    HOME,
    LIVE,
    client_of,
    next_of,
    running,
    spoken,
    wait_for_words,
)

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

from starlette.websockets import WebSocketDisconnect

from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.listener import Listener
from tapword.serve.studio.sockets import Outbox, encode_message

# Listening, with a detector that hears what it is told to.


class Heard:
    """Stands for the detector: an event whenever the chunk's peak is above a half."""

    def __init__(self, spotter, **_):
        self.spotter = spotter
        self.scores = {}
        self.seconds = 0.0
        self.resets = 0

    def gap(self, seconds=0.0):
        self.seconds += seconds

    @property
    def thresholds(self):
        return dict.fromkeys(self.spotter.words, 0.5)

    def __call__(self, chunk):
        self.seconds += len(chunk) / 16_000
        peak = float(np.abs(chunk).max())
        word = next(iter(self.spotter.words))
        self.scores = {word: peak} if peak > 0.01 else {}
        return [Event(word, self.seconds - 0.5, self.seconds, peak)] if peak > 0.5 else []


class Clock:
    """Seconds that go on when they are told to."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def taught(model):
    model.learn(tone(300), "lamp")
    model.learn(tone(1200), "music")
    model.detector = Heard
    return model


@pytest.fixture
def listener(taught):
    made = Listener(taught, clock=Clock())
    assert made.listen() == {"thresholds": {"lamp": 0.5, "music": 0.5}}
    return made


@pytest.fixture
def line(taught):
    """A page's line to a studio whose detector hears what it is told to."""
    with (
        client_of(taught) as client,
        client.websocket_connect(LIVE, headers=HOME) as line,
    ):
        assert line.receive_json()["type"] == "model"
        yield line


def chunks(sound):
    samples = np.frombuffer(sound, dtype="<i2")
    return [samples[start : start + 1280] for start in range(0, len(samples), 1280)]


def loud(pitch=300):
    return spoken(3 * tone(pitch, 0.5))


def test_thresholds_are_told_again_when_the_model_changes(listener, taught):
    [chunk, *_] = chunks(loud())
    assert [message["type"] for message in listener.push(chunk)] == ["scores"]
    taught.learn(tone(600), "door")
    told, *_ = listener.push(chunk)
    assert told == {"type": "thresholds", "thresholds": {"lamp": 0.5, "music": 0.5, "door": 0.5}}
    assert [message["type"] for message in listener.push(chunk)] == ["scores"]


def test_an_event_is_put_right(listener, path):
    messages = [message for chunk in chunks(loud()) for message in listener.push(chunk)]
    events = [message for message in messages if message["type"] == "event"]
    assert events and events[0]["word"] == "lamp" and 0.2 < events[0]["end_s"] < 1.3
    scores = [message["scores"] for message in messages if message["type"] == "scores"]
    assert {} in scores and any("lamp" in row for row in scores)
    listener.correct(events[-1]["id"], "music")
    assert tapword.load(path).words == {"lamp": 1, "music": 2}
    with pytest.raises(InputError, match="is gone"):
        listener.correct(events[-1]["id"], "music")
    listener.correct(events[0]["id"], "new")
    assert tapword.load(path).words == {"lamp": 1, "music": 2, "new": 1}


def test_an_event_is_heard_before_it_is_put_right(listener):
    messages = [message for chunk in chunks(loud()) for message in listener.push(chunk)]
    event = next(message["id"] for message in messages if message["type"] == "event")
    sound = np.frombuffer(base64.b64decode(listener.event_audio(event)["audio"]), dtype="<i2")
    kept = np.round(listener.clips[event].audio * 32768).astype("<i2")
    assert len(sound) > 4000 and sound.tobytes() in kept.tobytes()
    assert listener.correct(event, "music")["audio"] == base64.b64encode(sound.tobytes()).decode()
    with pytest.raises(InputError, match="is gone"):
        listener.event_audio(event)


def test_near_misses_are_told(taught):
    """Once nothing can replace them any more, with the time at which they lie in the stream."""

    class Nearly(Heard):
        def __call__(self, chunk):
            self.seconds += len(chunk) / 16_000
            at = round(16_000 * self.seconds)
            if 3.0 < self.seconds < 3.1:
                scores = Scores({"lamp": 0.4, "music": 0.1}, {}, 0.05)
                self.observe(Candidate(at, self.seconds - 0.5, self.seconds, scores))
            return []

    taught.detector = Nearly
    listener = Listener(taught)
    listener.listen()
    silence = np.zeros(1280, dtype=np.int16)
    told = [(step, m) for step in range(80) for m in listener.push(silence) if m["type"] == "near"]
    [(step, near)] = told
    assert near["word"] == "lamp" and (near["score"], near["threshold"]) == (0.4, 0.5)
    assert near["confidence"] == 11
    assert not near["rejected"] and 3.0 < near["end_s"] < 3.1 and step * 0.08 > 5.0


def test_times_go_on_when_the_model_changes(listener):
    first = [m for chunk in chunks(loud()) for m in listener.push(chunk) if m["type"] == "event"]
    listener.model.learn(tone(500), "third")
    again = [m for chunk in chunks(loud()) for m in listener.push(chunk) if m["type"] == "event"]
    shift = again[0]["start_s"] - first[0]["start_s"]
    assert shift == pytest.approx(len(loud()) / 2 / 16_000, abs=0.09)
    again = listener.listen()["thresholds"]
    assert again == {"lamp": 0.5, "music": 0.5, "third": 0.5}


def test_a_noise_that_was_taken_for_a_word_is_rejected(listener, path):
    """A clatter has no speech in it that could be cut out: it is rejected as it is."""
    clatter = np.random.default_rng(0).uniform(-0.9, 0.9, 16_000).astype(np.float32)
    messages = [message for chunk in chunks(spoken(clatter)) for message in listener.push(chunk)]
    event = [message for message in messages if message["type"] == "event"][-1]
    answer = listener.correct(event["id"], None)
    assert answer["issues"] == [] and answer["take"] in listener.history.takes
    assert sum(tapword.load(path).vocabulary.negatives.values()) == 1


def test_clips_are_let_go(listener):
    for _ in range(LIMITS.events):
        for chunk in chunks(loud()):
            listener.push(chunk)
    assert len(listener.clips) == LIMITS.events
    assert all(len(clip.audio) < 1.5 * 16_000 for clip in listener.clips.values())
    listener.clock.now_s = LIMITS.keep_s - 1
    kept = listener.drop_expired()
    assert len(kept) == LIMITS.events
    listener.clock.now_s = LIMITS.keep_s + 1
    assert listener.drop_expired() == [] and not listener.clips
    with pytest.raises(InputError, match="is gone"):
        listener.correct(kept[-1], None)


def test_a_missed_word(listener, path):
    for chunk in chunks(spoken(tone(300, 0.5))):
        listener.push(chunk)
    listener.missed("lamp")
    assert tapword.load(path).words == {"lamp": 2, "music": 1}
    with pytest.raises(InputError, match="no speech in the last"):
        listener.missed("lamp")
    for chunk in chunks(spoken(tone(300, 0.5))):
        listener.push(chunk)
    listener.gap()
    with pytest.raises(InputError, match="no speech in the last"):
        listener.missed("lamp")


def test_a_doubtful_missed_word_waits_for_an_answer(listener, path):
    """Its sound is held only as long."""
    cut = spoken(tone(300, 0.5))[: round(2 * 16_000 * 0.7)]

    def missed():
        listener.listen()
        for chunk in chunks(cut):
            listener.push(chunk)
        answer = listener.missed("lamp")
        assert answer["take"] is None
        assert [issue["code"] for issue in answer["issues"]] == ["cut_off"]
        assert answer["ago_s"] == 0.0 and answer["seconds"] == pytest.approx(0.3, abs=0.05)
        samples = np.frombuffer(base64.b64decode(answer["audio"]), dtype="<i2")
        assert len(samples) == pytest.approx(16_000 * (answer["seconds"] + 0.2), abs=400)
        assert list(listener.missed_clips) == ["lamp"]
        assert tapword.load(path).words == words

    words = {"lamp": 1, "music": 1}
    missed()
    listener.drop_missed()
    assert not listener.missed_clips
    with pytest.raises(InputError, match="is gone"):
        listener.keep_missed("lamp")
    missed()
    assert listener.keep_missed("lamp")["take"] == 1
    assert not listener.missed_clips
    assert tapword.load(path).words == {"lamp": 2, "music": 1}
    words["lamp"] = 2
    missed()
    listener.clock.now_s = LIMITS.keep_s + 1
    listener.drop_expired()
    assert not listener.missed_clips


def test_listening_over_the_line(line):
    line.send_json({"type": "listen"})
    assert line.receive_json() == {"type": "listen", "thresholds": {"lamp": 0.5, "music": 0.5}}
    send(line, loud())
    while (event := line.receive_json())["type"] != "event":
        assert event["type"] == "scores"
    line.send_json({"type": "correct", "id": event["id"], "word": "music"})
    line.send_json({"type": "correct", "id": 999, "word": None})
    wait_for_words(line, {"lamp": 1, "music": 2})
    right = {"type": "correct", "id": event["id"], "word": "music", "issues": [], "take": 1}
    answer = next_of(line, "correct")
    assert len(base64.b64decode(answer.pop("audio"))) > 2 * 4000
    assert 0.1 < answer.pop("seconds") < 0.7 and answer == right
    assert "is gone" in next_of(line, "correct")["error"]
    line.send_json({"type": "stop"})
    assert next_of(line, "stop") == {"type": "stop"}
    send(line, loud())
    line.send_json({"type": "gap"})
    assert line.receive_json() == {"type": "gap"}


def test_a_detector_that_fails_does_not_break_the_line(taught):
    class Failing(Heard):
        def __call__(self, chunk):
            raise ZeroDivisionError("by zero")

    taught.detector = Failing
    with (
        client_of(taught) as client,
        client.websocket_connect(LIVE, headers=HOME) as line,
    ):
        line.send_json({"type": "listen"})
        next_of(line, "listen")
        line.send_bytes(bytes(2560))
        assert "ZeroDivisionError: by zero" in line.receive_json()["error"]
        line.send_json({"type": "gap"})
        assert line.receive_json() == {"type": "gap"}


# Recording a take.


def send(line, sound):
    for chunk in chunks(sound):
        line.send_bytes(chunk.tobytes())


def codes(message):
    return [issue["code"] for issue in message["issues"]]


def quiet(seconds):
    return spoken(np.zeros(round(16_000 * seconds)), 0)


def test_a_doubtful_take_waits(taught, listener, path, monkeypatch):
    unlike = Issue("unlike", "doubt", {"word": "lamp"})
    monkeypatch.setattr(session, "CHECKS", [(lambda *_: iter([unlike]), ("take",))])
    listener.record(3)
    for chunk in chunks(spoken(tone(300, 0.5), 1.0)):
        listener.push_take(chunk)
    state = {"code": "unlike", "severity": "doubt", "params": {"word": "lamp"}}
    assert listener.keep(3, "lamp") == {"take": None, "issues": [state]}
    assert tapword.load(path).words == {"lamp": 1, "music": 1}
    assert listener.keep(3, "lamp", anyway=True)["issues"] == [state]
    assert tapword.load(path).words == {"lamp": 2, "music": 1}


def test_a_take_ends_by_itself_and_is_kept_by_its_number(line, path):
    line.send_json({"type": "record", "id": 7})
    assert line.receive_json() == {"type": "record", "id": 7}
    send(line, spoken(tone(300, 0.5)) + quiet(2))
    assert line.receive_json() == {"type": "recording", "id": 7, "state": "speaking"}
    take = line.receive_json()
    assert take["type"] == "take" and take["id"] == 7
    assert take["issues"] == [] and take["has_speech"]
    assert 0.3 < take["start_s"] < 0.5 < take["end_s"] < 1.0
    # The page sent more than the take has: it ends after 0.6 s of silence.
    assert take["end_s"] + 0.5 < take["length_s"] < take["end_s"] + 0.8
    line.send_json({"type": "keep", "id": 7, "word": " lamp ", "anyway": True})
    wait_for_words(line, {"lamp": 2, "music": 1})
    kept = {"type": "keep", "id": 7, "word": " lamp ", "anyway": True, "issues": [], "take": 1}
    assert line.receive_json() == kept
    line.send_json({"type": "keep", "id": 7, "word": "lamp", "anyway": True})
    answer = next_of(line, "keep")
    assert "record it again" in answer["error"] and answer["code"] == "take_expired"
    assert tapword.load(path).words == {"lamp": 2, "music": 1}


def test_a_take_is_stopped_thrown_away_and_superseded(line):
    sound = spoken(tone(300, 0.5))
    line.send_json({"type": "record", "id": 1})
    send(line, sound[: 2 * 12_000])
    line.send_json({"type": "finish"})
    take = next_of(line, "take")
    assert codes(take) == ["cut_off"] and take["length_s"] == 0.75
    line.send_json({"type": "record", "id": 2})
    line.send_json({"type": "keep", "id": 1, "word": "lamp", "anyway": True})
    assert "is gone" in next_of(line, "keep")["error"]
    send(line, sound)
    line.send_json({"type": "cancel"})
    next_of(line, "cancel")
    # Nothing is recorded any more, so nothing comes of these.
    send(line, sound + quiet(2))
    line.send_json({"type": "finish"})
    line.send_json({"type": "keep", "id": 2, "word": "lamp", "anyway": True})
    line.send_json({"type": "gap"})
    answers = [line.receive_json() for _ in range(4)]
    assert [answer["type"] for answer in answers] == ["finish", "model", "keep", "gap"]
    assert "is gone" in answers[2]["error"]


def test_a_bad_take_can_be_kept_all_the_same(line):
    line.send_json({"type": "record", "id": 1})
    send(line, spoken(tone(300, 0.5))[2 * 9600 :] + quiet(1))
    take = next_of(line, "take")
    assert codes(take) == ["cut_off"] and take["has_speech"]
    line.send_json({"type": "keep", "id": 1, "word": "lamp", "anyway": True})
    assert "error" not in next_of(line, "keep")


def test_nobody_speaks(line):
    line.send_json({"type": "record", "id": 1})
    send(line, quiet(SETTINGS.wait_s + 0.2))
    take = next_of(line, "take")
    assert codes(take) == ["no_speech"] and not take["has_speech"]
    assert take["length_s"] == pytest.approx(SETTINGS.wait_s, abs=0.2)
    line.send_json({"type": "keep", "id": 1, "word": "lamp", "anyway": True})
    assert "is gone" in next_of(line, "keep")["error"]


def test_lost_sound_spoils_a_take(line):
    line.send_json({"type": "record", "id": 1})
    send(line, spoken(tone(300, 0.5)))
    line.send_json({"type": "gap"})
    line.send_json({"type": "finish"})
    assert codes(next_of(line, "take")) == ["sound_lost"]


def test_a_take_is_recorded_while_the_page_listens(line):
    line.send_json({"type": "listen"})
    line.send_json({"type": "record", "id": 1})
    send(line, loud() + quiet(1))
    seen = set()
    while (message := line.receive_json())["type"] != "take":
        seen.add(message["type"])
    assert {"listen", "record", "scores", "event", "recording"} <= seen
    assert message["issues"] == []


def test_a_take_is_let_go_when_it_is_old(listener):
    for kept_s, gone in ((LIMITS.keep_s, False), (LIMITS.keep_s + 1, True)):
        listener.clock.now_s = 0.0
        listener.record(3)
        for chunk in chunks(spoken(tone(300, 0.5), 0.8)):
            listener.push_take(chunk)
        listener.clock.now_s = kept_s
        listener.drop_expired()
        assert (not listener.takes) == gone
    with pytest.raises(InputError, match="is gone"):
        listener.keep(3, "lamp")


# Pages that are slow.


def test_scores_give_way_and_news_do_not():
    outbox = Outbox(ServerLimits(scores=25, messages=200))
    for time_s in range(75):
        outbox.put(encode_message({"type": "scores", "time_s": time_s}))
        if time_s % 10 == 0:
            outbox.put(encode_message({"type": "event", "id": time_s}))
    assert not outbox.full
    for _ in range(200):
        outbox.put(encode_message({"type": "model"}))
    assert outbox.full

    async def empty():
        return [json.loads((await outbox.get()).text) for _ in range(len(outbox))]

    waiting = anyio.run(empty)
    assert [m["id"] for m in waiting if m["type"] == "event"] == list(range(0, 75, 10))
    assert [m["time_s"] for m in waiting if m["type"] == "scores"] == list(range(50, 75))
    assert not outbox.full


def test_a_slow_page_on_a_real_line(taught):
    """A page that sends and never reads is given up, holds little, and slows nobody down."""
    httpx = pytest.importorskip("httpx2")
    many = {f"a rather long word with the number {number}": 0.5 for number in range(500)}

    class Talking(Heard):
        def __call__(self, chunk):
            self.scores = many
            return []

    taught.detector = Talking
    limits, waiting = ServerLimits(send_s=1.0), []
    with (
        running(taught, limits=limits) as studio,
        socket.socket() as slow,
        httpx.Client(base_url=studio.origin, headers=studio.bearer) as other,
    ):
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(3)
        slow.connect(("127.0.0.1", studio.port))
        slow.sendall(
            f"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\n"
            f"Origin: {studio.origin}\r\nAuthorization: {studio.bearer['authorization']}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        assert slow.recv(12) == b"HTTP/1.1 101"
        # Masked frames, the mask of zeros: the command to listen, then sound.
        command = b'{"type": "listen"}'
        slow.sendall(b"\x81" + bytes([0x80 + len(command)]) + bytes(4) + command)
        frame = b"\x82\xfe" + (2560).to_bytes(2, "big") + bytes(4) + bytes(2560)
        with pytest.raises(OSError):
            while True:
                slow.sendall(frame)
                waiting += [len(outbox) for outbox in list(studio.sockets.open)]
        assert other.get("/api/state").status_code == 200
        # Long before the line is found dead for not answering pings.
        give_up = time.monotonic() + 15
        while studio.sockets.open and time.monotonic() < give_up:
            time.sleep(0.05)
        # The other page alone is left.
        assert not studio.sockets.open and len(studio.server.authenticated) == 1
    # The answer to the command waits too, and the model.
    assert 2 < max(waiting) <= limits.scores + 2


# Pages that break the rules.


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
        ("text", '{"type": "correct", "id": 1}', 1008),
        ("text", '{"type": "correct", "id": true, "word": "x"}', 1008),
        ("text", '{"type": "correct", "id": 1, "word": 2}', 1008),
        ("text", '{"type": "missed"}', 1008),
        ("text", '{"type": "record"}', 1008),
        ("text", '{"type": "record", "id": "1"}', 1008),
        ("text", '{"type": "keep", "id": 1}', 1008),
        ("text", '{"type": "keep", "id": 1, "word": null, "anyway": true}', 1008),
        (
            "text",
            r'{"type": "keep", "id": 1, "word": "half a pair: \ud83d", "anyway": true}',
            1008,
        ),
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


def test_too_many_pages(model):
    with client_of(model, limits=ServerLimits(sockets=1)) as client:
        with client.websocket_connect(LIVE, headers=HOME) as line:
            line.receive_json()
            with pytest.raises(WebSocketDisconnect) as refused:
                client.websocket_connect(LIVE, headers=HOME).__enter__()
            assert refused.value.code == 1013
        with client.websocket_connect(LIVE, headers=HOME) as line:
            assert line.receive_json()["type"] == "model"
