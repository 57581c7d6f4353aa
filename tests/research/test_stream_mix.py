import itertools

import numpy as np
import pytest
import soundfile

from tapword.audio import files as audio
from tapword.errors import InputError
from tapword.research.stream_mix import FADE_S, MIN_GAP_S, StreamMix
from tests.conftest import tone

RATE = 16_000
FADE = round(FADE_S * RATE)


def heard(mix):
    blocks = list(mix)
    assert max(map(len, blocks)) <= 10 * RATE
    return np.concatenate(blocks)


@pytest.fixture
def files(tmp_path, rng):
    """A minute of murmur in two files, one at 44.1 kHz, and four tones."""
    murmur = (0.001 * rng.standard_normal(30 * RATE)).astype(np.float32)
    soundfile.write(tmp_path / "a.flac", murmur, RATE, subtype="PCM_24")
    other = (0.001 * rng.standard_normal(30 * 44_100)).astype(np.float32)
    soundfile.write(tmp_path / "b.wav", other, 44_100)
    clips = []
    for number, pitch in enumerate((200, 300, 400, 500)):
        path = tmp_path / f"{number}.wav"
        sound = np.pad(tone(pitch, 0.5), 4000)
        soundfile.write(path, sound, RATE, subtype="FLOAT")
        clips.append((path, f"word{number}"))
    return [tmp_path / "a.flac", tmp_path / "b.wav"], clips


def test_time_is_opened_up_and_nothing_else_changes(files):
    negatives, clips = files
    mix = StreamMix(negatives[:1], clips)
    stream = heard(mix)
    background = np.concatenate(list(audio.blocks(negatives[0])))
    sounds = {word: audio.read(path) for path, word in clips}
    place = used = 0
    for clip in mix.placed:
        start, end = round(clip.start_s * RATE), round(clip.end_s * RATE)
        assert np.array_equal(stream[place:start], background[used : used + start - place])
        used += start - place + 2 * FADE
        assert np.array_equal(stream[start + FADE : end - FADE], sounds[clip.word][FADE:-FADE])
        fade = stream[start : start + FADE]
        assert fade[0] == background[used - 2 * FADE] and fade[-1] == sounds[clip.word][FADE - 1]
        # The tone is a quarter of a second into the clip and half a second long.
        assert clip.speech_end_s - clip.start_s == pytest.approx(0.75, abs=0.06)
        place = end
    assert np.array_equal(stream[place:], background[used:])
    assert mix.negative_s == mix.total_s == 30 and len(mix.placed) == 4
    gaps = np.diff([0, *itertools.chain(*((c.start_s, c.end_s) for c in mix.placed))])[::2]
    assert gaps.min() >= MIN_GAP_S - 0.03


def test_files_follow_each_other_at_any_rate(files):
    negatives, clips = files
    mix = StreamMix(negatives, clips)
    stream = heard(mix)
    assert mix.negative_s == pytest.approx(60, abs=0.01)
    assert mix.samples == len(stream)
    whole = audio.read(negatives[1])
    parts = np.concatenate(list(audio.blocks(negatives[1], seconds=0.7)))
    assert len(parts) == len(whole)
    np.testing.assert_allclose(parts, whole, atol=1e-5)


def test_the_seed_fixes_the_stream(files):
    negatives, clips = files
    one, same, other = (StreamMix(negatives[:1], clips, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(heard(one), heard(same)) and one.placed == same.placed
    heard(other)
    assert [clip.start_s for clip in other.placed] != [clip.start_s for clip in one.placed]


def test_noise_lies_so_far_below_each_word(files, tmp_path, rng):
    negatives, clips = files
    clips = []
    for level in (0.05, 0.5):
        steady = level * np.sin(2 * np.pi * 300 * np.arange(8000) / RATE)
        soundfile.write(tmp_path / f"{level}.wav", np.pad(steady, 4000), RATE, subtype="FLOAT")
        clips.append((tmp_path / f"{level}.wav", str(level)))
    for number, level in enumerate((0.3, 0.01)):
        noise = (level * rng.standard_normal(7 * RATE)).astype(np.float32)
        soundfile.write(tmp_path / f"noise{number}.wav", noise, RATE, subtype="FLOAT")
    paths = [tmp_path / "noise0.wav", tmp_path / "noise1.wav"]
    quiet = StreamMix(negatives[:1], clips)
    noisy = StreamMix(negatives[:1], clips, noise=paths, snr_db=10.0)
    clean, added = heard(quiet), heard(noisy)
    assert noisy.placed == quiet.placed
    noise = added - clean
    for clip in quiet.placed:
        span = slice(round(clip.start_s * RATE) + FADE, round(clip.end_s * RATE) - FADE)
        ratio = 10 * np.log10(float(clip.word) ** 2 / 2 / np.mean(noise[span] ** 2))
        assert ratio == pytest.approx(10, abs=0.5)
    # From one level to the other it goes gradually.
    seconds = noise[: len(noise) // RATE * RATE].reshape(-1, RATE).std(axis=1)
    assert seconds.max() / seconds.min() > 3
    assert np.abs(np.diff(np.log(seconds))).max() < 0.6


def test_what_does_not_fit_is_left_out(files, tmp_path):
    negatives, clips = files
    mix = StreamMix(negatives[:1], clips * 5, every_s=3.0)
    heard(mix)
    assert 5 <= len(mix.placed) < 20
    (tmp_path / "bad.wav").write_bytes(b"no sound")
    mix = StreamMix(negatives[:1], [*clips, (tmp_path / "bad.wav", "bad")])
    heard(mix)
    assert len(mix.placed) == 4 and mix.unreadable[0][0] == "bad.wav"


def test_what_cannot_be_is_refused(files, tmp_path):
    negatives, clips = files
    for named, message in (
        ({"noise": negatives}, "go together"),
        ({"snr_db": 3.0}, "go together"),
        ({"every_s": 1.0}, "at least 3 s"),
        ({"seed": -1}, "seed must be"),
    ):
        with pytest.raises(InputError, match=message):
            StreamMix(negatives, clips, **named)
    with pytest.raises(InputError, match="needs a recording"):
        StreamMix([], clips)
    with pytest.raises(InputError, match="does not exist"):
        StreamMix([tmp_path / "none.wav"], clips)
    soundfile.write(tmp_path / "zeros.wav", np.zeros(RATE), RATE)
    with pytest.raises(InputError, match="is silent"):
        StreamMix(negatives, clips, noise=[tmp_path / "zeros.wav"], snr_db=0.0)
