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

TRY = """
#include "spotter.h"
#include <stdio.h>

static int16_t sound[25][SPOTTER_CHUNK];
static uint8_t state[100000];

static void hear(void)
{
    int i, waits;
    for (i = 0; i < 50; i++) {
        const char *word;
        waits = i >= 25;
        word = spotter_push(sound[waits ? 0 : i]);
        if (word != NULL) {
            printf("%s\\n", word);
        }
        if (i == 24) {
            for (waits = 0; waits < SPOTTER_CHUNK; waits++) {
                sound[0][waits] = 0;
            }
        }
    }
}

int main(void)
{
    const char *wrong;
    size_t n;
    spotter_start();
    while (fread(sound, sizeof sound, 1, stdin) == 1) {
        hear();
    }
    if (fread(sound, 1, 1, stdin) == 0) {
        wrong = spotter_teach(sound[1], SPOTTER_CHUNK, "");
        printf("%s\\n", wrong == NULL ? "learned" : wrong);
        wrong = spotter_teach(sound[1], SPOTTER_TAKE + 1, "new");
        printf("%s\\n", wrong == NULL ? "learned" : wrong);
    }
    n = spotter_save(state, sizeof state);
    wrong = spotter_load(state, n);
    printf("%d %s\\n", n > 0, wrong == NULL ? "loaded" : wrong);
    wrong = spotter_load(state, n - 1);
    printf("%s\\n", wrong == NULL ? "loaded" : wrong);
    return 0;
}
"""


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


def test_the_component_for_a_board_hears_and_learns(header, tmp_path):
    component = EXAMPLES / "esp32" / "components" / "tapword"
    (tmp_path / "try.c").write_text(TRY)
    folders = [f"-I{header.parent}", f"-I{component}"]
    compile_c(*folders, component / "spotter.c", tmp_path / "try.c", "-o", tmp_path / "try")
    sound = np.concatenate([np.pad(clips_of(w, 9, 10)[0], (0, 16_000))[:16_000] for w in WORDS])
    given = np.round(sound * 32767).astype("<i2").tobytes()
    done = subprocess.run([tmp_path / "try"], input=given, capture_output=True, check=True)
    *words, bad_word, too_long, saved, damaged = done.stdout.decode().splitlines()
    assert words == list(WORDS)
    assert bad_word.startswith("TAPWORD_BAD_WORD") and too_long.startswith("TAPWORD_BAD_AUDIO")
    assert saved == "1 loaded" and damaged.startswith("TAPWORD_BAD_STATE")
