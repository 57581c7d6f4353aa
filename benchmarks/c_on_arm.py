"""Flash, memory, stack and instructions of a model's C header on ARM, under QEMU.

    python benchmarks/c_on_arm.py home.tap CLIP.wav

The header is exported with the defaults, compiled for each core, and run by qemu, where a plugin
counts instructions: two boards without an operating system, and Linux on ARM. Needs
gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm, gcc-aarch64-linux-gnu,
libc6-dev-arm64-cross and qemu-user. Counts are differences between runs with more and fewer
repeats, so they exclude the start. They are not cycles: caches, flash and dual issue depend on the
board.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword.audio import files
from tapword.export.c import header as c_header
from tapword.export.c.reduced import for_device
from tapword.spotter.spotter import Spotter

ROOM = 10
LEVELS = ("-Os", "-O3")


class Core(NamedTuple):
    """A core: its compiler with flags, and its emulator."""

    compiler: list[str]
    emulator: list[str]


def bare(cpu: str, fpu: str, board: str, code: str) -> Core:
    """Make a core without an operating system, with memory from an address on."""
    flags = [f"-mcpu={cpu}", "-mthumb", f"-mfpu={fpu}", "-mfloat-abi=hard", "-DBARE"]
    places = [f"-Wl,--section-start=.vectors={code}", f"-Wl,-Ttext={int(code, 16) + 1024:#x}"]
    emulator = ["qemu-system-arm", "-M", board, "-nographic", "-monitor", "none"]
    return Core(
        [
            "arm-none-eabi-gcc",
            *flags,
            *places,
            "-nostartfiles",
            "--specs=nano.specs",
            "-Wl,-e,start",
        ],
        emulator,
    )


CORES = {
    "Cortex-M33 (RP2350)": bare("cortex-m33", "fpv5-sp-d16", "mps2-an505", "0x10000000"),
    "Cortex-M7 (STM32H7)": bare("cortex-m7", "fpv5-d16", "mps2-an500", "0x0"),
    "Cortex-A53 (Pi Zero 2)": Core(
        ["aarch64-linux-gnu-gcc", "-mcpu=cortex-a53", "-static"], ["qemu-aarch64"]
    ),
}

# The declarations of qemu/qemu-plugin.h that are used here.
PLUGIN = """
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

typedef uint64_t id_type;
struct tb;
struct insn;
typedef struct info info;
typedef void (*tb_callback)(id_type, struct tb *);
typedef void (*exit_callback)(id_type, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(id_type, tb_callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct tb *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(id_type, exit_callback, void *);
size_t qemu_plugin_tb_n_insns(const struct tb *);
void qemu_plugin_outs(const char *);

int qemu_plugin_version = 1;
static uint64_t count;

static void translated(id_type id, struct tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &count, qemu_plugin_tb_n_insns(tb));
}

static void done(id_type id, void *data)
{
    FILE *file = fopen("count", "w");
    (void)id;
    (void)data;
    fprintf(file, "%" PRIu64, count);
    fclose(file);
}

int qemu_plugin_install(id_type id, const info *about, int argc, char **argv)
{
    (void)about;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, done, NULL);
    return 0;
}
"""

PROGRAM = """
#define TAPWORD_IMPLEMENTATION
#define TAPWORD_SIMD
#define TAPWORD_PHRASE_HOPS 0
#include "model.h"

#define PAINTED 16384
static const int16_t clip[16000] = {@clip@};
static tapword model;
static tapword_listener listener;
static float sound[16000], frame[TAPWORD_FRAME];

static __attribute__((noinline)) int work(const char *what)
{
    tapword_event events[4];
    float score;
    size_t hop;
    switch (what[0]) {
    case 'e': /* the ear hears a second */
        for (hop = 0; hop < 25; hop++) {
            tapword_ear_push(&model.work.encoding.ear, sound + hop * 640, frame);
        }
        return 0;
    case 'q': /* a second of silence is listened to */
        memset(sound, 0, sizeof sound);
        return tapword_listener_push(&model, &listener, sound, 16000, events, 4);
    case 'l': /* a word is listened to, in a second */
        return tapword_listener_push(&model, &listener, sound, 16000, events, 4);
    case 'p': /* a recording is asked about */
        return tapword_predict(&model, sound, 16000, 1, &score);
    default: /* and learned */
        return tapword_teach(&model, sound, 16000, model.names[0]);
    }
}

static __attribute__((noinline)) size_t stack(int paint)
{
    volatile unsigned char room[PAINTED];
    size_t i = 0;
    if (paint) {
        for (i = 0; i < PAINTED; i++) {
            room[i] = 0xa5;
        }
        return 0;
    }
    while (i < PAINTED && room[i] == 0xa5) {
        i++;
    }
    return PAINTED - i;
}

/* Do something so often; the answers. */
static void measure(const char *what, int times, unsigned long answers[4])
{
    size_t i;
    int result = 0;
    for (i = 0; i < 16000; i++) {
        sound[i] = (float)clip[i] / 32768.0f;
    }
    tapword_start(&model);
    tapword_listener_start(&listener);
    tapword_ear_start(&model.work.encoding.ear);
    stack(1);
    while (times-- > 0) {
        result = work(what);
    }
    answers[1] = (unsigned long)stack(0);
    answers[0] = (unsigned long)result;
    answers[2] = sizeof model;
    answers[3] = sizeof listener;
}

#ifdef BARE
/* A board: what it does first, and words with the emulator. */
static char line[64];

static int call(int number, const void *with)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void start(void)
{
    const uintptr_t room[2] = {(uintptr_t)line, sizeof line};
    unsigned long answers[4];
    size_t i, at;
    *(volatile uint32_t *)0xe000ed88 |= 0xf00000; /* floating point on */
    __asm__ volatile("dsb\\n isb");
    call(0x15, room); /* what is to be done: x n */
    measure(line, line[2] - '0', answers);
    for (i = 0; i < 4; i++) {
        at = sizeof line - 1;
        line[at] = 0;
        line[--at] = ' ';
        do {
            line[--at] = (char)('0' + answers[i] % 10);
        } while ((answers[i] /= 10) > 0);
        call(4, line + at);
    }
    call(0x18, (const void *)0x20026);
}

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[256] = {
    @stack@, (uintptr_t)start};
#else
#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned long answers[4];
    (void)argc;
    measure(argv[1], argv[2][0] - '0', answers);
    printf("%lu %lu %lu %lu", answers[0], answers[1], answers[2], answers[3]);
    return 0;
}
#endif
"""

TASKS = {
    "e": "the ear, 1 s of any sound",
    "q": "listening to 1 s of silence",
    "l": "listening to 1 s with a word in it",
    "p": "a recording asked about",
    "t": "a recording learned, with its copies",
}


def main() -> None:
    """Print the figures of each core."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("clip", type=Path, help="of a word that the model knows")
    options = parser.parse_args()
    spotter = for_device(Spotter.load(options.model))
    made = c_header.build(spotter, max(ROOM, len(spotter.learner.rows)), eight_bits=True)
    words = f"{len(spotter.words)} words, room for {ROOM}"
    print(f"{words}: tables {made.flash_bytes:,} bytes")
    clip = np.round(files.read(options.clip)[:16000] * 32767).astype(int)
    numbers = ", ".join(map(str, clip.tolist()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(made.text, encoding="utf-8")
        (folder / "plugin.c").write_text(PLUGIN)
        plugin = ["gcc", "-O2", "-shared", "-fPIC", "plugin.c", "-o", "count.so"]
        subprocess.run(plugin, cwd=folder, check=True)
        for core, part in CORES.items():
            # The stack begins at the end of the 4 MB that contain the code.
            [place] = re.findall(r"vectors=(\w+)", " ".join(part.compiler)) or ["0"]
            program = PROGRAM.replace("@clip@", numbers)
            program = program.replace("@stack@", f"{int(place, 16) + 2**22:#x}")
            (folder / "program.c").write_text(program)
            measure(core, part, folder)


def measure(name: str, core: Core, folder: Path) -> None:
    """Print the figures of one core."""
    for level in LEVELS:
        compiler = [*core.compiler, "-std=gnu99", level]
        subprocess.run([*compiler, "-c", "program.c", "-o", "code.o"], cwd=folder, check=True)
        subprocess.run([*compiler, "code.o", "-o", "program", "-lm"], cwd=folder, check=True)
        text = subprocess.check_output(["size", "-A", "code.o"], cwd=folder, text=True)
        code = sum(map(int, re.findall(r"^\.text\S*\s+(\d+)", text, re.MULTILINE)))
        text = subprocess.check_output(["size", "program"], cwd=folder, text=True)
        whole = sum(map(int, text.splitlines()[1].split()[:2]))
        whole -= 32_000  # the clip
        print(
            f"{name}, {level}: code {code:,} bytes; with tables and libraries {whole:,}", flush=True
        )
        for task, about in TASKS.items():
            (few, _), (many, said) = (run(core, folder, task, times) for times in (1, 3))
            instructions = (many - few) / 2e6
            _, stack, memory, listener = said.split()
            print(f"  {about}: {instructions:.1f} million instructions, stack {stack}", flush=True)
        print(f"  memory {memory} bytes, listening {listener} more", flush=True)


def run(core: Core, folder: Path, task: str, times: int) -> tuple[int, str]:
    """Run a task some times: its instructions, and the output."""
    command = [*core.emulator, "-plugin", "./count.so"]
    if core.emulator[0].startswith("qemu-system"):
        asked = f"enable=on,target=native,arg={task},arg={times}"
        command += ["-kernel", "program", "-semihosting-config", asked]
    else:
        command += ["./program", task, str(times)]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    said = done.stdout + done.stderr
    return int((folder / "count").read_text()), said


if __name__ == "__main__":
    main()
