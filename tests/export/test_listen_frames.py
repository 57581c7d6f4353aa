"""A C header whose ear streams pools what the Detector pools."""

import numpy as np
import pytest

from tapword import Detector
from tapword.backbones.tapword_ear import TapwordEar
from tests.export.test_export import DIAGONAL, LIGHT, MUSIC, phrase, taught
from tests.export.test_listen import Listening, assert_same, in_python, said


@pytest.fixture(scope="module")
def streams():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TapwordEar, "streams", True)
        yield


@pytest.fixture(scope="module")
def spotter(streams):
    made = taught(**DIAGONAL)
    for text in (LIGHT, MUSIC):
        made.learn_many([phrase(*text, take=take) for take in range(3)], [" ".join(text)] * 3)
    return made


@pytest.fixture(scope="module")
def device(spotter, tmp_path_factory):
    return Listening(spotter, tmp_path_factory.mktemp("device"), "-O3", max_words=8)


def test_the_events_are_those_of_the_detector(device, spotter):
    words, sound = list(spotter.words), said(9)
    sizes = (1, 1_280, len(sound))
    for size in sizes:
        device.whole(sound, size)
    device.run()
    wanted = in_python(Detector(spotter), sound)
    assert {" ".join(LIGHT), " ".join(MUSIC)} < {event.word for event in wanted}
    for _ in sizes:
        assert_same(device.heard(words) + device.heard(words), wanted)


def test_words_alone_need_less_memory(device, spotter, tmp_path):
    made = taught(**DIAGONAL)
    short = Listening(made, tmp_path, "-O3", "-DTAPWORD_PHRASE_HOPS=0", max_words=8)
    sound = said(9)
    short.whole(sound)
    short.order("Y")
    short.run()
    wanted = in_python(Detector(made), sound)
    assert len(wanted) > 2
    assert_same(short.heard(list(made.words)) + short.heard(list(made.words)), wanted)
    assert 0 < device.ram[1] - short.number() < 100_000


def test_after_lost_sound_the_stream_begins_again(device, spotter):
    words, sound = list(spotter.words), said(9)
    half = len(sound) // 2 + 77
    device.order("B")
    device.listen(sound[:half], 777)
    device.order("G", np.uint32(20_000))
    device.listen(sound[half:], 1_111)
    device.order("F", np.uint32(100))
    device.run()
    detector = Detector(spotter)
    wanted = detector(sound[:half])
    detector.gap(20_000 / 16_000)
    wanted += detector(sound[half:]) + detector.flush()
    assert len(wanted) > 2
    assert_same(device.heard(words) + device.heard(words) + device.heard(words), wanted)
