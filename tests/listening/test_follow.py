"""A detector that takes up a changed model while it listens."""

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.listening.follow import DetectorSettings, ModelFollower
from tests.conftest import tone


class Recorder(Detector):
    """A detector that notes its gaps."""

    def gap(self, seconds=0.0):
        self.gaps = [*getattr(self, "gaps", []), seconds]
        super().gap(seconds)


def taught(*words):
    spotter = Spotter()
    for number, word in enumerate(words):
        spotter.learn(tone(300 + 400 * number), word)
    return spotter


def test_without_words_there_is_no_detector():
    follower = ModelFollower()
    assert follower.take_up(Spotter()) is None
    assert follower.take_up(taught("lamp")) is not None
    assert follower.take_up(Spotter()) is None and follower.near is None


def test_a_stream_goes_on_with_the_new_words():
    follower = ModelFollower(near_misses=True, kind=Recorder)
    detector, near = follower.take_up(taught("lamp"), 2.5), follower.near
    assert detector.gaps == [2.5] and near is not None
    changed = taught("lamp", "music")
    assert follower.take_up(changed, 7.0) is detector and follower.near is near
    assert detector.spotter is changed and detector.gaps == [2.5]
    assert detector.thresholds.keys() == {"lamp", "music"}
    assert follower.take_up(taught("music")) is detector
    assert detector.thresholds.keys() == {"music"}
    follower.reset()
    assert follower.take_up(changed) is not detector


def test_settings_wait_for_words_that_are_taught_later():
    settings = DetectorSettings(
        thresholds={"lamp": 0.9, "music": 0.8}, sensitivities={"music": 0.7}
    )
    assert settings.words == {"lamp", "music"}
    follower = ModelFollower(settings, kind=Recorder)
    before = follower.take_up(taught("lamp"))
    assert before.thresholds == {"lamp": 0.9}
    after = follower.take_up(taught("lamp", "music"), 3.0)
    assert after is not before and after.gaps == [3.0]
    assert after.thresholds == {"lamp": 0.9, "music": 0.8}


def test_times_count_from_the_start_of_the_stream():
    follower = ModelFollower()
    detector = follower.take_up(taught("lamp"), 10.0)
    events = detector(
        np.concatenate([np.zeros(16_000), tone(300), np.zeros(32_000)]).astype(np.float32)
    )
    assert all(event.start_s > 10.0 for event in events + detector.flush())


@pytest.mark.parametrize("word", ["other", None])
def test_sensitivities_of_all_and_of_unknown_words(word):
    settings = DetectorSettings(sensitivities={word: 0.9})
    detector = ModelFollower(settings).take_up(taught("lamp"))
    wanted = {None: 0.9} if word is None else {}
    assert detector.thresholds == detector.spotter.thresholds(sensitivities=wanted)
