"""What a device is taught, saves and loads is what a model in Python would have learned."""

import re
import shutil
import struct
import tracemalloc
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from tapword import Spotter
from tapword.audio.augment import augmented
from tapword.errors import InputError, ModelFileError, TapwordError
from tapword.export.c import state as states
from tapword.export.c.reduced import for_device, in_eight_bits, reduced
from tapword.spotter.thresholds import Scores, confidences
from tests import fuzz
from tests.export import fuzz_c
from tests.export.test_export import DIAGONAL, LIGHT, Device, clips_of, counted, people, phrase

FULL, BAD_WORD, UNKNOWN, NOISE, BAD_NUMBER, BAD_STATE, OTHER, NO_ROOM = (
    *(-1, -2, -5),
    *range(-8, -13, -1),
)


@pytest.fixture(scope="module")
def device(tmp_path_factory) -> Device:
    """Give an ear that knows no word."""
    return Device(states.new("diagonal"), tmp_path_factory.mktemp("device"), max_words=8)


def lessons() -> list[tuple[np.ndarray, str]]:
    """Give words and a phrase, as they are taught one after the other."""
    made = [(clip, w) for w in ("lamp", "music") for clip in clips_of(w, stop=3)]
    made += [(phrase(*LIGHT, take=take, before=9_000), "lights") for take in range(3)]
    return [*made, (np.pad(clips_of("lamp", 4, 5)[0], (17_000, 3)), "lamp")]


def noise(seed: int = 1) -> np.ndarray:
    return 0.1 * np.random.default_rng(seed).standard_normal(20_000, dtype=np.float32)


def teach(device: Device, spotter: Spotter) -> None:
    """Teach both the same; what the device answers is to be read by `taught_alike`."""
    for clip, word in lessons():
        device.order("t", *counted(clip), word)
        spotter.learn(clip, word)
        spotter.learner.state()  # the device keeps float32, as a model that is saved
    device.order("d")
    device.order("T")


def taught_alike(device: Device, spotter: Spotter) -> None:
    for _, word in lessons():
        assert device.number() == list(spotter.words).index(word)
    knows_the_same(device, spotter)


def knows_the_same(device: Device, spotter: Spotter) -> None:
    """Compare the answers to "d" and "T"."""
    rows, state = spotter.learner.rows, spotter.learner.state()
    assert device.number() == len(rows)
    assert device.number() == state["n_scatter"][0]
    np.testing.assert_array_equal(device.take(len(rows), "<u4"), state["counts"])
    means = device.take(state["means"].size).reshape(state["means"].shape)
    near(means, state["means"], 2e-4)
    near(device.take(len(state["scatter"])), state["scatter"], 2e-4)
    thresholds, lengths = device.take(len(rows)), device.take(2 * len(rows)).reshape(-1, 2)
    for row, threshold, length in zip(rows, thresholds, lengths, strict=True):
        if not row.negative:
            assert threshold == pytest.approx(spotter.thresholds()[row.word], abs=1e-5)
            wanted_length = np.array(spotter.vocabulary.length_of(row.word))
            assert length == pytest.approx(wanted_length, abs=1e-6)


def near(found: np.ndarray, wanted: np.ndarray, limit: float) -> None:
    """Compare sums over vectors within a limit, which is relative above 1.

    Vectors are signed square roots, steep near 0: one number in a hundred may differ by more.
    """
    assert found.shape == wanted.shape
    apart = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1)
    assert np.quantile(apart, 0.99) <= limit and apart.max() <= 10 * limit


def answered_alike(device: Device, spotter: Spotter, clips: list[np.ndarray]) -> None:
    """Compare the answers to "p"."""
    words = [row.word for row in spotter.learner.rows]
    for clip in clips:
        closed, open_set = spotter.predict(clip, closed=True), spotter.predict(clip)
        assert words[device.number()] == closed.word
        said = device.number()
        assert (words[said] if said >= 0 else None) == open_set.word
        assert device.take(1)[0] == pytest.approx(closed.score, abs=1e-5)
        found = {word: device.number() for word in words}
        # Noise has scores too, but it is no word.
        if not spotter.encoder.is_noise(spotter.encode([clip]).vectors)[0]:
            assert found == pytest.approx(open_set.confidences, abs=1)


def test_the_device_makes_the_same_copies(device):
    # Loud from the first sample to the last, where a resampler begins and ends.
    loud = np.random.default_rng(0).uniform(-1, 1, 16_000).astype(np.float32)
    clips = [loud, clips_of("lamp", 9, 10)[0], phrase(*LIGHT)[:25_003], np.zeros_like(loud)]
    for clip in clips:
        for number in range(4):
            device.order("c", np.uint32(number), *counted(clip))
    device.run()
    for clip in clips:
        for wanted in (clip, *augmented(clip)):
            given = device.take(len(clip) + 5)
            np.testing.assert_allclose(given[:-5], wanted, atol=2e-6)
            assert not given[-5:].any()


def test_a_device_taught_from_nothing_is_a_model_taught_so(device):
    clips = [clips_of(word, 9, 10)[0] for word in ("lamp", "music", "door")]
    clips += [phrase(*LIGHT, take=9), noise(), *people()[::3]]
    spotter = states.new("diagonal")
    teach(device, spotter)
    for clip in clips:
        device.order("p", *counted(clip))
    device.run()
    taught_alike(device, spotter)
    assert spotter.vocabulary.length_of("lights").is_phrase
    answered_alike(device, spotter, clips)
    # Near a word or not, it is noise.
    assert spotter.predict(clips[4]).word is None


def test_noise_is_no_word(device):
    spotter = states.new("diagonal")
    spotter.learn(noise(), "hiss")
    device.order("t", *counted(noise()), "hiss")
    device.order("h", *counted(noise()))
    device.run()
    assert device.number() == NOISE
    assert device.number() == 0
    device.number()
    vector = device.take(spotter.learner.dim)
    # A word that is noise would hear it, if there were no such rule.
    device.order("l", vector, "hiss")
    device.order("y", np.float32(0.75), "hiss")
    device.order("p", *counted(noise()))
    device.run()
    assert device.number() == device.number() == 0
    assert device.number() == 0 and device.number() == UNKNOWN
    assert device.take(1)[0] > 0.3 and device.number() > 50


def test_negatives_forgetting_and_sensitivities_are_those_of_the_model(device):
    spotter = states.new("diagonal")
    teach(device, spotter)
    others = clips_of("lamp", 10, 12) + clips_of("right", stop=1)
    for clip in others:
        device.order("r", *counted(clip))
    # Negatives are of a word that is there; a name is characters that can be shown.
    for word in ("¬door", "¬", "", "a\n", " a", "a ", "\x7f", "¬¬lamp", "x" * 65):
        device.order("t", *counted(others[0]), word)
    for value, word in ((0.3, "lights"), (1.5, ""), (np.nan, ""), (0.5, "door")):
        device.order("y", np.float32(value), word)
    device.order("d")
    device.order("T")
    device.order("f", "lamp")
    device.order("y", np.float32(0.75), "")
    device.order("t", *counted(others[-1]), "right")
    device.order("d")
    device.order("T")
    device.run()
    taught_alike(device, spotter)
    for clip in others:
        nearest = spotter.reject(clip)
        spotter.learner.state()
        assert device.number() == [row.word for row in spotter.learner.rows].index(nearest)
    assert spotter.vocabulary.negatives["lamp"] >= 1
    assert [device.number() for _ in range(9)] == [UNKNOWN] + 8 * [BAD_WORD]
    spotter.set_sensitivity(0.3, "lights")
    assert [device.number() for _ in range(4)] == [0, BAD_NUMBER, BAD_NUMBER, UNKNOWN]
    knows_the_same(device, spotter)
    spotter.forget("lamp")
    spotter.set_sensitivity(0.75)
    spotter.learn(others[-1], "right")
    assert device.number() == 0 and device.number() == 0
    assert device.number() == len(spotter.learner.rows) - 1
    knows_the_same(device, spotter)


def test_scores_make_a_device_as_sure_as_a_model(device, rng):
    words, width = ("lamp", "music"), states.new("diagonal").scorer.confidence_width
    vectors = rng.standard_normal((3, 672)).astype(np.float32)

    def ask(asked: Sequence[np.ndarray]) -> None:
        """Give thresholds, the same each time, and read how sure each word is."""
        for vector, name in zip(vectors, (*words, "¬lamp"), strict=True):
            device.order("l", vector, name)
        device.order("y", np.float32(0.8), "music")
        for scores in asked:
            device.order("q", scores.astype(np.float32))
        device.run()
        assert [device.number() for _ in range(4)] == [0, 1, 2, 0]
        for _ in asked:
            thresholds.append(device.take(3))
            found.append([device.number() for _ in range(3)])

    thresholds, found = [], []
    ask([np.zeros(3)])
    exact = thresholds[0]
    low, high = (np.nextafter(exact, np.float32(end)) for end in (-9, 9))
    asked = [exact + step for step in (-9.0, -0.2, -0.03, 0.04, 0.3, 9.0)]
    asked += [exact, low, high, *rng.uniform(0.2, 0.8, (50, 3)), np.full(3, 0.7)]
    for scores in (exact, low, high):
        asked.append(np.array([*scores[:2], -1.0]))
    found.clear()
    ask(asked)
    for scores, sure in zip(asked, found, strict=True):
        lamp, music, not_lamp = map(float, scores.astype(np.float32))
        given = Scores({"lamp": lamp, "music": music}, {"lamp": not_lamp}, width)
        limits = dict(zip(words, map(float, exact[:2]), strict=True))
        assert sure == [*confidences(given, limits).values(), UNKNOWN]
    assert [sure[:2] for sure in found[-3:]] == [[50, 50], [49, 49], [50, 50]]


def test_there_is_an_end_to_the_room(device):
    [clip] = clips_of("lamp", stop=1)
    for number in range(8):
        device.order("l", np.full(672, number, np.float32), f"word {number}")
    device.order("t", *counted(clip), "lamp")
    larger = states.new("diagonal")
    larger.learner.learn_many(np.eye(9, 672), [f"word {number}" for number in range(9)])
    give(device, states.dump(larger))
    device.run()
    assert [device.number() for _ in range(10)] == [*range(8), FULL, FULL]


# States.


def load(content: bytes, models: Sequence[Spotter] = ()) -> Spotter:
    return states.load("device.bin", content, models)


def saved(device: Device) -> bytes:
    """Read the answer to "S"."""
    assert device.number() == NO_ROOM
    return device.take(device.number(), "u1").tobytes()


def give(device: Device, content: bytes) -> None:
    device.order("L", np.uint32(len(content)), np.frombuffer(content, "u1"))


def same(one: Spotter, other: Spotter, limit: float = 1e-7) -> None:
    assert one.learner.rows == other.learner.rows and one.words == other.words
    assert one.learner.spec == other.learner.spec
    for key, array in other.learner.state().items():
        near(one.learner.state()[key], array, limit)
    ours, theirs = one.vocabulary, other.vocabulary
    assert ours.sensitivity == theirs.sensitivity and ours.sensitivities == theirs.sensitivities
    assert ours.lengths.keys() == theirs.lengths.keys()
    for word, length in theirs.lengths.items():
        assert ours.lengths[word] == pytest.approx(length, abs=1e-6)


@pytest.fixture(scope="module")
def known() -> Spotter:
    """Give a model as a device could have it, with all that a state holds."""
    spotter = states.new("diagonal")
    for clip, word in lessons():
        spotter.learn(clip, word)
    spotter.reject(clips_of("right", stop=1)[0])
    spotter.set_sensitivity(0.3, "lights")
    return spotter


def test_a_state_goes_to_the_device_and_back(device, known):
    content = states.dump(known)
    same(load(content), known)
    give(device, content)
    device.order("S")
    device.order("d")
    device.order("T")
    for clip, word in lessons()[:2]:
        device.order("t", *counted(clip), word)
    device.order("S")
    device.run()
    assert device.number() == 0
    assert saved(device) == content
    knows_the_same(device, known)
    assert device.number() >= 0 and device.number() >= 0
    more = load(saved(device))
    wanted = load(content)
    for clip, word in lessons()[:2]:
        wanted.learn(clip, word)
    same(more, wanted, 1e-4)


def test_a_state_of_nothing_opens_as_the_ear(device, known):
    device.order("S")
    give(device, states.dump(known))
    give(device, states.dump(states.new("diagonal")))
    device.order("S")
    device.run()
    content = saved(device)
    assert content == states.dump(states.new("diagonal"))
    assert not load(content).words
    assert device.number() == 0 and device.number() == 0
    assert saved(device) == content


def test_what_two_devices_learned_is_merged_exactly(device):
    both, parts = states.new("diagonal"), []
    for index, (clip, word) in enumerate(lessons()):
        both.learn(clip, word)
        device.order("t", *counted(clip), word)
        if index == 4:
            device.order("S")
            give(device, states.dump(states.new("diagonal")))
    device.order("S")
    device.run()
    for index, _ in enumerate(lessons()):
        assert device.number() >= 0
        if index == 4:
            parts.append(saved(device))
            assert device.number() == 0
    parts.append(saved(device))
    first, second = map(load, parts)
    first.merge(second)
    same(first, both, 2e-4)


def sealed(content: bytes) -> bytes:
    """Give a changed state the checksum that it should have."""
    return content[:-4] + struct.pack("<I", zlib.crc32(content[:-4]))


def put(content: bytes, place: int, layout: str, value) -> bytes:
    """Change one number of a state, whose checksum is made to match."""
    size = struct.calcsize(layout)
    return sealed(content[:place] + struct.pack(layout, value) + content[place + size :])


HEAD, ROW = states.HEAD.size, states.ROW.size


def damaged(content: bytes) -> list[tuple[bytes, int]]:
    """Give states that are wrong in one way each, and what the device says of it."""
    lamp = HEAD + ROW
    second = lamp + len("lamp") + 4 * 672
    two_lamps = content.replace(b"\x05\0\0\0music", b"\x04\0\0\0lamp")
    return [
        (b"", BAD_STATE),
        (content[:-1], BAD_STATE),
        (content + b"\0", BAD_STATE),
        (sealed(content[:-8] + content[-4:]), BAD_STATE),
        (sealed(content[:-4] + b"\0" * 4 + content[-4:]), BAD_STATE),
        (sealed(content[:40]), BAD_STATE),
        (content[:100] + b"!" + content[101:], BAD_STATE),
        (sealed(b"SPAT" + content[4:]), BAD_STATE),
        (put(content, 4, "<I", 2), OTHER),
        (put(content, 8, "<Q", 7), OTHER),
        (put(content, 24, "<I", 2), BAD_STATE),
        (put(content, 24, "<I", 2**32 - 1), FULL),
        (put(content, 32, "<f", np.nan), BAD_STATE),
        (put(content, HEAD, "<I", 0), BAD_STATE),
        (put(content, HEAD + 4, "<f", 1.1), BAD_STATE),
        (put(content, HEAD + 8, "<f", -1.0), BAD_STATE),
        (put(content, HEAD + 12, "<f", 1e9), BAD_STATE),
        (put(content, HEAD + 16, "<I", 2**32 - 1), BAD_STATE),
        (put(content, HEAD + 16, "<I", 67), BAD_WORD),
        (put(content, lamp, "<B", 0xFF), BAD_STATE),
        (put(content, lamp + 1, "<B", 0), BAD_STATE),
        (put(content, lamp + 4, "<f", np.inf), BAD_STATE),
        (put(content, lamp + 4, "<I", 0x7FA00000), BAD_STATE),  # NaN that signals
        (put(content, lamp + 4, "<f", 1e20), BAD_STATE),
        (put(content, len(content) - 8, "<f", np.nan), BAD_STATE),
        (put(content, second, "<I", 0), BAD_STATE),
        (sealed(two_lamps), BAD_STATE),
        (sealed(content.replace("¬".encode() + b"m", "¬".encode() + b"n")), BAD_STATE),
    ]


def test_a_damaged_state_changes_nothing(device):
    spotter = states.new("diagonal")
    for word in ("lamp", "music"):
        spotter.learn(clips_of(word, stop=1)[0], word)
    spotter.learner.learn_one(spotter.learner.state()["means"][1] + 1, "music", negative=True)
    content = states.dump(spotter)
    give(device, content)
    cases = damaged(content)
    for wrong, _ in cases:
        assert wrong != content
        give(device, wrong)
    device.order("S")
    device.run()
    assert device.number() == 0
    for index, (wrong, error) in enumerate(cases):
        assert device.number() == error, index
        if error != BAD_WORD:  # Python has room for it
            with pytest.raises(ModelFileError):
                load(wrong)
    assert saved(device) == content


def test_the_length_of_a_name_is_checked_before_it_is_read(known):
    """A name of 60 MB was decoded and normalized before it was refused, which took 834 MB."""
    content = states.dump(known)
    longest = b"x" * 60_000_000
    [*row, size] = states.ROW.unpack_from(content, HEAD)
    rest = content[HEAD + ROW + size :]
    huge = sealed(content[:HEAD] + states.ROW.pack(*row, len(longest)) + longest + rest)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="a name of 60,000,000 bytes"):
            load(huge, [known])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_negatives_are_of_no_length(device, known):
    content = states.dump(known)
    [row] = [match.start() for match in re.finditer("¬".encode(), content)]
    for place in (row - ROW + 8, row - ROW + 12):
        give(device, put(content, place, "<f", 0.5))
    give(device, content)
    device.run()
    assert [device.number() for _ in range(3)] == [BAD_STATE, BAD_STATE, 0]


def test_without_a_scatter_samples_are_those_of_the_words(tmp_path):
    spotter = Spotter(**fuzz_c.LOGMEL, learner="ncm")
    for word in ("lamp", "music", "door"):
        spotter.learn_many(clips_of(word, stop=2), [word] * 2)
    spotter.forget("door")
    device, content = Device(spotter, tmp_path), states.dump(spotter)
    for samples in (0, 3, 5, 2**32 - 1):
        give(device, put(content, 28, "<I", samples))
    give(device, content)
    device.order("f", "lamp")
    device.order("d")
    device.run()
    assert [device.number() for _ in range(6)] == 4 * [BAD_STATE] + [0, 0]
    assert device.number() == 1 and device.number() == 2


def test_a_state_of_other_parts_is_refused_unless_they_are_at_hand():
    parts = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "slda"}
    spotter = Spotter(**parts)
    spotter.learn(clips_of("lamp", stop=1)[0], "lamp")
    content = states.dump(spotter)
    with pytest.raises(ModelFileError, match="a model of other parts"):
        load(content)
    same(load(content, [Spotter(**parts)]), spotter)
    # The device may keep less of the covariance than the model does.
    spotter.learner = reduced(spotter.learner, "diagonal")
    same(load(states.dump(spotter), [Spotter(**parts)]), spotter)


def test_names_that_c_lets_be_are_made_fit_to_be_shown():
    spotter = states.new("diagonal")
    vector = np.ones(672, dtype=np.float32)
    spotter.learner.learn_one(vector, "xxxxxxxxx")
    content = states.dump(spotter)
    odd = "a\u200db\u00a0cd".encode()
    assert len(odd) == 9
    assert list(load(sealed(content.replace(b"xxxxxxxxx", odd))).words) == ["ab cd"]


def test_what_c_cannot_name_is_refused():
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn(clips_of("lamp", stop=1)[0], "¬lamp")
    with pytest.raises(InputError, match="means negatives in C"):
        states.dump(spotter)


def test_every_error_has_a_name(device):
    named = re.findall(r"#define (TAPWORD_\w+) \((-\d+)\)", device.header.text)
    assert len(named) >= 12
    for code in (*(code for _, code in named), 0, 1, -100):
        device.order("E", np.int32(code))
    device.run()
    texts = [device.take(device.number(), "u1").tobytes().decode() for _ in range(len(named) + 3)]
    for (name, _), text in zip(named, texts, strict=False):
        assert text.startswith(f"{name}: ") and text.endswith(".")
    assert texts[-3] == texts[-2] != texts[-1]


# Anything at all.


@pytest.mark.parametrize(
    ("parts", "rounds"),
    [
        ({"backbone": "ear_s"} | DIAGONAL, 150),
        ({"backbone": "tapword_ear"} | DIAGONAL, 150),
        (fuzz_c.LOGMEL | {"learner": "slda:covariance=block,block=32"}, 1000),
    ],
    ids=["ear_s", "tapword_ear", "logmel"],
)
def test_whatever_is_called_with_whatever_there_is_an_answer(parts, rounds, tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    spotter = for_device(Spotter(**parts))
    eight_bits = in_eight_bits(spotter)
    program = fuzz_c.compile_driver(spotter, tmp_path, compiler, eight_bits=eight_bits)
    for seed in (1, 2):
        done = fuzz_c.run(program, seed, rounds)
        assert done.returncode == 0, done.stderr
        calls, refused, loaded = map(int, re.findall("[0-9]+", done.stdout))
        assert calls == rounds and refused > rounds / 10 and loaded > rounds / 50


@pytest.mark.parametrize("ear", ["ear_s", "tapword_ear"])
def test_a_state_of_either_ear_needs_no_model(ear):
    spotter = states.new("diagonal", ear)
    spotter.learn(clips_of("lamp", stop=1)[0], "lamp")
    same(load(states.dump(spotter)), spotter)


def test_a_state_of_any_bytes_is_used_or_refused(tmp_path):
    target, rng = fuzz.DeviceTarget(tmp_path), np.random.default_rng(1)
    seeds, refused = list(target.seeds()), 0
    for turn in range(200):
        try:
            target(fuzz.damage(seeds[turn % len(seeds)], rng))
        except TapwordError:
            refused += 1
    assert 50 < refused < 200


# The commands.


def test_the_commands_carry_knowledge_there_and_back(run, device, known, tmp_path):
    home, state, back = (tmp_path / name for name in ("home.tap", "device.bin", "back.tap"))
    spotter = Spotter("ear_s")
    for clip, word in lessons():
        spotter.learn(clip, word)
    spotter.save(home)
    code, out, _ = run("export", home, state, "--covariance", "diagonal")
    assert code == 0 and "3 words" in out
    give(device, state.read_bytes())
    device.order("t", *counted(clips_of("door", stop=1)[0]), "door")
    device.order("S")
    device.run()
    assert device.number() == 0 and device.number() == 3
    state.write_bytes(saved(device))
    # Where there is no model, one is made of it.
    code, out, _ = run("import", state, back)
    assert code == 0 and "4 words, 11 samples" in out
    wanted = states.new("diagonal")
    for clip, word in [*lessons(), (clips_of("door", stop=1)[0], "door")]:
        wanted.learn(clip, word)
    same(Spotter.load(back), wanted, 1e-4)
    # Another of the same parts is added to.
    known.save(tmp_path / "other.tap")
    code, out, _ = run("import", state, tmp_path / "other.tap")
    assert code == 0 and "4 words, 21 samples" in out
    both = load(states.dump(known))
    both.merge(wanted)
    same(Spotter.load(tmp_path / "other.tap"), both, 1e-4)
    # One that keeps more of the covariance must be told to keep less.
    for options in ([], ["--replace"]):
        before = home.read_bytes()
        code, _, err = run("import", state, home, *options)
        assert code == 2 and "give --reduce" in err and home.read_bytes() == before
    assert run("import", state, home, "--reduce")[0] == 0
    both = states.new("diagonal")
    for clip, word in lessons():
        both.learn(clip, word)
    both.merge(wanted)
    same(Spotter.load(home), both, 1e-4)
    assert run("import", state, home, "--replace")[0] == 0
    same(Spotter.load(home), Spotter.load(back))
    # A model of other parts is left alone.
    small = Spotter("logmel", "tap:R=2", "slda")
    small.learn(clips_of("lamp", stop=1)[0], "lamp")
    small.save(tmp_path / "small.tap")
    before = (tmp_path / "small.tap").read_bytes()
    code, _, err = run("import", state, tmp_path / "small.tap", "--replace")
    assert code == 2 and "other parts" in err
    assert (tmp_path / "small.tap").read_bytes() == before


def test_the_command_refuses_what_is_no_state(run, known, tmp_path):
    state, model = tmp_path / "device.bin", tmp_path / "home.tap"
    known.save(model)
    before = model.read_bytes()
    content = states.dump(known)
    for wrong, message in (
        (content[:-1], "its checksum does not match"),
        (b"", "is not the state of a device"),
        (before, "is not the state of a device"),
        (put(content, 4, "<I", 2), "upgrade"),
        (put(content, HEAD + ROW, "<B", 7), "a word that cannot be one"),
    ):
        state.write_bytes(wrong)
        code, _, err = run("import", state, model)
        assert code == 2 and message in err
    code, _, err = run("import", tmp_path / "none.bin", tmp_path / "new.tap")
    assert code == 2 and "no state" in err
    assert model.read_bytes() == before and not (tmp_path / "new.tap").exists()
