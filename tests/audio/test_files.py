import contextlib
import os
import sys
import tracemalloc

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
        ("aiff", {}),
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


@pytest.mark.parametrize("seconds", [29, 40])
def test_a_small_file_of_an_enormous_rate_takes_little_memory(tmp_path, seconds):
    """70 kB of FLAC at 655,350 Hz: all of it at once took 225 MB."""
    path = tmp_path / "fast.flac"
    with soundfile.SoundFile(path, "w", 655_350, 1) as file:
        for _ in range(seconds):
            file.write(np.full(655_350, 1000, np.int16))
    assert path.stat().st_size < 120_000
    tracemalloc.start()
    try:
        if seconds > files.MAX_S:
            with pytest.raises(InputError, match="longer than the limit of 30 s"):
                files.read(path)
        else:
            assert len(files.read(path)) == 29 * 16_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24e6


def test_a_file_of_the_longest_length_is_read(tmp_path):
    """At rates, too, that are no multiples of 16 kHz."""
    for rate in (16_000, 11_025, 44_100):
        soundfile.write(tmp_path / "long.wav", np.ones(rate * 30, np.float32) / 2, rate)
        assert abs(len(files.read(tmp_path / "long.wav")) - 480_000) <= 1


def test_a_file_called_minus_is_that_file(tmp_path, monkeypatch):
    """libsndfile would read standard input."""
    monkeypatch.chdir(tmp_path)
    soundfile.write("clip.wav", tone(300), 16_000)
    os.rename("clip.wav", "-")
    np.testing.assert_allclose(files.read("-"), tone(300), atol=1e-4)
    assert sum(map(len, files.blocks("-"))) == 16_000 and files.length_s("-") == 1.0


def test_formats_that_nobody_needs_are_refused_by_what_is_in_them(tmp_path):
    kinds = sorted(set(soundfile.available_formats()) - {"RAW"})
    refused = []
    for kind in kinds:
        path = tmp_path / f"{kind}.wav"
        for rate in (16_000, 8_000, 44_100):
            with contextlib.suppress(soundfile.SoundFileError, ValueError):
                soundfile.write(path, tone(300, rate=rate), rate, format=kind)
                break
        try:
            files.read(path)
        except InputError as error:
            assert "wanted one of wav, flac, ogg, opus, mp3, aif, aiff" in str(error)
            refused.append(kind)
    assert set(kinds) - set(refused) == {"AIFF", "FLAC", "MP3", "OGG", "WAV", "WAVEX"}


def test_samples_without_a_header_are_refused_whatever_their_name(tmp_path):
    for suffix in ("raw", "vox", "gsm", "au", "snd", "wav"):
        path = tmp_path / f"clip.{suffix}"
        path.write_bytes((1000 * tone(300)).astype("<i2").tobytes())
        with pytest.raises(InputError, match="does not begin like one"):
            files.read(path)
    # What libsndfile finds behind the tag decides, not the tag.
    soundfile.write(tmp_path / "clip.au", tone(300), 16_000)
    tagged = tmp_path / "tagged.mp3"
    tagged.write_bytes(b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + (tmp_path / "clip.au").read_bytes())
    with pytest.raises(InputError, match="not audio that can be read"):
        files.read(tagged)


def test_a_stream_of_numbers_that_are_no_sound_is_refused(tmp_path):
    soundfile.write(tmp_path / "loud.wav", np.full(16_000, 9.0), 16_000, subtype="FLOAT")
    with pytest.raises(InputError, match=r"loud.wav should lie in \[-1, 1\] but peaks at 9"):
        list(files.blocks(tmp_path / "loud.wav"))


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


@pytest.fixture
def said(monkeypatch):
    """Warnings in the log."""
    logged = []
    monkeypatch.setattr(files.log, "warning", lambda text, *values: logged.append(text % values))
    return logged


def write_channels(path, *channels, rate=16_000):
    soundfile.write(path, np.stack(channels, axis=1), rate, subtype="FLOAT")
    return path


@pytest.mark.parametrize("rate", [16_000, 48_000])
@pytest.mark.parametrize("gain", [1.0, 0.9])
def test_channels_that_cancel_are_read_with_a_warning(tmp_path, said, rate, gain):
    sound = tone(440, 1.0, rate=rate)
    stereo = write_channels(tmp_path / "stereo.wav", sound, -gain * sound, rate=rate)
    mono = write_channels(tmp_path / "mono.wav", sound, rate=rate)
    np.testing.assert_array_equal(files.read(stereo), files.read(mono))
    assert said == [f"{stereo}: its channels cancel each other; using the louder"]
    np.testing.assert_array_equal(np.concatenate(list(files.blocks(stereo, 0.2))), files.read(mono))
    # Once for the file, not for its blocks.
    assert len(said) == 2


def test_other_channels_are_mixed(tmp_path, said):
    rng = np.random.default_rng(0)
    sound, other = rng.normal(0, 0.1, (2, 16_000)).astype(np.float32)
    quiet = np.zeros_like(sound)
    for channels in ([sound, sound], [sound, other], [sound, quiet], [sound] + [quiet] * 7):
        wanted = np.mean(channels, axis=0, dtype=np.float32)
        read = files.read(write_channels(tmp_path / "clip.wav", *channels))
        np.testing.assert_allclose(read, wanted, atol=1e-6)
    assert said == []
