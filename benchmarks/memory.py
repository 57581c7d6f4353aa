"""Memory of listening and teaching, beside openWakeWord and local-wake.

    python benchmarks/memory.py [--rounds N] [--no-local-wake]

Each program runs in its own process, the others in environments of their own. tapword knows ten
words of five samples each, local-wake has the same samples as references, and openWakeWord listens
for one word, the one it is shipped with. All listen to the same 60 s of words in chunks of 80 ms.
Printed are the peak of the resident memory and what is resident at the end, in MB (1,000,000
bytes), the median of the rounds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import files
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from streaming import other_python

WORDS, SAMPLES, SECONDS = 10, 5, 60.0
RATE, CHUNK = 16_000, 1280
LOCAL_WAKE = ("torch==2.13.0", "local-wake==0.1.2")


def main() -> None:
    """Print one line for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-local-wake", action="store_true", help="do not install local-wake")
    parser.add_argument("--only", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        PROGRAMS[options.only](options.folder)
        print(json.dumps(memory()))
        return
    for program, peak, end in measure(options.rounds, not options.no_local_wake):
        print(f"{program}: peak {peak:.1f} MB, at the end {end:.1f} MB", flush=True)


def measure(rounds: int, with_local_wake: bool = True) -> list[tuple[str, float, float]]:
    """Measure every program: its name, its peak and what is left at the end, in MB."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for _ in range(rounds):
            for program, rows in found.items():
                python = other_python() if program in OTHERS else sys.executable
                command = [python, __file__, "--only", program, "--folder", name]
                rows.append(json.loads(subprocess.check_output(command, text=True)))
        if with_local_wake:
            found["local-wake listens"] = [local_wake(Path(name))]
    return [
        (program, median(row["peak"] for row in rows), median(row["end"] for row in rows))
        for program, rows in found.items()
    ]


def memory() -> dict[str, float]:
    """Peak and present resident memory of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
    return {"peak": int(sizes["VmHWM"]) * 1.024e-3, "end": int(sizes["VmRSS"]) * 1.024e-3}


def prepare(folder: Path) -> None:
    """Write the samples, the stream and a taught model."""
    import soundfile

    import tapword
    from tapword.assets import CLIPS
    from tapword.audio.files import read

    spotter, sounds = tapword.Spotter(), []
    for word in sorted(CLIPS.glob("*/"))[:WORDS]:
        for number, path in enumerate(sorted(word.iterdir())):
            clip = read(path)
            sounds.append(np.pad(clip, (0, RATE // 2)))
            if number < SAMPLES:
                spotter.learn(clip, word.name)
                # local-wake needs references of at least 0.775 s.
                padded = np.pad(clip, (0, max(0, 12_400 - len(clip))))
                soundfile.write(folder / f"{word.name}_{number}.wav", padded, RATE)
    order = np.random.default_rng(0).permutation(len(sounds))
    stream = np.concatenate([sounds[index] for index in order])[: round(SECONDS * RATE)]
    np.save(folder / "stream.npy", np.rint(stream * 32767).astype(np.int16))
    spotter.save(folder / "model.tap")


def chunks(folder: Path) -> Any:
    """Read the stream in chunks of int16."""
    stream = np.load(folder / "stream.npy", mmap_mode="r")
    return (np.array(stream[at : at + CHUNK]) for at in range(0, len(stream), CHUNK))


def numpy_alone(folder: Path) -> None:
    """Only read the stream: what Python and numpy take."""
    for _ in chunks(folder):
        pass


def tapword_listens(folder: Path) -> None:
    """Listen for ten words."""
    import tapword

    detector = tapword.Detector(tapword.load(folder / "model.tap"))
    for chunk in chunks(folder):
        detector(chunk)


def tapword_learns(folder: Path) -> None:
    """Teach ten words of five samples each, and recognise one."""
    import tapword

    spotter, paths = tapword.Spotter(), sorted(folder.glob("*.wav"))
    for path in paths:
        spotter.learn(path, path.stem.partition("_")[0])
    spotter.predict(paths[0])
    spotter.save(folder / "taught.tap", overwrite=True)


def openwakeword_listens(folder: Path) -> None:
    """Listen for one word by openWakeWord's shipped model."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    from openwakeword.model import Model

    shipped = [str(path.locate()) for path in files("openwakeword") or [] if path.suffix == ".onnx"]
    [word] = [path for path in shipped if "alexa" in path]
    model = Model(wakeword_model_paths=[word])
    for chunk in chunks(folder):
        model.predict(chunk)


def local_wake(folder: Path) -> dict[str, float]:
    """Listen by local-wake, in its own environment."""
    from timing import Peer

    peer = Peer("local_wake", LOCAL_WAKE)
    answer = peer.ask(file=str(folder / "stream.npy"), folder=str(folder))
    peer.close()
    return {"peak": answer["peak_mb"], "end": answer["end_mb"]}


PROGRAMS = {
    "Python and numpy": numpy_alone,
    "tapword listens": tapword_listens,
    "tapword learns": tapword_learns,
    "openWakeWord listens": openwakeword_listens,
}
OTHERS = ("openWakeWord listens",)

if __name__ == "__main__":
    main()
