"""The dialogue of `learn --mic`, with a sound library that plays what a test gives."""

import io
import sys

import numpy as np
import pytest

import tapword
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.endpoint import Endpointer
from tapword.audio.files import SAMPLE_RATE
from tapword.cli import record, teach

RATE = SAMPLE_RATE
NEW = ["--backbone", "logmel", "--pooling", "tap:R=2", "--learner", "ncm"]


def noise(seconds, seed=0):
    made = 2e-4 * np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    return made.astype(np.float32)


def spoken(word, count, gain=1.0, first=0):
    """Clips of a word as somebody would say them who waits for each sign."""
    paths = sorted((CLIPS / word).glob("*.ogg"))[first::3][:count]
    assert len(paths) == count
    pieces = [noise(3.5)]
    for path in paths:
        pieces += [gain * files.read(path), noise(3.5)]
    return np.concatenate(pieces)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_learn_by_microphone(fake, here, run):
    fake(spoken("lamp", 3))
    code, output, error = run("learn", "home.tap", "lamp", "--mic", "--takes", 3, *NEW)
    assert (code, error) == (0, "")
    assert output.count("say it now") == 3 and output.count("good") == 3
    assert "take 3 of 3: good" in output and "learned 3 clips" in output
    fake(spoken("music", 5))
    assert run("learn", "home.tap", "music", "--mic", "--device", "webcam")[0] == 0
    spotter = tapword.load("home.tap")
    assert spotter.words == {"lamp": 3, "music": 5}
    clips = sorted((CLIPS / "music").glob("*.ogg"))[::3][:5]
    assert [answer.word for answer in spotter.predict_many(clips)].count("music") >= 4


def test_a_bad_take_is_said_again(fake, here, run):
    fake(np.concatenate([spoken("lamp", 1, gain=0.02), spoken("lamp", 2)]))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", "--takes", 2, *NEW)
    assert code == 0 and "take 1 of 2 not used: too quiet: speak up" in output
    assert tapword.load("home.tap").words == {"lamp": 2}


def test_a_take_with_a_gap_is_said_again(fake, here, run):
    fake(spoken("lamp", 3), lose=(30,))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", "--takes", 2, *NEW)
    assert code == 0 and "take 1 of 2 not used: some sound was lost" in output


def test_nobody_speaks(fake, here, run):
    fake(noise(60))
    code, output, error = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert code == 2 and output.count("no speech found") == record.MAX_REFUSALS
    assert "5 takes in a row could not be used; nothing was taught" in error


@pytest.mark.parametrize(("answer", "words"), [("\n", {"lamp": 2}), ("n\n", None), ("", None)])
def test_what_was_kept_is_asked_for(fake, here, run, monkeypatch, answer, words):
    fake(np.concatenate([spoken("lamp", 2), noise(60)]))
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert "2 of 5 takes are good; teach 'lamp' with them?" in output
    check_kept(code, words)


@pytest.mark.parametrize(("kept", "words"), [(2, {"lamp": 2}), (0, None)])
def test_stopping_keeps_what_is_good(fake, here, run, monkeypatch, kept, words):
    fake(spoken("lamp", 3))
    take, done = Endpointer.take, []

    def stopping(self):
        if len(done) == kept:
            raise KeyboardInterrupt
        done.append(self)
        return take(self)

    monkeypatch.setattr(Endpointer, "take", stopping)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert "stopped" in output
    check_kept(code, words)


def check_kept(code, words):
    if words is None:
        assert code == 130
        with pytest.raises(tapword.errors.TapwordError):
            tapword.load("home.tap")
    else:
        assert code == 0 and tapword.load("home.tap").words == words


def test_options_that_do_not_go_together(fake, here, run):
    fake(noise(1))
    code, _, error = run("learn", "home.tap", "lamp", "--mic", "a.wav")
    assert code == 2 and "give one of sound files, --mic and --say" in error
    code, _, error = run("learn", "home.tap", "lamp")
    assert code == 2 and "give sound files of 'lamp', or --mic" in error
    for option in (["--takes", 3], ["--device", "usb"]):
        code, _, error = run("learn", "home.tap", "lamp", "a.wav", *option)
        assert code == 2 and "need --mic" in error


def test_closeness_is_said(fake, here, run):
    tapword.Spotter("speech_embedding", "tap", "ridge").save("home.tap")
    for word in ("lamp", "music"):
        fake(spoken(word, 5, first=1))
        code, _, error = run("learn", "home.tap", word, "--mic")
        assert (code, error) == (0, "")
    fake(spoken("lamp", 5))
    code, _, error = run("learn", "home.tap", "light", "--mic")
    assert code == 0 and 'warning: "light" sounds like "lamp"' in error
    assert tapword.load("home.tap").words["light"] == 5


def test_a_take_that_sounds_like_another_word_is_doubted(fake, here, run, monkeypatch):
    spotter = tapword.Spotter()
    clips = sorted((CLIPS / "lamp").glob("*.ogg"))[1::3][:5]
    spotter.learn_many(clips, ["lamp"] * 5)
    spotter.save("home.tap")
    fake(spoken("lamp", 2))
    code, _, error = run("learn", "home.tap", "light", "--mic", "--takes", 2)
    assert code == 0 and 'warning: sounds like "lamp", not "light": take 1\n' in error
    assert tapword.load("home.tap").words == {"lamp": 5, "light": 2}
    # At a terminal, the speaker decides.
    run("forget", "home.tap", "light")
    asked = []
    monkeypatch.setattr(teach.typer, "confirm", lambda text, **_: asked.append(text))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(teach.err, "_force_terminal", True)
    fake(spoken("lamp", 5))
    code, _, error = run("learn", "home.tap", "light", "--mic", "--takes", 2)
    assert code == 2 and "5 takes in a row could not be used" in error
    assert asked == ['sounds like "lamp", not "light": take 1. Teach it?'] * 5
    assert tapword.load("home.tap").words == {"lamp": 5}
