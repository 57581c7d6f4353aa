"""The examples in C are built as their pages say, and run."""

import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword import Detector, Spotter
from tapword.audio.files import as_float
from tapword.export.c import header as c_header
from tapword.export.c.reduced import for_device
from tests.conftest import ROOT
from tests.export.test_export import clips_of, compile_c, taught

EXAMPLES = ROOT / "examples"
WORDS = ("lamp", "door")


@pytest.fixture(scope="module")
def spotter() -> Spotter:
    return for_device(taught(WORDS))


@pytest.fixture(scope="module")
def header(spotter, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("header") / "home.h"
    text = c_header.build(spotter, max_words=10, eight_bits=True).text
    path.write_text(text, encoding="utf-8")
    return path


def stream() -> np.ndarray:
    """Give words with silence around them, 16 bits."""
    words = [clips_of(word, 9, 10)[0] for word in (*WORDS, "timer", WORDS[0])]
    sound = np.concatenate([np.pad(word, (12_000, 8_000)) for word in words])
    return np.round(sound * 32767).astype("<i2")


def wav(sound: np.ndarray, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def test_words_come_from_a_pipe(spotter, header, tmp_path):
    program = tmp_path / "listen"
    compile_c(f"-I{header.parent}", EXAMPLES / "c" / "listen.c", "-o", program)
    sound = stream()
    detector = Detector(spotter)
    events = [*detector(as_float(sound)), *detector.flush()]
    assert [event.word for event in events] == ["lamp", "door", "lamp"]

    def heard(given: bytes) -> list[list[str]]:
        done = subprocess.run([program], input=given, capture_output=True, check=True)
        return [line.split() for line in done.stdout.decode().splitlines()]

    found = heard(wav(sound))
    assert heard(sound.tobytes()) == found
    for (times, word, score, _, sure), event in zip(found, events, strict=True):
        assert word == event.word
        assert float(score) == pytest.approx(event.score, abs=0.05)
        assert int(sure) == pytest.approx(event.confidence, abs=10)
        start, end = map(float, times.split("-"))
        assert start == pytest.approx(event.start_s, abs=0.02)
        assert end == pytest.approx(event.end_s, abs=0.02)
    assert heard(b"") == []
    # What comes behind the samples is no sound; of a stream nobody knows how many there will be.
    whole = wav(sound)
    size, more = whole.index(b"data") + 4, sound.tobytes()
    assert heard(whole + b"LIST" + len(more).to_bytes(4, "little") + more) == found
    for unknown in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        assert heard(whole[:size] + unknown + whole[size + 4 :]) == found
    folder = os.open(tmp_path, os.O_RDONLY)
    done = subprocess.run([program], stdin=folder, capture_output=True, timeout=60)
    os.close(folder)
    assert done.returncode == 1 and b"standard input" in done.stderr
    for wrong in (wav(sound, 8_000), wav(np.stack([sound, sound], axis=1)), wav(sound)[:30]):
        done = subprocess.run([program], input=wrong, capture_output=True)
        assert done.returncode == 1 and b"expected 16-bit mono WAV at 16 kHz" in done.stderr


def test_make_without_a_model_says_what_to_do(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("needs make: apt install make")
    shutil.copytree(EXAMPLES / "c", tmp_path / "c")
    done = subprocess.run(["make", "-C", tmp_path / "c"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "home.tap does not exist. Teach it with: tapword learn home.tap" in done.stdout
