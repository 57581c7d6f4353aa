"""What is said of clips before they are taught."""

import time

import numpy as np
import pytest
import soundfile

import tapword
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.endpoint import examine
from tapword.spotter import session as session_module
from tapword.spotter.session import LATEST, MIN_CLIPS, TeachSession
from tapword.spotter.takes import find_takes
from tapword.support.issues import MESSAGES, Issue, message

NOISE = 0.1 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)


def clips(word, start, end):
    return [files.read(path) for path in sorted((CLIPS / word).glob("*.ogg"))[start:end]]


def second_take(word):
    return files.read(CLIPS / word / "flite-rms_1.ogg")


def codes(issues):
    return [issue.code for issue in issues]


def review(spotter, sounds, words):
    """Review of clips that are named by their places."""
    session = TeachSession(spotter)
    for place, (sound, word) in enumerate(zip(sounds, words, strict=True)):
        session.accept(session.check(sound, word, "lesson", f"{place}.wav"))
    return session.review()


@pytest.fixture(scope="module")
def spotter():
    return tapword.Spotter()


@pytest.fixture(scope="module")
def taught():
    """Parts without thresholds, taught three words."""
    spotter = tapword.Spotter("speech_embedding", "tap", "ridge")
    for word in ("lamp", "music", "window"):
        spotter.learn_many(clips(word, 0, 4), [word] * 4)
    return spotter


@pytest.fixture(scope="module")
def small():
    """Size small, taught by one voice."""
    spotter = tapword.Spotter()
    for word in ("lamp", "music"):
        spotter.learn(CLIPS / word / "flite-rms_0.ogg", word)
    return spotter


def test_every_issue_has_a_message():
    params = {"word": "a", "other": "b", "first": "a", "second": "b", "seconds": 3.2, "limit_s": 3}
    params["takes"] = 7
    for code in MESSAGES:
        assert "{" not in message(Issue(code, "note", params))


# One clip.


@pytest.mark.parametrize("kind", ["take", "file", "lesson"])
def test_noise_is_doubted(small, kind):
    checked = TeachSession(small).check(NOISE, "lamp", kind)
    assert checked.issues == [Issue("noise", "doubt")] and checked.severity == "doubt"


def test_a_take_that_may_be_another_word_is_doubted(small):
    session = TeachSession(small)

    def issues(clip_of, word, kind):
        return session.check(second_take(clip_of), word, kind).issues

    for word in ("lamp", "music"):
        assert issues(word, word, "take") == []
    for word in ("lamp", "new"):
        other = Issue("other_word", "doubt", {"word": word, "other": "music"})
        assert issues("music", word, "take") == issues("music", word, "file") == [other]
    # Files of a lesson are compared with each other, later.
    assert issues("music", "lamp", "lesson") == []
    assert issues("coffee", "lamp", "take") == [Issue("unlike", "doubt", {"word": "lamp"})]
    assert issues("coffee", "lamp", "file") == issues("coffee", "coffee", "take") == []


def test_where_thresholds_are_not_known_nothing_is_doubted(taught):
    [take] = clips("music", 5, 6)
    assert TeachSession(taught).check(take, "lamp").issues == []


def test_takes_are_compared_with_those_accepted_before(spotter, small):
    """So the microphone, which teaches all takes at the end, doubts what the studio doubts."""
    session = TeachSession(spotter)
    session.accept(session.check(files.read(CLIPS / "lamp" / "flite-rms_0.ogg"), "lamp"))
    assert codes(session.check(second_take("coffee"), "lamp").issues) == ["unlike"]
    assert session.check(second_take("lamp"), "lamp").issues == []
    assert not spotter.words
    session.follow(small)
    assert codes(session.check(second_take("music"), "lamp").issues) == ["other_word"]


def test_the_issue_of_a_recording_comes_first(small):
    clip = second_take("music")
    take = examine(np.concatenate([np.zeros(16_000, np.float32), clip[: len(clip) // 2]]))
    assert take.issue.code == "cut_off" and take.has_speech
    checked = TeachSession(small).check(take, "lamp")
    assert checked.issues[0] == take.issue and len(checked.encoded) == 1
    # A file is as somebody else cut it.
    assert not TeachSession(small).check(take, "lamp", "file").has("cut_off")


def test_a_take_without_speech_is_refused(small):
    checked = TeachSession(small).check(examine(np.zeros(16_000, np.float32)), "lamp")
    assert checked.severity == "refuse" and codes(checked.issues) == ["no_speech"]
    assert len(checked.encoded) == 0


def test_what_else_a_file_contains_is_noted(small):
    lamp, music = second_take("lamp"), second_take("music")

    def apart(seconds):
        return np.concatenate([lamp, np.zeros(round(16_000 * seconds), np.float32), music])

    session = TeachSession(small)
    for seconds, code in ((0.7, "more_than_one_word"), (0.25, "long_pause")):
        assert session.check(apart(seconds), "lamp", "lesson").issues == [Issue(code, "note")]
        assert not session.check(apart(seconds), "lamp").has(code)
    # A clip that is not aligned is taught as it is.
    plain = TeachSession(tapword.Spotter("logmel", "avg", "ncm"))
    assert plain.check(apart(0.7), "lamp", "lesson").issues == []


def test_words_that_differ_in_capital_letters_are_doubted(small):
    found = TeachSession(small).check_words(["lamp", "Lamp", "Tea", "tea"])
    assert found == [
        Issue("case_variant", "doubt", {"word": word, "other": other})
        for word, other in (("Lamp", "lamp"), ("tea", "Tea"))
    ]


def test_many_words_are_checked_in_linear_time(small):
    start = time.process_time()
    # Compared in pairs they would take minutes.
    assert TeachSession(small).check_words(f"word{i}" for i in range(50_000)) == []
    assert time.process_time() - start < 5


# A lesson.


def test_a_lesson_of_too_many_words_is_not_compared(taught, monkeypatch):
    sounds, words = clips("lamp", 4, 9), ["light"] * 5
    assert codes(review(taught, sounds, words)) == ["close_word"]
    # "light", and the three words that are taught.
    monkeypatch.setattr(session_module, "MAX_SCORES", 5 * 4 - 1)
    assert review(taught, sounds, words) == []
    twice = review(taught, [sounds[0]] * 6, ["lamp", "light"] * 3)
    assert set(codes(twice)) == {"same_recording"}, "which needs no scores"


def test_the_same_word_by_another_name_is_close(taught):
    takes, before = clips("lamp", 4, 9), taught.words
    close = Issue("close_word", "note", {"word": "light", "other": "lamp"})
    assert review(taught, takes, ["light"] * 5) == [close]
    assert message(close).startswith('"light" sounds like "lamp": if they are mixed up')
    assert review(taught, takes, ["lamp"] * 5) == []
    few = MIN_CLIPS - 1
    assert review(taught, takes[:few], ["light"] * few) == []
    assert taught.words == before


@pytest.mark.parametrize("word", ["coffee", "garage", "kitchen", "timer"])
def test_other_words_are_not_close(taught, word):
    assert review(taught, clips(word, 4, 9), [word] * 5) == []


def test_nothing_is_close_to_nothing():
    spotter = tapword.Spotter("logmel", "avg", "ncm")
    assert review(spotter, clips("lamp", 0, 3), ["lamp"] * 3) == []


def test_a_lesson_is_reviewed_take_by_take(taught):
    session = TeachSession(taught, LATEST)
    found = []
    for clip in clips("lamp", 4, 10):
        session.accept(session.check(clip, "light"))
        found.append(codes(session.review()))
    assert found[:3] == [[], [], ["close_word"]]
    assert len(session.accepted) == LATEST


def lesson(**counts):
    """Clips and words, a number of each."""
    found = [clip for word, count in counts.items() for clip in clips(word, 0, count)]
    return found, [word for word, count in counts.items() for _ in range(count)]


def test_words_of_one_lesson_are_compared_with_each_other(spotter):
    sounds, words = lesson(lamp=6, music=6, window=3, coffee=1)
    assert review(spotter, sounds, words) == []
    half = ["Lamp" if row in (0, 2, 4) else word for row, word in enumerate(words)]
    [issue] = review(spotter, sounds, half)
    assert issue.code == "close_word" and set(issue.params.values()) == {"lamp", "Lamp"}
    assert not spotter.words


@pytest.mark.parametrize("row", [0, 8])
def test_a_clip_under_a_wrong_name_is_named(spotter, row):
    sounds, words = lesson(lamp=6, music=6)
    right, words[row] = words[row], "music" if words[row] == "lamp" else "lamp"
    params = {"word": words[row], "other": right}
    assert review(spotter, sounds, words) == [Issue("other_word", "note", params, (f"{row}.wav",))]


def test_one_clip_that_sounds_like_a_taught_word_is_named(taught):
    sounds, words = lesson(lamp=5, music=1)
    spotter = tapword.Spotter()
    spotter.learn_many(sounds[:4], words[:4])
    params = {"word": "timer", "other": "lamp"}
    named = Issue("other_word", "note", params, ("0.wav",))
    assert review(spotter, sounds[4:5], ["timer"]) == [named]
    assert review(spotter, sounds[5:], ["timer"]) == []
    # Somebody was asked about it already.
    session = TeachSession(spotter)
    session.accept(session.check(sounds[4], "timer"))
    assert session.accepted[0].has("other_word") and session.review() == []
    # Whether one clip is a word can only be said where thresholds are known.
    assert review(taught, clips("lamp", 5, 6), ["timer"]) == []


def test_a_recording_taught_as_two_words_is_named(spotter):
    [clip] = clips("lamp", 0, 1)
    issues = review(spotter, [clip, clip, clip], ["lamp", "lamp", "light"])
    params = {"first": "lamp", "second": "light"}
    assert Issue("same_recording", "note", params, ("0.wav", "2.wav")) in issues


# Recordings of several takes.


def recording(*sounds, pause_s=0.8):
    """Sounds one after the other with pauses, in faint noise."""
    pause = np.zeros(round(pause_s * 16_000), dtype=np.float32)
    parts = [pause, *(part for sound in sounds for part in (sound, pause))]
    audio = np.concatenate(parts)
    noise = 1e-3 * np.random.default_rng(0).standard_normal(len(audio))
    return (audio + noise).astype(np.float32)


def phrase(number, pause_s=0.3):
    """Two words by one voice with a pause between, as one phrase."""
    first, second = (
        examine(files.read(CLIPS / word / f"flite-rms_{number}.ogg")).audio
        for word in ("kitchen", "light")
    )
    gap = np.zeros(round((pause_s - 0.4) * 16_000) if pause_s > 0.4 else 0, dtype=np.float32)
    edge = 0 if pause_s > 0.4 else round((0.4 - pause_s) / 2 * 16_000)
    return np.concatenate([first[: len(first) - edge], gap, second[edge:]])


def taught_files(spotter, tmp_path, audio, **options):
    path = tmp_path / "lamp.wav"
    soundfile.write(path, audio, 16_000, subtype="FLOAT")
    session = TeachSession(spotter)
    return session.check_files([(path, "lamp")], **options), session


def takes_of(word, n):
    voice = "flite-rms", "flite-slt", "flite-awb", "espeak-en-us"
    paths = [CLIPS / word / f"{name}_{k}.ogg" for name in voice for k in (0, 1)]
    return [examine(files.read(path)).audio for path in paths[:n]]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_each_take_of_a_recording_is_taught(spotter, tmp_path, n):
    audio = recording(*takes_of("lamp", n))
    issues, session = taught_files(spotter, tmp_path, audio)
    assert session.clips == n
    assert issues == [Issue("several_takes", "note", {"takes": n}, (str(tmp_path / "lamp.wav"),))]
    # Each is what it would have been as its own file.
    whole = TeachSession(spotter)
    for take, checked in zip(takes_of("lamp", n), session.accepted, strict=True):
        alone = whole.check(take, "lamp", "lesson").encoded.vectors[0]
        own = checked.encoded.vectors[0]
        assert own @ alone > 0.9 * np.linalg.norm(own) * np.linalg.norm(alone)

    issues, session = taught_files(spotter, tmp_path, audio, split=False)
    assert session.clips == 1 and codes(issues) == ["more_than_one_word"]


def test_a_sound_unlike_the_takes_is_left_out(spotter, tmp_path):
    sounds = takes_of("lamp", 5)
    sounds.insert(2, examine(second_take("music")).audio)
    issues, session = taught_files(spotter, tmp_path, recording(*sounds))
    assert session.clips == 5
    assert [(issue.code, issue.severity) for issue in issues] == [
        ("several_takes", "note"),
        ("unlike", "refuse"),
    ]
    assert issues[1].clips[0].startswith(str(tmp_path / "lamp.wav at "))


@pytest.mark.parametrize("pause_s", [0.3, 0.45, 0.8])
def test_the_parts_of_a_phrase_are_not_takes(spotter, tmp_path, pause_s):
    _, session = taught_files(spotter, tmp_path, recording(phrase(0, pause_s)))
    assert session.clips == 1
    # Unless somebody says so.
    _, session = taught_files(spotter, tmp_path, recording(phrase(0, 0.8)), split=True)
    assert session.clips == 2


def test_a_phrase_with_a_pause_said_three_times_is_three_takes(spotter, tmp_path):
    audio = recording(phrase(0), phrase(1), phrase(0, 0.4), pause_s=0.6)
    issues, session = taught_files(spotter, tmp_path, audio)
    assert session.clips == 3 and codes(issues) == ["several_takes"]


def test_no_clip_of_the_demo_is_split(spotter):
    for path in sorted(CLIPS.glob("*/flite-*.ogg")):
        padded = np.pad(files.read(path), 16_000)
        assert not find_takes(spotter.encoder, padded), path


def test_without_a_whitening_sounds_are_split_only_if_told_so(taught, tmp_path):
    audio = recording(*takes_of("lamp", 3))
    plain = tapword.Spotter("logmel", "avg", "ncm")
    assert taught_files(plain, tmp_path, audio)[1].clips == 1
    assert taught_files(plain, tmp_path, audio, split=True)[1].clips == 3


def test_a_word_that_is_too_long_is_refused_before_its_clips_are_read():
    session = TeachSession(tapword.Spotter())
    with pytest.raises(tapword.InputError, match="at most 64 bytes"):
        session.check_words(["lamp", "x" * 65])
