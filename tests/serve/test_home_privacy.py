"""Where the sound of a satellite is in memory: while it is used, and nowhere after that."""

import gc
import json
import time
import types

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tapword.serve.wyoming.client import Client
from tests.serve.home import PlayingSatellite, next_message, relay_take, running_home
from tests.serve.test_wyoming import clip, said, teach_words

# Not followed: they lead to the whole program.
PROGRAM = (types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, type)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
    return path


def held(home, sound: np.ndarray) -> list[str]:
    """List what a home holds that contains the middle of a sound (n,) int16, in any format."""
    middle = sound[len(sound) // 2 :][:200]
    marks = [middle.astype("<i2").tobytes(), (middle / 32768).astype("<f4").tobytes()]
    # By type: some objects of other packages warn when they are asked for their class.
    clients = [one for one in gc.get_objects() if issubclass(type(one), Client)]
    waiting, seen, found = [home.home, *clients], set(), []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or issubclass(type(one), PROGRAM):
            continue
        seen.add(id(one))
        if issubclass(type(one), np.ndarray):
            content = one.tobytes()
        elif issubclass(type(one), bytes | bytearray):
            content = bytes(one)
        else:
            waiting += gc.get_referents(one)
            continue
        if any(mark in content for mark in marks):
            found.append(f"{type(one).__name__} of {len(content)} bytes")
    return found


def wait_until_gone(home, sound, patience_s=20):
    end = time.monotonic() + patience_s
    while found := held(home, sound):
        assert time.monotonic() < end, found
        time.sleep(0.2)


def test_sound_is_in_memory_only_while_it_is_used(path):
    word = said([clip("lamp", 11)])
    with running_home(path) as home:
        with PlayingSatellite(home.port) as satellite:
            satellite.say(word)
            # The last seconds, in which words are searched.
            assert held(home, word)
            state = home.wait(lambda state: any(entry["said"] for entry in state["entries"]))
            # Then the entry is left, which holds vectors.
            wait_until_gone(home, word)
            assert home.get()["entries"] and not any(one["sound"] for one in state["entries"])
            # The two minutes.
            home.post("api/home/sound", on=True)
            satellite.say(word)
            home.wait(lambda state: any(entry["sound"] for entry in state["entries"]))
            time.sleep(1)
            assert held(home, word)
            home.post("api/home/sound", on=False)
            wait_until_gone(home, word)
            # A calibration holds scores.
            home.post("api/home/calibrate", id=1, action="start")
            satellite.say(word)
            wait_until_gone(home, word)
            assert home.get()["satellites"][0]["calibration"]["sound_s"] >= 1
            home.post("api/home/calibrate", id=1, action="end")
            # A page that records holds its take, until it is closed.
            with home.page() as page:
                page.send(json.dumps({"type": "satellite", "id": 1}))
                next_message(page, "satellite")
                page.send(json.dumps({"type": "record", "id": 1}))
                next_message(page, "record")
                satellite.say(word, wait=False)
                relay_take(page)
                assert held(home, word)
            wait_until_gone(home, word)
            satellite.say(word)
            assert held(home, word)
        # The satellite went while its last seconds were in memory.
        wait_until_gone(home, word, 5)
