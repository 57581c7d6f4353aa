"""Sound that ffmpeg decodes; a script stands for it, which tells what it was asked."""

import json
import os
import shutil
import struct
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
    """Put a program named ffmpeg on the path: it writes down its arguments and follows a script."""

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


def header(rate=16_000, channels=1, name=b".snd"):
    """The beginning of an AU file, as ffmpeg writes it."""
    return struct.pack(">4s7I", name, 32, 2**32 - 1, 6, rate, channels, 0, 0)


def speak(here, seconds=1.0):
    """Samples for the stand-in to give, and how it gives them."""
    data = here / "tone.au"
    data.write_bytes(header() + tone(440, seconds).astype(">f4").tobytes())
    return f"sys.stdout.buffer.write(open({str(data)!r}, 'rb').read())"


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_files_of_other_kinds_are_decoded(here, stand_in, suffix):
    stand_in(speak(here))
    path = f"clip.{suffix}"
    np.testing.assert_array_equal(files.read(path), tone(440))
    np.testing.assert_array_equal(np.concatenate(list(files.blocks(path, 0.3))), tone(440))
    assert files.length_s(path) == 1.0
    asked = json.loads((here / "asked").read_text())
    given = asked[: asked.index("-i")]
    assert given[given.index("-f") + 1] == BEGINNINGS[suffix][1]
    # Only the decoders of this format, no other track, and no resampler.
    [kind] = [kind for kind in ffmpeg.FORMATS if kind.demuxer == BEGINNINGS[suffix][1]]
    assert given[given.index("-codec_whitelist") + 1] == ",".join(kind.decoders)
    assert {"-vn", "-sn", "-dn"} <= set(given) and not {"-ar", "-ac"} & set(asked)
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
    with pytest.raises(InputError, match=r"clip.wma could not be decoded by ffmpeg") as error:
        files.read("clip.wma")
    # No command is named in which the file would meet ffmpeg without these limits.
    assert "ffmpeg -" not in str(error.value) and "wmav1 or wmav2" in str(error.value)


@pytest.mark.parametrize("start", [b"", header()[:20], header(name=b"RIFF"), header(channels=0)])
def test_what_is_not_sound_is_refused(here, stand_in, start):
    stand_in(f"sys.stdout.buffer.write({start!r})")
    with pytest.raises(InputError, match="could not be decoded by ffmpeg"):
        files.read("clip.m4a")


@pytest.mark.parametrize("rate", [999, 768_001, 250_000_007])
def test_rates_out_of_range_are_refused_before_decoding(here, stand_in, rate):
    stand_in(f"sys.stdout.buffer.write({header(rate)!r}); sys.stdout.flush(); time.sleep(60)")
    start = time.monotonic()
    with pytest.raises(InputError, match=f"its sample rate must be between .* got {rate}"):
        files.read("clip.webm")
    assert time.monotonic() - start < 30


def test_channels_are_mixed_and_resampled_here(here, stand_in):
    left, right = tone(440, rate=48_000), 0.5 * tone(440, rate=48_000)
    data = np.stack([left, right], axis=1).astype(">f4").tobytes()
    (here / "tone.au").write_bytes(header(48_000, 2) + data)
    stand_in(f"sys.stdout.buffer.write(open({str(here / 'tone.au')!r}, 'rb').read())")
    soundfile.write("same.wav", np.stack([left, right], axis=1), 48_000, subtype="FLOAT")
    np.testing.assert_array_equal(files.read("clip.m4a"), files.read("same.wav"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_memory_is_limited(here, stand_in):
    # The limit is set within milliseconds of the start.
    taken = f"time.sleep(1); taken = bytearray({2 * ffmpeg.MAX_BYTES})"
    stand_in(f"try:\n    {taken}\nexcept MemoryError:\n    sys.exit(1)\n{speak(here)}")
    with pytest.raises(InputError, match="could not be decoded"):
        files.read("clip.m4a")


def test_time_is_limited_in_all(here, stand_in, monkeypatch):
    """Sound that comes more slowly than it is spoken."""
    stand_in(
        f"sys.stdout.buffer.write({header()!r})\n"
        "while True:\n    sys.stdout.buffer.write(bytes(640)); sys.stdout.flush(); time.sleep(0.1)"
    )
    monkeypatch.setattr(ffmpeg, "TIMEOUT_S", 0.5)
    start = time.monotonic()
    with pytest.raises(InputError, match="could not be decoded"):
        list(files.blocks("clip.m4a", 0.02))
    assert time.monotonic() - start < 30


def test_sound_without_end_is_cut_off(here, stand_in):
    endless = "while True: sys.stdout.buffer.write(bytes(1 << 16))"
    stand_in(f"sys.stdout.buffer.write({header()!r})\n{endless}")
    with pytest.raises(InputError, match="longer than the limit of 30 s"):
        files.read("clip.m4a")


def test_an_ffmpeg_that_hangs_is_ended(here, stand_in, monkeypatch):
    stand_in("time.sleep(60)")
    monkeypatch.setattr(ffmpeg, "TIMEOUT_S", 0.2)
    start = time.monotonic()
    with pytest.raises(InputError, match="could not be decoded"):
        files.read("clip.m4a")
    assert time.monotonic() - start < 30


@pytest.fixture
def made(tmp_path):
    """Let ffmpeg make a file of a tone at 48 kHz."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("needs ffmpeg")

    def make(name, *options):
        soundfile.write(tmp_path / "clip.wav", tone(440, rate=48_000), 48_000)
        target = tmp_path / name
        given = ["ffmpeg", "-v", "error", "-i", tmp_path / "clip.wav", *options, target]
        subprocess.run(given, check=True)
        return target

    return make


@pytest.mark.parametrize("codec", ["pcm_s16le", "wavpack", "tta", "ac3", "flac"])
def test_ffmpeg_opens_no_other_decoder(made, codec):
    with pytest.raises(InputError, match="its sound is not opus or vorbis"):
        files.read(made("clip.mkv", "-c:a", codec))


def test_ffmpeg_never_takes_memory_for_a_rate_that_is_claimed(made):
    path = made("clip.webm", "-c:a", "libvorbis")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"\1vorbis") + 12, 250_000_007)
    path.write_bytes(data)
    with pytest.raises(InputError, match="got 250000007"):
        files.read(path)


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_ffmpeg_itself(made, suffix):
    target = made(f"clip.{suffix}")
    read = files.read(target)
    assert abs(int(np.abs(np.fft.rfft(read, 16_000)).argmax()) - 440) <= 1
