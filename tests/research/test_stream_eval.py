import json
import re

import numpy as np
import pytest
import soundfile

from tapword import Detector, Spotter
from tapword.assets import CLIPS
from tapword.audio import files as audio
from tapword.errors import InputError
from tapword.listening.decider import Candidate
from tapword.research.report.stream_page import stream_page
from tapword.research.stream_eval import (
    Observed,
    ObservedStream,
    WordReport,
    evaluate_stream,
    find_positives,
    miss_rate_at,
)
from tapword.research.stream_mix import PlacedClip, StreamMix
from tapword.spotter.thresholds import Scores
from tests.conftest import shared

WORDS = ("lamp", "music", "window")
HELD_OUT = ("espeak-en-gb-x-rp-f3_1", "espeak-en-us_1")


def observed(middle_s, not_go=None, **scores):
    """A candidate around a time; `not_go` is how near it is to a negative of "go"."""
    negatives = {} if not_go is None else {"go": not_go}
    candidate = Candidate(
        round(middle_s * 16_000), middle_s - 0.2, middle_s + 0.2, Scores(scores, negatives)
    )
    return Observed(candidate, middle_s + 0.5)


PLACED = [
    PlacedClip("up", "a.wav", 10.0, 11.0, 10.7),
    PlacedClip("go", "b.wav", 20.0, 21.0, 20.6),
    PlacedClip("go", "c.wav", 30.0, 31.0, 30.5),
]
STREAM = [
    observed(5.0, up=0.7, go=0.1),
    observed(9.8, up=0.9, go=0.2),
    observed(10.1, up=0.95, go=0.2),
    observed(10.9, up=0.8, go=0.2),
    observed(20.5, up=0.8, go=0.6),
    observed(31.29, up=0.1, go=0.55),
    observed(31.8, up=0.1, go=0.65),
]


def listened(stream, **options):
    return ObservedStream(stream, PLACED, hours=0.5, seconds=1803.0, detector_s=3.0, **options)


def kinds(**thresholds):
    return [(one.kind, one.word, one.clip) for one in listened(STREAM).events(thresholds)]


def test_what_an_event_is_worth():
    assert kinds(up=0.5, go=0.5) == [
        ("false alarm", "up", None),
        # In reach of the clip; what comes 0.3 s later falls into the pause after it.
        ("hit", "up", 0),
        ("repeat", "up", 0),
        ("confusion", "up", 1),
        ("hit", "go", 2),
        ("false alarm", "go", None),
    ]
    # An event that does not come opens no pause.
    assert kinds(up=0.92, go=0.6) == [
        ("hit", "up", 0),
        ("hit", "go", 1),
        ("false alarm", "go", None),
    ]
    assert kinds(up=1.0, go=1.0) == []


def test_what_is_nearer_to_a_negative_is_not_the_word():
    stream = [observed(20.5, go=0.8, up=0.6, not_go=0.9), observed(30.5, go=0.8, not_go=0.7)]
    heard = listened(stream).events({"up": 0.5, "go": 0.5})
    assert [(one.kind, one.word) for one in heard] == [("confusion", "up"), ("hit", "go")]
    nothing = [observed(5.0, go=0.8, not_go=0.9)]
    assert listened(nothing).curve({"go": 0.5}) == []


def test_the_pause_after_an_event_can_be_chosen():
    thresholds = {"up": 0.5, "go": 0.5}
    assert len(listened(STREAM, refractory_s=0.2).events(thresholds)) == 7
    assert len(listened(STREAM, refractory_s=1.0).events(thresholds)) == 5


def test_the_numbers_by_hand():
    found = listened(STREAM).report({"up": 0.5, "go": 0.5}, config=None, start=0.0)
    assert found.miss_rate == pytest.approx(100 / 3)
    # 1 of 3 by tables of Clopper and Pearson.
    assert found.miss_rate_ci == pytest.approx((0.84, 90.57), abs=0.01)
    assert found.false_alarms == 2 and found.false_alarms_per_hour == 4
    low, high = found.false_alarms_ci
    assert low < 4 < high
    assert found.confusions == 1 and found.repeats == 1
    assert found.latency_s.median == pytest.approx(((10.3 - 10.7) + (31.79 - 30.5)) / 2)
    assert found.per_word["go"] == WordReport(
        positives=2,
        misses=1,
        miss_rate=50.0,
        miss_rate_ci=pytest.approx((1.26, 98.74), abs=0.01),
        false_alarms=1,
        confusions=0,
        repeats=0,
    )
    assert found.per_word["up"].confusions == 1
    assert [clip.hit for clip in found.clips] == [True, False, True] and found.speed == 601


def test_the_curve_moves_all_thresholds():
    points = listened(STREAM).curve({"up": 0.5, "go": 0.5})
    thresholds = [point.threshold for point in points]
    alarms = [point.false_alarms_per_hour for point in points]
    assert thresholds == sorted(thresholds)
    assert alarms[0] == 4 and alarms[-1] == 0 and points[-1].miss_rate == 100
    assert alarms == sorted(alarms, reverse=True)
    # Above 0.65 one false alarm is left, above 0.7 none, and of the words "up" alone.
    assert miss_rate_at(points, 2.0) == miss_rate_at(points, 0.5) == pytest.approx(200 / 3)
    assert miss_rate_at(points, 4.0) == pytest.approx(100 / 3)
    assert miss_rate_at([], 4.0) is None and listened([]).curve({"up": 0.5}) == []


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A model of three words, clips of other voices, and half a minute of other words."""
    folder = tmp_path_factory.mktemp("scene")
    spotter = Spotter()
    for word in WORDS:
        clips = sorted((CLIPS / word).glob("*.ogg"))
        taught = [path for path in clips if path.stem[:-1] + "1" not in HELD_OUT]
        spotter.learn_many(taught, [word] * len(taught))
        (folder / "clips" / word).mkdir(parents=True)
        for path in [path for path in clips if path.stem in HELD_OUT]:
            # Said apart, as people say words to a machine.
            apart = np.pad(audio.read(path), 4800)
            soundfile.write(folder / "clips" / word / f"{path.stem}.wav", apart, 16_000)
    spotter.save(folder / "home.tap")
    others = [path for path in sorted(CLIPS.glob("*/*_0.ogg")) if path.parent.name not in WORDS]
    rng = np.random.default_rng(0)
    sounds = []
    for index in rng.permutation(len(others))[:44]:
        sounds += [audio.read(others[index]), np.zeros(3200, dtype=np.float32)]
    murmur = np.concatenate(sounds)
    murmur += 0.0005 * rng.standard_normal(len(murmur)).astype(np.float32)
    soundfile.write(folder / "others.flac", murmur, 16_000)
    return folder, spotter, len(murmur) / 16_000


def test_words_in_a_stream(scene):
    folder, spotter, seconds = scene
    found = evaluate_stream(spotter, folder / "clips", [folder / "others.flac"])
    assert found.hours == pytest.approx(seconds / 3600)
    assert found.config.positives == len(found.clips) == 6
    assert found.miss_rate <= 40
    assert miss_rate_at(found.det, 120) <= 40
    hits = [event for event in found.events if event.kind == "hit"]
    assert len(hits) == sum(clip.hit for clip in found.clips)
    assert 0 < found.latency_s.median <= found.latency_s.p95 < 1
    low, high = found.false_alarms_ci
    assert low <= found.false_alarms_per_hour <= high
    assert found.speed > 0 and found.thresholds == spotter.thresholds(0.5)
    page = stream_page(found)
    assert not re.search(r"(src|href)=|https?://", page)
    missed = sum(not clip.hit for clip in found.clips)
    assert page.count("<title>0:") == len(found.events) + missed
    assert "false alarms per hour" in page and "confused" in page


def test_judged_events_are_those_of_a_detector_that_nobody_observes(scene):
    folder, spotter, _ = scene
    # Low thresholds and a long pause: many events, and many that fall into the pause.
    options = {"thresholds": dict.fromkeys(WORDS, 0.1), "refractory_s": 1.0}
    found = evaluate_stream(spotter, folder / "clips", [folder / "others.flac"], **options)
    detector = Detector(spotter, **options)
    stream = StreamMix([folder / "others.flac"], find_positives(folder / "clips", WORDS)[0])
    events = [event for block in stream for event in detector(block)] + detector.flush()
    assert len(events) > 6
    assert [(e.word, e.start_s, e.end_s) for e in found.events] == [e[:3] for e in events]
    for mine, event in zip(found.events, events, strict=True):
        assert mine.score == pytest.approx(event.score, abs=1e-5)


def test_the_command(scene, run, tmp_path):
    folder, _, _ = scene
    (folder / "clips" / "door").mkdir(exist_ok=True)
    noise = tmp_path / "noise.wav"
    soundfile.write(noise, 0.1 * np.random.default_rng(0).standard_normal(8000), 8000)
    code, out, error = run(
        "evaluate-stream", folder / "home.tap", "--positives", folder / "clips",
        "--negatives", folder / "others.flac", "--noise", noise, "--snr", 20,
        "--every-s", 15, "--seed", 3, "--false-alarms-per-hour", 5, "--refractory", 1.5,
        "--out", tmp_path / "s.json", "--out", tmp_path / "s.html",
    )  # fmt: skip
    assert code == 0, error
    assert "false alarms per hour" in out and "lamp" in out
    low, high = json.loads((tmp_path / "s.json").read_text())["miss_rate_ci"]
    assert f"missed (95%: {low:.1f} to {high:.1f}%)" in out
    assert f"missed (95%: {low:.1f} to {high:.1f}%)" in (tmp_path / "s.html").read_text()
    assert "ignored folders of untaught words: door" in error and "left out" in error
    found = json.loads((tmp_path / "s.json").read_text())
    # As docs/protocols.md has them.
    assert list(found) == [
        "miss_rate", "miss_rate_ci", "false_alarms", "false_alarms_per_hour", "false_alarms_ci",
        "confusions", "repeats", "latency_s", "per_word", "hours", "thresholds", "speed", "det",
        "events", "clips", "seconds", "config", "environment",
    ]  # fmt: skip
    assert list(found["latency_s"]) == ["median", "p95"]
    assert list(found["per_word"]["lamp"]) == [
        "positives", "misses", "miss_rate", "miss_rate_ci", "false_alarms", "confusions", "repeats",
    ]  # fmt: skip
    assert list(found["det"][0]) == ["threshold", "miss_rate", "false_alarms_per_hour"]
    assert list(found["events"][0]) == [
        "kind", "word", "start_s", "end_s", "score", "reported_s", "clip",
    ]  # fmt: skip
    assert list(found["clips"][0]) == ["word", "file", "start_s", "end_s", "speech_end_s", "hit"]
    assert list(found["config"]) == [
        "words", "positives", "negatives", "noise", "snr_db", "seed", "every_s", "wanted_per_hour",
        "refractory_s", "notes", "command",
    ]  # fmt: skip
    assert found["config"]["refractory_s"] == 1.5
    assert found["config"]["snr_db"] == 20 and found["config"]["noise"] == ["noise.wav"]
    assert "evaluate-stream" in found["config"]["command"]
    assert "tapword in a stream" in (tmp_path / "s.html").read_text()


def test_wrong_paths_are_said_at_once(scene, run, tmp_path):
    folder, _, _ = scene
    model, negatives, reports = folder / "home.tap", folder / "others.flac", tmp_path / "r.json"
    reports.mkdir()
    for options, message in (
        (("--positives", tmp_path, "--negatives", negatives), "has no clips of the model's words"),
        (
            ("--positives", folder / "clips", "--negatives", negatives, "--refractory", -1),
            "the refractory time must be 0 s or more",
        ),
        (("--positives", tmp_path / "x", "--negatives", negatives), "does not exist"),
        (("--positives", folder / "clips", "--negatives", tmp_path / "x.wav"), "does not exist"),
        (("--positives", folder / "clips", "--negatives", negatives, "--snr", 3), "go together"),
        (
            ("--positives", folder / "clips", "--negatives", negatives, "--out", reports),
            "it is a folder",
        ),
    ):
        code, _, error = run("evaluate-stream", model, *options)
        assert code == 2 and message in error


def test_negatives_too_short_for_any_clip(scene, tmp_path):
    folder, spotter, _ = scene
    soundfile.write(tmp_path / "short.wav", 0.01 * np.ones(16_000), 16_000)
    with pytest.raises(InputError, match="no clip fits"):
        evaluate_stream(spotter, folder / "clips", [tmp_path / "short.wav"])


def test_people_who_order_coffee(speech_commands, tmp_path):
    """Real words among real speech: half a minute, a few clips."""
    negatives = shared("data", "negatives", "coffee_orders_20min.flac")
    with soundfile.SoundFile(negatives) as file:
        soundfile.write(tmp_path / "part.flac", file.read(30 * file.samplerate), file.samplerate)
    tests = set((speech_commands / "testing_list.txt").read_text().split())
    spotter = Spotter()
    for word in ("house", "marvin"):
        clips = sorted((speech_commands / word).glob("*.wav"))
        taught = [path for path in clips if f"{word}/{path.name}" not in tests][:10]
        spotter.learn_many(taught, [word] * 10)
        (tmp_path / word).mkdir()
        for path in [path for path in clips if f"{word}/{path.name}" in tests][:3]:
            (tmp_path / word / path.name).symlink_to(path)
    found = evaluate_stream(spotter, tmp_path, [tmp_path / "part.flac"])
    assert found.hours == pytest.approx(30 / 3600)
    assert found.miss_rate <= 50 and found.false_alarms <= 2
