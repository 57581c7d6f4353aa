"""Candidates of many models at once, as the benchmarks make them, are those of a detector."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.audio import files
from tapword.listening.decider import REFRACTORY_S, Candidate, replay
from tests.conftest import ROOT

CLIPS = ROOT / "src" / "tapword" / "assets" / "clips"
# One streams, the other does not.
EARS = ("ear_s", "tapword_ear")


@pytest.fixture
def candidates(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import candidates

    yield candidates
    sys.modules.pop("candidates", None)


def spoken(word: str, count: int) -> list[Path]:
    return sorted((CLIPS / word).glob("*.ogg"))[:count]


def taught(encoder, *words: str) -> Spotter:
    spotter = Spotter(encoder.backbones[0].name, augment=False)
    spotter.encoder = encoder
    for word in words:
        spotter.learn_many(spoken(word, 3), [word] * 3)
    return spotter


def heard(detector: Detector, sounds: list[np.ndarray]) -> None:
    for sound in sounds:
        for start in range(0, len(sound), 4000):
            detector(sound[start : start + 4000])
        detector.flush()
        detector.gap(REFRACTORY_S)


def assert_same(found: list[Candidate], wanted: list[Candidate]) -> None:
    assert [one[:3] for one in found] == [one[:3] for one in wanted]
    assert [one[4:] for one in found] == [one[4:] for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.scores.words == pytest.approx(other.scores.words, abs=1e-5)


@pytest.mark.parametrize("ear", EARS)
def test_words_have_the_candidates_of_a_detector(candidates, ear):
    words = ("lamp", "music", "door")
    clips = [files.read(path) for word in words for path in spoken(word, 6)[3:]]
    sounds = [np.concatenate(clips[:5]), (np.concatenate(clips[5:]) * 32767).astype(np.int16)]
    encoder = Spotter(ear, augment=False).encoder
    recording = candidates.Recording(encoder, sounds)
    for some in (words[:1], words):
        spotter, wanted = taught(encoder, *some), []
        heard(Detector(spotter, observe=wanted.append), sounds)
        assert len({one.centre for one in wanted}) < len(wanted), "none at an offset"
        assert_same(recording.candidates(spotter), wanted)
        assert recording.alarms(spotter) == len(replay(wanted, spotter.thresholds())) > 0


@pytest.mark.parametrize("ear", EARS)
def test_phrases_have_the_candidates_near_their_thresholds(candidates, ear):
    pair = [files.read(path) for word in ("lamp", "music") for path in spoken(word, 4)]
    said = [np.concatenate([pair[row], pair[row + 4]]) for row in range(4)]
    spotters = []
    for count in (1, 2):
        spotter = Spotter(ear, augment=False)
        spotter.learn_many(said[:count], ["lamp music"] * count)
        assert spotter.scorer.phrases
        spotters.append(spotter)
    sounds = [np.concatenate(said[2:]), said[3]]
    found = candidates.phrase_candidates(spotters, sounds)
    for spotter, own in zip(spotters, found, strict=True):
        wanted: list[Candidate] = []
        heard(Detector(spotter, observe=wanted.append), sounds)
        assert own and {one.centre for one in own} <= {one.centre for one in wanted}
        thresholds = spotter.thresholds()
        assert replay(own, thresholds) == replay(wanted, thresholds) != []
