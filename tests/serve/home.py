"""A home for tests: service and studio in one process, satellites that stream, and pages."""

import asyncio
import contextlib
import json
import threading
import time
from typing import Any, NamedTuple

import httpx2
import numpy as np
from websockets.sync.client import connect
from wyoming.audio import AudioChunk
from wyoming.client import AsyncTcpClient
from wyoming.wake import Detect, Detection

from tapword.serve.home.model import HomeModel
from tapword.serve.home.pages import Home
from tapword.serve.home.run import run
from tapword.serve.studio.launch import prepare
from tapword.serve.wyoming.service import SERVICE_INFO
from tests.serve.test_wyoming import HOST

CHUNK = 1024


class RunningHome(NamedTuple):
    """A home on two ports."""

    home: Home
    # Port of the service, address of the studio, what shows its token.
    port: int
    url: str
    bearer: dict[str, str]

    def get(self, path: str = "api/home") -> Any:
        answer = httpx2.get(f"{self.url}/{path}", headers=self.bearer)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, page: str = "a-page", **value: Any) -> Any:
        headers = self.bearer | {"origin": self.url}
        target = f"{self.url}/{path}?page={page}"
        return httpx2.post(target, headers=headers, json=value)

    def page(self, page: str = "a-page") -> Any:
        """Give the WebSocket of a page."""
        live = f"{self.url.replace('http', 'ws')}/api/live?page={page}"
        headers = self.bearer
        return connect(live, origin=self.url, additional_headers=headers, compression=None)

    def wait(self, condition, patience_s: float = 20) -> Any:
        """Give the state once it is as wanted."""
        end = time.monotonic() + patience_s
        while not condition(state := self.get()):
            assert time.monotonic() < end, state
            time.sleep(0.05)
        return state


@contextlib.contextmanager
def running_home(path, clients=None, home=None, **options):
    """Serve a home."""
    home = home or Home(HomeModel(path, clients=clients), clients)
    prepared = prepare(home.model, extension=home, **options)
    ready: list[int] = []
    started = threading.Event()

    def told(port, _):
        ready.append(port)
        started.set()

    def work():
        asyncio.run(run(home, prepared, HOST, 0, SERVICE_INFO, told))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert started.wait(20)
        origin, _, token = prepared[2].urls[0].partition("/?token=")
        bearer = {"authorization": f"Bearer {token}"}
        studio = RunningHome(home, ready[0], origin, bearer)
        studio.wait(lambda _: True)
        yield studio
    finally:
        prepared[0].should_exit = True
        thread.join()
        prepared[1].close()


class PlayingSatellite:
    """A satellite that streams in real time from a thread of its own: silence, or what is said."""

    def __init__(self, port: int, address: str = HOST, names: list[str] | None = None):
        self.port, self.address, self.names = port, address, names
        self.detections: list[Detection] = []
        self._sound: list[np.ndarray] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def say(self, samples: np.ndarray, wait: bool = True) -> None:
        """Stream samples (n,) int16 next."""
        self._sound += np.array_split(samples, max(1, len(samples) // CHUNK))
        while wait and self._sound:
            time.sleep(0.02)

    def __enter__(self) -> "PlayingSatellite":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._end.set()
        self._thread.join()

    async def _run(self) -> None:
        line = AsyncTcpClient(HOST, self.port)
        line._reader, line._writer = await asyncio.open_connection(
            HOST, self.port, local_addr=(self.address, 0)
        )
        await line.write_event(Detect(names=self.names).event())
        reading = asyncio.create_task(self._read(line))
        noise, due = np.random.default_rng(0), time.monotonic()
        while not self._end.is_set():
            chunk = self._sound.pop(0) if self._sound else noise.normal(0, 3, CHUNK)
            samples = chunk.astype("<i2")
            await line.write_event(AudioChunk(16_000, 2, 1, samples.tobytes()).event())
            due += len(samples) / 16_000
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        reading.cancel()
        await line.disconnect()

    async def _read(self, line: AsyncTcpClient) -> None:
        while (event := await line.read_event()) is not None:
            if Detection.is_type(event.type):
                self.detections.append(Detection.from_event(event))


def next_message(line: Any, kind: str, patience_s: float = 20) -> Any:
    """Read a page's WebSocket until a message of this type comes; "sound" is bytes."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        message = line.recv(timeout=patience_s)
        if isinstance(message, bytes):
            if kind == "sound":
                return np.frombuffer(message, "<i2")
        elif (found := json.loads(message))["type"] == kind:
            return found
    raise AssertionError(f"no {kind}")


def relay_take(page: Any) -> None:
    """Give the program the sound that it gives a page, as from a microphone, until a take ends."""
    while True:
        message = page.recv(timeout=20)
        if isinstance(message, bytes):
            page.send(message)
        elif json.loads(message)["type"] == "take":
            return
