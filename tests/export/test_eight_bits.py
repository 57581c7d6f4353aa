"""The ear in bytes, running speech seen in few directions, and weights in a file of their own."""

import subprocess
import zlib

import numpy as np
import pytest

from tapword import Spotter
from tapword.errors import InputError
from tapword.export.c import header as c_header
from tapword.export.c.reduced import PROJECTED, project
from tapword.export.onnx import file as onnx_file
from tapword.spotter.spotter import require_same_parts
from tapword.spotter.thresholds import Line
from tapword.spotter.whitening import shipped
from tests.conftest import ROOT
from tests.export.device import Device, counted
from tests.export.session import check_products
from tests.export.test_export import (
    DIAGONAL,
    LIGHT,
    LOGMEL,
    clips_of,
    heard_as,
    phrase,
    same_vectors,
    scored_as,
    taught,
)

WORDS = ("lamp", "music", "door", "right")
# A program's own products, as a port to another machine would bring it.
OWN_DOT = """
#include <stddef.h>
#include <stdint.h>
#define TAPWORD_DOT own_dot
static int32_t own_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    int32_t sum = 0;
    while (n-- > 0) {
        sum += x[n] * weights[n];
    }
    return sum;
}
"""


@pytest.fixture(scope="module", params=["ear_s", "tapword_ear"])
def ear(request) -> str:
    """Name an ear: one whitens in blocks and computes a stream's frames once, the other neither."""
    return request.param


@pytest.fixture(scope="module")
def small(ear) -> Spotter:
    """Give a model as a small device holds it."""
    return project(taught(WORDS, **DIAGONAL, backbone=ear))


@pytest.fixture(scope="module")
def device(small, tmp_path_factory) -> Device:
    return Device(small, tmp_path_factory.mktemp("device"), max_words=10, eight_bits=True)


def asked() -> list[np.ndarray]:
    clips = [clips_of(word, take, take + 1)[0] for word in WORDS for take in (9, 10, 11)]
    noise = np.random.default_rng(0).standard_normal(len(clips[0])).astype(np.float32)
    return [*clips, 0.1 * clips[0], clips[0] + 0.01 * noise, phrase(*LIGHT, take=9)]


def test_bytes_hear_nearly_as_the_model(device, small):
    clips = asked()
    encoded = small.encode(clips)
    for clip in clips:
        device.order("h", *counted(clip))
        device.order("w", *counted(clip))
    device.order("z")
    device.run()
    for x, scores in zip(encoded.vectors, small.score_encoded(encoded), strict=True):
        assert device.number() == 0
        device.number()
        heard = device.take(len(x))
        cosine = heard @ x / np.linalg.norm(heard) / np.linalg.norm(x)
        assert 0.99 < cosine < 0.99999
        assert device.number() == 0
        given = device.take(device.number())
        wanted = np.array(list(scores.words.values()))
        np.testing.assert_allclose(given, wanted, atol=0.05)
        assert device.number() == wanted.argmax()
        device.number()
    assert device.number() == device.ram[0]
    assert device.number() == device.header.flash_bytes


def test_a_device_of_ten_words_is_small(device, ear):
    # Of 1 MiB of flash, or 1.2 MB for the larger cohort of ear_s, code takes some 30 kB, and six
    # more words 17; of 256 KiB of memory a stream that is listened to for words takes 64.
    most = 1_200_000 if ear == "ear_s" else 2**20
    assert device.header.flash_bytes < most - 47_000
    assert device.ram[0] < 2**18 - 65_000


def test_phrases_need_at_most_100_kb(device, small, ear, tmp_path):
    sizes = []
    for hops in (80, 50, 0):
        flag = f"-DTAPWORD_PHRASE_HOPS={hops}"
        made = Device(small, tmp_path, flag, max_words=10, eight_bits=True)
        made.order("Y")
        made.run()
        sizes.append(made.number())
    assert sizes[0] == device.ram[1]
    # Where frames are computed once, no input of the network is kept.
    least, most = (5_000, 10_000) if ear == "ear_s" else (50_000, 100_000)
    assert least < sizes[0] - sizes[2] <= most
    # The documentation has these sizes.
    export = (ROOT / "docs" / "export.md").read_text("utf-8")
    assert [f"| {size:,} bytes |" in export for size in sizes] == [True] * 3
    boards = (ROOT / "docs" / "boards_speed.md").read_text("utf-8")
    assert f"{sizes[0] - sizes[2]:,} bytes more" in boards
    assert f"{sizes[1] - sizes[2]:,} bytes more" in boards


def heard_in(device: Device) -> bytes:
    device.order("e", *counted(np.resize(phrase(*LIGHT), 30 * 640)))
    device.run()
    return device.answer


def test_products_by_vectors_are_the_same(device, small, tmp_path):
    vectors = Device(small, tmp_path, "-DTAPWORD_SIMD", max_words=10, eight_bits=True)
    assert heard_in(vectors) == heard_in(device)
    assert np.abs(np.frombuffer(device.answer, "<f4")).max() > 1


def test_sums_of_products_are_exact(device, small, tmp_path, rng):
    vectors = Device(small, tmp_path, "-DTAPWORD_SIMD", max_words=10, eight_bits=True)
    for made in (device, vectors):
        check_products(made, rng)


def test_a_device_sees_running_speech_as_the_model_does(small, tmp_path):
    device = Device(small, tmp_path, max_words=10)
    clips = asked()
    encoded = small.encode(clips)
    for clip in clips:
        device.order("h", *counted(clip))
        device.order("w", *counted(clip))
    taught_there = clips_of("timer", 0, 3)
    for clip in taught_there:
        device.order("t", *counted(clip), "timer")
    device.order("T")
    device.run()
    for clip, x, scores in zip(clips, encoded.vectors, small.score_encoded(encoded), strict=True):
        heard_as(device, clip, x)
        scored_as(device, scores, small)
    model = project(small.copy())
    model.learn_many(taught_there, ["timer"] * 3)
    for _ in taught_there:
        assert device.number() == len(WORDS)
    given = device.take(len(WORDS) + 1)
    np.testing.assert_allclose(given, list(model.thresholds().values()), atol=1e-5)


def test_a_narrowed_model_knows_the_same():
    spotter = taught(WORDS)
    spotter.set_sensitivity(0.3, "door")
    spotter.learn(phrase(*LIGHT), "kitchen light up")
    made = project(spotter)
    assert made.words == spotter.words and made.vocabulary.lengths == spotter.vocabulary.lengths
    assert made.vocabulary.sensitivities == spotter.vocabulary.sensitivities
    assert made.scorer.cohort.words.vectors.shape == (1600, PROJECTED["ear_s"][0])
    assert spotter.scorer.cohort.words.vectors.shape == (1600, 672), "it stays as it is"
    require_same_parts(made, spotter)
    for word in WORDS:
        clip = clips_of(word, 9, 10)[0]
        assert made.predict(clip).word == word
    assert made.predict(clips_of("timer", 9, 10)[0]).word is None
    # What was projected already, and what has no such cohort, is given back.
    assert project(made) is made
    plain = taught(("lamp",), **LOGMEL, learner="ncm")
    assert project(plain) is plain
    with pytest.raises(InputError, match="needs the whole cohort"):
        onnx_file.build(made)
    with pytest.raises(InputError, match="no windows of running speech to project"):
        made.encoder.whitenings[0].project(8, Line(0.1, 0.1))


def test_a_narrowed_whitening_is_saved_and_read(ear, tmp_path):
    made = shipped(ear).project(8, Line(-0.1, 0.2))
    made.save(tmp_path / "one")
    found = type(made).load(tmp_path / "one")
    assert found.line == Line(-0.1, 0.2) and found.sha256 == made.sha256
    for name in ("cohort", "phrases", "projection"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
    with pytest.raises(InputError, match="projection does not fit"):
        type(made)(
            made.about, made.mean, made.maps, made.within, projection=made.projection[:, :-1]
        )


def test_weights_lie_in_a_file_of_their_own(device, small, tmp_path, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    (tmp_path / "own.h").write_text(OWN_DOT)
    flags = (
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover",
        "-include",
        tmp_path / "own.h",
    )
    separate = Device(small, tmp_path, *flags, max_words=10, eight_bits=True, separate_weights=True)
    assert (
        separate.header.flash_bytes + len(separate.header.weights) == device.header.flash_bytes + 16
    )
    file = np.frombuffer(separate.header.weights, np.uint8)
    damaged = file.copy()
    damaged[500_000] ^= 1
    other = file.copy()
    other[0] = 0
    [clip] = clips_of("lamp", 9, 10)
    stream = np.concatenate([np.full(640, np.nan), np.full(640, 1e30), np.resize(clip, 28 * 640)])

    def hears() -> None:
        separate.order("h", *counted(clip))
        separate.order("e", *counted(stream))
        separate.order("t", *counted(clip), "lamp")

    hears()
    for given in (damaged, other, file[:-1], file[:3], np.append(file, np.zeros(7, np.uint8))):
        separate.order("W", np.uint32(len(given)), given)
    hears()
    separate.order("E", np.int32(-13))
    separate.order("E", np.int32(-14))
    separate.run()

    def heard() -> tuple[int, np.ndarray, np.ndarray, int]:
        error, _ = separate.number(), separate.number()
        return error, separate.take(672), separate.take(30 * 101), separate.number()

    error, _, frames, learned = heard()
    assert error == learned == -13 and not frames.any()
    assert [separate.number() for _ in range(5)] == [-14, -14, -14, -14, 0]
    error, vector, frames, learned = heard()
    assert error == 0 and learned == 0 and np.isfinite(frames[-808:]).all()
    device.order("h", *counted(clip))
    device.run()
    assert device.number() == 0 and device.number() == 16_000
    same_vectors(vector, device.take(672))
    assert b"TAPWORD_NO_WEIGHTS" in separate.answer and b"TAPWORD_BAD_WEIGHTS" in separate.answer
    separate.order("W", np.uint32(len(file)), file)
    assert heard_in(separate)[4:] == heard_in(device), "by the program's own products"


def test_machines_of_another_byte_order_are_told(device):
    order = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")
    command = ["gcc", "-E", *order, "-DTAPWORD_IMPLEMENTATION", device.program.with_name("model.h")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and "export with --exact" in done.stderr


def test_what_has_no_bytes_is_named():
    plain = taught(("lamp",), **LOGMEL, learner="ncm")
    with pytest.raises(InputError, match="only the networks of ear_s and tapword_ear"):
        c_header.build(plain, eight_bits=True)
    with pytest.raises(InputError, match="only weights of 8 bits"):
        c_header.build(plain, separate_weights=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "home.tap"
    taught(("lamp",)).save(path)
    return path


def told(path) -> dict[str, str]:
    """What a header tells its C code."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [line.split(" ", 2)[1:] for line in lines if line.startswith("#define TAPWORD_")]
    return {name.removeprefix("TAPWORD_"): rest[0] if rest else "" for name, *rest in found}


def test_the_command_writes_what_fits_a_device(run, model, tmp_path):
    header, weights = tmp_path / "home.h", tmp_path / "home.weights"
    code, out, _ = run("export", model, header, "--weights", weights)
    assert code == 0 and f"{weights.stat().st_size:,} bytes" in out
    found = told(header)
    assert found["EIGHT_BITS"] == "1" and found["PROJECTED"] == str(PROJECTED["ear_s"][0])
    assert found["SCATTER"] == "672" and found["MAX_WORDS"] == "20"
    assert found["WEIGHTS_BYTES"] == f"{weights.stat().st_size}u"
    assert int(found["WEIGHTS_CRC"][:-1], 16) == zlib.crc32(weights.read_bytes()[16:])
    assert header.stat().st_size < 1_000_000
    code, *_ = run("export", model, tmp_path / "exact.h", "--exact")
    found = told(tmp_path / "exact.h")
    assert code == 0 and found["EIGHT_BITS"] == "0" and found["PROJECTED"] == "672"
    assert found["SCATTER"] == str(672 * 673 // 2)
    code, *_ = run("export", model, header, "--covariance", "full", "--force")
    assert code == 0 and told(header)["SCATTER"] == str(672 * 673 // 2)
    assert told(header)["EIGHT_BITS"] == "1" and told(header)["SEPARATE_WEIGHTS"] == "0"


def test_a_state_and_a_header_of_one_model_fit(run, model, tmp_path):
    run("export", model, tmp_path / "home.h")
    assert run("export", model, tmp_path / "home.bin")[0] == 0
    low, high = (
        int(told(tmp_path / "home.h")[f"FINGERPRINT_{half}"].rstrip("u"), 0)
        for half in ("LOW", "HIGH")
    )
    state = (tmp_path / "home.bin").read_bytes()
    assert int.from_bytes(state[8:16], "little") == high << 32 | low


def test_the_command_refuses_what_does_not_go_together(run, model, tmp_path):
    for arguments, message in (
        (("a.onnx", "--exact"), "--exact goes with OUT.h or OUT.bin"),
        (("a.onnx", "--weights", "b"), "--weights goes with OUT.h"),
        (("a.h", "--exact", "--weights", tmp_path / "b"), "only weights of 8 bits"),
        (("a.h", "--covariance", "round"), "must be one of full, block, diagonal"),
        (("a.h", "--weights", model), "is the model itself"),
    ):
        code, _, err = run("export", model, tmp_path / arguments[0], *arguments[1:])
        assert code == 2 and message in err, arguments
        assert not (tmp_path / arguments[0]).exists()
