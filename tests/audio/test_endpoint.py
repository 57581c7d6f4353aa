"""Finding one spoken word in a recording, and saying when it is over."""

import csv

import numpy as np
import pytest

from tapword.audio import files as audio
from tapword.audio.endpoint import SETTINGS, Endpointer, examine
from tapword.errors import InputError
from tapword.support.issues import Issue, message
from tests.conftest import shared

RATE = audio.SAMPLE_RATE


def hum(seconds, pitch=200.0, level=0.1):
    """A voice-like sound: twelve harmonics of a pitch."""
    time = np.arange(round(seconds * RATE)) / RATE
    sound = sum(np.sin(2 * np.pi * pitch * n * time) / n for n in range(1, 13))
    return (level * sound).astype(np.float32)


def recording(*sounds, seconds=2.5, noise=1e-3, seed=0):
    """Sounds at their times (start_s, samples) in soft noise, (n,) float32."""
    made = noise * np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    for start_s, samples in sounds:
        start = round(start_s * RATE)
        made[start : start + len(samples)] += samples[: len(made) - start]
    return made.astype(np.float32)


@pytest.mark.parametrize("noise", [0, 1e-4, 1e-2])
def test_a_word_is_found_where_it_lies(noise):
    take = examine(recording((0.8, hum(0.5)), noise=noise))
    assert take.issue is None
    assert take.start_s == pytest.approx(0.8, abs=0.03)
    assert take.end_s == pytest.approx(1.3, abs=0.03)
    assert len(take.audio) == pytest.approx(0.9 * RATE, abs=0.06 * RATE)
    power = np.mean(hum(0.5) ** 2)
    assert take.level_db == pytest.approx(10 * np.log10(power), abs=2)
    if noise:
        assert take.snr_db == pytest.approx(10 * np.log10(power / noise**2), abs=2)


def test_margins_end_where_the_recording_does():
    take = examine(recording((0.1, hum(0.5)), seconds=0.7))
    assert take.issue is None and len(take.audio) == round(0.7 * RATE)


@pytest.mark.parametrize(
    ("sound", "code"),
    [
        (recording(), "no_speech"),
        (np.zeros(2 * RATE, np.float32), "no_speech"),
        (np.zeros(0, np.float32), "no_speech"),
        (recording((0.8, hum(0.5, level=3e-3)), noise=1e-5), "too_quiet"),
        (
            recording((0.8, hum(0.1, level=0.12)), (0.9, hum(0.4, level=0.07)), noise=0.03),
            "noisy",
        ),
        (recording((0.8, hum(0.07))), "too_short"),
        (recording((0.5, hum(3.3)), seconds=4.8), "too_long"),
        (recording((0.4, hum(0.4)), (1.6, hum(0.4))), "several_words"),
        (recording((0.0, hum(0.5))), "cut_off"),
        (recording((2.1, hum(0.5))), "cut_off"),
        (np.clip(recording((0.8, hum(0.5, level=2.0))), -1, 1), "clipped"),
    ],
)
def test_each_problem_has_its_code(sound, code):
    issue = examine(sound).issue
    assert issue.code == code
    assert issue.severity == ("refuse" if code == "no_speech" else "doubt")
    if code == "too_long":
        assert message(issue).startswith("too long: 3.3 s of speech")


def test_one_sample_at_full_scale_is_not_clipping():
    sound = recording((0.8, hum(0.5)))
    sound[RATE] = 1.0
    assert sound.max() >= SETTINGS.clipped and examine(sound).issue is None


def test_a_pause_inside_a_phrase_is_bridged_and_a_longer_one_is_not():
    for start_s in (1.1, 1.3):
        near = examine(recording((0.6, hum(0.3)), (start_s, hum(0.3))))
        assert near.end_s - near.start_s == pytest.approx(start_s - 0.3, abs=0.06)
    far = examine(recording((0.6, hum(0.3)), (1.7, hum(0.3, level=0.03))))
    assert far.end_s - far.start_s == pytest.approx(0.3, abs=0.06)


def test_clicks_and_bursts_without_a_voice_are_not_the_word():
    rng = np.random.default_rng(1)
    click, thud = 0.5 * rng.standard_normal(400), 0.2 * rng.standard_normal(4000)
    take = examine(recording((0.3, click), (1.0, hum(0.4)), (1.9, thud)))
    assert take.issue is None
    assert take.start_s == pytest.approx(1.0, abs=0.03)
    assert take.end_s == pytest.approx(1.4, abs=0.03)


@pytest.mark.parametrize(
    "sound",
    [np.zeros((2, 100), np.float32), np.zeros(100), [0.0], np.full(1600, np.nan, np.float32)],
)
def test_what_is_not_a_recording_is_refused(sound):
    with pytest.raises(InputError, match="recording"):
        examine(sound)


def listen(sound, chunk, **options):
    """State after each chunk, until it is final, and the seconds pushed by then."""
    endpointer, states = Endpointer(**options), []
    for start in range(0, len(sound), chunk):
        states.append(endpointer.push(sound[start : start + chunk]))
        if states[-1] in ("over", "nobody"):
            break
    return states, len(endpointer.audio) / RATE, endpointer


@pytest.mark.parametrize("chunk", [160, 1000, 1280, 7000])
def test_a_word_is_over_after_silence(chunk):
    sound = recording((1.0, hum(0.5)), seconds=5)
    states, pushed_s, endpointer = listen(sound, chunk)
    assert states[0] == "waiting" and states[-1] == "over"
    assert pushed_s == pytest.approx(1.5 + 0.6, abs=0.1 + chunk / RATE)
    if chunk < 7000:
        assert "speaking" in states
    np.testing.assert_array_equal(endpointer.audio, sound[: len(endpointer.audio)])
    assert examine(endpointer.audio).issue is None


def test_chunks_do_not_change_what_is_measured():
    sound = recording((0.5, hum(0.5)), seconds=2)
    pieces, pushed = Endpointer(), 0
    for piece in np.array_split(sound, 37):
        pieces.push(piece)
        pushed += len(piece)
        whole = Endpointer()
        assert whole.push(sound[:pushed]) == pieces.state
        assert whole.level_db == pytest.approx(pieces.level_db)


def test_nobody_speaks_and_somebody_does_not_stop():
    states, pushed_s, _ = listen(recording(seconds=5), 1280, wait_s=2.0)
    assert set(states[:-1]) == {"waiting"} and states[-1] == "nobody"
    assert pushed_s == pytest.approx(2.0, abs=0.15)
    states, pushed_s, endpointer = listen(recording((1.0, hum(20)), seconds=20), 1280)
    assert states[-1] == "over" and pushed_s < 5
    assert endpointer.take().issue.code == "too_long"


def test_talk_with_short_pauses_ends_at_last():
    syllables = [(0.8 * n, hum(0.4)) for n in range(1, 30)]
    states, pushed_s, _ = listen(recording(*syllables, seconds=25), 1280, max_s=3.0)
    assert states[-1] == "over" and pushed_s == pytest.approx(3.0, abs=0.15)


def test_a_take_with_lost_sound_is_not_good():
    endpointer = Endpointer()
    endpointer.push(recording((0.8, hum(0.5))))
    assert endpointer.take().issue is None
    endpointer.gap()
    assert endpointer.take().issue == Issue("sound_lost", "doubt")


def test_lost_sound_without_speech_is_refused():
    endpointer = Endpointer()
    endpointer.push(recording())
    endpointer.gap()
    assert endpointer.take().issue == Issue("sound_lost", "refuse")


def test_the_meter_follows_the_sound():
    endpointer = Endpointer()
    assert endpointer.level_db == -100
    endpointer.push(hum(0.5))
    loud = endpointer.level_db
    endpointer.push(np.zeros(8000, np.float32))
    assert loud > -30 and endpointer.level_db == -100


def speech_of(clip):
    """A generous rule on a clean clip: start and end of what is near its loudest, in seconds."""
    slope = np.diff(clip)[: len(clip) // 160 * 160 - 160].reshape(-1, 160)
    levels = 10 * np.log10((slope**2).mean(axis=1) + 1e-12)
    active = levels > max(levels.max() - 20, np.quantile(levels, 0.2) + 6)
    # Five of six neighbours: a click is shorter.
    found = np.flatnonzero(np.convolve(active, np.ones(6), "valid") >= 5)
    return (found[0] * 0.01, found[-1] * 0.01 + 0.06) if len(found) else (0.0, 1.0)


def examined(paths, seed):
    """Share accepted, and of these starting and ending where the rule says, at 20 dB."""
    rng = np.random.default_rng(seed)
    good, starts, ends = [], [], []
    for path in paths:
        clip = audio.read(path)
        start_s, end_s = speech_of(clip)
        power = np.mean(clip[round(start_s * RATE) : round(end_s * RATE)] ** 2)
        at_s = rng.uniform(0.3, 1.2)
        noise = np.sqrt(power / 100)
        take = examine(recording((at_s, clip), noise=noise, seed=int(rng.integers(2**31))))
        good.append(take.issue is None)
        if take.issue is None:
            starts.append(abs(take.start_s - at_s - start_s) < 0.15)
            ends.append(abs(take.end_s - at_s - end_s) < 0.15)
    return np.mean(good), np.mean(starts), np.mean(ends)


def test_english_words_are_accepted(speech_commands):
    tested = set((speech_commands / "testing_list.txt").read_text().split())
    paths = []
    for folder in sorted(speech_commands.glob("[a-z]*/")):
        clips = sorted(folder.glob("*.wav"))
        paths += [clip for clip in clips if f"{folder.name}/{clip.name}" not in tested][:10]
    assert len(paths) == 300
    good, starts, ends = examined(paths, seed=0)
    assert good > 0.95 and starts > 0.92 and ends > 0.87


def test_arabic_words_are_accepted():
    folder = shared("data", "mswc_layout", "ar")
    with open(folder / "ar_splits.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["SET"] == "DEV"]
    paths = [folder / "clips" / row["LINK"] for row in rows]
    assert len(paths) >= 200
    good, starts, ends = examined(paths[::2], seed=0)
    assert good > 0.95 and starts > 0.9 and ends > 0.9


@pytest.mark.parametrize(
    "name",
    [
        "doing_the_dishes",
        "dude_miaowing",
        "exercise_bike",
        "pink_noise",
        "running_tap",
        "white_noise",
    ],
)
def test_noises_are_refused(speech_commands, name):
    noise = audio.read(speech_commands / "_background_noise_" / f"{name}.wav", max_s=200)
    starts = np.random.default_rng(0).integers(0, len(noise) - 40_000, 100)
    refused = [examine(noise[start : start + 40_000]).issue is not None for start in starts]
    assert np.mean(refused) >= 0.95
