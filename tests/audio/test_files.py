import os
import sys

import numpy as np
import pytest
import soundfile

from tapword.audio import files
from tapword.errors import InputError
from tests.conftest import tone


@pytest.mark.parametrize(
    ("suffix", "arguments"),
    [
        ("wav", {"subtype": "PCM_16"}),
        ("wav", {"subtype": "FLOAT"}),
        ("flac", {}),
        ("ogg", {"format": "OGG", "subtype": "VORBIS"}),
        ("opus", {"format": "OGG", "subtype": "OPUS"}),
        ("mp3", {}),
    ],
)
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_formats_rates_and_channels_give_the_same_sound(
    tmp_path, suffix, arguments, rate, channels
):
    if arguments.get("subtype") == "OPUS" and rate == 44_100:
        pytest.skip("Opus has no such rate")
    path = tmp_path / f"clip.{suffix}"
    clip = tone(440, rate=rate)
    soundfile.write(path, np.stack([clip] * channels, axis=1), rate, **arguments)
    read = files.read(path)
    assert read.dtype == np.float32 and read.ndim == 1
    # A lossy coder may pad the ends.
    assert abs(len(read) - 16_000) < 0.1 * 16_000
    spectrum = np.abs(np.fft.rfft(read, 16_000))
    assert abs(int(spectrum.argmax()) - 440) <= 1
    assert 0.25 < np.abs(read).max() < 0.35


def test_resampling_keeps_the_waveform():
    got = files.check(tone(440, rate=48_000), sample_rate=48_000)
    np.testing.assert_allclose(got, tone(440), atol=2e-3)


def test_int16_is_scaled():
    pcm = (tone(300) * 32767).astype(np.int16)
    np.testing.assert_allclose(files.check(pcm), tone(300), atol=1e-4)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(16_000, np.float32), "all zeros"),
        (np.zeros(0, np.float32), "is empty"),
        (np.full(16_000, np.nan, np.float32), "NaN"),
        (np.r_[np.ones(16_000), np.inf], "infinite"),
        (np.ones(1_500, np.float32), "94 ms long; at least 100 ms"),
        (np.ones(16_000 * 31, np.float32), "31.0 s long; the limit is 30 s"),
        (np.ones((16_000, 2), np.float32), r"shape \(n,\).*got shape \(16000, 2\)"),
        (np.ones(16_000, np.int32), "not int32"),
        (np.ones(16_000, complex), "not complex128"),
        (np.full(16_000, 12_000.0), "peaks at 12000"),
        ([0.1, 0.2], "not list"),
    ],
)
def test_arrays_that_cannot_be_speech_are_refused(samples, message):
    with pytest.raises(InputError, match=message):
        files.check(samples)


@pytest.mark.parametrize("rate", [10, "16000", None, float("nan")])
def test_odd_sample_rates_are_refused(rate):
    with pytest.raises(InputError, match=f"sample_rate .*, got {rate!r}"):
        files.check(np.ones(16_000, np.float32), sample_rate=rate)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        files.read(tmp_path / "no.wav")
    with pytest.raises(InputError, match="is a folder"):
        files.read(tmp_path)
    text = tmp_path / "text.wav"
    text.write_text("not a sound")
    with pytest.raises(InputError, match="is not audio that can be read"):
        files.read(text)
    empty = tmp_path / "empty.wav"
    empty.touch()
    with pytest.raises(InputError, match="is not audio"):
        files.read(empty)
    long = tmp_path / "long.flac"
    soundfile.write(long, np.ones(16_000 * 31), 16_000)
    with pytest.raises(InputError, match="longer than the limit of 30 s"):
        files.read(long)


def test_the_callers_array_is_never_changed_or_shared():
    clip = tone(200)
    read = files.check(clip)
    read += 1
    np.testing.assert_array_equal(clip, tone(200))


# Alignment.

SECOND = files.SAMPLE_RATE


def test_find_takes_files_and_folders(tmp_path):
    (tmp_path / "a" / "folder.wav").mkdir(parents=True)
    for name in ("a/2.WAV", "a/1.flac", "notes.txt", ".hidden.wav"):
        (tmp_path / name).touch()
    assert [path.name for path in files.find(tmp_path)] == ["1.flac", "2.WAV"]
    assert files.find(tmp_path / "gone.wav") == [tmp_path / "gone.wav"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_names_that_are_not_text_are_read(tmp_path):
    soundfile.write(tmp_path / "clip.wav", tone(200), 16_000)
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    (tmp_path / "clip.wav").rename(path)
    assert files.find(tmp_path) == [path]
    assert len(files.read(path)) == 16_000


def test_real_recordings_read(speech_commands):
    clip = files.read(next((speech_commands / "yes").glob("*.wav")))
    assert clip.dtype == np.float32 and 1_600 <= len(clip) <= 16_000
