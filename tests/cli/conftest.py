"""A model of two words that the tests of listening share, and the sources of sound."""

import io
import sys
import types

import numpy as np
import pytest

from tapword.spotter.spotter import Spotter
from tests.sounds import ASKED, TAUGHT, clip, padded, silence


@pytest.fixture(scope="session")
def taught(tmp_path_factory):
    spotter = Spotter()
    for word in ("lamp", "music"):
        spotter.learn_many([clip(word, voice) for voice in TAUGHT[:4]], [word] * 4)
    path = tmp_path_factory.mktemp("taught") / "home.tap"
    spotter.save(path)
    return path.read_bytes()


@pytest.fixture
def model(taught, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "home.tap"
    path.write_bytes(taught)
    return path


@pytest.fixture(scope="session")
def sound():
    """Two words in 5 s."""
    pieces = [padded(clip("lamp", ASKED[0])), silence(0.5), padded(clip("music", ASKED[1]))]
    return np.concatenate(pieces)


@pytest.fixture
def pipe(monkeypatch):
    def put(data):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))

    return put
