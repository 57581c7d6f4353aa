"""Packages for boards: their layout, and their code compiled and run against stand-ins."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tapword import Spotter
from tapword.export.boards import packages
from tapword.export.c import state as states
from tapword.version import __version__
from tests.conftest import ROOT
from tests.export.test_board import said

STAND_INS = Path(__file__).with_name("stand_ins")
EXAMPLES = ROOT / "examples"
# An environment with the tools of the vendors: make makers.
MAKERS = ROOT / "build" / "makers" / "bin"
CPP = ("-std=gnu++17", "-Wall", "-Wextra", "-Werror")
C = ("-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror")


def tool(name: str) -> Path:
    if not (MAKERS / name).exists():
        pytest.skip(f"needs {name}: make makers")
    return MAKERS / name


def build(*arguments: str | Path, compiler: str = "g++") -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    done = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Give a folder with a package of each kind, of an ear that knows no word."""
    folder, spotter = tmp_path_factory.mktemp("packages"), states.new("diagonal")
    for kind in packages.KINDS:
        packages.write(spotter, folder / kind, kind, max_words=6)
    return folder


@pytest.fixture(scope="module")
def core(made) -> Path:
    """Give the compiled core, which is the same in every package."""
    source = made / "arduino" / "src" / "tapword_core.c"
    build("-O2", "-Wall", "-Werror", "-c", source, "-o", made / "core.o", compiler="gcc")
    return made / "core.o"


class Orders:
    """What is said, typed and pressed; words are answered by a program."""

    def __init__(self) -> None:
        self.content = b""

    def add(self, letter: str, size: int, content: bytes = b"") -> None:
        self.content += letter.encode() + size.to_bytes(4, "little") + content

    def hear(self, *sounds: np.ndarray) -> None:
        for sound in sounds:
            samples = np.round(sound * 32767).astype("<i2").tobytes()
            self.add("a", len(samples), samples)

    def type(self, line: str) -> None:
        self.add("s", len(line) + 1, line.encode() + b"\n")

    def hold(self, pressed: bool) -> None:
        self.add("b", int(pressed))

    def run(self, program: Path) -> list[str]:
        done = subprocess.run(
            [program], input=self.content, capture_output=True, cwd=program.parent
        )
        assert done.returncode == 0, done.stderr
        self.content = b""
        return done.stdout.decode().splitlines()


def lesson() -> Orders:
    """Teach a word by holding the button and another by name, say both, and reject one."""
    orders = Orders()
    orders.hold(True)
    orders.hear(np.zeros(24_000))
    orders.hold(False)
    orders.hear(*(said("lamp", take) for take in range(3)), np.zeros(12_000))
    orders.type("teach door")
    orders.hear(*(said("door", take) for take in range(3)), np.zeros(12_000))
    orders.hear(said("lamp", 7), said("door", 7))
    orders.type("wrong")
    orders.hear(np.zeros(12_000))
    return orders


def check_lesson(lines: list[str], heard: list[str]) -> None:
    """Check what a program printed; `heard` are lines with its words."""
    good = [line for line in lines if "good: " in line]
    assert [line.split("good: ")[1] for line in good] == [
        f"{word}, {left} more" for word in ("word 1", "door") for left in (2, 1, 0)
    ]
    assert [line.split(": ")[-1].split(",")[0] for line in heard] == ["word 1", "door"]
    assert sum(line == "LED 1" for line in lines) >= 6
    assert lines[-1] == "ok" or lines[-2] == "ok"


# Layout.


def test_a_package_is_written_by_the_command(run, tmp_path):
    folder = tmp_path / "Tapword"
    code, out, _ = run("export", "ear_s", folder, "--to", "arduino", "--max-words", "7")
    assert code == 0 and "library for Arduino and PlatformIO, 0 words, room for 7" in out
    assert "#define TAPWORD_MAX_WORDS 7" in (folder / "src" / "tapword_core.h").read_text()
    assert "| 7 | room" in (folder / "README.md").read_text()
    (folder / "mine.txt").write_text("stays")
    code, _, err = run("export", "ear_s", folder, "--to", "arduino")
    assert code == 2 and "--force" in err
    assert run("export", "ear_s", folder, "--to", "arduino", "--force")[0] == 0
    assert (folder / "mine.txt").read_text() == "stays"
    for arguments, message in (
        ((folder, "--to", "esp-idf", "--force"), "is not a component for ESP-IDF"),
        ((tmp_path / "new", "--to", "esp8266"), "known: arduino, esp-idf, esphome"),
        ((tmp_path / "new", "--to", "arduino", "--quantize"), "--quantize goes with OUT.onnx"),
        ((tmp_path, "--to", "arduino"), "give a new folder"),
    ):
        code, _, err = run("export", "ear_s", *arguments)
        assert code == 2 and message in err
    assert not (tmp_path / "new").exists()


def test_a_package_has_the_words_of_the_model(run, tmp_path):
    model = tmp_path / "home.tap"
    spotter = Spotter("ear_s")
    spotter.learn(said("lamp", 0), "lamp")
    spotter.save(model)
    code, out, _ = run("export", model, tmp_path / "idf", "--to", "esp-idf")
    assert code == 0 and "1 word, room for 20" in out
    assert '"lamp"' in (tmp_path / "idf" / "include" / "tapword_core.h").read_text()
    small = Spotter("logmel", "tap:R=2", "slda")
    small.learn(said("lamp", 0), "lamp")
    small.save(tmp_path / "small.tap")
    code, _, err = run("export", tmp_path / "small.tap", tmp_path / "no", "--to", "esp-idf")
    assert code == 2 and "needs a model of size small" in err and not (tmp_path / "no").exists()


def test_manifests_agree_and_nothing_is_left_to_fill_in(made):
    for path in made.rglob("*"):
        if path.is_file() and path.suffix != ".o":
            assert "@VERSION@" not in path.read_text() and "@MAX" not in path.read_text(), path
    properties = (made / "arduino" / "library.properties").read_text()
    fields = dict(line.split("=", 1) for line in properties.splitlines())
    library = json.loads((made / "arduino" / "library.json").read_text())
    assert fields["version"] == library["version"] == __version__
    assert fields["name"] == library["name"]
    # What Arduino's own checks ask for.
    needed = "name version author maintainer sentence paragraph category url architectures"
    assert set(needed.split()) <= fields.keys()
    for example in library["examples"]:
        for name in example["files"]:
            assert (made / "arduino" / example["base"] / name).exists()
    header = (made / "arduino" / "src" / "Tapword.h").read_text()
    for line in (made / "arduino" / "keywords.txt").read_text().splitlines():
        name, kind = line.split("\t")
        assert kind in ("KEYWORD1", "KEYWORD2", "LITERAL1")
        assert name in header or name in (made / "arduino" / "src" / "tapword_core.h").read_text()


PLATFORMIO = """
import sys
from platformio.package.manifest.parser import ManifestParserFactory
from platformio.package.manifest.schema import ManifestSchema

# The list of licences is only on the net.
licences = {"licenses": [{"licenseId": "Apache-2.0"}]}
ManifestSchema.load_spdx_licenses = staticmethod(lambda: licences)
for name in ("library.json", "library.properties"):
    data = ManifestParserFactory.new_from_file(sys.argv[1] + "/" + name).as_dict()
    print(ManifestSchema().load_manifest(data)["name"])
"""


def test_platformio_takes_the_manifests(made):
    command = [tool("python"), "-c", PLATFORMIO, made / "arduino"]
    if not (MAKERS / "pio").exists():
        pytest.skip("needs platformio: make makers")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Tapword", "Tapword"]


IDF = """
import sys
from idf_component_tools.manager import ManifestManager
from kconfiglib import Kconfig

manifest = ManifestManager(sys.argv[1], "tapword", upload_mode=True).load()
config = Kconfig(sys.argv[1] + "/Kconfig")
words = config.syms["TAPWORD_MAX_WORDS"]
print(manifest.version, words.str_value, config.syms["TAPWORD_TAKE_MS"].str_value)
config.syms["TAPWORD_PHRASES"].set_value("y")
print(config.syms["TAPWORD_TAKE_MS"].str_value)
"""


def test_the_component_manager_and_kconfig_take_the_component(made):
    done = subprocess.run(
        [tool("python"), "-c", IDF, made / "esp-idf"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [__version__, "6", "3000", "5000"]


def test_the_python_of_the_component_is_checked_as_ours(made):
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        pytest.skip("needs ruff")
    component = made / "esphome" / "tapword" / "__init__.py"
    for command in (["check"], ["format", "--check"]):
        subprocess.run([ruff, *command, "--config", ROOT / "pyproject.toml", component], check=True)


# Code.


SIZE = """
#include "tapword_core.h"
#include <stdio.h>
int main(void) { return printf("%lu", (unsigned long)sizeof(tapword_board)) < 0; }
"""


def test_the_guide_states_the_memory_of_a_board(made, tmp_path):
    (tmp_path / "size.c").write_text(SIZE)
    text = (ROOT / "docs" / "boards.md").read_text()
    for flag in ("-DNO_PHRASES", "-DTAPWORD_PHRASES"):
        folder = f"-I{made / 'arduino' / 'src'}"
        flags = [flag, "-DTAPWORD_MAX_WORDS=10", folder]
        build(*flags, tmp_path / "size.c", "-o", tmp_path / "size", compiler="gcc")
        done = subprocess.run([tmp_path / "size"], capture_output=True, text=True, check=True)
        assert f"{int(done.stdout):,} bytes" in text


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("arm-none-eabi-gcc", "-mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16"),
        ("riscv64-unknown-elf-gcc", "-march=rv32imac -mabi=ilp32 --specs=picolibc.specs"),
    ],
)
def test_the_core_of_a_package_compiles_for_boards(made, compiler, flags, tmp_path):
    source = made / "arduino" / "src" / "tapword_core.c"
    build(*flags.split(), "-c", source, "-o", tmp_path / "core.o", compiler=compiler)


@pytest.mark.parametrize("board", ["ESP32", "RP2040"])
def test_the_sketch_is_taught_by_a_button_and_keeps_its_words(made, core, board, tmp_path):
    library, program = made / "arduino", tmp_path / "sketch"
    flags = [f"-DARDUINO_ARCH_{board}", f"-I{STAND_INS / 'arduino'}", f"-I{STAND_INS / 'esp'}"]
    sketch = f'-DSKETCH="{library / "examples" / "Teach" / "Teach.ino"}"'
    main = STAND_INS / "arduino" / "arduino_main.cpp"
    sources = [f"-I{library / 'src'}", library / "src" / "Tapword.cpp", main, core]
    build(*CPP, *flags, sketch, *sources, "-o", program)
    lines = lesson().run(program)
    assert lines[0] == "tapword listens for 0 words"
    check_lesson(lines, [line for line in lines if line.startswith("word: ")])
    orders = Orders()
    orders.hear(said("lamp", 8), np.zeros(12_000))
    lines = orders.run(program)
    # The words, and what was rejected.
    assert lines[0] == "tapword listens for 3 words"
    assert any(line.startswith("word: word 1") for line in lines)


def test_the_shortest_sketch_compiles(made, tmp_path):
    library = made / "arduino"
    sketch = f'-DSKETCH="{library / "examples" / "Listen" / "Listen.ino"}"'
    main = STAND_INS / "arduino" / "arduino_main.cpp"
    folders = [f"-I{library / 'src'}", f"-I{STAND_INS / 'arduino'}"]
    # The stand-in of LittleFS, which this sketch does not use.
    build(*CPP, sketch, *folders, "-include", "LittleFS.h", "-fsyntax-only", main)


def test_the_project_for_esp_idf_keeps_its_words_in_a_partition(made, core, tmp_path):
    component, program = made / "esp-idf", tmp_path / "project"
    folders = [STAND_INS / "esp", component / "include", EXAMPLES / "esp-idf" / "main"]
    sources = [
        STAND_INS / "esp" / "idf_main.c",
        EXAMPLES / "esp-idf" / "main" / "words_http.c",
        component / "src" / "tapword_idf.c",
        core,
    ]
    flags = ["-DCONFIG_TAPWORD_PSRAM=1", *(f"-I{folder}" for folder in folders)]
    build(*C, *flags, *sources, "-lm", "-o", program, compiler="gcc")
    other = ["-DCONFIG_IDF_TARGET_ESP32C6", *flags, "-fsyntax-only"]
    build(*C, *other, EXAMPLES / "esp-idf" / "main" / "main.c", compiler="gcc")
    orders = lesson()
    orders.add("g", 0)
    lines = orders.run(program)
    assert lines[0] == "I tapword: listening for 0 words"
    assert lines[-1] == "HTTP /words: sent"
    check_lesson(lines[:-1], [line for line in lines if line.startswith("I tapword: word: ")])
    state = (tmp_path / "words.bin").read_bytes()
    assert states.load("words", state).words == {"word 1": 3, "door": 3}
    other = states.new("diagonal")
    other.learn(said("music", 0), "music")
    other = states.dump(other)
    orders = Orders()
    orders.add("p", len(state) - 1, state[:-1])
    orders.add("p", 10**6)
    orders.hear(said("lamp", 8), np.zeros(12_000))
    orders.add("p", len(other), other)
    orders.type("words")
    orders.hear(np.zeros(2_000))
    lines = orders.run(program)
    assert lines[0] == "I tapword: listening for 3 words"
    assert lines[1].startswith("HTTP /words: 400 Bad Request TAPWORD_BAD_STATE")
    assert lines[2].startswith("HTTP /words: 400 Bad Request TAPWORD_NO_ROOM")
    assert any(line.startswith("I tapword: word: word 1") for line in lines)
    assert lines[-3:] == ["HTTP /words: ok", "music", "ok"]


# ESPHome.


@pytest.fixture(scope="module")
def esphome(made) -> Path:
    """Give a folder with the examples, and the component as they name it."""
    tool("esphome")
    folder = made / "yaml"
    shutil.copytree(EXAMPLES / "esphome", folder)
    shutil.copytree(made / "esphome", folder / "tapword-esphome")
    (folder / "secrets.yaml").write_text("wifi_ssid: home\nwifi_password: '12345678'\n")
    return folder


def configured(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(tool("esphome")), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["voice_kit", "esp32s3_inmp441"])
def test_esphome_takes_the_examples(esphome, name):
    done = configured(esphome, "config", f"{name}.yaml")
    assert done.returncode == 0 and "Configuration is valid!" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sensitivity: 0.5", "sensitivity: 1.5", "value must be at most 1"),
        ("max_words: 10", "max_words: 0", "value must be at least 1"),
        ("sample_rate: 16000", "sample_rate: 48000", "16000"),
        ("max_words: 10", "words: [' lamp']", "a word has 1 to 64 bytes"),
        ("psram:\n  mode: octal\n  speed: 80MHz\n", "", "psram"),
    ],
)
def test_esphome_refuses_what_cannot_work(esphome, old, new, message):
    text = (esphome / "esp32s3_inmp441.yaml").read_text()
    assert old in text
    (esphome / "wrong.yaml").write_text(text.replace(old, new))
    done = configured(esphome, "config", "wrong.yaml")
    assert done.returncode != 0 and message in done.stdout + done.stderr


def test_the_component_for_esphome_runs_against_its_headers(esphome, core, tmp_path):
    done = configured(esphome, "compile", "--only-generate", "voice_kit.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    source = esphome / ".esphome" / "build" / "voice-kit" / "src"
    main = (source / "main.cpp").read_text()
    for call in ('add_word("lamp", 0.6f)', "get_near_miss_trigger()", "tapword::ForgetAction<"):
        assert call in main
    [site] = (MAKERS.parent / "lib").glob("python3*/site-packages")
    folders = [STAND_INS / "esp", source, site]
    flags = ["-std=gnu++20", "-w", "-DUSE_HOST", "-DESPHOME_LOG_LEVEL=5", "-DTAPWORD_MAX_WORDS=6"]
    flags += [*(f"-I{folder}" for folder in folders), "-ffunction-sections"]
    component = source / "esphome" / "components" / "tapword" / "tapword.cpp"
    strict = [flag for flag in flags if flag != "-w"]
    build(*strict, "-Wall", "-Wextra", "-Werror", "-c", component, "-o", tmp_path / "tapword.o")
    needed = ["core/component.cpp", "core/helpers.cpp", "components/audio/audio.cpp"]
    needed += ["components/microphone/microphone_source.cpp"]
    sources = [STAND_INS / "esphome_main.cpp", *(site / "esphome" / name for name in needed)]
    # Parts of ESPHome that the component never reaches are left out.
    link = ["-static", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"]
    program = tmp_path / "program"
    build(*flags, *sources, tmp_path / "tapword.o", core, *link, "-o", program)
    content = b"teach lamp\n"
    for sound in (*(said("lamp", take) for take in range(3)), said("lamp", 8), np.zeros(16_000)):
        samples = np.round(sound * 32767).astype("<i2").tobytes()
        for start in range(0, len(samples), 32_000):
            part = samples[start : start + 32_000]
            content += b"hear %d\n" % len(part) + part
    content += b"reject\nforget lamp\n"
    done = subprocess.run([program], input=content, capture_output=True)
    lines = [line.strip() for line in done.stdout.decode().splitlines()]
    steps = ("waiting", "speaking", "checking", "good")
    taught = [(step, left - (step == "good")) for left in (3, 2, 1) for step in steps]
    assert lines[:12] == [f"teaching {step} lamp {left}" for step, left in taught]
    assert lines[12].startswith("word lamp") and lines[13].startswith("lamp ")
    assert lines[-1] == "kept 2"
