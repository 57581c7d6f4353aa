"""Sound that ffmpeg decodes; a script stands for it, which tells what it was asked."""

import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from tapword.audio import ffmpeg, files
from tapword.errors import InputError
from tests.conftest import tone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script")

BEGINNINGS = {
    "m4a": (b"\0\0\0\x1cftypM4A \0\0\2\0", "mov"),
    "aac": (b"\xff\xf1P@\x1f\x7f\xfc\xdc\0Lav", "aac"),
    "webm": (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81", "matroska"),
    "wma": (b"0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa", "asf"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    for suffix, (start, _) in BEGINNINGS.items():
        (tmp_path / f"clip.{suffix}").write_bytes(start + bytes(100))
    return tmp_path


@pytest.fixture
def stand_in(here, monkeypatch):
    """Put a program named ffmpeg on the path: it notes its arguments and does as it is told."""

    def put(body):
        program = here / "bin" / "ffmpeg"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f"#!{sys.executable}\nimport json, sys, time\n"
            f"json.dump(sys.argv[1:], open({str(here / 'asked')!r}, 'w'))\n{body}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))

    return put


def speak(here, seconds=1.0):
    """Samples for the stand-in to give, and how it gives them."""
    np.save(here / "tone.npy", tone(440, seconds))
    data = str(here / "tone.npy")
    return f"sys.stdout.buffer.write(open({data!r}, 'rb').read()[128:])"


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_files_of_other_kinds_are_decoded(here, stand_in, suffix):
    stand_in(speak(here))
    path = f"clip.{suffix}"
    np.testing.assert_array_equal(files.read(path), tone(440))
    np.testing.assert_array_equal(np.concatenate(list(files.blocks(path, 0.3))), tone(440))
    assert files.length_s(path) == 1.0
    asked = json.loads((here / "asked").read_text())
    assert asked[asked.index("-f") + 1] == BEGINNINGS[suffix][1]
    assert here / path in files.find(here)


@pytest.mark.parametrize("name", ["-y.m4a", "concat:a|b.m4a", "http:x.m4a", "%03d.m4a"])
def test_no_name_is_taken_for_an_option_or_an_address(here, stand_in, name):
    stand_in(speak(here))
    os.rename("clip.m4a", name)
    files.read(name)
    asked = json.loads((here / "asked").read_text())
    assert asked[asked.index("-i") + 1] == f"file:{here / name}"
    assert asked[asked.index("-protocol_whitelist") + 1] == "file"
    assert sum(name in argument for argument in asked) == 1


def test_without_ffmpeg_it_is_said_what_to_do(here, monkeypatch):
    monkeypatch.setenv("PATH", str(here / "nothing"))
    with pytest.raises(InputError, match=r"clip.m4a is M4A or MP4 sound.*install ffmpeg"):
        files.read("clip.m4a")


def test_what_ffmpeg_cannot_decode_is_refused(here, stand_in):
    stand_in(f"{speak(here)}\nsys.exit(1)")
    with pytest.raises(InputError, match=r"clip.wma could not be decoded by ffmpeg"):
        files.read("clip.wma")


def test_sound_without_end_is_cut_off(here, stand_in):
    stand_in("while True: sys.stdout.buffer.write(bytes(1 << 16))")
    with pytest.raises(InputError, match="longer than the limit of 30 s"):
        files.read("clip.m4a")


def test_an_ffmpeg_that_hangs_is_ended(here, stand_in, monkeypatch):
    stand_in("time.sleep(60)")
    monkeypatch.setattr(ffmpeg, "TIMEOUT_S", 0.2)
    start = time.monotonic()
    with pytest.raises(InputError, match="could not be decoded"):
        files.read("clip.m4a")
    assert time.monotonic() - start < 30


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_ffmpeg_itself(tmp_path, suffix):
    soundfile.write(tmp_path / "clip.wav", tone(440, rate=48_000), 48_000)
    target = tmp_path / f"clip.{suffix}"
    subprocess.run(["ffmpeg", "-v", "error", "-i", tmp_path / "clip.wav", target], check=True)
    read = files.read(target)
    assert abs(int(np.abs(np.fft.rfft(read, 16_000)).argmax()) - 440) <= 1
