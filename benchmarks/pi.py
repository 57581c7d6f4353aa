"""tapword on 64-bit and 32-bit ARM: the core's tests, and the instructions of a second of sound.

    python benchmarks/pi.py [--root FOLDER] [--only arm64|armhf] [--tests [TEST ...]] [--json FILE]

Both systems are made by debootstrap from Debian's own packages, and run by QEMU. A plugin counts
instructions; counts are differences between runs with more and fewer repeats, so they exclude the
start. Nothing is timed, and none of this was run on a board: the milliseconds of boards are
estimates, by a published rate of instructions. Needs debootstrap (as root), qemu-user and gcc.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
SUITE = "trixie"
# All that the core needs; then what its tests need.
PACKAGES = (
    "python3",
    *("python3-" + name for name in ("filelock", "numpy", "rich", "safetensors", "soundfile")),
    *("python3-" + name for name in ("soxr", "threadpoolctl", "typer")),
    "libopenblas0-pthread",
    *("python3-" + name for name in ("hypothesis", "pytest", "scipy", "sklearn")),
)
TESTS = tuple(f"tests/{name}" for name in ("audio", "learners", "listening", "poolings", "spotter"))
WORDS, SAMPLES, SECONDS, CHUNK = 10, 5, 4.0, 1280


class System(NamedTuple):
    """A Debian architecture: its emulator, the core it emulates, and its folder of libraries."""

    emulator: str
    cpu: str
    libraries: str


SYSTEMS = {
    "arm64": System("qemu-aarch64", "cortex-a53", "aarch64-linux-gnu"),
    "armhf": System("qemu-arm", "cortex-a15", "arm-linux-gnueabihf"),
}
# Million instructions a second of one core, as 7-Zip's benchmark rates all four together
# (github.com/ThomasKaiser/sbc-bench, Results.md). The Pi 3 is a Pi Zero 2 at 1.2 GHz: both have the
# same chip.
BOARDS = {
    "Pi Zero 2 W (1 GHz)": 3030 / 4,
    "Pi 3 (1.2 GHz)": 3640 / 4,
    "Pi 4 (1.5 GHz)": 5750 / 4,
}
TASKS = {
    "start": "import, load a model of ten words, predict once",
    "predict": "predict a clip",
    "learn": "learn a clip, with its copies",
    "silence": "listen to 1 s of silence",
    "room noise": "listen to 1 s of room noise",
    "continuous speech": "listen to 1 s of speech",
}


def main() -> None:
    """Print the counts of each system, or run the tests on it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "pi")
    parser.add_argument("--only", choices=SYSTEMS)
    parser.add_argument("--tests", nargs="*", help="run these tests, or those of the core")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the counts there")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        task, times, folder = options.work
        work(task, int(times), Path(folder))
        return
    systems = [options.only] if options.only else list(SYSTEMS)
    for name in systems:
        make_root(name, options.root / name)
    if options.tests is not None:
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default"]
        failed = [
            name
            for name in systems
            if guest(name, options.root / name, [*command, *(options.tests or TESTS)]).returncode
        ]
        sys.exit(f"failed on {', '.join(failed)}" if failed else 0)
    counted = count(systems, options.root)
    for line in table(counted):
        print(line)
    if options.json:
        options.json.write_text(json.dumps(counted, indent=2))


def make_root(name: str, folder: Path) -> None:
    """Unpack Debian's packages, once. Nothing of them is run, so no emulator need be registered."""
    complete = folder / "complete"
    if complete.exists():
        return
    command = ["debootstrap", "--foreign", f"--arch={name}", "--variant=minbase"]
    command += [f"--include={','.join(PACKAGES)}", SUITE, str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for package in sorted((folder / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    # As the package does when it is installed.
    libraries = folder / "usr/lib" / SYSTEMS[name].libraries
    for path in (libraries / "openblas-pthread").glob("lib*.so.?"):
        (libraries / path.name).unlink(missing_ok=True)
        (libraries / path.name).symlink_to(path.relative_to(libraries))
    complete.touch()


def guest(
    name: str, root: Path, arguments: list[str], plugin: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run Python with arguments on a system, with this package, in the plugin's folder."""
    system = SYSTEMS[name]
    command: list[str | Path] = [system.emulator, "-cpu", system.cpu, "-L", root]
    if plugin is not None:
        command += ["-plugin", plugin]
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        # Bytecode of this system stays with it.
        "PYTHONPYCACHEPREFIX": str(root / "bytecode"),
    }
    python = max((root / "usr/bin").glob("python3.*"))
    folder = ROOT if plugin is None else plugin.parent
    command += [python, *arguments]
    return subprocess.run(command, env=environment, cwd=folder)


def count(systems: list[str], root: Path) -> dict[str, dict[str, float]]:
    """Count millions of instructions by system and task."""
    counted: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin = folder / "count.so"
        compiler = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin)]
        subprocess.run([*compiler, Path(__file__).with_name("qemu_count.c")], check=True)
        prepare(folder)
        for system in systems:

            def instructions(task: str, times: int, system: str = system) -> float:
                arguments = [__file__, "--work", task, str(times), str(folder)]
                guest(system, root / system, arguments, plugin).check_returncode()
                return int((folder / "count").read_text()) / 1e6

            # The first use compiles to bytecode, which an installation does.
            instructions("silence", 0)
            counted[system] = {"start": instructions("start", 0)}
            for task in list(TASKS)[1:]:
                twice = instructions(task, 3) - instructions(task, 1)
                seconds = 1.0 if task in ("predict", "learn") else SECONDS
                counted[system][task] = twice / 2 / seconds
    return counted


def table(counted: dict[str, dict[str, float]]) -> list[str]:
    """Describe the counts, and what boards would need, in Markdown."""
    lines = [
        "| system | task | million instructions | "
        + " | ".join(f"ms on a {board}, estimated" for board in BOARDS)
        + " |",
        "|---|---|---|" + "---|" * len(BOARDS),
    ]
    for system, tasks in counted.items():
        for task, millions in tasks.items():
            times = " | ".join(f"{1000 * millions / rate:,.0f}" for rate in BOARDS.values())
            lines.append(f"| {system} | {TASKS[task]} | {millions:,.0f} | {times} |")
    return lines


def prepare(folder: Path) -> None:
    """Write a model of ten words, a clip and sounds to listen to."""
    from streaming import SPEECH, scenes

    import tapword
    from tapword.assets import CLIPS
    from tapword.audio.files import read

    spotter = tapword.Spotter()
    for word in sorted(CLIPS.glob("*/"))[:WORDS]:
        for path in sorted(word.iterdir())[:SAMPLES]:
            clip = read(path)
            spotter.learn(clip, word.name)
    spotter.save(folder / "model.tap")
    np.save(folder / "clip.npy", clip)
    for name, sound in scenes(SECONDS, SPEECH).items():
        np.save(folder / f"{name}.npy", sound)


def work(task: str, times: int, folder: Path) -> None:
    """Do a task some times after a first time, on the emulated system."""
    import tapword

    spotter = tapword.load(folder / "model.tap")
    clip = np.load(folder / "clip.npy")
    word = spotter.predict(clip).word
    assert word is not None
    if task in ("predict", "learn"):
        for _ in range(times):
            if task == "learn":
                spotter.learn(clip, word)
            else:
                spotter.predict(clip)
    elif task != "start":
        sound, detector = np.load(folder / f"{task}.npy"), tapword.Detector(spotter)
        # The stream goes on from one time to the next: its beginning runs the network more often.
        for _ in range(times):
            for at in range(0, len(sound), CHUNK):
                detector(sound[at : at + CHUNK])


if __name__ == "__main__":
    main()
