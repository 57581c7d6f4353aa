"""Run every benchmark and write one page: `make bench`.

    python benchmarks/run.py [--page docs/speed.md] [--rounds N]

Compared programs take turns in one run, so ratios hold on a busy machine too. Single times do not:
the page has the load of the machine.
"""

import argparse
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import beside_peers
import busy
import costs
import even
import memory
import numpy as np
import scale
import spotters
import streaming
import threadpoolctl
from page import Page
from timing import ROOT, Missing, alternate

import learners
import poolings
from tapword.assets import CLIPS
from tapword.errors import InputError

LIBRARIES = ("numpy", "scipy", "onnxruntime", "scikit-learn")
COPIED = 64 * 1024 * 1024
# Programs beside learning and predicting that keep a core busy each.
BURNERS = 2


def machine(page: Page) -> None:
    """Describe the machine."""
    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else []:
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    found = []
    for library in LIBRARIES:
        try:
            found.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    source = np.ones(COPIED // 4, dtype=np.float32)
    into = np.empty_like(source)
    copying = alternate({"copy": lambda: np.copyto(into, source)}, 5)["copy"]
    rate = costs.machine_rate()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    page.text(
        f"{name}, {os.cpu_count()} cores; Python {platform.python_version()}, {', '.join(found)}. "
        f"Load average at the start: {load}. "
        f"One core copies {COPIED / copying / 1e6:.1f} GB/s and multiplies matrices at "
        f"{rate / 1e9:.0f} billion float32 multiply-adds per second."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "speed.md")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    begun, rounds = time.perf_counter(), options.rounds
    page = Page()
    with threadpoolctl.threadpool_limits(1):
        machine(page)
        page.section("Presets")
        sizes = spotters.every_size(48, rounds)
        page.sizes(sizes)
        page.section("Learners")
        floors = learners.beside_the_floor(480, rounds) + learners.beside_the_floor(3840, 3)
        page.learners(floors, learners.every_learner(480, rounds))
        page.section("Poolings")
        page.poolings([row for shape in poolings.SHAPES for row in poolings.measure(shape, rounds)])
    page.section("Listening")
    try:
        page.streaming(streaming.measure(20.0, min(rounds, 2), streaming.SPEECH))
    except (subprocess.CalledProcessError, SystemExit) as error:
        page.text(f"Not measured: openWakeWord 0.4.0 could not be run ({error}).")
    page.even(even.measure(120.0, min(rounds, 3), streaming.SPEECH))
    page.section("Memory")
    try:
        page.memory(memory.measure(min(rounds, 3)))
    except (subprocess.CalledProcessError, SystemExit, Missing) as error:
        page.text(f"Not measured: {error}")
    page.section("Busy machine")
    page.busy(BURNERS, busy.measure(BURNERS, 4 * rounds))
    page.section("Other libraries")
    page.peers(beside_peers.every_peer(rounds))
    page.section("Large data sets")
    try:
        with threadpoolctl.threadpool_limits(1):
            page.steps(scale.measure(scale.steps(CLIPS, 48), min(rounds, 3)))
    except (InputError, ImportError) as error:
        page.text(f"Not measured: {error}")
    page.section("Costs")
    made = [one for one in sizes if "dim" in one]
    later = {one["size"]: one["beside_floor"]["later predict"]["time_ms"] for one in made}
    with threadpoolctl.threadpool_limits(1):
        page.costs(costs.count(later), sizes)
    page.text(f"The whole run took {(time.perf_counter() - begun) / 60:.0f} minutes.")
    options.page.write_text(page.content(), encoding="utf-8")


if __name__ == "__main__":
    main()
