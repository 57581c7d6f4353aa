"""Calibration through a satellite: its sound is scored, the sensitivities are set, and undone."""

import numpy as np
import pytest

import tapword
from tapword.errors import InputError

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tapword.audio.files import SAMPLE_RATE
from tapword.listening import calibration as by_recordings
from tapword.serve.home import calibration
from tapword.serve.home.model import HomeModel
from tapword.serve.home.pages import Home
from tapword.serve.studio.history import History
from tapword.serve.wyoming.audio import ConvertedChunk
from tapword.serve.wyoming.stream import Match
from tests.serve.home import PlayingSatellite, running_home
from tests.serve.test_wyoming import clip, said, teach_words


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
    return path


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(by_recordings, "MIN_SOUND_S", 3)


@pytest.fixture
def home(path):
    return Home(HomeModel(path))


def chunks(sound):
    """A stream as the service converts it: its first chunk begins it."""
    parts = np.array_split(sound, max(1, len(sound) // 1280))
    return [
        ConvertedChunk(part, len(part) / SAMPLE_RATE, None, None if number else 0.0)
        for number, part in enumerate(parts)
    ]


@pytest.fixture(scope="module")
def evening():
    """Sound of a room: other words, 6 s of them."""
    words = [clip("door", n) for n in (0, 2, 4, 6, 8)] + [clip("coffee", n) for n in (0, 2, 4)]
    return said(words, gap_s=0.3).astype(np.float32) / 32768


def streaming(home, address="10.0.0.7"):
    """A satellite that has begun to stream."""
    stream = home.satellites.watch(address)
    stream.audio(chunks(np.zeros(160, dtype=np.float32)))
    return stream


def hear(stream, sound):
    turn = chunks(sound)
    stream.audio(turn)
    stream.search(turn)


def test_it_gives_what_the_command_gives_for_the_same_sound(home, path, evening):
    stream = streaming(home)
    history = History()
    home.satellites.calibrate(1, history)
    hear(stream, evening)
    running = home.satellites.calibration(1)
    assert running.state()["sound_s"] >= 3 and running.state()["result"] is None
    running.finish()
    wanted = by_recordings.calibrate(tapword.load(path), [[evening]])
    vocabulary = home.model.spotter.vocabulary
    for word, value in wanted.after.items():
        assert vocabulary.sensitivity_of(word) == pytest.approx(value)
        assert value != 0.5
    shown = running.state()["result"]["words"]
    assert [(one["word"], one["before"]) for one in shown] == [("lamp", 0.5), ("music", 0.5)]
    assert shown[0]["after"] == pytest.approx(wanted.after["lamp"], abs=0.005)
    # One undo takes all of it back, and not a slider that was moved before.
    assert history.state()["undo"] == {"kind": "calibrate", "word": None}
    home.model.undo(history)
    assert home.model.spotter.vocabulary.sensitivity_of("lamp") == 0.5
    assert history.state()["undo"] is None


def test_a_slider_before_it_is_another_change(home, evening):
    stream, history = streaming(home), History()
    home.model.set_sensitivity(None, 0.7, history)
    home.satellites.calibrate(1, history)
    hear(stream, evening)
    home.satellites.calibration(1).finish()
    home.model.undo(history)
    assert home.model.spotter.vocabulary.sensitivity_of("lamp") == 0.7


def test_it_ends_by_itself(home, evening, monkeypatch):
    monkeypatch.setattr(calibration, "ENOUGH_SOUND_S", 4)
    told = []
    home.satellites.calibrated = lambda: told.append(True)
    stream = streaming(home)
    home.satellites.calibrate(1, History())
    hear(stream, evening)
    assert not home.satellites.all[1].calibrates and told
    assert home.satellites.state()[0]["calibration"]["result"]["minutes"] > 0
    home.satellites.end_calibration(1)
    assert home.satellites.state()[0]["calibration"] is None


def test_a_quiet_room_changes_nothing(home, path, monkeypatch):
    monkeypatch.setattr(calibration, "MOST_S", 5)
    before = path.read_bytes()
    stream = streaming(home)
    home.satellites.calibrate(1, History())
    quiet = np.zeros(SAMPLE_RATE, dtype=np.float32)
    hear(stream, quiet)
    with pytest.raises(InputError, match="Only 0 s contain sound"):
        home.satellites.calibration(1).finish()
    assert home.satellites.all[1].calibrates
    for _ in range(5):
        hear(stream, quiet)
    assert home.satellites.state()[0]["calibration"]["result"]["code"] == "calibration_short"
    assert path.read_bytes() == before


def test_a_calibration_that_fails_ends_and_leaves_the_stream_alone(home, path, monkeypatch):
    stream, before = streaming(home), path.read_bytes()
    home.satellites.calibrate(1, History())
    monkeypatch.setattr(by_recordings.Calibrator, "push", lambda *_: 1 / 0)
    hear(stream, np.zeros(1280, dtype=np.float32))
    assert "ZeroDivisionError" in home.satellites.state()[0]["calibration"]["result"]["error"]
    assert not home.satellites.all[1].calibrates and path.read_bytes() == before


def test_its_words_wake_nobody_meanwhile(home):
    stream = streaming(home)
    word = Match("lamp", "lamp", 0, 0.9, 0.5, None, True)
    assert not stream.holds_back(word)
    home.satellites.calibrate(1, History())
    assert stream.holds_back(word)
    home.satellites.end_calibration(1)
    home.satellites.all[1].held_until_s = 0.0
    assert not stream.holds_back(word)


def test_one_at_a_time_and_a_model_that_can_be_calibrated(home, tmp_path):
    streaming(home, "10.0.0.7"), streaming(home, "10.0.0.8")
    home.satellites.calibrate(1, History())
    with pytest.raises(InputError, match="another satellite is being calibrated"):
        home.satellites.calibrate(2, History())
    with pytest.raises(InputError, match="is over"):
        home.satellites.calibration(2)
    empty = Home(HomeModel(tmp_path / "empty.tap"))
    streaming(empty)
    with pytest.raises(InputError, match="no words yet"):
        empty.satellites.calibrate(1, History())


def test_a_model_of_another_kind_is_not_calibrated(home, path, evening):
    stream = streaming(home)
    home.satellites.calibrate(1, History())
    hear(stream, evening)
    path.unlink()
    with tapword.Spotter.edit(path, backbone="logmel", pooling="tap:R=2", learner="ridge") as other:
        other.learn(clip("lamp", 0), "lamp")
    before = path.read_bytes()
    with pytest.raises(InputError):
        home.satellites.calibration(1).finish()
    assert path.read_bytes() == before


def test_a_page_calibrates_and_undoes_it(path):
    with running_home(path) as home, PlayingSatellite(home.port) as satellite:
        home.wait(lambda state: len(state["satellites"]) == 1)
        assert home.post("api/home/calibrate", id=1, action="begin").status_code == 422
        assert home.post("api/home/calibrate", id=9, action="start").status_code == 422
        assert home.post("api/home/calibrate", id=1, action="start").status_code == 200
        early = home.post("api/home/calibrate", id=1, action="finish")
        assert early.json()["code"] == "calibration_short"
        satellite.say(said([clip("door", n) for n in (0, 2, 4)] + [clip("lamp", 11)], gap_s=0.3))
        home.wait(lambda state: state["satellites"][0]["calibration"]["sound_s"] >= 3)
        answer = home.post("api/home/calibrate", id=1, action="finish")
        assert answer.status_code == 200, answer.text
        [one] = answer.json()["satellites"]
        assert one["calibration"]["result"]["words"][0]["word"] == "lamp"
        # The word in it was held back: it is a false alarm here.
        assert satellite.detections == [] and home.get()["entries"] == []
        assert tapword.load(path).vocabulary.sensitivities
        assert home.post("api/undo").status_code == 200
        assert not tapword.load(path).vocabulary.sensitivities
        home.post("api/home/calibrate", id=1, action="end")
        assert home.get()["satellites"][0]["calibration"] is None
