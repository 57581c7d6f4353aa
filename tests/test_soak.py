"""Long and rough use: an hour of sound through one detector, servers under load."""

import contextlib
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapword.assets import CLIPS
from tapword.audio import files as audio
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Spotter
from tests.conftest import SHARED
from tests.serve import rough_guests
from tests.serve.rough_guests import WORDS, clip, samples

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc"),
]
SPEECH = SHARED / "data" / "negatives" / "coffee_orders_20min.flac"
# A port, and the studio's token.
PLACE = re.compile(r"127\.0\.0\.1(?: port |:)(\d+)(?:/\?token=(\S+))?")
# Else each thread gets a heap of its own, and its leftovers look like a leak.
FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
ROUND_S, ROUNDS = 10.0, 6
# Until what a round began is over.
REST_S = 2.0
# What the allocator may keep besides; a leak of one chunk or request in ten would be far more.
STREAM_MB, SERVER_MB = 4.0, 24.0


def memory_mb(process: int | str = "self") -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def taught() -> Spotter:
    spotter = Spotter()
    for word in WORDS:
        spotter.learn_many([clip(word, number) for number in range(0, 10, 2)], [word] * 5)
    return spotter


def sound_without_end():
    """Speech, taught words and noise in turn, 80 ms at a time."""
    rng = np.random.default_rng(0)
    said = np.frombuffer(samples(*WORDS), dtype="<i2")
    while True:
        yield from np.array_split(said, len(said) // 1280)
        if SPEECH.exists():
            yield from audio.blocks(SPEECH, 0.08)
        else:
            for path in sorted(CLIPS.glob("*/*.ogg")):
                sound = audio.read(path)
                yield from np.array_split(sound, max(1, len(sound) // 1280))
        for _ in range(750):
            yield rng.normal(0, 0.02, 1280).astype(np.float32)


def test_an_hour_of_sound_takes_no_more_memory_than_five_minutes():
    detector, heard, begun = Detector(taught()), 0, time.perf_counter()
    passed, memory = 0.0, {}
    for chunk in sound_without_end():
        heard += len(detector(chunk))
        passed += len(chunk) / audio.SAMPLE_RATE
        for minutes in (5, 60):
            if minutes not in memory and passed >= 60 * minutes:
                memory[minutes] = memory_mb()
        if 60 in memory:
            break
    took = time.perf_counter() - begun
    print(f"{passed:.0f} s heard in {took:.0f} s, {heard} events, memory in MB {memory}")
    assert heard >= len(WORDS) and took < passed
    assert memory[60] - memory[5] < STREAM_MB


@contextlib.contextmanager
def served(tmp_path: Path, *arguments: str):
    """Run a command that serves; give its process and place. Its log must hold no traceback."""
    log = tmp_path / "log"
    command = [sys.executable, "-u", "-m", "tapword", *arguments]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | FEW_ARENAS
        ) as process,
    ):
        try:
            assert process.stdout is not None
            found = next(found for line in process.stdout if (found := PLACE.search(line)))
            port, token = int(found[1]), found[2]
            yield process, rough_guests.Place(port, token) if token else port
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
    content = log.read_text()
    assert "Traceback" not in content, content


def under_load(place: Any, guests: list, seconds: float) -> Counter[str]:
    """Let every guest come again and again for a while; count the visits that went well."""
    end = time.monotonic() + seconds
    visits: Counter[str] = Counter()
    problems: list[BaseException] = []

    def connection(guest, seed: int) -> None:
        dice = random.Random(seed)
        while time.monotonic() < end and not problems:
            try:
                guest(place, dice)
                visits[guest.__name__] += 1
            except OSError:
                # A server hangs up on whoever misbehaves, and on those it has no place for.
                time.sleep(0.05)
            except BaseException as error:
                problems.append(error)

    threads = [
        threading.Thread(target=connection, args=(guest, i)) for i, guest in enumerate(guests)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return visits


def soak(process, place: Any, guests: list, still_answers) -> None:
    """Load a server in rounds: it answers after each, and after two takes no more memory.

    How much it takes at once depends on how busy the machine is, so that rounds differ. A leak
    shows in both of the last.
    """
    memory: list[float] = []
    visits: Counter[str] = Counter()
    for _ in range(ROUNDS):
        visits += under_load(place, guests, ROUND_S)
        still_answers(place)
        time.sleep(REST_S)
        memory.append(memory_mb(process.pid))
    print(f"{ROUNDS} rounds of {ROUND_S:g} s, memory in MB {[round(one, 1) for one in memory]}")
    print(dict(visits))
    assert all(visits[guest.__name__] for guest in guests)
    assert min(memory[-2:]) - max(memory[:2]) < SERVER_MB


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "home.tap"
    taught().save(path)
    return str(path)


def test_the_studio_under_load(tmp_path, model):
    pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")

    def still_answers(place: rough_guests.Place) -> None:
        status, content = rough_guests.request(place, "GET", "/api/state")
        assert status == 200 and b"lamp" in content

    with served(tmp_path, "studio", model, "--port", "0") as (process, place):
        soak(process, place, rough_guests.STUDIO, still_answers)
    assert set(Spotter.load(model).words) == set(WORDS)


def test_the_studio_under_attack(tmp_path):
    """The long form of what `test_hostile` tries: nobody waits, nothing grows, nothing is said."""
    hostile = pytest.importorskip("tests.serve.test_hostile", reason="needs the extra web")
    with hostile.served(tmp_path) as (place, process, log):
        hostile.waits(place)
        alone = np.percentile(hostile.waits(place), 90)
        worse, memory = [], []
        with hostile.attack(place):
            end = time.monotonic() + ROUNDS * ROUND_S
            while time.monotonic() < end:
                worse.append(np.percentile(hostile.waits(place), 90) - alone)
                memory.append(memory_mb(process.pid))
        print(f"{len(worse)} rounds, worse by {np.median(worse):.3f} s, {max(worse):.3f} s at most")
        print(f"memory in MB from {memory[0]:.1f} to {memory[-1]:.1f}, {max(memory):.1f} at most")
        assert np.median(worse) < hostile.DELAY_S
        assert max(memory) - memory[0] < SERVER_MB
    assert log.read_text() == ""


def test_the_wyoming_service_under_load(tmp_path, model):
    pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

    def still_answers(port: int) -> None:
        rough_guests.wake_describe(port, random)
        rough_guests.wake_listen(port, random)

    place = ("--uri", "tcp://127.0.0.1:0")
    with served(tmp_path, "wyoming", model, *place) as (process, port):
        soak(process, port, rough_guests.WYOMING, still_answers)
