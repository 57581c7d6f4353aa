"""The C core is plain source files that compile by themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tapword.export.c import header
from tapword.export.c.amalgamation import SOURCES, macros
from tapword.export.c.reduced import for_device
from tests.export.device import WARNINGS
from tests.export.test_export import clips_of, taught

MAIN = """
#include "tapword.h"
#include <stdio.h>

static tapword model;
static float audio[TAPWORD_MAX_SAMPLES];

int main(void)
{
    size_t n = fread(audio, sizeof audio[0], TAPWORD_MAX_SAMPLES, stdin);
    int word;
    tapword_start(&model);
    word = tapword_predict(&model, audio, n, 1, NULL);
    printf("%s", word < 0 ? tapword_error(word) : model.names[word]);
    return 0;
}
"""


def compiled(*arguments: str | Path, compiler: str = "gcc") -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    subprocess.run([compiler, *WARNINGS, *arguments], check=True)


def test_the_committed_sizes_are_those_of_the_shipped_model():
    committed = SOURCES.joinpath("tapword_model.h").read_text("utf-8")
    assert committed == header.default_model(), "run: make model_header"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_source_compiles_as_it_is(compiler):
    for source in Path(str(SOURCES)).glob("*.c"):
        compiled("-fsyntax-only", source, compiler=compiler)
        compiled("-fsyntax-only", "-DTAPWORD_TEACHING", source, compiler=compiler)
        compiled("-fsyntax-only", "-DTAPWORD_PHRASE_HOPS=0", source, compiler=compiler)


def test_every_source_is_cpp_too():
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    flags = ("-std=c++17", *WARNINGS[1:], "-DTAPWORD_TEACHING", "-fsyntax-only", "-xc++")
    for source in Path(str(SOURCES)).glob("*.c"):
        subprocess.run(["g++", *flags, source], check=True)


def test_the_public_header_is_one_of_cpp_too(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    program = tmp_path / "program.cpp"
    program.write_text('#include "tapword.h"\nint main() { return sizeof(tapword) == 0; }\n')
    subprocess.run(["g++", f"-I{SOURCES}", "-fsyntax-only", program], check=True)


@pytest.mark.parametrize("eight_bits", [True, False])
def test_the_sources_are_a_program_with_the_tables_of_a_model(tmp_path, eight_bits):
    settings, tables = header.describe(for_device(taught(("lamp", "door"))), 4, eight_bits, False)
    shutil.copytree(str(SOURCES), tmp_path, dirs_exist_ok=True)
    (tmp_path / "tapword_model.h").write_text(macros(settings))
    (tmp_path / "main.c").write_text(MAIN)
    # What the amalgamation has for itself is seen by all files here.
    shared = tables.text().replace("static const", "const")
    (tmp_path / "tables.c").write_text('#include "internal.h"\n' + shared)
    compiled("-O2", *tmp_path.glob("*.c"), "-lm", "-o", tmp_path / "program")
    for word in ("lamp", "door"):
        given = clips_of(word, 9, 10)[0].tobytes()
        done = subprocess.run([tmp_path / "program"], input=given, capture_output=True, check=True)
        assert done.stdout.decode() == word
