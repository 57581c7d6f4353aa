import os
import sys

import numpy as np
import pytest
import soundfile

from tapword import audio
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
    read = audio.read(path)
    assert read.dtype == np.float32 and read.ndim == 1
    # A lossy coder may pad the ends.
    assert abs(len(read) - 16_000) < 0.1 * 16_000
    spectrum = np.abs(np.fft.rfft(read, 16_000))
    assert abs(int(spectrum.argmax()) - 440) <= 1
    assert 0.25 < np.abs(read).max() < 0.35


def test_resampling_keeps_the_waveform():
    got = audio.check(tone(440, rate=48_000), sample_rate=48_000)
    np.testing.assert_allclose(got, tone(440), atol=2e-3)


def test_int16_is_scaled():
    pcm = (tone(300) * 32767).astype(np.int16)
    np.testing.assert_allclose(audio.check(pcm), tone(300), atol=1e-4)


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
        audio.check(samples)


@pytest.mark.parametrize("rate", [10, "16000", None, float("nan")])
def test_odd_sample_rates_are_refused(rate):
    with pytest.raises(InputError, match=f"sample_rate .*, got {rate!r}"):
        audio.check(np.ones(16_000, np.float32), sample_rate=rate)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        audio.read(tmp_path / "no.wav")
    with pytest.raises(InputError, match="is a folder"):
        audio.read(tmp_path)
    text = tmp_path / "text.wav"
    text.write_text("not a sound")
    with pytest.raises(InputError, match="is not audio that can be read"):
        audio.read(text)
    empty = tmp_path / "empty.wav"
    empty.touch()
    with pytest.raises(InputError, match="is not audio"):
        audio.read(empty)
    long = tmp_path / "long.flac"
    soundfile.write(long, np.ones(16_000 * 31), 16_000)
    with pytest.raises(InputError, match="longer than the limit of 30 s"):
        audio.read(long)


def test_the_callers_array_is_never_changed_or_shared():
    clip = tone(200)
    read = audio.check(clip)
    read += 1
    np.testing.assert_array_equal(clip, tone(200))


# Alignment.

SECOND = audio.SAMPLE_RATE


def spoken(rng, n=6_000):
    """A burst that is nowhere symmetric, (n,) float32."""
    return (0.3 * rng.normal(size=n) * np.linspace(0.2, 1, n)).astype(np.float32)


def placed(word, start, n):
    """Put a word into a clip of `n` samples that is otherwise silent."""
    clip = np.zeros(n, dtype=np.float32)
    clip[start : start + len(word)] = word
    return clip


def test_align_finds_the_loudest_second_of_a_long_clip(rng):
    word = spoken(rng)
    clip = 0.01 * rng.normal(size=5 * SECOND).astype(np.float32)
    clip[50_000:56_000] += word
    clip[10_000:16_000] += 0.3 * word
    window = audio.align(clip, 1.0)
    start = int(np.correlate(window, word, "valid").argmax())
    np.testing.assert_array_equal(window[start : start + 6_000], clip[50_000:56_000])
    near = slice(SECOND // 2 - 5_600, SECOND // 2 + 5_600)
    centre = np.arange(SECOND)[near] @ np.square(window[near]) / np.square(window[near]).sum()
    assert abs(centre - SECOND / 2) <= 160


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("n", [100, 6_000, 8_000, 16_000, 16_001, 40_000])
def test_align_gives_the_length_asked_for(rng, n, seconds):
    window = audio.align(spoken(rng, n), seconds)
    assert window.dtype == np.float32 and window.shape == (round(seconds * SECOND),)


@pytest.mark.parametrize("start", [0, 160, 9_920, 41_920])
def test_align_does_not_care_where_the_word_lies(rng, start):
    """Even at the very edge: what lies beyond the clip is silence."""
    word = spoken(rng)
    wanted = audio.align(placed(word, 20_960, 48_000), 1.0)
    np.testing.assert_array_equal(audio.align(placed(word, start, 48_000), 1.0), wanted)
    assert np.count_nonzero(wanted) == np.count_nonzero(word)


@pytest.mark.parametrize("start", [1, 77, 159, 10_001, 41_999, 42_000])
def test_align_is_right_to_10_ms(rng, start):
    """Steps are that long, so a word between two of them moves by less, and nothing is cut off."""
    word = spoken(rng)
    middle = np.arange(len(word)) @ np.square(word) / np.square(word).sum()
    window = audio.align(placed(word, start, 48_000), 1.0)
    found = np.flatnonzero(window)[0]
    np.testing.assert_array_equal(window, placed(word, found, SECOND))
    assert abs(found + middle - SECOND / 2) <= 160


def test_align_does_not_care_for_silence_around_the_clip(rng):
    clips = [spoken(rng), spoken(rng, 30_000), placed(spoken(rng), 0, SECOND)]
    for clip in clips:
        wanted = audio.align(clip, 1.0)
        for silence in (160, 8_000):
            padded = audio.align(np.pad(clip, silence), 1.0)
            np.testing.assert_array_equal(padded, wanted)


def test_align_centres_a_clip_shorter_than_the_window():
    window = audio.align(np.full(1_600, 0.5, dtype=np.float32), 1.0)
    np.testing.assert_array_equal(np.flatnonzero(window), np.arange(7_200, 8_800))


def test_align_takes_one_of_two_words_and_not_the_gap_between_them(rng):
    """Two equal words 0.8 s apart: the first, alone in the middle."""
    word = spoken(rng)
    clip = placed(word, 8_000, 48_000) + placed(word, 26_720, 48_000)
    alone = audio.align(placed(word, 8_000, 48_000), 1.0)
    np.testing.assert_array_equal(audio.align(clip, 1.0), alone)


@pytest.mark.parametrize("n", [1_600, 16_000, 48_000])
def test_align_of_silence_is_silence(n):
    window = audio.align(np.zeros(n, dtype=np.float32), 1.0)
    assert window.shape == (SECOND,) and not window.any()


def test_align_leaves_the_clip_alone(rng):
    clip = spoken(rng)
    before = clip.copy()
    audio.align(clip, 1.0)[:] = 7
    np.testing.assert_array_equal(clip, before)


def test_find_takes_files_and_folders(tmp_path):
    (tmp_path / "a" / "folder.wav").mkdir(parents=True)
    for name in ("a/2.WAV", "a/1.flac", "notes.txt", ".hidden.wav"):
        (tmp_path / name).touch()
    assert [path.name for path in audio.find(tmp_path)] == ["1.flac", "2.WAV"]
    assert audio.find(tmp_path / "gone.wav") == [tmp_path / "gone.wav"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_names_that_are_not_text_are_read(tmp_path):
    soundfile.write(tmp_path / "clip.wav", tone(200), 16_000)
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    (tmp_path / "clip.wav").rename(path)
    assert audio.find(tmp_path) == [path]
    assert len(audio.read(path)) == 16_000


def test_real_recordings_read(speech_commands):
    clip = audio.read(next((speech_commands / "yes").glob("*.wav")))
    assert clip.dtype == np.float32 and 1_600 <= len(clip) <= 16_000
