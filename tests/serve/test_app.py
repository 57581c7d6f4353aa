"""The studio's requests: what it teaches, what it refuses, what it never does."""

import asyncio
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import filelock
import numpy as np
import pytest

import tapword
from tapword.assets import CLIPS
from tapword.audio.endpoint import examine
from tapword.audio.files import read
from tapword.backbones.logmel import Logmel
from tapword.cli.export import header_of, onnx_of
from tapword.spotter import store
from tapword.spotter.vocabulary import MAX_WORD_BYTES
from tests.conftest import tone
from tests.serve.conftest import (
    HOME,
    LIVE,
    SMALL,
    client_of,
    learn,
    next_of,
    spoken,
    wait_for_words,
    words_of,
)

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

from tapword.serve.polling import polling
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.model import StudioModel

# Speech that begins at the first sample.
CUT_OFF = spoken(tone(300, 0.5))[2 * 9600 :]

# Teaching.


def test_teach_rename_forget(client, path):
    assert client.get("/api/state").json()["words"] == []
    assert not path.exists()
    for pitch in (300, 310, 320):
        assert learn(client, " lamp ", pitch).status_code == 200
    answer = learn(client, "музыка", 1200)
    assert words_of(answer.json()) == {"lamp": 3, "музыка": 1} == tapword.load(path).words
    renamed = client.post("/api/rename", json={"old": "музыка", "new": "radio"})
    assert words_of(renamed.json()) == {"lamp": 3, "radio": 1}
    forgotten = client.post("/api/forget", json={"word": "lamp"})
    assert words_of(forgotten.json()) == {"radio": 1}
    assert tapword.load(path).words == {"radio": 1}


@pytest.mark.parametrize(
    ("learner", "keeps", "trace"),
    [("cosine", True, "differences"), ("cosine", False, None), ("perceptron", True, "changes")],
)
def test_a_page_is_told_what_forgetting_leaves(path, learner, keeps, trace):
    model = StudioModel(path, SMALL | {"learner": learner})
    model.spotter.learner.keeps_trace = keeps
    assert model.state()["trace"] == trace


def test_bad_recordings_are_refused(client, path):
    for sound, code, severity in (
        (CUT_OFF, "cut_off", "doubt"),
        (spoken(np.zeros(8000)), "no_speech", "refuse"),
    ):
        answer = learn(client, "lamp", sound=sound).json()
        assert answer["take"] is None
        assert answer["issues"] == [{"code": code, "severity": severity, "params": {}}]
    assert not path.exists()
    assert learn(client, "lamp", sound=CUT_OFF, anyway=1).json()["take"] == 1
    assert learn(client, "lamp", sound=spoken(np.zeros(8000)), anyway=1).json()["take"] is None
    answer = learn(client, "lamp", kind="song")
    assert answer.status_code == 422 and "kind must be take or file" in answer.json()["error"]


def test_files_are_judged_as_files(client, path):
    """They are often cut tight, and nobody can say them again."""
    answer = learn(client, "lamp", sound=CUT_OFF, kind="file").json()
    assert answer["take"] == 1 and answer["issues"] == []
    assert tapword.load(path).words == {"lamp": 1}


def test_all_files_that_the_command_line_takes(path, speech_commands):
    """Speech Commands has its words cut to one second, often at their edges."""
    files = sorted((speech_commands / "no").glob("*.wav"))[:8]
    with client_of(StudioModel(path)) as client:
        for file in files:
            sound = (read(file) * 32767).astype("<i2").tobytes()
            assert learn(client, "no", sound=sound, kind="file").json()["take"] is not None
    assert tapword.load(path).words == {"no": 8}


def test_a_file_that_sounds_like_another_word_waits(path):
    model = StudioModel(path)
    clips = {
        word: [read(file) for file in sorted((CLIPS / word).glob("flite-*.ogg"))[:4]]
        for word in ("lamp", "music")
    }
    for word, own in clips.items():
        for clip in own[:3]:
            model.learn(clip, word, kind="file")
    doubted = model.learn(clips["music"][3], "lamp", kind="file", anyway=False)
    assert doubted.take is None
    assert [issue.code for issue in doubted.issues] == ["other_word"]
    assert doubted.issues[0].params["other"] == "music"
    assert model.learn(clips["music"][3], "lamp", kind="file").take is not None


def test_warnings_come_with_what_was_learned(path):
    """The same word under another name: three recordings are enough to say so."""
    model = StudioModel(
        path, {"backbone": "speech_embedding", "pooling": "tap", "learner": "ridge"}
    )
    clips = [read(file) for file in sorted((CLIPS / "lamp").glob("*.ogg"))[:10]]
    for word in ("music", "window"):
        for file in sorted((CLIPS / word).glob("*.ogg"))[:4]:
            assert model.learn(read(file), word).issues == []
    assert [model.learn(clip, "lamp").issues for clip in clips[:5]] == [[]] * 5
    said = [model.learn(clip, "light").issues for clip in clips[5:8]]
    assert (
        said[:2] == [[]] * 2
        and said[2][0].code == "close_word"
        and said[2][0].params
        == {
            "word": "light",
            "other": "lamp",
        }
    )
    model.forget("lamp")
    assert model.learn(clips[8], "light").issues == []


@pytest.mark.parametrize(
    ("word", "code"),
    [("", "bad_word"), ("  ", "bad_word"), ("a\nb", "bad_word"), ("ä" * 33, "word_too_long")],
)
def test_words_that_cannot_be_used_are_refused(client, word, code):
    answer = learn(client, word)
    assert answer.status_code == 422 and answer.json()["code"] == code
    learn(client, "lamp")
    answer = client.post("/api/rename", json={"old": "lamp", "new": word})
    assert answer.status_code == 422 and answer.json()["code"] == code
    assert client.get("/api/state").json()["max_word_bytes"] == MAX_WORD_BYTES


@pytest.mark.parametrize(
    ("path_", "body", "status", "said"),
    [
        ("/api/forget", {"word": "lamp"}, 422, "no words yet"),
        ("/api/rename", {"old": "lamp", "new": "x"}, 422, "no words yet"),
        ("/api/forget", {"word": 3}, 422, "must be JSON with the text word"),
        ("/api/rename", ["lamp"], 422, "JSON with the text old, the text new"),
        ("/api/sensitivity", {"word": "lamp", "value": 0.6}, 422, "no words yet"),
        ("/api/sensitivity", {"word": "lamp", "value": True}, 422, "the number value"),
        ("/api/sensitivity", {"word": "lamp"}, 422, "the text or null word, the number value"),
        ("/api/sensitivity", {"value": 0.6}, 422, "the text or null word, the number value"),
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
        assert answer.status_code == 422 and "'lam' is not in this model" in answer.json()["error"]


def test_a_sensitivity_is_kept_in_the_file(path):
    with client_of(StudioModel(path)) as client:
        for word, pitch in (("lamp", 300), ("music", 1200)):
            learn(client, word, pitch, anyway=1)
        answer = client.post("/api/sensitivity", json={"word": "lamp", "value": 0.7}).json()
        assert answer["has_thresholds"]
        assert [entry["sensitivity"] for entry in answer["words"]] == [0.7, 0.5]
        assert tapword.load(path).vocabulary.sensitivities == {"lamp": 0.7}
        for word, value, said in (
            ("lamp", 1.5, "from 0 to 1"),
            ("lamp", float("nan"), "from 0 to 1"),
            ("lam", 0.5, "'lam' is not in this model"),
        ):
            content = json.dumps({"word": word, "value": value})
            answer = client.post("/api/sensitivity", content=content)
            assert answer.status_code == 422 and said in answer.json()["error"]
        assert tapword.load(path).vocabulary.sensitivities == {"lamp": 0.7}


def test_a_sensitivity_needs_known_thresholds(client):
    learn(client, "lamp")
    assert not client.get("/api/state").json()["has_thresholds"]
    answer = client.post("/api/sensitivity", json={"word": "lamp", "value": 0.7})
    assert answer.status_code == 422 and "Thresholds are unavailable" in answer.json()["error"]


# The model file, shared with others.


def test_others_change_the_file(client, path):
    learn(client, "lamp")
    with client.websocket_connect(LIVE, headers=HOME) as line:
        wait_for_words(line, {"lamp": 1})
        with tapword.Spotter.edit(path) as other:
            other.learn(tone(1200), "music")
        news = wait_for_words(line, {"lamp": 1, "music": 1})
        assert news["revision"] == store.revision(path)
        learn(client, "lamp")
        wait_for_words(line, {"lamp": 2, "music": 1})
        path.unlink()
        while (message := next_of(line, "model"))["problem"] is None:
            pass
        assert "is gone; its words stay in use" in message["problem"]
        assert words_of(message) == {"lamp": 2, "music": 1}


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


def test_a_file_that_turns_bad_is_told_of_and_its_words_stay(client, path):
    learn(client, "lamp")
    good = path.read_bytes()

    def told():
        # A file may still be on its way: what is broken at the second look is broken.
        client.get("/api/state")
        state = client.get("/api/state").json()
        assert words_of(state) == {"lamp": 1}
        return state["problem"]

    path.write_bytes(good[:-100])
    assert "is not a tapword model" in told()
    path.write_bytes(re.sub(rb'(\\"format\\": )\d', rb"\g<1>9", good))
    assert "in format 9" in told()
    answer = learn(client, "lamp")
    assert answer.status_code == 409 and "upgrade" in answer.json()["error"]
    path.write_bytes(good)
    assert told() is None
    path.unlink()
    assert "is gone" in told()
    assert words_of(learn(client, "music", 1200).json()) == {"lamp": 1, "music": 1}
    assert tapword.load(path).words == {"lamp": 1, "music": 1}


class Noting(Logmel):
    """A backbone that notes whether the model file is locked while it is asked."""

    public_name = "logmel"
    path = None

    def __init__(self):
        super().__init__()
        self.asked_while_locked = []

    def frames_many(self, audios):
        lock = filelock.FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=0)
        try:
            with lock:
                self.asked_while_locked.append(False)
        except filelock.Timeout:
            self.asked_while_locked.append(True)
        return super().frames_many(audios)


def test_the_file_is_not_locked_while_clips_are_encoded(path):
    backbone = Noting()
    backbone.path = path
    model = StudioModel(path, SMALL | {"backbone": backbone})
    model.learn(tone(300), "lamp")
    model.learn(tone(1200), "music")
    model.reject(tone(900))
    assert len(backbone.asked_while_locked) >= 4 and not any(backbone.asked_while_locked)
    assert model.spotter.words == {"lamp": 1, "music": 1}
    assert sum(model.spotter.vocabulary.negatives.values()) == 1
    # Taught through the spotter itself, it would have been.
    with model.edit() as spotter:
        spotter.learn(tone(300), "lamp")
    assert backbone.asked_while_locked[-1]


def test_other_parts_that_came_meanwhile_encode_the_clip_anew(path, tmp_path):
    """Somebody replaces the model between the encoding of a clip and the lock."""
    other = tapword.Spotter("logmel", "avg", "ncm")
    other.learn(tone(1200), "music")

    class Overtaken(StudioModel):
        @contextlib.contextmanager
        def edit(self):
            other.save(path, overwrite=True)
            with super().edit() as spotter:
                yield spotter

    model = Overtaken(path, SMALL)
    model.learn(tone(300), "lamp")
    assert tapword.load(path).words == {"music": 1, "lamp": 1}
    other.learn(tone(1200), "music")
    model.spotter = tapword.Spotter(**SMALL)
    model.reject(tone(1200))
    assert tapword.load(path).vocabulary.negatives == {"music": 1}


def test_download_and_upload(client, path, tmp_path):
    learn(client, "lamp")
    answer = client.get("/api/model")
    assert answer.content == path.read_bytes()
    assert "filename*=UTF-8''home.tap" in answer.headers["content-disposition"]
    other = tapword.Spotter(**SMALL)
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    content = (tmp_path / "other.tap").read_bytes()
    looked = client.post("/api/model", content=content, params={"how": "inspect"})
    assert looked.json() == {"words": ["music"], "addable": True}
    assert tapword.load(path).words == {"lamp": 1}
    added = client.post("/api/model", content=content, params={"how": "add"})
    assert words_of(added.json()) == {"lamp": 1, "music": 1}
    seen = added.json()["revision"]
    learn(client, "lamp")
    stale = {"how": "replace", "revision": seen}
    answer = client.post("/api/model", content=content, params=stale)
    assert answer.status_code == 409 and "changed meanwhile" in answer.json()["error"]
    assert tapword.load(path).words == {"lamp": 2, "music": 1}
    fresh = {"how": "replace", "revision": client.get("/api/state").json()["revision"]}
    replaced = client.post("/api/model", content=content, params=fresh)
    assert words_of(replaced.json()) == {"music": 1}
    assert tapword.load(path).words == {"music": 1}


def test_files_for_other_programs(path):
    exports = {"onnx": onnx_of, "h": header_of}
    with client_of(StudioModel(path, SMALL, exports=exports)) as client:
        assert client.get("/api/state").json()["exports"] == ["onnx", "h"]
        assert client.get("/api/export/onnx").status_code == 422
        learn(client, "lamp")
        learn(client, "music", 1200)
        for kind, begins in (("onnx", b"\x08"), ("h", b"/*")):
            answer = client.get(f"/api/export/{kind}")
            assert answer.status_code == 200 and answer.content.startswith(begins)
            assert answer.headers["content-disposition"].endswith(f"home.{kind}")
        assert client.get("/api/export/exe").status_code == 404
        client.post("/api/rename", json={"old": "music", "new": "radio"})
        assert b"radio" in client.get("/api/export/onnx").content


def test_what_cannot_be_exported_says_why(path):
    exports = {"h": header_of}
    with client_of(StudioModel(path, SMALL | {"learner": "perceptron"}, exports=exports)) as client:
        learn(client, "lamp")
        answer = client.get("/api/export/h")
        assert answer.status_code == 422 and "perceptron" in answer.json()["error"]


def test_the_code_for_a_phone_holds_the_link(model):
    segno = pytest.importorskip("segno", reason="needs the extra web: pip install 'tapword[web]'")
    link = "https://10.0.0.7:8642/?token=abc"
    with client_of(model, phone=link) as client:
        answer = client.get("/api/phone")
        picture = io.BytesIO()
        segno.make(link, micro=False).save(picture, kind="svg", scale=6, dark="#000", light="#fff")
        assert answer.content == picture.getvalue()
        assert answer.headers["content-type"].startswith("image/svg+xml")
    with client_of(model) as client:
        assert client.get("/api/phone").status_code == 404


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
def test_a_name_that_is_no_text(tmp_path):
    """Neither a page nor a download fails on a file's name, and a header cannot be added by it."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b'/\xff"\r\nX-Evil: 1.tap'))
    with client_of(StudioModel(path, SMALL)) as client:
        assert learn(client, "lamp").status_code == 200
        assert words_of(client.get("/api/state").json()) == {"lamp": 1}
        answer = client.get("/api/model")
        assert answer.content == path.read_bytes() and "x-evil" not in answer.headers
        named = answer.headers["content-disposition"]
        assert named == "attachment; filename*=UTF-8''%FF%22%0D%0AX-Evil%3A%201.tap"
        with client.websocket_connect(LIVE, headers=HOME) as line:
            wait_for_words(line, {"lamp": 1})


def test_watching_goes_on_and_says_once_what_is_wrong(model, monkeypatch, caplog):
    def look():
        looks.append(1)
        if len(looks) < 4:
            raise RuntimeError("\x1b[31m")
        return True

    looks, told = [], []
    monkeypatch.setattr(model, "refresh", look)

    async def watch():
        async with polling(model, 0.01, lambda: told.append(1)):
            while not told:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(watch(), 10))
    [record] = caplog.records
    assert r"\x1b[31m" in record.getMessage() and "\x1b" not in record.getMessage()


def test_each_take_of_a_file_is_taught(path):
    """A sound unlike the others waits; without several takes, a long file is refused."""
    clips = [examine(read(CLIPS / "lamp" / f"flite-{voice}.ogg")).audio for voice in LAMPS]
    clips.insert(1, examine(read(CLIPS / "music" / "flite-rms_0.ogg")).audio)
    pause = np.zeros(32_000, dtype=np.float32)
    audio = np.concatenate([part for clip in clips for part in (pause, clip)] + [pause])
    audio += np.random.default_rng(0).normal(0, 1e-4, len(audio)).astype(np.float32)
    content = (audio * 32767).astype("<i2").tobytes()
    assert len(audio) / 16_000 > LIMITS.clip_s
    with client_of(StudioModel(path)) as client:
        answer = learn(client, "lamp", sound=content, kind="file").json()
        assert words_of(answer) == {"lamp": 4}
        assert answer["take"] is None
        assert [(one["code"], one["params"]) for one in answer["issues"]] == [
            ("several_takes", {"takes": 4})
        ]
        sounds = answer["sounds"]
        assert [one["take"] for one in sounds] == [1, None, 2, 3, 4]
        assert [issue["code"] for issue in sounds[1]["issues"]] == ["unlike"]
        # Where each is in the file, for the page to play and to keep it.
        starts = [one["first"] / 16_000 for one in sounds]
        assert starts == sorted(starts) and starts[0] > 1.5
        first, samples = sounds[1]["first"], sounds[1]["samples"]
        kept = learn(
            client, "lamp", sound=content[2 * first : 2 * (first + samples)], kind="file", anyway=1
        )
        assert words_of(kept.json()) == {"lamp": 5} and "sounds" not in kept.json()
        long = learn(client, "lamp", sound=bytes(32_000 * 12), kind="file")
        assert long.status_code == 422 and long.json()["code"] == "file_too_long"
        refused = learn(client, "lamp", sound=bytes(32_000 * 61), kind="file")
        assert refused.status_code == 413 and "60 s" in refused.json()["error"]


LAMPS = ("rms_0", "rms_1", "slt_0", "awb_0")


def test_an_upload_makes_a_model_where_there_is_none(client, path, tmp_path):
    other = tapword.Spotter(**SMALL)
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    content = (tmp_path / "other.tap").read_bytes()
    answer = client.post("/api/model", content=content, params={"how": "replace"})
    assert words_of(answer.json()) == {"music": 1}


def test_uploads_that_cannot_be_used(client, path, tmp_path):
    learn(client, "lamp")
    before = path.read_bytes()
    other = tapword.Spotter("logmel:pad_s=0.1", "tap:R=2", "ridge")
    other.learn(tone(1200), "music")
    other.save(tmp_path / "other.tap")
    revision = {"revision": store.revision(path)}
    for content, how, said in (
        (b"", "add", "the uploaded file is empty"),
        (b"nonsense" * 100, "replace", "the uploaded file is not a tapword model"),
        ((tmp_path / "other.tap").read_bytes(), "replace", "another backbone"),
        (before, "both", "how must be inspect, add or replace"),
        (b"nonsense" * 100, "inspect", "the uploaded file is not a tapword model"),
    ):
        answer = client.post("/api/model", content=content, params={"how": how} | revision)
        assert answer.status_code in (409, 422) and said in answer.json()["error"]
        assert str(tempfile.gettempdir()) not in answer.json()["error"]
    assert path.read_bytes() == before


# What it refuses to swallow.


def test_large_bodies(client, path):
    too_long = np.zeros(round((LIMITS.clip_s + 0.1) * 16_000), dtype="<i2").tobytes()
    answer = client.post("/api/learn?word=x", content=too_long)
    assert answer.status_code == 413 and "10 s of audio" in answer.json()["error"]
    # A body that does not say how large it is.
    answer = client.post("/api/learn?word=x", content=(bytes(100_000) for _ in range(10)))
    assert answer.status_code == 413
    answer = client.post("/api/forget", content=b'{"word": "' + b"x" * 10_000 + b'"}')
    assert answer.status_code == 413
    answer = client.post("/api/learn?word=x", content=b"123")
    assert answer.status_code == 422 and "16-bit" in answer.json()["error"]
    answer = client.post("/api/learn?word=x", content=b"")
    assert answer.status_code == 422 and "shorter than 100 ms" in answer.json()["error"]


def test_a_large_model_is_refused(model):
    with client_of(model, limits=ServerLimits(model_bytes=1000)) as client:
        answer = client.post("/api/model?how=add", content=bytes(1001))
    assert answer.status_code == 413 and "1,000 bytes" in answer.json()["error"]


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
    with client_of(StudioModel(path)) as client:
        teach_and_listen(client, path)
    assert {Path(name).parent for name in written} == {path.parent}
    assert all(Path(name).name.startswith(".home.tap") for name in written), written
    left = {file.name for file in path.parent.iterdir()}
    assert left <= {"home.tap", "home.tap.bak", ".home.tap.lock"}


def teach_and_listen(client, path):
    sounds = [spoken(tone(pitch, 0.5), 0.7) for pitch in (300, 320, 340, 1000, 1100, 1200)]
    with client.websocket_connect(LIVE, headers=HOME) as line:
        for index, sound in enumerate(sounds):
            word = "low" if index < 3 else "high"
            line.send_json({"type": "record", "id": index})
            send(line, sound)
            assert next_of(line, "take")["issues"] == []
            line.send_json({"type": "keep", "id": index, "word": word, "anyway": True})
            assert "error" not in next_of(line, "keep")
        # A tone may sound like noise, which is doubtful.
        assert learn(client, "low", anyway=1).status_code == 200
        line.send_json({"type": "listen"})
        for sound in sounds:
            send(line, sound)
        line.send_json({"type": "missed", "word": "high"})
        assert next_of(line, "missed")["take"] is None
        line.send_json({"type": "keep_missed", "word": "high"})
        assert "error" not in next_of(line, "keep_missed")
    assert tapword.load(path).words == {"low": 4, "high": 4}


def send(line, sound):
    for start in range(0, len(sound) - 2560, 2560):
        line.send_bytes(sound[start : start + 2560])


def test_the_file_holds_statistics_only(client, path):
    sounds = [spoken(tone(pitch, 0.5)) for pitch in (300, 320, 340, 360)]
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
            middle = scaled.astype(kind)[8000:12000]
            assert not any(middle[at : at + 8].tobytes() in content for at in range(0, 3992, 97))
    _, arrays = store.read(path)
    assert max(array.shape[0] for name, array in arrays.items() if name != "scatter") < 1000
