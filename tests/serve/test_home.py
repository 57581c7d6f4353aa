"""A home: satellites in the studio, and the list of what they heard."""

import json
import time

import numpy as np
import pytest

import tapword
from tapword.errors import InputError

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tapword.serve.home import entries as entries_module
from tapword.serve.home.entries import Entries
from tapword.serve.home.model import HomeModel
from tapword.serve.home.satellites import Satellites
from tapword.serve.studio.history import History
from tapword.serve.wyoming.audio import ConvertedChunk
from tapword.serve.wyoming.settings import Clients, read_clients
from tapword.serve.wyoming.stream import Match
from tests.serve.home import PlayingSatellite, next_message, relay_take, running_home
from tests.serve.test_wyoming import ask, clip, said, teach, teach_words


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
    return path


def only(entries):
    [entry] = entries
    return entry


def test_satellites_are_listed_named_and_numbered(path):
    import asyncio

    clients = read_clients(["kitchen=127.0.0.7"])
    with running_home(path, clients) as home:
        # Who only asks for the words is no satellite.
        assert asyncio.run(ask(home.port)) == ["lamp", "music"]
        assert home.get()["satellites"] == []
        with (
            PlayingSatellite(home.port, "127.0.0.7"),
            PlayingSatellite(home.port),
            home.page() as page,
        ):
            home.wait(lambda state: len(state["satellites"]) == 2)
            with PlayingSatellite(home.port):
                state = home.wait(lambda state: len(state["satellites"]) == 3)
            places = {(one["address"], one["place"], one["name"]) for one in state["satellites"]}
            assert places == {
                ("127.0.0.7", 1, "kitchen"),
                ("127.0.0.1", 1, ""),
                ("127.0.0.1", 2, ""),
            }
            second = next(one["id"] for one in state["satellites"] if one["place"] == 2)
            assert home.post("api/home/name", id=second, name=" the  hall ").status_code == 200
            streaming = home.wait(
                lambda state: sum(s["streaming"] for s in state["satellites"]) == 2
            )
            assert [one["name"] for one in streaming["satellites"] if not one["streaming"]] == [
                "the hall"
            ]
            # The next stream from there is the same satellite again.
            with PlayingSatellite(home.port) as hall:
                home.wait(lambda state: all(one["streaming"] for one in state["satellites"]))
                assert len(home.get()["satellites"]) == 3
                hall.say(said([clip("door", 3)]))
                loudest = -100
                # About four a second; a busy machine plays late.
                for _ in range(80):
                    if loudest > -50:
                        break
                    levels = next_message(page, "levels")["levels"]
                    loudest = max(loudest, levels.get(str(second), -100))
                assert loudest > -50
            for name in ("x" * 41, "a\u202eb"):
                assert home.post("api/home/name", id=second, name=name).status_code == 422
            assert home.post("api/home/name", id=99, name="x").status_code == 422


def test_a_satellite_teaches_and_wakes_nobody_meanwhile(path):
    takes = [said([clip("door", n)], gap_s=1.0) for n in (0, 2, 4)]
    with running_home(path) as home, PlayingSatellite(home.port) as satellite:
        home.wait(lambda state: len(state["satellites"]) == 1)
        with home.page() as page:
            page.send(json.dumps({"type": "satellite", "id": 99}))
            assert next_message(page, "satellite")["code"] == "satellite_gone"
            page.send(json.dumps({"type": "satellite", "id": 1}))
            assert "error" not in next_message(page, "satellite")
            assert len(next_message(page, "sound")) == 1280
            # A taught word in a take wakes nobody, and is not listed.
            page.send(json.dumps({"type": "record", "id": 1}))
            next_message(page, "record")
            satellite.say(said([clip("lamp", 11)]))
            state = home.get()
            assert only(state["satellites"])["held"] and only(state["satellites"])["used"] == 1
            page.send(json.dumps({"type": "cancel"}))
            for number, take in enumerate(takes, 2):
                page.send(json.dumps({"type": "record", "id": number}))
                next_message(page, "record")
                satellite.say(take, wait=False)
                relay_take(page)
                keep = {"type": "keep", "id": number, "word": "door", "anyway": True}
                page.send(json.dumps(keep))
                answer = next_message(page, "keep")
                assert answer.get("take"), answer
            assert satellite.detections == [] and home.get()["entries"] == []
        home.wait(lambda state: not only(state["satellites"])["held"])
        assert home.get()["satellites"][0]["used"] == 0
        satellite.say(said([clip("door", 6)]))
        state = home.wait(lambda state: any(entry["said"] for entry in state["entries"]))
        assert [one.name for one in satellite.detections] == ["door"]
        assert state["satellites"][0]["latency_ms"] is not None
        assert 0 < state["satellites"][0]["latency_ms"] < 3000
    assert tapword.load(path).words == {"lamp": 5, "music": 5, "door": 3}


def test_a_page_gets_the_sound_of_the_satellite_it_chose_alone(path):
    with (
        running_home(path) as home,
        PlayingSatellite(home.port, "127.0.0.7") as one,
        PlayingSatellite(home.port, "127.0.0.8"),
    ):
        state = home.wait(lambda state: sum(s["streaming"] for s in state["satellites"]) == 2)
        number = {s["address"]: s["id"] for s in state["satellites"]}["127.0.0.7"]
        with home.page() as page, home.page("another") as other:
            page.send(json.dumps({"type": "satellite", "id": number}))
            one.say(said([clip("door", 3)], gap_s=0.1), wait=False)
            loudest = max(np.abs(next_message(page, "sound")).max() for _ in range(15))
            assert loudest > 1000
            page.send(json.dumps({"type": "satellite", "id": None}))
            while json_or_none(page.recv(timeout=5)) is None or not answered(home, 0):
                pass
            for line in (page, other):
                kinds = [json_or_none(line.recv(timeout=5)) for _ in range(12)]
                assert None not in kinds
        stream = home.home.satellites.find(number).stream
        assert stream is not None and not home.home.satellites.find(number).microphones


def json_or_none(message):
    return None if isinstance(message, bytes) else json.loads(message)


def answered(home, used):
    return all(one["used"] == used for one in home.get()["satellites"])


def test_what_was_heard_is_put_right(path):
    with running_home(path) as home, PlayingSatellite(home.port) as satellite:
        satellite.say(said([clip("lamp", 11)]))
        state = home.wait(lambda state: any(entry["said"] for entry in state["entries"]))
        entry = next(entry for entry in state["entries"] if entry["said"])
        assert entry["word"] == "lamp" and entry["score"] >= entry["threshold"]
        assert not entry["sound"] and entry["taught"] is None
        assert abs(entry["at_s"] - time.time()) < 30
        answer = home.post("api/home/correct", id=entry["id"], word=None)
        assert answer.status_code == 200, answer.text
        assert tapword.load(path).vocabulary.negatives == {"lamp": 1}
        again = home.post("api/home/correct", id=entry["id"], word=None)
        assert again.status_code == 422 and again.json()["code"] == "entry_corrected"
        # The page that did it can undo it, and then correct it as another word.
        assert home.post("api/undo").status_code == 200
        assert tapword.load(path).vocabulary.negatives == {}
        answer = home.post("api/home/correct", id=entry["id"], word="lantern")
        assert answer.status_code == 200
        assert tapword.load(path).words == {"lamp": 5, "music": 5, "lantern": 1}
        listed = next(one for one in home.get()["entries"] if one["id"] == entry["id"])
        assert listed["taught"] == {"word": "lantern", "negative": False}
        # Entries follow a rename, and leave with their word.
        home.post("api/rename", old="lamp", new="light")
        listed = next(one for one in home.get()["entries"] if one["id"] == entry["id"])
        assert listed["word"] == "light"
        home.post("api/forget", word="light")
        assert all(one["word"] != "light" for one in home.get()["entries"])
        gone = home.post("api/home/correct", id=entry["id"], word=None)
        assert gone.json()["code"] == "entry_gone"
    with running_home(path) as home:
        assert home.get()["entries"] == []


def test_a_correction_by_vector_is_that_by_sound(path):
    """It is the same model, to the last bit, as from the clip itself."""
    model = HomeModel(path)
    vectors = model.vectors(clip("lamp", 11))
    model.correct(vectors, None, History())
    by_vector = tapword.load(path).learner.state()
    other = path.with_name("other.tap")
    teach(other, {word: [clip(word, n) for n in range(0, 10, 2)] for word in ("lamp", "music")})
    second = HomeModel(other)
    from tapword.serve.studio.listener import speech_of

    second.reject(speech_of(clip("lamp", 11)).audio)
    by_sound = tapword.load(other).learner.state()
    assert by_vector.keys() == by_sound.keys()
    for name, value in by_vector.items():
        np.testing.assert_array_equal(value, by_sound[name], err_msg=name)


class Told:
    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1


@pytest.fixture
def clock():
    class Clock:
        now_s = 1_000_000.0

        def __call__(self):
            return self.now_s

    return Clock()


@pytest.fixture
def entries(path, clock):
    return Entries(HomeModel(path), Told(), clock)


def add(entries, word="lamp", said=True, number=11):
    return entries.add(1, word, 0.6, 0.5, said, clip(word, number))


def test_sound_is_held_where_it_was_asked_for_and_for_two_minutes(entries, clock):
    first = add(entries)
    assert first.clip is None
    entries.keeps_sound = True
    second = add(entries)
    assert second.clip is not None
    clock.now_s += 119
    assert second in entries.list() and second.clip is not None
    clock.now_s += 2
    assert second in entries.list() and second.clip is None
    third = add(entries)
    assert third.clip is not None
    entries.keeps_sound = False
    assert third.clip is None


def test_the_list_is_of_a_day_and_bounded(entries, clock, monkeypatch):
    monkeypatch.setattr(entries_module, "MAX_ENTRIES", 3)
    added = [add(entries) for _ in range(5)]
    assert entries.list() == added[2:]
    clock.now_s += 24 * 3600 + 1
    last = add(entries, said=False)
    assert entries.list() == [last]
    with pytest.raises(InputError, match="is gone"):
        entries.find(added[4].number)
    with pytest.raises(InputError, match="no word was detected"):
        entries.last_said()


def test_an_entry_of_another_kind_of_model_is_refused(entries, path):
    entry = add(entries)
    path.unlink()
    with tapword.Spotter.edit(path, backbone="logmel", pooling="tap:R=2", learner="ridge") as other:
        other.learn(clip("lamp", 0), "lamp")
    with pytest.raises(InputError, match="another kind"):
        entries.correct(entry.number, None, History())


def test_a_pause_holds_everything_back(entries):
    told = Told()
    satellites = Satellites(Clients(), entries, told, clock := Seconds())
    stream = satellites.watch("10.0.0.7")
    stream.audio([ConvertedChunk(np.zeros(160, dtype=np.float32), 0.01)])
    word = Match("lamp", "lamp", 0, 0.6, 0.5, None, True)
    assert not stream.holds_back(word)
    satellites.pause(60)
    assert stream.holds_back(word) and satellites.paused_s == 60
    clock.now_s += 61
    assert not stream.holds_back(word)
    satellites.pause(60)
    satellites.pause(0)
    assert not stream.holds_back(word)


class Seconds:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def test_latency_counts_from_the_arrival_of_the_words_end(path):
    """Chunks arrive at known times; the end of the word is in one of them."""
    from tapword.serve.wyoming.settings import DetectorSettings
    from tapword.serve.wyoming.stream import Stream

    sound = said([clip("lamp", 11)]).astype(np.float32) / 32768
    stream = Stream(HomeModel(path), DetectorSettings(), clips=True)
    chunks = [
        ConvertedChunk(part, len(part) / 16_000, None, None if number else 0.0, 100.0 + number)
        for number, part in enumerate(np.array_split(sound, len(sound) // 1280))
    ]
    [match] = [one for chunk in chunks for one in stream.push([chunk]) if one.said]
    ends_s = np.cumsum([chunk.seconds for chunk in chunks])
    assert match.arrived_s == 100.0 + np.searchsorted(ends_s, match.ended_ms / 1000 - 1e-3)


def test_each_satellite_shows_the_median_of_its_latencies(entries):
    clock = Seconds()
    satellites = Satellites(Clients(), entries, Told(), clock)
    told = []
    satellites.noted.append(told.append)
    word = Match("lamp", "lamp", 0, 0.6, 0.5, None, True, clip=clip("lamp", 11))
    near = word._replace(said=False)
    for address, latencies in (("10.0.0.7", (0.2, 0.9, 0.4)), ("10.0.0.8", (0.7,))):
        stream = satellites.watch(address)
        stream.audio([ConvertedChunk(np.zeros(160, dtype=np.float32), 0.01)])
        for latency in latencies:
            stream.note(word, latency)
        # A near miss is no answer, and a recording has no latency.
        stream.note(near, 5.0)
        stream.note(word, None)
    assert [one["latency_ms"] for one in satellites.state()] == [400, 700]
    assert [one.get("latency_ms") for one in told] == [200, 900, 400, None, None, 700, None, None]
