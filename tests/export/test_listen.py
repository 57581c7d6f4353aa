"""A C header hears in a stream what the Detector hears."""

import struct
import subprocess
import zlib

import numpy as np
import pytest

from tapword import Detector, Spotter, registry
from tapword.audio import files
from tapword.export.c import state as states
from tapword.export.c.reduced import for_device
from tapword.listening.decider import Event
from tests.conftest import shared
from tests.export.device import ROOM, Listening, compile_c, counted
from tests.export.test_export import (
    DIAGONAL,
    LIGHT,
    MUSIC,
    clips_of,
    example,
    phrase,
    taught,
)
from tests.sounds import noise

BAD_AUDIO, DEPENDENT, NO_WEIGHTS, BAD_WEIGHTS = -4, -6, -13, -14


def sampled(*parts: np.ndarray) -> np.ndarray:
    """Give parts one after the other, in a room and in 16 bits, as a listener keeps them."""
    sound = np.concatenate(parts)
    sound = sound + noise(len(sound) / 16_000, 0.002, seed=1)[: len(sound)]
    return (np.round(sound * 32_768) / 32_768).clip(-1, 1 - 1 / 32_768).astype(np.float32)


def said(take: int) -> np.ndarray:
    """Give words and phrases that were taught, others between them, with and without pauses."""
    quiet, brief = noise(1.5, 0.001), noise(0.1, 0.001)
    lamp, fan, timer, door, up, right = (
        clips_of(word, take, take + 1)[0]
        for word in ("lamp", "fan", "timer", "door", "up", "right")
    )
    return sampled(
        *(quiet, lamp, quiet, fan, timer, brief, phrase(*LIGHT, take=take), brief, door, brief),
        *(up, right, quiet, phrase(*MUSIC, take=take), lamp, brief, lamp, quiet[:8_000], door),
    )


def in_python(detector: Detector, sound: np.ndarray, chunk: int = 1_280) -> list[Event]:
    pieces = range(0, len(sound), chunk)
    events = [event for start in pieces for event in detector(sound[start : start + chunk])]
    return events + detector.flush()


def assert_same(given: list[Event | int], wanted: list[Event]) -> None:
    assert [event[:3] for event in given] == [event[:3] for event in wanted]
    scores = [[event.score for event in events] for events in (given, wanted)]
    np.testing.assert_allclose(*scores, atol=1e-5)
    sure = [[event.confidence for event in events] for events in (given, wanted)]
    # Rounded down, from scores that differ a little.
    np.testing.assert_allclose(*sure, atol=1)
    assert all(50 <= number <= 100 for number in sure[0])


@pytest.fixture(scope="module", params=["ear_s", "tapword_ear"])
def ear(request) -> str:
    """Name an ear: one computes a stream's frames once, the other those of each candidate."""
    assert registry.build("backbones", request.param).streams == (request.param == "ear_s")
    return request.param


@pytest.fixture(scope="module")
def spotter(ear) -> Spotter:
    """Teach words, two phrases, and that a fan is no lamp."""
    made = taught(**DIAGONAL, backbone=ear)
    for text in (LIGHT, MUSIC):
        made.learn_many([phrase(*text, take=take) for take in range(3)], [" ".join(text)] * 3)
    vectors = made.encode(clips_of("fan", stop=2), learning=True).vectors
    for vector in vectors:
        made.learner.learn_one(vector, "lamp", negative=True)
    return made


@pytest.fixture(scope="module")
def words(spotter) -> list[str]:
    return [row.word for row in spotter.learner.rows]


@pytest.fixture(scope="module")
def device(spotter, tmp_path_factory) -> Listening:
    return Listening(spotter, tmp_path_factory.mktemp("device"), "-O3", max_words=8)


def test_the_events_are_those_of_the_detector(device, spotter, words):
    sound = said(9)
    device.whole(sound)
    device.order("Y")
    device.run()
    wanted = in_python(Detector(spotter), sound)
    assert {"lamp", "door", " ".join(LIGHT), " ".join(MUSIC)} <= {event.word for event in wanted}
    assert_same(device.heard(words) + device.heard(words), wanted)
    assert device.number() == device.ram[1]


def test_the_pieces_that_a_stream_comes_in_do_not_matter(device, spotter, words):
    sound = said(5)[88_000 - 33 : 120_000]
    sizes = (1, 777, len(sound))
    for size in sizes:
        device.whole(sound, size)
    device.order("B")
    device.listen(sound, 1_280, room=0)
    device.listen(np.zeros(60_000), 60_000, room=1)
    device.listen(np.zeros(1), 1)
    device.run()
    wanted = in_python(Detector(spotter), sound)
    assert len(wanted) > 1
    for _ in sizes:
        assert_same(device.heard(words) + device.heard(words), wanted)
    # What there was no room for comes later.
    assert device.heard(words) == []
    assert_same(device.heard(words), wanted[:1])
    assert_same(device.heard(words), wanted[1:])


def test_what_is_no_sound_is_refused_and_the_stream_goes_on(device, spotter, words):
    sound, broken = said(5)[: 5 * 16_000], np.zeros((3, 500), dtype=np.float32)
    broken[:, 499] = np.nan, -np.inf, 20_000
    device.order("B")
    device.listen(sound[:20_000], 1_000)
    for chunk in broken:
        device.listen(chunk, 500)
    device.listen(sound[20_000:], 1_000)
    device.run()
    before = device.heard(words)
    for _ in broken:
        assert device.heard(words) == [BAD_AUDIO]
    detector = Detector(spotter)
    assert_same(before + device.heard(words), detector(sound))


def test_an_error_takes_no_word_away(device, spotter, words):
    sound = said(9)
    content = bytearray(states.dump(spotter))
    # A covariance that cannot be: nothing is scored with it.
    content[-8:-4] = struct.pack("<f", -1e6)
    content[-4:] = struct.pack("<I", zlib.crc32(content[:-4]))
    # A word waits for a phrase that might hold it, and is due in a chunk with more sound behind it;
    # a phrase is being said where the stream ends.
    for at, end, word in ((10.7, 13.0, "music"), (6.4, 6.4, " ".join(LIGHT))):
        before, after = round(at * 16_000), round(end * 16_000)
        device.order("B")
        device.listen(sound[:before], 1_280)
        device.order("L", np.uint32(len(content)), np.frombuffer(bytes(content), np.uint8))
        device.listen(sound[before:after], 60_000)
        device.order("F", np.uint32(ROOM))
        device.listen(sound[:40_000], 40_000)
        device.run()
        device.heard(words)
        assert device.number() == 0
        answers = device.heard(words) + device.heard(words)
        assert [event.word for event in answers if event != DEPENDENT] == [word]
        assert device.heard(words) == [DEPENDENT], "it is said once there is no word to give"


def test_nothing_is_heard_before_the_weights_are_there(spotter, words, tmp_path, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover", "-O1")
    options = {"max_words": 8, "eight_bits": True, "separate_weights": True}
    device = Listening(for_device(spotter), tmp_path, *flags, **options)
    sound, file = said(9)[70_000:108_000], np.frombuffer(device.header.weights, np.uint8)
    device.whole(sound, len(sound))
    device.order("U", np.uint32(len(file)), file)
    device.order("W", np.uint32(len(file)), file)
    device.whole(sound)
    device.run()
    assert device.heard(words) == device.heard(words) == [NO_WEIGHTS]
    assert device.number() == BAD_WEIGHTS, "not at a multiple of 8"
    assert device.number() == 0
    heard = device.heard(words) + device.heard(words)
    assert [event.word for event in heard] == [" ".join(LIGHT)]


def test_sound_that_was_lost_and_words_that_were_forgotten(device, spotter, words, tmp_path):
    sound, lost = said(9), 5_000
    # In the first, a phrase is being said where sound is lost; in the second, a word waits for one.
    for at, forgotten in ((6.4, ()), (10.7, (" ".join(LIGHT), " ".join(MUSIC), "music"))):
        spotter.save(tmp_path / "home.tap", overwrite=True)
        changed = Spotter.load(tmp_path / "home.tap")
        detector = Detector(changed)
        end = round(at * 16_000) + 7
        before, after = sound[:end], sound[end : end + 80_000]
        device.order("B")
        device.listen(before, 1_280)
        device.order("G", np.uint32(lost))
        for word in forgotten:
            device.order("f", word)
        device.listen(after, 1_280)
        device.order("F", np.uint32(ROOM))
        device.run()
        pieces = range(0, len(before), 1_280)
        assert_same(
            device.heard(words),
            [event for x in pieces for event in detector(before[x:end][:1_280])],
        )
        assert [device.number() for _ in forgotten] == [0 for _ in forgotten]
        detector.gap(lost / 16_000)
        for word in forgotten:
            changed.forget(word)
        left = [word for word in words if word not in forgotten]
        wanted = in_python(detector, after)
        assert [event.word for event in wanted][:1] == ["lamp" if forgotten else " ".join(LIGHT)]
        assert_same(device.heard(left) + device.heard(left), wanted)


def test_words_alone_need_less_memory(device, ear, tmp_path):
    made = taught(**DIAGONAL, backbone=ear)
    short = Listening(made, tmp_path, "-O3", "-DTAPWORD_PHRASE_HOPS=0", max_words=8)
    sound = said(9)
    short.whole(sound)
    short.order("Y")
    short.run()
    wanted = in_python(Detector(made), sound)
    assert len(wanted) > 2
    assert_same(short.heard(list(made.words)) + short.heard(list(made.words)), wanted)
    limit = 100_000 if ear == "ear_s" else 250_000
    assert 0 < device.ram[1] - short.number() < limit


def test_after_lost_sound_the_stream_begins_again(device, spotter, words):
    sound = said(9)
    half = len(sound) // 2 + 77
    device.order("B")
    device.listen(sound[:half], 777)
    device.order("G", np.uint32(20_000))
    device.listen(sound[half:], 1_111)
    device.order("F", np.uint32(ROOM))
    device.run()
    detector = Detector(spotter)
    wanted = detector(sound[:half])
    detector.gap(20_000 / 16_000)
    wanted += detector(sound[half:]) + detector.flush()
    assert len(wanted) > 2
    assert_same(device.heard(words) + device.heard(words) + device.heard(words), wanted)


def test_a_phrase_is_heard_from_when_it_is_taught(device, spotter, words, tmp_path):
    spotter.save(tmp_path / "home.tap")
    changed = Spotter.load(tmp_path / "home.tap")
    forgotten, taught = (" ".join(LIGHT), " ".join(MUSIC)), " ".join(LIGHT)
    sound, clip = said(9)[: 7 * 16_000], phrase(*LIGHT, take=1)
    for word in forgotten:
        device.order("f", word)
        changed.forget(word)
    detector, at = Detector(changed), 50_021
    device.order("B")
    device.listen(sound[:at], 1_280)
    device.order("t", *counted(clip), taught)
    device.listen(sound[at:], 1_280)
    device.order("F", np.uint32(ROOM))
    device.run()
    for _ in forgotten:
        assert device.number() == 0
    left = [word for word in words if word not in forgotten]
    before = [event for x in range(0, at, 1_280) for event in detector(sound[x:at][:1_280])]
    assert_same(device.heard(left), before)
    changed.learn(clip, taught)
    assert device.number() == len(left)
    wanted = in_python(detector, sound[at:])
    assert taught in {event.word for event in wanted}
    assert_same(device.heard([*left, taught]) + device.heard([*left, taught]), wanted)


def test_people_are_heard_as_by_the_detector(device, spotter, words):
    phrases = sorted(shared("data", "phrases").glob("please_call_stella/*"))[:4]
    alone = sorted(shared("data", "speech_commands_v0.01_subset").glob("right/*.wav"))[:4]
    clips = [files.read(path) for pair in zip(phrases, alone, strict=True) for path in pair]
    sound = sampled(*clips)
    device.whole(sound)
    device.run()
    wanted = in_python(Detector(spotter), sound)
    assert "right" in {event.word for event in wanted}
    assert_same(device.heard(words) + device.heard(words), wanted)


def test_no_sound_makes_the_listener_leave_its_memory(spotter, words, tmp_path, monkeypatch):
    # Whether all is given back at the end is the driver's matter.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover")
    device = Listening(spotter, tmp_path, *flags, "-DTAPWORD_PHRASE_HOPS=50", max_words=8)
    # With silence between them: frames of a stream know what follows.
    sound, loud = np.pad(said(9)[70_000:108_000], (0, 8_000)), np.repeat([1, -8, 8, 0], 3_000)
    device.whole(np.concatenate([sound, loud]))
    device.order("Y")
    device.run()
    # Two seconds do for this phrase.
    wanted = in_python(Detector(spotter), sound)
    assert [event.word for event in wanted] == [" ".join(LIGHT)]
    assert_same(device.heard(words)[:1], wanted)
    device.heard(words)
    assert device.number() < device.ram[1]


MAIN = """
#include <stdio.h>

@begin@
@heard@
int main(void)
{
    static float audio[1280];
    size_t n;
    begin();
    tapword_listener_start(&listener);
    while ((n = fread(audio, sizeof audio[0], 1280, stdin)) > 0) {
        heard(audio, n);
    }
    return 0;
}
"""


def test_the_c_that_is_shown_listens_without_phrases_too(device, tmp_path):
    program = MAIN.replace("@begin@", example("c")).replace("@heard@", example("c", 1))
    (tmp_path / "home.c").write_text(program)
    (tmp_path / "home.h").symlink_to(device.program.with_name("model.h"))
    compile_c("-DTAPWORD_PHRASE_HOPS=0", tmp_path / "home.c", "-o", tmp_path / "home")
    sound = said(9)[: 4 * 16_000].tobytes()
    done = subprocess.run([tmp_path / "home"], input=sound, capture_output=True, check=True)
    assert done.stdout == b"lamp, 1.60 s\n"
