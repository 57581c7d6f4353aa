"""Where in a stream a word may have been said: windows around sounds, none in silence."""

import pickle

import numpy as np
import pytest

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.listening.segmenter import Search, Segmenter
from tests.conftest import tone
from tests.sounds import noise, silence


def find(segmenter, sound, size=1280):
    found = []
    for start in range(0, len(sound), size):
        segmenter.push(sound[start : start + size])
        found += segmenter.windows()
    return found


def loud(segmenter, sound):
    return [window for window in find(segmenter, sound) if window.loud]


@pytest.fixture(scope="module")
def scene():
    """Tones of 0.4 s around 1, 3 and 4.2 s of 6 s of a quiet room."""
    sound = noise(6.0)
    for middle_s in (1.0, 3.0, 4.2):
        start = round((middle_s - 0.2) * SAMPLE_RATE)
        sound[start : start + 6_400] += tone(300, 0.4)
    return sound


def test_windows_lie_around_the_sounds(scene):
    windows = loud(Segmenter(), scene)
    for middle_s in (1.0, 3.0, 4.2):
        [window] = [one for one in windows if abs(one.centre / SAMPLE_RATE - middle_s) < 0.1]
        assert window.clip.shape == (16_000,) and window.clip.dtype == np.float32
        start = window.centre - 8_000
        np.testing.assert_array_equal(window.clip, scene[start : start + 16_000])
        assert middle_s - 0.3 < window.start_s < window.end_s < middle_s + 0.3


@pytest.mark.parametrize("size", [1, 7, 160, 5_000, 200_000])
def test_windows_do_not_depend_on_the_chunks(scene, size):
    # Single samples take long; the first tone says as much.
    sound = scene[: 2 * SAMPLE_RATE] if size == 1 else scene
    wanted = find(Segmenter(), sound)
    found = find(Segmenter(), sound, size)
    assert [window[1:] for window in found] == [window[1:] for window in wanted]
    assert any(window.loud for window in found)


def test_silence_has_no_loud_window():
    assert loud(Segmenter(), silence(20.0)) == []


def test_steady_noise_has_hardly_any():
    segmenter = Segmenter()
    assert len(loud(segmenter, noise(30.0, level=0.02))) <= 1
    word = np.concatenate([silence(0.5), tone(300, 0.5), silence(0.5)])
    assert loud(segmenter, np.concatenate([word, silence(1.0)]) + noise(2.5, 0.02))


def test_noise_after_digital_silence_is_soon_known():
    segmenter = Segmenter()
    find(segmenter, np.concatenate([silence(5.0), noise(10.0)]))
    assert len(loud(segmenter, noise(20.0, seed=1))) <= 1


def test_windows_beside_one_come_where_there_is_other_sound():
    segmenter = Segmenter()
    words = [tone(300, 0.3), silence(0.2), tone(900, 0.3), silence(0.2), tone(500, 0.3)]
    segmenter.push(np.concatenate([silence(1.0), *words, silence(2.0)]))
    windows = []
    for window in segmenter.windows():
        windows.append(window)
        if not window.is_offset:
            segmenter.request_offsets(window)
    beside = [window for window in windows if window.is_offset]
    assert beside and {window.centre for window in beside} <= {w.centre for w in windows}
    alone = Segmenter()
    alone.push(np.concatenate([silence(1.0), tone(300, 0.3), silence(2.0)]))
    found = []
    for window in alone.windows():
        found.append(window)
        alone.request_offsets(window)
    assert [window.is_offset for window in found if window.loud] == [False]


@pytest.mark.parametrize("steps", range(0, 25, 3))
def test_a_flush_brings_out_the_windows_beside_the_last_ones(steps):
    segmenter = Segmenter()
    words = [tone(300, 0.3), silence(0.1), tone(900, 0.3), silence(0.2), tone(500, 0.3)]
    sound = np.concatenate([silence(1.0), *words, silence(0.3), tone(700, 0.2)])

    def beside(sound):
        found = []
        segmenter.push(sound)
        for window in segmenter.windows():
            if window.is_offset:
                found.append(window)
            elif window.loud:
                segmenter.request_offsets(window)
        return found

    end = silence(steps / 100 + segmenter.flush_samples / SAMPLE_RATE)
    assert beside(np.concatenate([sound, end]))
    assert not beside(silence(2.0))


def test_times_count_lost_sound(scene):
    segmenter = Segmenter()
    first = loud(segmenter, scene)
    segmenter.gap(2.5)
    second = loud(segmenter, scene)
    moved = round(8.5 * SAMPLE_RATE)
    assert [window.centre - moved for window in second] == [window.centre for window in first]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_gap_has_a_length(seconds):
    with pytest.raises(InputError, match="a gap lasts 0 to 31,622,400 seconds"):
        Segmenter().gap(seconds)


def test_memory_stays_bounded():
    """What a segmenter holds after minutes is what it holds after seconds."""
    segmenter, held = Segmenter(), []
    minute = noise(60.0)
    for start in range(0, 50 * SAMPLE_RATE, 2 * SAMPLE_RATE):
        minute[start : start + 8_000] += tone(300, 0.5)
    for _ in range(5):
        for start in range(0, len(minute), 12_000):
            segmenter.push(minute[start : start + 12_000])
            for window in segmenter.windows():
                if not window.is_offset:
                    segmenter.request_offsets(window)
        held.append(len(pickle.dumps(segmenter)))
    assert max(held) < 1_000_000 and held[-1] <= held[0] * 1.1


@pytest.mark.parametrize("ms", [-160, 160])
def test_windows_on_one_side_alone_may_be_looked_at(ms):
    """As many steps are kept before a centre as behind it, however the stream is cut."""
    segmenter, found = Segmenter(Search(offsets_ms=(ms,))), []
    words = [tone(300, 0.3), silence(0.2), tone(900, 0.3), silence(0.2), tone(500, 0.3)]
    sound = np.concatenate([silence(3.0), *words, silence(2.0)])
    for start in range(0, len(sound), 1_280):
        segmenter.push(sound[start : start + 1_280])
        for window in segmenter.windows():
            if window.is_offset:
                found.append(window)
            else:
                segmenter.request_offsets(window)
    assert found
    for window in found:
        start = window.centre + ms * 16 - 8_000
        np.testing.assert_array_equal(window.clip, sound[start : start + 16_000])
