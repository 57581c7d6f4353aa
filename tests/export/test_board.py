"""What stands around a model on a board: a store, teaching by a button, a serial line."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tapword import Spotter
from tapword.audio.endpoint import examine
from tapword.export.c import header as c_header
from tapword.export.c import state as states
from tests.export import fuzz_c
from tests.export.test_export import Device, clips_of, compile_c, counted
from tests.export.test_voice import CODES, takes

BUSY = "TAPWORD_BUSY: the board is teaching or transferring its words; try again later."
HERE = Path(__file__).parent


def compile_board(folder: Path, driver: str, spotter: Spotter | None = None, *flags: str) -> Path:
    """Compile a driver with a model that knows no word, unless one is given."""
    spotter = spotter or states.new("diagonal")
    text = c_header.build(spotter, max_words=6, eight_bits=True).text
    (folder / "model.h").write_text(text, encoding="utf-8")
    program = folder / "program"
    compile_c(*flags, f"-I{folder}", HERE / driver, "-o", program)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return compile_board(tmp_path_factory.mktemp("board"), "board_driver.c")


class Board:
    """A compiled board; its slots are files of a folder."""

    def __init__(self, program: Path, folder: Path):
        self.program, self.folder, self.orders = program, folder, b""

    def hear(self, *sounds: np.ndarray) -> None:
        for sound in sounds:
            samples = np.round(sound * 32767).astype("<i2")
            self.orders += b"a" + len(samples).to_bytes(4, "little") + samples.tobytes()

    def type(self, *lines: str) -> None:
        for line in lines:
            content = line.encode() + b"\n"
            self.orders += b"r" + len(content).to_bytes(4, "little") + content

    def run(self) -> list[str]:
        done = subprocess.run(
            [self.program], input=self.orders, capture_output=True, check=True, cwd=self.folder
        )
        self.orders = b""
        return done.stdout.decode().splitlines()


def said(word: str, take: int) -> np.ndarray:
    """Give a take with a second of a quiet room around it."""
    rng = np.random.default_rng(take)
    clip = np.pad(clips_of(word, take, take + 1)[0], (16_000, 16_000))
    return clip + 0.001 * rng.standard_normal(len(clip), dtype=np.float32)


def test_a_power_cut_at_any_byte_leaves_the_last_good_state(tmp_path):
    program = compile_board(tmp_path, "store_driver.c")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    size, old, new = (int(text) for text in done.stdout.split() if text.isdigit())
    assert size > 2_000 and old > 3 * size - 20 and new > 0


def test_words_are_taught_by_voice_heard_and_kept_without_power(program, tmp_path):
    board = Board(program, tmp_path)
    for word in ("lamp", "door"):
        board.type(f"teach {word}")
        board.hear(*(said(word, take) for take in range(3)), np.zeros(8_000))
    board.type("words")
    board.hear(said("lamp", 7), said("door", 7), said("music", 7))
    lines = board.run()
    assert lines[0].startswith("start 0")
    good = [line for line in lines if line.startswith("good")]
    assert good == [f"good {w} {left} " for w in ("lamp", "door") for left in (2, 1, 0)]
    assert lines[lines.index("lamp") :][:3] == ["lamp", "door", "ok"]
    heard = [line.split()[1] for line in lines if line.startswith("word")]
    assert heard == ["lamp", "door"]
    # As after a power cut.
    again = Board(program, tmp_path)
    again.hear(said("door", 8), said("lamp", 8))
    lines = again.run()
    assert lines[0].startswith("start 1")
    assert [line.split()[1] for line in lines[1:] if line.startswith("word")] == ["door", "lamp"]
    # What the board learned is what a model learns of such takes.
    content = max((tmp_path / name).read_bytes() for name in ("slot0", "slot1"))
    assert states.load("slot", content[12:-4]).words == {"lamp": 3, "door": 3}


def test_a_teacher_says_what_is_wrong_with_a_take(program, tmp_path):
    board = Board(program, tmp_path)
    rng = np.random.default_rng(0)
    lamp, long = said("lamp", 0), np.tile(clips_of("lamp", stop=1)[0], 5)
    clipped = np.clip(30 * said("lamp", 1), -1, 1)
    board.type("keep", "teach lamp")
    board.hear(lamp, clipped, said("lamp", 2))
    board.type("keep")
    board.hear(clipped)
    board.type("forget lamp", "keep", "teach door")
    board.hear(np.concatenate([np.zeros(8_000), long, np.zeros(16_000)]), lamp)
    board.type("keep", "stop", "words", "teach door", "teach other")
    board.hear(0.001 * rng.standard_normal(100_000))
    board.type("teach ", "teach \x7f", "forget other", "sensitivity 2", "sensitivity 0.4")
    lines = [line.strip() for line in board.run() if not line.startswith("near")]
    assert lines[:-5] == [
        "start 0",
        *("there is no doubtful take", "ok", "good lamp 2", "doubtful lamp 2 clipped"),
        *("good lamp 1", "there is no doubtful take", "doubtful lamp 1 clipped"),
        *(BUSY, "good lamp 0", "ok", "ok", "doubtful door 3 too_long", "doubtful door 3 cut_off"),
        *("doubtful door 3 other_word", "good door 2", "ok", "ok", "lamp", "door", "ok"),
        *("ok", BUSY, "nobody door 3"),
    ]
    assert [line.split(":")[0] for line in lines[-5:]] == [
        *("commands", "TAPWORD_BAD_WORD", "TAPWORD_UNKNOWN", "TAPWORD_BAD_NUMBER", "ok")
    ]


def test_a_word_that_was_not_said_is_rejected_and_near_misses_are_told(program, tmp_path):
    board = Board(program, tmp_path)
    board.type("teach lamp")
    board.hear(*(said("lamp", take) for take in range(3)))
    board.type("wrong")
    board.hear(said("lamp", 7))
    board.type("wrong", "wrong", "sensitivity 0.2")
    board.hear(*(said("lamp", take) for take in range(10, 28)), np.zeros(40_000))
    lines = board.run()
    assert lines[lines.index("good lamp 0 ") + 1] == "there is no word to reject"
    rejected = next(at for at, line in enumerate(lines) if line.startswith("word lamp"))
    assert lines[rejected + 1 : rejected + 3] == ["ok", "there is no word to reject"]
    near = [line.split() for line in lines if line.startswith("near")]
    assert near and all(word == "lamp" and int(sure) < 50 for _, word, sure in near)
    newest = max((tmp_path / name).read_bytes() for name in ("slot0", "slot1"))
    spotter = states.load("slot", newest[12:-4])
    assert spotter.vocabulary.negatives == {"lamp": 1}


def test_lost_samples_begin_a_take_again(program, tmp_path):
    board = Board(program, tmp_path)
    board.type("teach lamp")
    board.hear(said("lamp", 0)[:20_000])
    board.orders += b"g" + (4_000).to_bytes(4, "little")
    board.hear(said("lamp", 1))
    lines = board.run()
    assert [line.strip() for line in lines[1:]] == ["ok", "good lamp 2"]


def test_the_end_pointer_of_a_board_finds_the_same_takes(tmp_path):
    """It computes in float, because most boards have doubles in software."""
    device = Device(
        states.new("diagonal"), tmp_path, "-DTAPWORD_BOARD", max_words=8, eight_bits=True
    )
    sounds = takes()
    for sound in sounds:
        device.order("X", *counted(sound))
    device.run()
    for sound in sounds:
        take = examine(sound)
        assert device.number() == 0
        assert CODES[device.number()] == (take.issue.code if take.issue else None)
        first, last, start, end = (device.number() for _ in range(4))
        assert (
            abs(first / 16_000 - take.start_s) < 0.011 and abs(last / 16_000 - take.end_s) < 0.011
        )
        np.testing.assert_array_equal(sound[start:end], take.audio)
        np.testing.assert_allclose(device.take(2, "<f8"), [take.level_db, take.snr_db], atol=0.01)


def test_a_board_answers_whatever_is_called(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    spotter, driver = states.new("diagonal"), fuzz_c.BOARD_DRIVER
    program = fuzz_c.compile_driver(spotter, tmp_path, compiler, eight_bits=True, driver=driver)
    for seed in (1, 2):
        done = fuzz_c.run(program, seed, 400)
        assert done.returncode == 0, done.stderr
        calls, refused, loaded = map(int, re.findall("[0-9]+", done.stdout))
        assert calls == 400 and refused > 40 and loaded > 0
