"""The C core computes the same on the instruction sets of boards, which QEMU emulates.

Each learns five words, finds them in a stream and saves them; after a new start it loads them and
forgets one. `make boards` tries all cores, with the copies of a clip that a device learns from too.
"""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.export.c import header
from tapword.export.c.reduced import for_device
from tests.conftest import ROOT
from tests.export import session
from tests.export.device import WARNINGS, Listening
from tests.export.emulators import CORES, Emulated
from tests.export.test_listen import in_python

# Each kernel, and a core without floating point; `make boards` tries the others too.
TRIED = ("Cortex-M33", "Cortex-M55", "Cortex-A53", "RV32IMC")


def empty() -> Spotter:
    """Give a model without words; without copies, which cost three quarters of the time."""
    return for_device(Spotter(backbone="ear_s", augment=False))


@pytest.fixture(scope="module")
def made() -> header.Header:
    return header.build(empty(), 10, eight_bits=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> session.Answers:
    """Give the answers of this machine, without kernels."""
    device = Listening(empty(), tmp_path_factory.mktemp("plain"), max_words=10, eight_bits=True)
    return session.answers(device)


def test_the_bytes_of_a_device_are_near_to_python(plain):
    spotter = session.learned(empty())
    scores = spotter.score_encoded(spotter.encode(session.asked_clips()))
    wanted = [list(each.words.values()) for each in scores]
    np.testing.assert_allclose(plain.scores, wanted, atol=0.06)
    events = in_python(Detector(spotter), session.stream())
    assert (
        [event[0] for event in plain.events] == [event[0] for event in events] == ["lamp", "door"]
    )


@pytest.mark.parametrize("name", TRIED)
def test_an_instruction_set_computes_the_same(name, made, plain, tmp_path, rng):
    core = CORES[name]
    if missing := core.missing():
        pytest.skip(missing)
    device = Emulated(core, made, tmp_path, "-O2", "-DTAPWORD_SIMD")
    session.check_products(device, rng)
    # The last bit of a logarithm depends on the C library. It may round a byte the other way: with
    # picolibc, one score of five differs by 0.0018.
    limit = 5e-3 if name.startswith("RV32") else 1e-5
    assert session.differences(session.answers(device), plain) < limit


@pytest.mark.parametrize("name", CORES)
def test_it_compiles_without_warnings_as_c_and_as_cpp(name, made, tmp_path):
    core = CORES[name]
    if missing := core.missing():
        pytest.skip(missing)
    (tmp_path / "model.h").write_text(made.text)
    for suffix, standard in (("c", "-std=c99"), ("cpp", "-std=c++17")):
        compiler = str(core.compiler[0])
        if suffix == "cpp":
            compiler = f"{compiler[:-2]}++"
            if shutil.which(compiler) is None:
                pytest.skip(f"needs {compiler}")
        source = tmp_path / f"core.{suffix}"
        source.write_text(
            '#define TAPWORD_TEACHING\n#define TAPWORD_IMPLEMENTATION\n#include "model.h"\n'
        )
        for kernel in ([], ["-DTAPWORD_SIMD"]):
            flags = [standard, *WARNINGS[1:], *kernel, "-fsyntax-only", source]
            subprocess.run([compiler, *core.machine, *flags], check=True)


def test_the_documentation_has_the_boards_of_the_program(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    boards = __import__("boards")
    sys.modules.pop("boards")
    page = (ROOT / "docs" / "boards_speed.md").read_text("utf-8")
    for name, board in boards.BOARDS.items():
        clock = f"{board.mhz} MHz | {board.cycles:.2f}: {board.source}"
        assert f"\n| {name} | {board.core} | {clock} |" in page
    for name, count in boards.COREMARK.items():
        assert f"{count:,}" in page and name in page
