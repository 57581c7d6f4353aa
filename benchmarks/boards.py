"""Run the C core for the instruction sets of boards: numbers, instructions, flash, RAM and stack.

    make boards                          # or: python benchmarks/boards.py [CORE ...]

Headers are exported as `tapword export` does by default, compiled for each core and run by QEMU,
where a plugin counts instructions. First each core learns, listens, saves, loads and forgets: its
scores have to equal those of this machine. Then the tables of docs/boards_speed.md are printed.
Counts are differences between runs with and without a task, so they exclude the start and the
reading of input. They are not cycles: caches, flash and dual issue depend on the board.

Needs gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm, gcc-riscv64-unknown-elf,
picolibc-riscv64-unknown-elf, qemu-system-misc, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and
qemu-user. A core whose programs are missing is left out.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword import Spotter
from tapword.backbones.tapword_ear import TapwordEar
from tapword.export.c.header import Header, build
from tapword.export.c.reduced import for_device

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.export import session
from tests.export.device import Listening
from tests.export.device import counted as numbers
from tests.export.emulators import CORES, Emulated
from tests.export.test_export import clips_of, phrase
from tests.sounds import noise

WORDS = ("blinds", "coffee", "door", "fan", "garage", "lamp", "music", "stop", "timer", "window")
PHRASES = (("kitchen", "light", "up"), ("heater", "pause"))
ROOM, TAKES = 12, 5
SMALL, FAST = "-Os", "-O3"
# This core has two kinds of vectors.
NO_HELIUM = "Cortex-M55"
# Its A extension is for several cores at once: the instructions are those of RV32IMC.
SAME = {"RV32IMAC": "RV32IMC"}
SIMD, NO_PHRASES = "-DTAPWORD_SIMD", "-DTAPWORD_PHRASE_HOPS=0"
# What a program for a board calls.
PROGRAM = """
#define TAPWORD_IMPLEMENTATION
#include "model.h"
static tapword model;
static tapword_listener listener;
static float sound[160];
static uint8_t saved[160];
int main(void)
{
    tapword_event event;
    int n = 0;
    tapword_start(&model);
    tapword_listener_start(&listener);
    for (;;) {
        n += tapword_listener_push(&model, &listener, sound, 160, &event, 1);
        n += tapword_teach(&model, sound, 160, "word") + tapword_reject(&model, sound, 160);
        n += tapword_predict(&model, sound, 160, 1, NULL) + tapword_forget(&model, "word");
        n += tapword_save(&model, saved, 160) + tapword_load(&model, saved, 160);
        tapword_listener_gap(&listener, (uint32_t)n);
    }
}
"""
# Instructions of an iteration of CoreMark 1.01, counted in the same way with gcc -O3. With the
# iterations per second and MHz that are published of a core, they give its cycles per instruction.
COREMARK = {"Cortex-M7": 280_999, "RV32IMC": 295_258}


class Board(NamedTuple):
    """A board: the core that is counted for it, clock, RAM, flash, cycles per instruction."""

    core: str
    mhz: int
    ram: str
    flash: str
    cycles: float
    source: str


def cycles(core: str, coremark: float) -> float:
    """Cycles per instruction of a core that is published to reach so many CoreMarks per MHz."""
    return 1e6 / (coremark * COREMARK[core])


BOARDS = {
    "ESP32-S3": Board("RV32IMAFC", 240, "512 kB", "8 MB", cycles("RV32IMC", 2.56), "datasheet"),
    "ESP32-C6": Board("RV32IMC", 160, "512 kB", "4 MB", cycles("RV32IMC", 2.76), "datasheet"),
    "ESP32-P4": Board("RV32IMAFC", 400, "768 kB", "16 MB", cycles("RV32IMC", 2.76), "as the C6"),
    "RP2350": Board("Cortex-M33", 150, "520 kB", "4 MB", 1.0, "assumed"),
    "nRF5340": Board("Cortex-M33", 128, "512 kB", "1 MB", 1.0, "assumed"),
    "STM32H7": Board("Cortex-M7", 480, "1 MB", "2 MB", cycles("Cortex-M7", 5.01), "Arm"),
    "Pi Zero 2 W": Board("Cortex-A53", 1000, "512 MB", "SD card", 1.0, "assumed"),
}


class Figures(NamedTuple):
    """What was counted of a core: bytes and millions of instructions.

    Lists are of words alone, and with phrases.
    """

    flash: list[int]  # smallest and fastest
    ram: list[int]
    streams_ram: list[int]
    stack: int
    network: float
    predict: float
    learn: float
    silence: list[float]
    speech: list[float]
    streams: list[float]


class Counted(Emulated):
    """A device whose instructions are counted."""

    def __init__(self, plugin: Path, *arguments: Any):
        super().__init__(*arguments)
        self.plugin = ["-plugin", str(plugin)]

    def count(self) -> int:
        """Run the orders; give the instructions."""
        self.run()
        return int((self.folder / "count").read_text())

    def task(
        self, order: str, sound: np.ndarray, *parts: Any, before: tuple[Any, ...] = ()
    ) -> float:
        """Millions of instructions of an order that is given a sound."""
        counts = []
        for letter, given in ((order, (*before, *numbers(sound), *parts)), ("D", numbers(sound))):
            self.order("B")
            self.order(letter, *given)
            counts.append(self.count())
        return (counts[0] - counts[1]) / 1e6

    def listen_task(self, sound: np.ndarray) -> float:
        """Millions of instructions to listen to a second of a sound."""
        before = (np.uint32(640), np.uint32(8))
        return self.task("P", sound, before=before) / (len(sound) / 16_000)


def taught(phrases: bool) -> Spotter:
    """Teach ten words, and two phrases."""
    spotter = Spotter(backbone="tapword_ear")
    for word in WORDS:
        spotter.learn_many(clips_of(word, stop=TAKES), [word] * TAKES)
    for said in PHRASES if phrases else ():
        takes = [phrase(*said, take=take) for take in range(TAKES)]
        spotter.learn_many(takes, [" ".join(said)] * TAKES)
    return for_device(spotter)


def headers() -> dict[tuple[bool, bool], Header]:
    """Headers by whether frames are heard once, and whether there are phrases."""
    made = {}
    for streams in (False, True):
        before, TapwordEar.streams = TapwordEar.streams, streams
        for phrases in (False, True):
            made[streams, phrases] = build(taught(phrases), ROOM, eight_bits=True)
        TapwordEar.streams = before
    return made


def speech() -> np.ndarray:
    """Give 3 s of taught words, one after the other, 0.1 s apart, in a quiet room."""
    brief = np.zeros(1_600, dtype=np.float32)
    said = [part for word in WORDS for part in (clips_of(word, 9, 10)[0], brief)]
    sound = np.concatenate(said)[: 3 * 16_000]
    return sound + noise(3.0, 0.002)[: len(sound)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cores", nargs="*", metavar="CORE", help=", ".join(CORES))
    parts = ("scores", "kernels", "counts")
    parser.add_argument("--only", choices=parts, help="one part of it")
    options = parser.parse_args()
    names = []
    for name in options.cores or CORES:
        if missing := CORES[name].missing():
            print(f"{name}: skipped, {missing}")
        else:
            names.append(name)
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        plugin = folder / "count.so"
        compiler = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin)]
        subprocess.run([*compiler, Path(__file__).with_name("qemu_count.c")], check=True)
        if options.only in (None, "scores"):
            compare(names, folder)
        made, found = headers(), {}
        if options.only in (None, "kernels"):
            print("\n".join(["", *kernels_table(names, made[False, False], plugin, folder)]))
        for name in names if options.only in (None, "counts") else []:
            if name not in SAME:
                found[name] = figures(name, made, plugin, folder)
                print(f"counted {name}", file=sys.stderr, flush=True)
    if found:
        for table in (counts_table(found), memory_table(found), boards_table(found)):
            print("\n".join(["", *table]))


def compare(names: list[str], folder: Path) -> None:
    """Let each core learn, listen, save, load and forget; compare with this machine and Python."""
    empty = for_device(Spotter(backbone="tapword_ear"))
    made = build(empty, 10, eight_bits=True)
    plain = session.answers(Listening(empty, folder, "-O2", max_words=10, eight_bits=True))
    spotter = session.learned(empty)
    scores = spotter.score_encoded(spotter.encode(session.asked_clips()))
    wanted = np.array([list(each.words.values()) for each in scores])
    print(f"largest difference of scores to Python's: {np.abs(plain.scores - wanted).max():.2g}")
    for name in names:
        for kernel in ([], [SIMD]):
            device = Emulated(CORES[name], made, folder, "-O2", *kernel)
            session.check_products(device, np.random.default_rng(0))
            apart = session.differences(session.answers(device), plain)
            about = "with TAPWORD_SIMD" if kernel else "plain"
            print(f"{name}, {about}: products exact, scores differ by {apart:.2g}", flush=True)


def kernels_table(names: list[str], header: Header, plugin: Path, folder: Path) -> list[str]:
    """Millions of instructions for the network on a second, without kernels and with them."""
    levels = ("-Os", "-O2", "-O3")
    about = [f"{level}, {kernel}" for level in levels for kernel in ("plain", "kernel")]
    lines = [row("core", *about), row(*["---"] * 7)]
    sound = np.resize(clips_of("timer", 9, 10)[0], 16_000)
    rows: dict[str, list[str]] = {name: [] for name in names}
    rows[f"{NO_HELIUM}, DSP"] = ["-U__ARM_FEATURE_MVE"]
    for name, flags in rows.items():
        core = CORES[name.partition(",")[0]]
        counts = []
        for level in levels if name.partition(",")[0] in names else ():
            for kernel in ([], [SIMD]):
                options = [level, NO_PHRASES, *flags, *kernel]
                device = Counted(plugin, core, header, folder, *options)
                counts.append(device.task("e", sound))
        if counts:
            lines.append(row(name, *millions(*counts)))
    return lines


def figures(
    name: str, made: dict[tuple[bool, bool], Header], plugin: Path, folder: Path
) -> Figures:
    """Count one core."""
    silence, said, [clip] = np.zeros(2 * 16_000), speech(), clips_of("timer", 9, 10)
    quiet, loud, ram = {}, {}, {}
    for key, header in made.items():
        flags = [] if key[1] else [NO_PHRASES]
        device = Counted(plugin, CORES[name], header, folder, FAST, SIMD, *flags)
        quiet[key], loud[key] = device.listen_task(silence), device.listen_task(said)
        device.order("z")
        device.order("Y")
        device.run()
        ram[key] = [device.number(), device.number(), device.number()]
        if key == (False, True):
            network = device.task("e", np.resize(clip, 16_000))
            predict, learn = device.task("w", clip), device.task("t", clip, "timer")
            stack = deepest(device, clip, said)
    return Figures(
        [flash(name, level, made[False, False], folder) for level in (SMALL, FAST)],
        [ram[False, phrases][0] + ram[False, phrases][2] for phrases in (False, True)],
        [ram[True, phrases][0] + ram[True, phrases][2] for phrases in (False, True)],
        stack,
        network,
        predict,
        learn,
        [quiet[False, phrases] for phrases in (False, True)],
        [loud[False, phrases] for phrases in (False, True)],
        [loud[True, phrases] for phrases in (False, True)],
    )


def deepest(device: Counted, clip: np.ndarray, said: np.ndarray) -> int:
    """Bytes of stack that a device needs for what it does, below the program's own."""
    device.order("K")
    device.order("t", *numbers(clip), "timer")
    device.order("r", *numbers(clip))
    device.order("w", *numbers(clip))
    device.order("B")
    device.order("P", np.uint32(640), np.uint32(8), *numbers(said[: len(said) // 2]))
    device.order("F", np.uint32(8))
    device.order("f", "timer")
    device.order("S")
    device.order("J")
    device.run()
    return int(np.frombuffer(device.answer[-4:], "<i4")[0])


def flash(name: str, level: str, header: Header, folder: Path) -> int:
    """Bytes of a program that does everything, with tables and libraries."""
    (folder / "model.h").write_text(header.text, encoding="utf-8")
    (folder / "program.c").write_text(PROGRAM)
    command = [*CORES[name].compiler, "-std=c99", level, SIMD, "-ffunction-sections"]
    command += ["-Wl,--gc-sections", f"-I{folder}", folder / "program.c", "-o", folder / "program"]
    subprocess.run([*command, "-lm"], check=True)
    sizes = subprocess.check_output(["size", folder / "program"], text=True)
    return sum(map(int, sizes.splitlines()[1].split()[:2]))


def row(*cells: Any) -> str:
    """Write a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def millions(*counts: float) -> list[str]:
    """Write counts with three digits."""
    return [f"{count:.1f}" if count < 100 else f"{count:,.0f}" for count in counts]


def counts_table(found: dict[str, Figures]) -> list[str]:
    """Millions of instructions."""
    lines = [
        row("core", "network, 1 s", "predict", "learn", "silence", "speech, words",
            "and phrases", "frames once, words", "and phrases"),
        row(*["---"] * 9),
    ]  # fmt: skip
    for name, f in found.items():
        counts = f.network, f.predict, f.learn, f.silence[0], *f.speech, *f.streams
        lines.append(row(name, *millions(*counts)))
    return lines


def memory_table(found: dict[str, Figures]) -> list[str]:
    """Bytes."""
    lines = [
        row("core", "flash, -Os", "flash, -O3", "RAM, words", "and phrases", "frames once, words",
            "and phrases", "stack"),
        row(*["---"] * 8),
    ]  # fmt: skip
    for name, f in found.items():
        bytes_ = *f.flash, *f.ram, *f.streams_ram, f.stack
        lines.append(row(name, *[f"{each:,}" for each in bytes_]))
    return lines


def boards_table(found: dict[str, Figures]) -> list[str]:
    """Estimates of boards: seconds of work in a second, and what fits."""
    lines = [
        row("board", "core counted", "clock", "cycles per instruction", "a word is scored in",
            "silence", "speech, words", "and phrases", "frames once, words", "and phrases",
            "flash", "RAM"),
        row(*["---"] * 12),
    ]  # fmt: skip
    for name, board in BOARDS.items():
        if board.core not in found:
            continue
        f = found[board.core]

        def loads(counts: list[float], board: Board = board) -> list[str]:
            return [f"{count * board.cycles / board.mhz:.0%}" for count in counts]

        ram = [f"{each / 1000:.0f}" for each in f.ram]
        lines.append(
            row(
                name, board.core, f"{board.mhz} MHz", f"{board.cycles:.2f}: {board.source}",
                f"{f.predict * board.cycles / board.mhz:.1f} s", *loads(f.silence[:1]),
                *loads(f.speech), *loads(f.streams), f"{f.flash[1] / 1e6:.2f} MB of {board.flash}",
                f"{ram[0]} or {ram[1]} kB of {board.ram}",
            )
        )  # fmt: skip
    return lines


if __name__ == "__main__":
    main()
