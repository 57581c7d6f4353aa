"""Compare the events of a C header with the Detector's, and count its network's hops.

    python benchmarks/c_listening.py home.tap FILE ... [--seconds 180]

The model must be on tapword_ear. Both hear the first seconds of each file, in 16 bits. Printed are
the events of both, whether words and times are equal, the difference of scores, and the network's
hops for a second of audio.
"""

import argparse
import itertools
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tapword import Detector, Event, Spotter
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.export.c.header import build

CHUNK = 1280
# The line of the function that processes a hop.
HOP = "        tapword_step(ear, i, frame);"
LISTEN = f"""
#include <stdio.h>
static long hops;
#define TAPWORD_IMPLEMENTATION
#include "model.h"

static tapword model;
static tapword_listener listener;

static void tell(const tapword_event *events, int count)
{{
    int i;
    for (i = 0; i < count; i++) {{
        printf("%d %.17g %.17g %.9g\\n", events[i].word, events[i].start, events[i].end,
               (double)events[i].score);
    }}
}}

int main(void)
{{
    static float audio[{CHUNK}];
    tapword_event events[20];
    size_t n;
    tapword_start(&model);
    tapword_listener_start(&listener);
    while ((n = fread(audio, sizeof *audio, {CHUNK}, stdin)) > 0) {{
        tell(events, tapword_listener_push(&model, &listener, audio, n, events, 20));
    }}
    tell(events, tapword_listener_flush(&model, &listener, events, 20));
    printf("%ld\\n", hops);
    return 0;
}}
"""


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=180.0)
    options = parser.parse_args()
    spotter = Spotter.load(options.model)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(spotter, Path(folder))
        for path in options.files:
            sound = beginning(path, options.seconds)
            wanted, (given, hops) = in_python(spotter, sound), in_c(spotter, program, sound)
            same = [event[:3] for event in given] == [event[:3] for event in wanted]
            pairs = zip(given, wanted, strict=False)
            apart = max((abs(ours.score - theirs.score) for ours, theirs in pairs), default=0.0)
            seconds = len(sound) / SAMPLE_RATE
            print(
                f"{path}: {seconds:.0f} s, {len(wanted)} events, {len(given)} in C, "
                f"{'the same' if same else 'NOT THE SAME'}, scores to {apart:.1e}; "
                f"{hops / seconds:.1f} hops of the ear a second"
            )


def compiled(spotter: Spotter, folder: Path) -> Path:
    """Compile a program that prints the events of its input and the number of hops."""
    text = build(spotter, len(spotter.learner.rows)).text
    assert text.count(HOP) == 1
    (folder / "model.h").write_text(
        text.replace(HOP, f"        hops += i;\n{HOP}"), encoding="utf-8"
    )
    (folder / "listen.c").write_text(LISTEN)
    command = ["gcc", "-std=c99", "-O3", "listen.c", "-o", "listen", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "listen"


def beginning(path: Path, seconds: float) -> np.ndarray:
    """Read the first seconds of a file, (n,), in 16 bits."""
    blocks = itertools.islice(files.blocks(path, 1.0), int(seconds))
    sound = np.round(np.concatenate(list(blocks)) * 32_768).clip(-32_768, 32_767)
    return (sound / 32_768).astype(np.float32)


def in_python(spotter: Spotter, sound: np.ndarray) -> list[Event]:
    """Events of the Detector."""
    detector = Detector(spotter)
    chunks = (sound[start : start + CHUNK] for start in range(0, len(sound), CHUNK))
    return [event for chunk in chunks for event in detector(chunk)] + detector.flush()


def in_c(spotter: Spotter, program: Path, sound: np.ndarray) -> tuple[list[Event], int]:
    """Events of the header, and its number of hops."""
    *lines, hops = subprocess.check_output([program], input=sound.tobytes()).decode().splitlines()
    found = (line.split() for line in lines)
    rows = spotter.learner.rows
    events = [
        Event(rows[int(k)].word, float(start), float(end), float(score))
        for k, start, end, score in found
    ]
    return events, int(hops)


if __name__ == "__main__":
    main()
