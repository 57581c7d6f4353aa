"""Instruction sets of boards: a compiler for each, and an emulator that runs what it compiles."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tapword.export.c.header import Header
from tests.export.device import DRIVER, WARNINGS, Listening

RESET = Path(__file__).with_name("cortex_m.c")
# Files that are in orders and answers, and the emulator's own console.
FILES = ("-nographic", "-monitor", "none", "-semihosting-config", "enable=on,target=native")
# Memory of the RISC-V machine, which starts with its flash.
RISC_V = {
    "flash": 0x8000_0000,
    "flash_size": 0x100_0000,
    "ram": 0x8100_0000,
    "ram_size": 0x100_0000,
}


class Core(NamedTuple):
    """A core: its compiler with flags, its emulator, and the specs or library it needs."""

    compiler: tuple[str | Path, ...]
    emulator: tuple[str, ...]
    needs: str

    @property
    def machine(self) -> list[str]:
        """Flags that choose the instruction set and the library's headers."""
        flags = map(str, self.compiler[1:])
        return [flag for flag in flags if flag.startswith(("-m", "--specs=picolibc"))]

    def missing(self) -> str | None:
        """Say which program is not installed, if any."""
        compiler, emulator = str(self.compiler[0]), self.emulator[0]
        for program in (compiler, emulator):
            if shutil.which(program) is None:
                return f"needs {program}"
        command = [compiler, f"-print-file-name={self.needs}"]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return None if "/" in found else f"needs {self.needs} of {compiler}"


def cortex_m(cpu: str, board: str, vectors: int, code: int, stack: int, data: int = 0) -> Core:
    """Make a core without an operating system, with newlib-nano, and its memory at addresses."""
    places = [f"--section-start=.vectors={vectors:#x}", f"-Ttext={code:#x}", "-emain"]
    places += [f"-Tdata={data:#x}"] if data else []
    compiler = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=hard"]
    compiler += ["--specs=nano.specs", "--specs=rdimon.specs", "-nostartfiles", f"-DSTACK={stack}"]
    compiler += [f"-Wl,{','.join(places)}"]
    return Core((*compiler, RESET), ("qemu-system-arm", "-M", board), "nano.specs")


def risc_v(march: str, abi: str, cpu: str) -> Core:
    """Make a core without an operating system, with picolibc."""
    compiler = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={abi}"]
    compiler += ["--specs=picolibc.specs", "--oslib=semihost", "--crt0=hosted"]
    compiler += [f"-Wl,--defsym=__{name}={value:#x}" for name, value in RISC_V.items()]
    emulator = ("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-m", "64M", "-cpu", cpu)
    return Core(tuple(compiler), emulator, "picolibc.specs")


CORES = {
    "Cortex-M33": cortex_m(
        "cortex-m33", "mps2-an505", 0x1000_0000, 0x1000_0400, 0x3840_0000, 0x3800_0000
    ),
    "Cortex-M7": cortex_m("cortex-m7", "mps2-an500", 0, 0x400, 0x2040_0000, 0x2000_0000),
    "Cortex-M55": cortex_m("cortex-m55", "mps3-an547", 0, 0x100_0000, 0x2140_0000, 0x2100_0000),
    "Cortex-A53": Core(
        ("aarch64-linux-gnu-gcc", "-mcpu=cortex-a53", "-static"), ("qemu-aarch64",), "libc.a"
    ),
    # Without an extension, its instructions end the program.
    "RV32IMC": risc_v("rv32imc", "ilp32", "rv32,a=false,f=false,d=false"),
    "RV32IMAC": risc_v("rv32imac", "ilp32", "rv32,f=false,d=false"),
    "RV32IMAFC": risc_v("rv32imafc", "ilp32f", "rv32,d=false"),
}


class Emulated(Listening):
    """A device of another instruction set."""

    def __init__(self, core: Core, header: Header, folder: Path, *flags: str):
        self.prepare(header, folder)
        self.core, self.folder, self.plugin = core, folder, list[str]()
        self.compiler = (*core.compiler, *WARNINGS, *flags, "-DBOARD", f"-I{folder}", DRIVER)
        subprocess.run([*self.compiler, "-o", self.program, "-lm"], check=True)

    def run(self) -> None:
        (self.folder / "orders").write_bytes(self.orders)
        command = [*self.core.emulator, *self.plugin]
        if self.core.emulator[0].startswith("qemu-system"):
            command += [*FILES, "-kernel"]
        subprocess.run(
            [*command, self.program],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        self.orders, self.place = b"", 0
        self.answer = (self.folder / "answers").read_bytes()
