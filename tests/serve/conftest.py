"""What tests of the studio share: a model, a page's requests, and sound as a page sends it."""

import contextlib
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.conftest import tone

# Runs in a Python of its own, with packages that are not here.
collect_ignore_glob = ["home_assistant_*.py"]

HOST = "127.0.0.1:8642"
HOME = {"origin": f"http://{HOST}"}
TOKEN = "s3cret-token"
BEARER = {"authorization": f"Bearer {TOKEN}"}
LIVE = f"ws://{HOST}/api/live"
SMALL = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "ridge"}


def spoken(sound: np.ndarray, silence_s: float = 0.4) -> bytes:
    """Samples as the page sends them: a word with silence around, s16le."""
    quiet = np.zeros(round(silence_s * 16_000), dtype=np.float32)
    hiss = np.random.default_rng(0).normal(0, 1e-3, len(sound) + 2 * len(quiet))
    samples = np.concatenate([quiet, sound, quiet]) + hiss
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def client_of(model, host="127.0.0.1", base=f"http://{HOST}", **options):
    """A page's way to the studio, without a port; it shows the token."""
    from starlette.testclient import TestClient

    from tapword.serve.studio.app import studio

    application = studio(model, host, TOKEN, **options)
    return TestClient(application, base_url=base, headers=HOME | BEARER)


class Running(NamedTuple):
    """A studio on a port."""

    # The address that the command would print, and the origin of its page.
    url: str
    origin: str
    port: int
    # What shows the token.
    bearer: dict[str, str]
    server: Any

    @property
    def sockets(self):
        return self.server.config.app.state.sockets


@contextlib.contextmanager
def running(model, **options):
    """Serve a studio on a port."""
    from tapword.serve.studio.launch import prepare

    server, listening, address = prepare(model, **options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    port = listening.getsockname()[1]
    thread.start()
    try:
        origin, _, token = address.urls[0].partition("/?token=")
        bearer = {"authorization": f"Bearer {token}"}
        yield Running(address.urls[0], origin, port, bearer, server)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def learn(client, word, pitch=300, sound=None, **params):
    sound = spoken(tone(pitch, 0.5)) if sound is None else sound
    return client.post("/api/learn", content=sound, params={"word": word} | params)


def words_of(state: dict) -> dict[str, int]:
    """Word -> count of what the studio tells of its model."""
    return {entry["word"]: entry["count"] for entry in state["words"]}


def wait_for_words(line, wanted):
    """Read the line until it tells of these words; a page may be told twice of one change."""
    while True:
        message = line.receive_json()
        if message["type"] == "model" and words_of(message) == wanted:
            return message


def next_of(line, kind):
    """Read the line until a message of this type comes."""
    while (message := line.receive_json())["type"] != kind:
        pass
    return message


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    return folder / "home.tap"


@pytest.fixture
def model(path):
    from tapword.serve.studio.model import StudioModel

    return StudioModel(path, SMALL)


@pytest.fixture
def client(model):
    with client_of(model) as client:
        yield client
