"""Candidates that are pooled from the frames of the stream."""

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.ear_s import EarS
from tapword.listening.frames import FrameBuffer
from tests.listening.test_phrases import PHRASE, detect, said, scene
from tests.sounds import ASKED, TAUGHT, noise, silence


def taught(ear):
    made = Spotter(ear)
    for text in (PHRASE, "lamp", "coffee", "window"):
        clips = [
            np.concatenate([silence(0.5), said(text, voice), silence(0.5)]) for voice in TAUGHT
        ]
        made.learn_many(clips, [text] * len(clips))
    return made


@pytest.fixture(scope="module")
def spotter():
    return taught("ear_s")


@pytest.mark.parametrize("voice", ASKED[:2])
def test_words_and_phrases_are_found_once_and_soon(spotter, voice):
    sound, wanted = scene(voice)
    events, reported = detect(Detector(spotter), sound)
    assert [event.word for event in events] == [word for word, _ in wanted]
    for event, reported_s, (_, end_s) in zip(events, reported, wanted, strict=True):
        assert abs(event.end_s - end_s) < 0.4 and reported_s - end_s < 0.7


def test_no_candidate_passes_the_network_again(spotter, monkeypatch):
    sound, wanted = scene(ASKED[0])
    # What white noise is like is learned once.
    _ = spotter.encoder.noise
    detector = Detector(spotter)
    detector(np.zeros(SAMPLE_RATE, dtype=np.float32))
    monkeypatch.setattr(EarS, "_extract", None)
    events, _ = detect(detector, sound)
    assert [event.word for event in events] == [word for word, _ in wanted]


def test_after_a_gap_the_stream_begins_again(spotter):
    sound = np.concatenate([noise(1.0), said("lamp", ASKED[0]), noise(1.0)])
    plain, _ = detect(Detector(spotter), sound)
    detector = Detector(spotter)
    detector(noise(0.77, 0.05))
    detector.gap(1.0)
    later, _ = detect(detector, sound)
    assert [(event.word, event.score) for event in later] == [(e.word, e.score) for e in plain]
    assert later[0].start_s == pytest.approx(plain[0].start_s + 1.77)


def test_a_backbone_that_does_not_stream_takes_over_and_gives_back(spotter):
    detector, other = Detector(spotter), taught("tapword_ear")
    detector(noise(1.0))
    sound, wanted = scene(ASKED[0])
    for taking_over in (other, spotter):
        detector.spotter = taking_over
        events, _ = detect(detector, sound)
        assert [event.word for event in events] == [word for word, _ in wanted]


def test_frames_beyond_those_that_are_known_are_the_nearest():
    ear = EarS()
    buffer = FrameBuffer(ear, 30)
    assert not buffer.cut(-3, 5)[0].any()
    sound = noise(2.0, 0.1)
    buffer.push(sound[:1000])
    buffer.push(sound[1000:])
    [frames], [whole] = buffer.cut(25, 20), ear.stream().advance(sound)
    assert (buffer.first, buffer.end, buffer.until) == (20, 43, 50)
    np.testing.assert_allclose(frames[:18], whole[25:43], atol=1e-4)
    np.testing.assert_array_equal(frames[18:], frames[[17, 17]])
    np.testing.assert_array_equal(buffer.cut(25, 20, known=10)[0][9:], frames[[9] * 11])
    np.testing.assert_array_equal(buffer.cut(15, 10)[0][:5], buffer.cut(20, 1)[0][[0] * 5])
