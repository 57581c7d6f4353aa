"""The C core finds, checks and doubts takes as Python does."""

from collections.abc import Callable

import numpy as np
import pytest

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.align import extent
from tapword.audio.endpoint import HOP, Endpointer, examine
from tapword.errors import InputError
from tapword.export.c import state as states
from tapword.spotter.session import LATEST, TeachSession
from tapword.spotter.takes import find_takes
from tapword.support.issues import MESSAGES
from tests.conftest import shared
from tests.export.test_export import LIGHT, Device, clips_of, counted, people, phrase
from tests.sounds import in_a_row

CODES = [None, *MESSAGES]
NOTES = ("more_than_one_word", "long_pause")
STATES = ["waiting", "speaking", "over", "nobody"]


@pytest.fixture(scope="module")
def device(tmp_path_factory) -> Device:
    """Give an ear that knows no word."""
    folder = tmp_path_factory.mktemp("device")
    return Device(states.new("diagonal"), folder, "-DTAPWORD_TEACHING", max_words=8)


def takes() -> list[np.ndarray]:
    """Give words in rooms: fit to learn from, and wrong in every way that a take can be."""
    rng, made = np.random.default_rng(0), []
    for path in sorted(CLIPS.glob("*/*_0.ogg"))[::63]:
        clip = files.read(path)
        quiet = np.zeros(12_000, dtype=np.float32)
        room = np.concatenate([quiet, clip, quiet])
        noise = rng.standard_normal(len(room), dtype=np.float32)
        made += [clip, room, room + 0.001 * noise, 0.2 * room + 0.03 * noise]
        made += [np.concatenate([room, room]), np.clip(20 * room, -1, 1), room + 0.05 * noise]
        # Cut off, too quiet in a quiet room, and going on and on.
        made += [room[: 12_000 + len(clip) // 2], 1e-3 * room, np.tile(clip, 8)[:160_000]]
    loudest = int(np.argmax(np.convolve(made[0] ** 2, np.ones(1_000), "valid")))
    short = np.pad(made[0][loudest : loudest + 1_000], 9_000)
    made += [np.zeros(16_000), np.zeros(0), np.zeros(400), np.tile(made[1], 4)[:160_000], short]
    return [sound.astype(np.float32) for sound in made]


def recordings() -> list[np.ndarray]:
    """Give takes, and recordings of people."""
    paths = sorted(shared("data", "speech_commands_v0.01_subset").glob("[a-z]*/*.wav"))[::300]
    return [*takes(), *map(files.read, paths), *people()]


def test_the_end_pointer_finds_what_python_finds(device):
    sounds = recordings()
    for sound in sounds:
        device.order("X", *counted(sound))
    for bad in (np.full(9_000, np.nan), np.full(9_000, -np.inf), np.zeros(176_001)):
        device.order("X", *counted(bad))
    device.run()
    codes = set()
    for sound in sounds:
        take = examine(sound)
        code = take.issue.code if take.issue else None
        codes.add(code)
        assert device.number() == 0
        assert CODES[device.number()] == code
        first, last, start, end = (device.number() for _ in range(4))
        np.testing.assert_allclose(
            [first / 16_000, last / 16_000], [take.start_s, take.end_s], atol=HOP / 16_000
        )
        np.testing.assert_array_equal(sound[start:end], take.audio)
        np.testing.assert_allclose(device.take(2, "<f8"), [take.level_db, take.snr_db], atol=1e-6)
    for _ in range(3):
        assert device.number() == -4
        device.take(9, "<i4")
    wanted = "no_speech too_long several_words clipped cut_off too_quiet noisy too_short"
    assert codes == {None, *wanted.split()}


def test_the_end_pointer_says_when_a_word_is_over(device):
    silence = np.zeros(70_000, dtype=np.float32)
    sounds = [np.append(sound, silence)[:160_000] for sound in recordings()]
    for sound in sounds:
        device.order("N", np.uint32(1_280), *counted(sound))
    device.run()
    seen = set()
    for sound in sounds:
        endpointer = Endpointer()
        for start in range(0, len(sound), 1_280):
            state = endpointer.push(sound[start : start + 1_280])
            assert STATES[device.number()] == state
            seen.add(state)
    assert seen == set(STATES)


def several() -> list[np.ndarray]:
    """Give recordings with several sounds: takes, one that is unlike them, parts of a phrase."""
    words = {
        word: [examine(np.pad(clip, 8_000)).audio for clip in clips_of(word, stop=n)]
        for word, n in (("lamp", 6), ("kitchen", 4), ("music", 1), ("door", 1))
    }
    lamp, kitchen, [music], [door] = words.values()
    phrases = [np.concatenate([one, np.zeros(7_000), music]) for one in kitchen[:3]]
    sounds = [
        lamp[:2], lamp[:3], lamp, [*lamp[:2], music, *lamp[2:]], [*kitchen, *lamp[:1]],
        [*kitchen[:2], music], [lamp[0], kitchen[0]], [lamp[0], kitchen[0], music, door],
        phrases, [door], lamp * 5,
    ]  # fmt: skip
    made = [in_a_row(some, pause_s) for some in sounds for pause_s in (0.3, 0.6, 2.5)]
    made += [np.zeros(16_000), np.zeros(0), np.zeros(48_000), np.tile(lamp[0], 8)]
    return [sound.astype(np.float32) for sound in made if len(sound) <= 60 * 16_000]


def test_takes_are_found_as_in_python(tmp_path):
    flags = "-DTAPWORD_TEACHING", "-DTAPWORD_RECORDING_FRAMES=6100"
    device = Device(states.new("diagonal"), tmp_path, *flags, max_words=8)
    sounds, spotter, counts = several(), states.new("diagonal"), []
    for sound in [*sounds, np.full(30_000, np.nan), np.zeros(6100 * 160 + 1)]:
        device.order("R", *counted(sound))
    device.run()
    for sound in sounds:
        wanted = find_takes(spotter.encoder, sound)
        counts.append([one.is_take for one in wanted])
        rows = device.take(4 * device.number(), "<i4").reshape(-1, 4)
        assert rows.tolist() == [
            [one.first, one.first + len(one.audio), round(one.start_s * 16_000), one.is_take]
            for one in wanted
        ]
    assert device.number() == device.number() == -4
    assert {len(found) for found in counts} >= {0, 2, 3, 6, 30}
    assert any(not all(found) for found in counts)


def noise() -> np.ndarray:
    return 0.1 * np.random.default_rng(1).standard_normal(20_000, dtype=np.float32)


def lesson() -> list[tuple[np.ndarray, str, str]]:
    """Give clips with the word they are taught as, and whether they are takes or files."""
    made = [(clip, "lamp", "take") for clip in clips_of("lamp", stop=4)]
    made += [(noise(), "lamp", "take"), (noise(), "hiss", "file")]
    made += [(clip, "door", "take") for clip in clips_of("door", stop=3)]
    # Another word's clips, under a wrong name and under a new one; a word that is unlike itself.
    made += [(clip, "door", kind) for clip in clips_of("lamp", 4, 6) for kind in ("take", "file")]
    made += [(clip, "light", "take") for clip in clips_of("lamp", 6, 12)]
    made += [(clip, "music", "take") for word in ("music", "up") for clip in clips_of(word, stop=2)]
    made += [(phrase(*LIGHT), " ".join(LIGHT), "file")]
    # A pause inside of a phrase, and one that ends it.
    fan, timer = (
        clip[slice(*extent(clip))] for w in ("fan", "timer") for clip in clips_of(w, 0, 1)
    )
    for pause in (7_000, 14_000):
        two = np.pad(np.concatenate([fan, np.zeros(pause, dtype=np.float32), timer]), 4_000)
        made += [(two, "fan timer", kind) for kind in ("file", "take")]
    return made


def test_clips_are_doubted_as_in_python(device):
    clips = lesson()
    for clip, word, kind in clips:
        device.order("k", np.uint32(kind == "take"), *counted(clip), word)
        device.order("A")
        device.order("t", *counted(clip), word)
    device.run()
    spotter, session, codes = states.new("diagonal"), None, set()
    for clip, word, kind in clips:
        if session is None or any(one.word != word for one in session.accepted):
            session = TeachSession(copied(spotter), LATEST)
        session.follow(spotter)
        checked = session.check(clip, word, kind)
        session.accept(checked)
        words = [row.word for row in spotter.learner.rows]
        for issues in (checked.issues, session.review()):
            assert found(device, words) == [
                (issue.code, issue.params.get("other")) for issue in issues
            ]
            codes |= {issue.code for issue in issues}
        learned = device.number()
        assert (learned == -8) == checked.has("noise")
        if learned >= 0:
            spotter.learn(clip, word)
    assert codes >= {"noise", "other_word", "unlike", "close_word", *NOTES}


def copied(spotter: Spotter) -> Spotter:
    """Give a spotter that knows the same."""
    return states.load("copy", states.dump(spotter))


def found(device: Device, words: list[str]) -> list[tuple[str, str | None]]:
    """Read issues: codes, and other words."""
    pairs = device.take(2 * device.number(), "<i4").reshape(-1, 2)
    return [
        (CODES[code], words[other] if other >= 0 and CODES[code] != "unlike" else None)
        for code, other in pairs
    ]


@pytest.mark.parametrize(
    ("clip", "word", "error"),
    [
        (lambda: np.zeros(0), "lamp", -4),
        (lambda: np.full(16_000, np.nan), "lamp", -4),
        (lambda: phrase(*LIGHT * 2), "lamp", -7),
        (noise, " lamp", -2),
    ],
)
def test_what_cannot_be_taught_is_not_checked(
    device, clip: Callable[[], np.ndarray], word: str, error: int
):
    device.order("k", np.uint32(1), *counted(clip()), word)
    device.run()
    assert device.number() == error
    if error == -7:
        with pytest.raises(InputError):
            TeachSession(states.new("diagonal")).check(clip(), word)
