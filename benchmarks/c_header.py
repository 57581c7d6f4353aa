"""What the C header of a model takes: tables, memory and code, and time for 1 s of sound."""

import argparse
import subprocess
import tempfile
from pathlib import Path

from tapword.export.c.header import build
from tapword.export.c.reduced import reduced
from tapword.spotter.spotter import Spotter

FORMS, ROOMS = ("full", "block", "diagonal"), (10, 50)
LEVELS = ("-Os", "-O2", "-O3")
CODE = '#define TAPWORD_IMPLEMENTATION\n#include "model.h"\n'
HOPS = 250
HEAR = f"""{CODE}
#include <stdio.h>
#include <time.h>

static tapword_ear ear;

int main(void)
{{
    static float samples[TAPWORD_EAR_HOP], frame[TAPWORD_FRAME];
    unsigned noise = 1, hop, i;
    clock_t start;
    tapword_ear_start(&ear);
    start = clock();
    for (hop = 0; hop < {HOPS}; hop++) {{
        for (i = 0; i < TAPWORD_EAR_HOP; i++) {{
            noise = noise * 1664525u + 1013904223u;
            samples[i] = (float)noise / 4294967296.0f - 0.5f;
        }}
        tapword_ear_hear(&ear, samples, frame);
    }}
    printf("%f", (double)(clock() - start) / CLOCKS_PER_SEC * 16000 / ({HOPS} * TAPWORD_EAR_HOP));
    return 0;
}}
"""


def main() -> None:
    """Print what the headers of a model on tapword_ear take."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model", type=Path)
    model = parser.parse_args().model
    for form in FORMS:
        spotter = Spotter.load(model)
        if form != "full":
            spotter.learner = reduced(spotter.learner, form)
        for room in ROOMS:
            made = build(spotter, max(room, len(spotter.learner.rows)))
            sizes = f"tables {made.flash_bytes:,} bytes, memory {made.ram_bytes:,} bytes"
            print(f"{form}, room for {room}: {sizes}")
    for level in LEVELS:
        with tempfile.TemporaryDirectory() as folder:
            code, seconds = compiled(made.text, level, Path(folder))
        print(f"gcc {level}: code {code:,} bytes, {seconds:.4f} s for 1 s of sound")


def compiled(header: str, level: str, folder: Path) -> tuple[int, float]:
    """Bytes of code, and the ear's seconds for 1 s of sound, the fastest of three runs."""
    (folder / "model.h").write_text(header, encoding="utf-8")
    for name, text in (("code.c", CODE), ("hear.c", HEAR)):
        (folder / name).write_text(text)
    gcc = ["gcc", "-std=c99", level]
    subprocess.run([*gcc, "-c", "code.c"], cwd=folder, check=True)
    subprocess.run([*gcc, "hear.c", "-o", "hear", "-lm"], cwd=folder, check=True)
    sections = subprocess.check_output(["size", "-A", "code.o"], cwd=folder, text=True)
    code = sum(int(line.split()[1]) for line in sections.splitlines() if line.startswith(".text"))
    return code, min(float(subprocess.check_output([folder / "hear"])) for _ in range(3))


if __name__ == "__main__":
    main()
