"""What the tests share: real recordings where they lie, and sounds made on the spot."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tapword.research import cache as features
from tests.fake_sound import FakeSound

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"


def shared(*parts: str) -> Path:
    """Path below the folder of recordings beside the repository; skip where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {path.relative_to(ROOT.parent)} beside the repository")
    return path


@pytest.fixture
def speech_commands() -> Path:
    return shared("data", "speech_commands_v0.01_subset")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def run(capsys, monkeypatch):
    from tapword import cli

    def call(*arguments):
        """Run the command in this process: (exit code, standard output, standard error)."""
        monkeypatch.setattr(sys, "argv", ["tapword", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        output = capsys.readouterr()
        return stop.value.code or 0, output.out, output.err

    return call


@pytest.fixture
def fake(monkeypatch):
    """Put a sound library in place that plays what it is given."""

    def put(sound, **options):
        module = FakeSound(sound, **options)
        monkeypatch.setitem(sys.modules, "sounddevice", module)
        return module

    return put


def tone(pitch_hz: float, seconds: float = 1.0, rate: int = 16_000) -> np.ndarray:
    """A tone with a rise and a fall, (n,) float32: enough for words to differ."""
    time = np.arange(round(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * pitch_hz * time) * np.hanning(len(time))).astype(np.float32)


def extract(dataset, split, backbone, poolings, cache, *options, **named):
    """Store a split's vectors, load them and trim the cache, as an evaluation does."""
    stored = features.store(dataset, split, backbone, poolings, cache, *options, **named)
    result = [one.load() for one in stored]
    cache.trim(keep=[one.key for one in stored])
    return result
