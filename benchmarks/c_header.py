"""Size of a model's C header (tables, memory, code), and its time for 1 s of audio.

    python benchmarks/c_header.py home.tap --check TEST

With TEST, a folder of clips per word, also print how many the header recognises, at any score.
Compiled by gcc.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tapword.audio import files
from tapword.export.c.amalgamation import ram
from tapword.export.c.header import Header, build
from tapword.export.c.reduced import for_device, reduced
from tapword.spotter.spotter import Spotter

# The default, for a small device; and the whole model with a reduced covariance.
FORMS, ROOMS = ("default", "full", "block", "diagonal"), (10, 50)
LEVELS = (["-Os"], ["-O2"], ["-O2", "-DTAPWORD_SIMD"], ["-O3"])
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
        tapword_ear_push(&ear, samples, frame);
    }}
    printf("%f", (double)(clock() - start) / CLOCKS_PER_SEC * 16000 / ({HOPS} * TAPWORD_EAR_HOP));
    return 0;
}}
"""
ASK = f"""{CODE}
#include <stdio.h>

static tapword model;
static float sound[TAPWORD_MAX_STEPS * TAPWORD_HOP];

int main(void)
{{
    uint32_t n;
    tapword_start(&model);
    while (fread(&n, sizeof n, 1, stdin) == 1 && fread(sound, sizeof *sound, n, stdin) == n) {{
        int word = tapword_predict(&model, sound, n, 0, NULL);
        printf("%s\\n", word < 0 ? "" : model.names[word]);
    }}
    return 0;
}}
"""


def main() -> None:
    """Print the sizes of the headers of a model on tapword_ear."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--check", type=Path, metavar="TEST")
    options = parser.parse_args()
    made = {}
    for form in FORMS:
        spotter = Spotter.load(options.model)
        if form == "default":
            spotter = for_device(spotter)
        elif form != "full":
            spotter.learner = reduced(spotter.learner, form)
        for room in ROOMS:
            room = max(room, len(spotter.learner.rows))
            made[form] = build(spotter, room, eight_bits=form == "default")
            [memory, *_] = ram(made[form].text) or []
            sizes = f"tables {made[form].flash_bytes:,} bytes, memory {memory:,} bytes"
            print(f"{form}, room for {room}: {sizes}", flush=True)
        if options.check is not None:
            print(f"{form}: {100 * right(made[form], options.check):.1f}% right", flush=True)
    for form in ("default", "diagonal"):
        for level in LEVELS[:: 1 if form == "default" else 3]:
            with tempfile.TemporaryDirectory() as folder:
                code, seconds = compiled(made[form].text, level, Path(folder))
            took = f"code {code:,} bytes, {seconds:.4f} s for 1 s of sound"
            print(f"{form}, gcc {' '.join(level)}: {took}", flush=True)


def right(header: Header, test: Path) -> float:
    """Fraction of the clips in folders of words that a header recognises."""
    paths = sorted(test.glob("*/*"))
    clips = [files.read(path).astype("<f4") for path in paths]
    given = b"".join(np.uint32(len(clip)).tobytes() + clip.tobytes() for clip in clips)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header.text, encoding="utf-8")
        (folder / "ask.c").write_text(ASK)
        subprocess.run(
            ["gcc", "-std=c99", "-O3", "ask.c", "-o", "ask", "-lm"], cwd=folder, check=True
        )
        said = subprocess.check_output([folder / "ask"], input=given).decode().splitlines()
    return float(
        np.mean([path.parent.name == word for path, word in zip(paths, said, strict=True)])
    )


def compiled(header: str, level: list[str], folder: Path) -> tuple[int, float]:
    """Bytes of code, and the network's seconds for 1 s of audio, the fastest of three runs."""
    (folder / "model.h").write_text(header, encoding="utf-8")
    for name, text in (("code.c", CODE), ("hear.c", HEAR)):
        (folder / name).write_text(text)
    gcc = ["gcc", "-std=c99", *level]
    subprocess.run([*gcc, "-c", "code.c"], cwd=folder, check=True)
    subprocess.run([*gcc, "hear.c", "-o", "hear", "-lm"], cwd=folder, check=True)
    sections = subprocess.check_output(["size", "-A", "code.o"], cwd=folder, text=True)
    code = sum(int(line.split()[1]) for line in sections.splitlines() if line.startswith(".text"))
    return code, min(float(subprocess.check_output([folder / "hear"])) for _ in range(3))


if __name__ == "__main__":
    main()
