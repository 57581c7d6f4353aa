"""Listening, rejecting and calibrating from the command line."""

import contextlib
import functools
import io
import json
import sys

import numpy as np
import pytest
import soundfile
import soxr

import tapword.cli.listen
import tapword.spotter.thresholds
from tapword.assets import CLIPS
from tapword.audio import microphone
from tapword.listening import calibration
from tapword.listening.detector import CLOSE_SCORE, Detector
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import confidence
from tests.conftest import shared, tone
from tests.sounds import ASKED, RATE, TAUGHT, clip, noise, padded, samples, silence


def words(output):
    return [json.loads(line)["word"] for line in output.splitlines()]


def test_listen_to_a_file(model, sound, run):
    soundfile.write("room.wav", sound, RATE)
    code, output, error = run("listen", model, "room.wav", "--json")
    events = [json.loads(line) for line in output.splitlines()]
    assert code == 0 and [event["word"] for event in events] == ["lamp", "music"]
    assert list(events[0]) == ["word", "start_s", "end_s", "score", "confidence"]
    events_of_file = Detector(Spotter.load(model))(sound)
    assert events[0]["score"] == pytest.approx(events_of_file[0].score, abs=1e-3)
    assert f"heard {len(sound) / RATE:.1f} s: 2 events (lamp 1, music 1)" in error
    code, output, _ = run("listen", model, "room.wav")
    assert code == 0 and [line.split()[2] for line in output.splitlines()] == ["lamp", "music"]


def test_listen_to_a_long_file_of_another_rate(model, sound, run):
    """Longer than one of the blocks that a file is read in."""
    long = np.concatenate([sound, silence(10.0), sound])
    soundfile.write("room.flac", soxr.resample(long, RATE, 44_100), 44_100)
    assert words(run("listen", model, "room.flac", "--json")[1]) == ["lamp", "music"] * 2


def test_listen_to_a_pipe(model, sound, run, pipe):
    pipe(samples(sound) + b"\x01")
    code, output, error = run("listen", model, "-", "--json")
    assert code == 0 and words(output) == ["lamp", "music"]
    assert f"heard {len(sound) / RATE:.1f} s" in error
    pipe(b"")
    code, output, error = run("listen", model, "-")
    assert (code, output) == (0, "") and "heard 0.0 s: 0 events" in error


def test_a_pipe_of_another_rate_is_resampled(model, sound, run, pipe):
    pipe(samples(soxr.resample(sound, RATE, 44_100)))
    code, output, error = run("listen", model, "-", "--json", "--rate", 44_100)
    assert code == 0 and words(output) == ["lamp", "music"]
    assert f"heard {len(sound) / RATE:.1f} s" in error


def test_a_pipe_may_break_samples_anywhere(model, sound, run, pipe, monkeypatch):
    class Crumbs(io.BytesIO):
        def read1(self, size):
            return super().read1(min(size, 333))

    pipe(b"")
    monkeypatch.setattr(sys.stdin, "buffer", Crumbs(samples(sound)))
    assert words(run("listen", model, "-", "--json")[1]) == ["lamp", "music"]


def test_listen_to_the_microphone_until_stopped(model, sound, run, fake, monkeypatch):
    fake(sound)
    calls, hear = [], Detector.__call__

    def stop_at_the_end(self, chunk):
        calls.append(len(chunk))
        if sum(calls) >= len(sound) - 1280:
            raise KeyboardInterrupt
        return hear(self, chunk)

    monkeypatch.setattr(Detector, "__call__", stop_at_the_end)
    code, output, error = run("listen", model, "--mic", "--device", "usb", "--json")
    assert code == 0 and words(output) == ["lamp", "music"]
    assert "2 events (lamp 1, music 1)" in error


def test_sound_that_was_lost_is_a_gap(model, run, fake, monkeypatch):
    soon = functools.partial(microphone.open_stream, silent_s=1.0)
    monkeypatch.setattr(microphone, "open_stream", soon)
    sound = padded(clip("lamp", ASKED[0]))
    fake(np.concatenate([sound, silence(1)]))
    assert words(run("listen", model, "--mic", "--json")[1]) == ["lamp"]
    # In the middle of the word.
    fake(np.concatenate([sound, silence(1)]), lose=(len(sound) // 2 // 1280,))
    code, output, error = run("listen", model, "--mic", "--json")
    assert (code, output) == (2, "") and "still plugged in" in error


def test_a_model_taught_meanwhile_is_read_anew(model, sound, run, pipe, monkeypatch):
    class Teaching(io.BytesIO):
        """A pipe during which somebody else teaches a word."""

        def read1(self, size):
            if self.tell() >= len(samples(sound)) and "music" not in Spotter.load(model).words:
                with Spotter.edit(model) as spotter:
                    clips = [clip("music", voice) for voice in TAUGHT[:4]]
                    spotter.learn_many(clips, ["music"] * 4)
            return super().read1(size)

    with Spotter.edit(model) as spotter:
        spotter.forget("music")
    pipe(b"")
    twice = samples(np.concatenate([sound, silence(1.5), sound]))
    monkeypatch.setattr(sys.stdin, "buffer", Teaching(twice))
    code, output, error = run("listen", model, "-", "--json")
    assert code == 0 and words(output) == ["lamp", "lamp", "music"]
    assert "home.tap has changed: 2 words" in error


def test_thresholds_can_be_given(model, sound, run):
    soundfile.write("room.wav", sound, RATE)
    given = ["--threshold", "lamp=2", "--threshold", "music=0.1"]
    assert words(run("listen", model, "room.wav", "--json", *given)[1])[-1] == "music"
    assert "lamp" not in run("listen", model, "room.wav", "--json", *given)[1]
    for wrong in ("lamp", "=2", "lamp=x", "lamp=nan"):
        code, _, error = run("listen", model, "room.wav", "--threshold", wrong)
        assert code == 2 and "must be WORD=SCORE" in error
    code, _, error = run("listen", model, "room.wav", "--threshold", "lump=1")
    assert code == 2 and "'lump' is not in this model. It knows: lamp, music" in error
    code, _, error = run("listen", model, "room.wav", "--false-alarms-per-hour", 0)
    assert code == 2 and "must be above 0" in error


def test_near_misses_are_shown(model, sound, run):
    soundfile.write("room.wav", sound, RATE)
    lamp, _ = Detector(Spotter.load(model))(sound)
    over = lamp.score + CLOSE_SCORE / 4
    sure = confidence(lamp.score, over, Spotter.load(model).scorer.confidence_width)
    given = ["listen", model, "room.wav", "--near", "--threshold", f"lamp={over}"]
    events = [json.loads(line) for line in run(*given, "--json")[1].splitlines()]
    assert [(one["word"], one.get("near", False)) for one in events] == [
        ("lamp", True),
        ("music", False),
    ]
    assert events[0]["threshold"] == pytest.approx(over) and events[0]["rejected"] is False
    assert events[0]["score"] == pytest.approx(lamp.score, abs=1e-3)
    code, output, error = run(*given)
    assert code == 0 and "heard" in error and "1 event (music 1)" in error
    first, second = output.splitlines()
    assert first.endswith(f"lamp  {lamp.score:.2f}  sure {sure}  near miss; threshold {over:.2f}")
    assert events[0]["confidence"] == sure < 50 and events[1]["confidence"] >= 50
    assert second.endswith(f"sure {events[1]['confidence']}")
    # A word that was rejected would have been detected.
    with Spotter.edit(model) as spotter:
        spotter.reject(clip("lamp", ASKED[0]))
    events = [json.loads(line) for line in run(*given[:4], "--json")[1].splitlines()]
    assert [(one["word"], one.get("rejected")) for one in events] == [
        ("lamp", True),
        ("music", None),
    ]
    assert "rejected as a negative" in run(*given[:4])[1].splitlines()[0]


def test_a_sensitivity_for_one_run(model, sound, run):
    soundfile.write("room.wav", sound, RATE)
    spotter = Spotter.load(model)
    events = Detector(spotter)(sound)
    assert [event.word for event in events] == ["lamp", "music"]

    def reached(rate, sensitivity):
        thresholds = spotter.thresholds(rate, {None: sensitivity})
        return [event.word for event in events if event.score >= thresholds[event.word]]

    # At this rate both words are missed by default, and one is detected at full sensitivity.
    rates = 0.5 ** np.arange(0, 100, 0.25)
    rate = next(one for one in rates if len(reached(one, 1.0)) == 1 and not reached(one, 0.5))
    strict = ["listen", model, "room.wav", "--json", "--false-alarms-per-hour", rate]
    assert words(run(*strict)[1]) == []
    assert words(run(*strict, "--sensitivity", 1)[1]) == reached(rate, 1.0)
    easy = ["listen", model, "room.wav", "--json"]
    assert "lamp" not in words(run(*easy, "--threshold", "lamp=2", "--sensitivity", "1")[1])
    for wrong, said in [
        ("2", "must be a number from 0 to 1, or WORD=NUMBER"),
        ("lamp=x", "must be a number from 0 to 1, or WORD=NUMBER"),
        ("lump=0.5", "'lump' is not in this model"),
    ]:
        code, _, error = run(*easy, "--sensitivity", wrong)
        assert code == 2 and said in error
    assert Spotter.load(model).vocabulary.sensitivities == {}


def test_the_refractory_time_is_an_option(model, sound, run):
    soundfile.write("room.wav", sound, RATE)
    assert words(run("listen", model, "room.wav", "--json", "--refractory", 10)[1]) == ["lamp"]
    code, _, error = run("listen", model, "room.wav", "--refractory", -1)
    assert code == 2 and "the refractory time must be 0 s or more" in error


def test_sensitivities_are_shown_and_kept(model, run):
    usual = Spotter.load(model).thresholds()
    shown = json.loads(run("sensitivity", model, "--json")[1])
    assert shown == {
        word: {"sensitivity": 0.5, "threshold": pytest.approx(usual[word])} for word in usual
    }
    code, output, _ = run("sensitivity", model, 0.7, "--word", "lamp")
    assert code == 0 and "lamp: sensitivity 0.50 -> 0.70, fewer misses" in output
    assert "music" not in output
    after = Spotter.load(model)
    assert after.vocabulary.sensitivities == {"lamp": 0.7}
    assert (
        after.thresholds()["lamp"] < usual["lamp"] and after.thresholds()["music"] == usual["music"]
    )
    _, output, _ = run("sensitivity", model, "--word", "lamp")
    assert "0.70" in output and "music" not in output
    assert "0.70" in run("info", model)[1]
    facts = json.loads(run("info", model, "--json")[1])
    assert (facts["sensitivity"], facts["sensitivities"]) == (0.5, {"lamp": 0.7})
    # For all words: also that which had its own.
    code, output, _ = run("sensitivity", model, 0.3)
    assert "lamp: sensitivity 0.70 -> 0.30, fewer false alarms" in output
    assert "music: sensitivity 0.50 -> 0.30, fewer false alarms" in output
    after = Spotter.load(model)
    assert (after.vocabulary.sensitivity, after.vocabulary.sensitivities) == (0.3, {})
    assert "unchanged" in run("sensitivity", model, 0.3)[1]


def test_sensitivities_that_cannot_be_set(model, run):
    before = model.read_bytes()
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn(tone(300), "low")
    spotter.save("plain.tap")
    for arguments, said in [
        ([model, 1.5], "a number from 0 to 1"),
        ([model, 0.5, "--word", "lump"], "'lump' is not in this model. It knows: lamp, music"),
        ([model, "--word", "lump"], "'lump' is not in this model. It knows: lamp, music"),
        (["none.tap"], "none.tap does not exist"),
        (["plain.tap"], "Thresholds are unavailable"),
        (["plain.tap", 0.6], "Thresholds are unavailable"),
    ]:
        code, output, error = run("sensitivity", *arguments)
        assert (code, output) == (2, "") and said in error and error.count("\n") == 1
    assert model.read_bytes() == before


def test_what_cannot_be_listened_to_is_one_line(model, run):
    Spotter("logmel").save("empty.tap")
    for arguments, message in [
        ([model], "give a sound file, - for a pipe, or --mic"),
        ([model, "room.wav", "--mic"], "give a sound file, - for a pipe, or --mic"),
        ([model, "room.wav"], "room.wav does not exist"),
        ([model, "-", "--device", "usb"], "--device needs --mic"),
        ([model, "room.wav", "--rate", 8000], "--rate needs -"),
        ([model, "-", "--rate", 10], "--rate"),
        (["none.tap", "-"], "no model file: none.tap does not exist"),
        (["empty.tap", "-"], "empty.tap has no words yet"),
    ]:
        code, output, error = run("listen", *arguments)
        assert (code, output) == (2, "") and message in error and error.count("\n") == 1


def test_reject(model, run):
    path = CLIPS / "lamp" / f"{ASKED[0]}_0.ogg"
    far = CLIPS / "garage" / f"{ASKED[0]}_0.ogg"
    answers = json.loads(run("predict", model, path, far, "--json")[1])
    assert [answer["word"] for answer in answers] == ["lamp", None]
    code, output, _ = run("reject", model, path)
    assert code == 0
    row = [cell.strip() for cell in output.splitlines()[-2].strip("│").split("│")]
    assert row[1:] == ["lamp", "lamp", "-"]
    assert Spotter.load(model).vocabulary.negatives == {"lamp": 1}
    assert json.loads(run("predict", model, path, "--json")[1])[0]["word"] is None
    [nearest] = json.loads(run("predict", model, path, "--json", "--closed")[1])
    assert nearest["word"] == "lamp"
    code, _, error = run("reject", "none.tap", path)
    assert code == 2 and "none.tap does not exist" in error


@pytest.fixture
def short(monkeypatch):
    """Let a few seconds of sound be enough."""
    monkeypatch.setattr(calibration, "MIN_SOUND_S", 2)


@pytest.mark.usefixtures("short")
def test_calibrate_lowers_sensitivities_for_false_alarms(model, sound, run, monkeypatch):
    """The words themselves, as if they were not: nothing else reaches the thresholds so surely."""
    soundfile.write("without.wav", np.concatenate([sound, noise(2.0)]), RATE)
    steps = []
    shown = contextlib.nullcontext(lambda *step: steps.append(step))
    monkeypatch.setattr(tapword.cli.listen, "progress_steps", lambda: shown)
    code, output, _ = run("calibrate", model, "without.wav")
    after = Spotter.load(model)
    assert code == 0 and set(after.vocabulary.sensitivities) == {"lamp", "music"}
    length_s = int(len(sound) / RATE + 2.0)
    assert steps == [("listening, s", length_s, length_s)]
    for word in ("lamp", "music"):
        value = after.vocabulary.sensitivity_of(word)
        assert value < 0.5
        assert f"{word}: sensitivity 0.50 -> {value:.2f}, fewer false" in output
    # Lamp itself scores higher than the scale goes.
    assert "the lowest; 1 false alarm in" in output
    assert "At 0.5 an hour, no false alarm is allowed" in output and "needs at least" in output
    # It starts from what is shipped, not from what it set before.
    found = json.loads(run("calibrate", model, "without.wav", "--json")[1])
    assert found["after"] == pytest.approx(after.vocabulary.sensitivities)
    assert found["before"] == pytest.approx(after.vocabulary.sensitivities)


@pytest.mark.usefixtures("short")
def test_calibrate_says_where_the_scale_ends(model, sound, run, monkeypatch):
    soundfile.write("without.wav", sound, RATE)
    monkeypatch.setattr(tapword.spotter.thresholds, "MAX_RATE_RATIO", 1.001)
    _, output, _ = run("calibrate", model, "without.wav")
    assert "sensitivity 0.50 -> 0.00, fewer false alarms, the lowest; 1 false alarm in" in output


def test_calibrate_refuses_silence(model, run):
    soundfile.write("quiet.wav", silence(5.0), RATE)
    before = model.read_bytes()
    code, _, error = run("calibrate", model, "quiet.wav")
    assert code == 2 and "Only 0 s contain sound" in error
    assert model.read_bytes() == before
    code, _, error = run("calibrate", model)
    assert code == 2 and "Missing argument" in error


@pytest.mark.usefixtures("short")
def test_calibrate_on_real_speech(model, run):
    path = shared("data", "negatives", "coffee_orders_20min.flac")
    with soundfile.SoundFile(path) as file:
        soundfile.write("minute.wav", file.read(60 * file.samplerate), file.samplerate)
    found = json.loads(run("calibrate", model, "minute.wav", "--json", "--refractory", 1)[1])
    assert found["hours"] == pytest.approx(1 / 60) and sum(found["alarms_after"].values()) == 0
    assert all(score is not None for score in found["highest"].values())
    assert 1 / 240 < found["sound_hours"] < 1 / 60


def test_parts_without_known_thresholds_say_so(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn(tone(300), "low")
    spotter.save("plain.tap")
    soundfile.write("low.wav", padded(tone(300)), RATE)
    for command in (["listen", "plain.tap", "low.wav"], ["calibrate", "plain.tap", "low.wav"]):
        code, _, error = run(*command)
        assert code == 2 and "Thresholds are unavailable" in error
    given = ["--threshold", "low=-1e9", "--json"]
    assert words(run("listen", "plain.tap", "low.wav", *given)[1]) == ["low"]


def test_listen_to_a_file_whose_channels_cancel_with_a_warning(model, sound, run):
    soundfile.write("room.wav", np.stack([sound, -sound], axis=1), RATE)
    code, output, error = run("listen", model, "room.wav")
    assert code == 0 and output.count("lamp") == output.count("music") == 1
    assert "warning: room.wav: its channels cancel each other; using the louder\n" in error
