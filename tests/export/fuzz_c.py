"""Call the exported C code with anything, under both sanitizers, until something goes wrong.

    python tests/export/fuzz_c.py [--seconds N] [--seed N]

Two headers are of the ears, one is as a small device has it, one has its weights in a file that is
handed over when half of the calls are made; others are of parts with other rules and without an
ear's network, and one is a whole board. Every seed calls each of them many times; one that finds
something is printed and ends the run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tapword import Spotter
from tapword.export.c import header, state
from tapword.export.c.reduced import for_device
from tapword.export.sample_clips import demo_clips
from tapword.support.text import counted

SANITIZED = ("-std=c99", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover")
DRIVER = Path(__file__).with_name("fuzz_driver.c")
# A board around a model has calls of its own.
BOARD_DRIVER = Path(__file__).with_name("fuzz_board.c")
WEIGHTS = "model.weights"
LOGMEL = {"backbone": "logmel", "pooling": "tap:R=2"}
# The header of a small device; and one with its weights in a file, that knows a phrase already.
SMALL, SEPARATE = "ear_s_small", "ear_s_separate"
BOARD = "ear_s_board"
# How that one is compiled: shorter phrases, products of bytes by vectors.
SEPARATE_FLAGS = ("-DTAPWORD_PHRASE_HOPS=50", "-DTAPWORD_SIMD")
# Calls a seed: the ear's network takes most of the time.
EAR_ROUNDS, ROUNDS = 200, 4000


def compile_driver(
    spotter: Spotter,
    folder: Path,
    compiler: str,
    *flags: str,
    eight_bits: bool = False,
    separate_weights: bool = False,
    driver: Path = DRIVER,
) -> Path:
    """Make the program that calls a spotter's header at random; it has room for four words."""
    folder.mkdir(exist_ok=True)
    made = header.build(spotter, 4, eight_bits, separate_weights)
    (folder / "model.h").write_text(made.text, encoding="utf-8")
    (folder / WEIGHTS).write_bytes(made.weights or b"")
    program = folder / "fuzz"
    command = [compiler, *SANITIZED, *flags, f"-I{folder}", driver, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    return program


def with_phrase() -> Spotter:
    """Give the ear as a small device has it, taught a word and a phrase."""
    spotter, clips = state.new("diagonal"), demo_clips()
    spotter.learn(clips[0], "lamp")
    spotter.learn(np.concatenate(clips[:2]), "music")
    return for_device(spotter)


def run(program: Path, seed: int, rounds: int) -> subprocess.CompletedProcess:
    """Call a header at random, always alike for one seed."""
    return subprocess.run(
        [program, str(seed), str(rounds), program.with_name(WEIGHTS)],
        capture_output=True,
        text=True,
        env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"},
    )


def main() -> None:
    """Run for a time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spotters = {
        **{ear: state.new("diagonal", ear) for ear in state.EARS},
        SMALL: for_device(state.new("diagonal")),
        SEPARATE: with_phrase(),
        BOARD: for_device(state.new("diagonal")),
        "slda": Spotter(**LOGMEL, learner="slda:covariance=block,block=32"),
        "ridge": Spotter(**LOGMEL, learner="ridge"),
        "ncm": Spotter(**LOGMEL, learner="ncm"),
    }
    compilers = [found for name in ("gcc", "clang") if (found := shutil.which(name))]
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            f"{name} by {Path(compiler).name}": compile_driver(
                spotter,
                Path(folder) / f"{name}-{Path(compiler).name}",
                compiler,
                *(SEPARATE_FLAGS if name == SEPARATE else ()),
                eight_bits=name in (SMALL, SEPARATE, BOARD),
                separate_weights=name == SEPARATE,
                driver=BOARD_DRIVER if name == BOARD else DRIVER,
            )
            for compiler in compilers
            for name, spotter in spotters.items()
        }
        until, seed, calls = time.monotonic() + options.seconds, options.seed, 0
        while time.monotonic() < until:
            for name, program in programs.items():
                rounds = EAR_ROUNDS if name.startswith(state.EARS) else ROUNDS
                done = run(program, seed, rounds)
                if done.returncode:
                    sys.exit(f"{name}, seed {seed}, {rounds} rounds:\n{done.stderr}")
                calls += rounds
            seed += 1
    print(f"{calls:,} calls by {counted(seed - options.seed, 'seed')}, nothing found")


if __name__ == "__main__":
    main()
