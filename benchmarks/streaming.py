"""CPU time of listening to a stream, compared with openWakeWord on the same audio.

    python benchmarks/streaming.py [--seconds S] [--rounds N] [--speech FILE] [--json FILE]

A detector of size small with five words and openWakeWord 0.4.0 with one of its own models process
silence, room noise and continuous speech, 80 ms at a time, on one thread each. They take turns in
every round, so both see the same load of the machine. openWakeWord runs in its own environment in
build/openwakeword.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "openwakeword"
SPEECH = ROOT.parent / "shared" / "data" / "negatives" / "coffee_orders_20min.flac"
WORDS = ("coffee", "lamp", "music", "stop", "window")
OTHER_MODEL = "hey_marvin_v0.1.onnx"
RATE, CHUNK = 16_000, 1_280
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


# Processes a chunk, and resets before each sound.
Listener = tuple[Callable[[np.ndarray], object], Callable[[], object]]


def open_tapword() -> Listener:
    """Make a detector of five words, each taught by five of the demo's voices."""
    from tapword import Detector, Spotter
    from tapword.assets import CLIPS

    spotter = Spotter()
    for word in WORDS:
        spotter.learn_many(sorted((CLIPS / word).glob("*_0.ogg"))[:5], [word] * 5)
    detector = Detector(spotter)
    return detector, detector.reset


def open_openwakeword() -> Listener:
    import openwakeword
    from openwakeword.model import Model

    models = Path(openwakeword.__file__).parent / "resources" / "models"
    model = Model(wakeword_model_paths=[str(models / OTHER_MODEL)])
    return model.predict, lambda: None


def work(name: str) -> None:
    """Process the file named by each line of standard input; answer with a line of JSON."""
    push, reset = {"tapword": open_tapword, "openwakeword": open_openwakeword}[name]()
    for line in sys.stdin:
        sound = np.load(line.strip())
        times = []
        reset()
        for start in range(0, len(sound) - CHUNK + 1, CHUNK):
            chunk = sound[start : start + CHUNK]
            before = time.process_time()
            push(chunk)
            times.append(1000 * (time.process_time() - before))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        bytes_each = 1 if sys.platform == "darwin" else 1024
        print(json.dumps({"times_ms": times, "memory_mb": peak * bytes_each / 1e6}), flush=True)


def start_worker(python: Path | str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, __file__, "--worker", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ONE_THREAD,
    )


def ask(worker: subprocess.Popen[str], path: Path) -> dict:
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(f"{path}\n")
    worker.stdin.flush()
    answer = worker.stdout.readline()
    if not answer:
        sys.exit(f"{worker.args!r} has stopped")
    return json.loads(answer)


def other_python() -> Path:
    """Python of an environment with openWakeWord, which is made if needed."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    installed = subprocess.run([python, "-c", "import openwakeword"], capture_output=True)
    if installed.returncode:
        install = ["-m", "pip", "install", "--quiet", "openwakeword==0.4.0"]
        subprocess.run([python, *install], check=True)
    return python


def scenes(seconds: float, speech: Path) -> dict[str, np.ndarray]:
    """Sounds by name, (n,) int16 at 16 kHz."""
    n = round(seconds * RATE)
    rng = np.random.default_rng(0)
    # The power of room noise falls with the frequency; microphones record little below 50 Hz.
    spectrum = np.fft.rfft(rng.standard_normal(n))
    frequency = np.fft.rfftfreq(n, 1 / RATE)
    spectrum *= np.where(frequency < 50, 0, 1 / np.sqrt(np.maximum(frequency, 50)))
    noise = np.fft.irfft(spectrum, n)
    return {
        "silence": np.zeros(n, dtype=np.int16),
        "room noise": (noise / noise.std() * 100).astype(np.int16),
        "continuous speech": _speech(n, speech),
    }


def _speech(n: int, path: Path) -> np.ndarray:
    from tapword.assets import CLIPS
    from tapword.audio import files as audio

    if path.exists():
        blocks = audio.blocks(path)
    else:
        blocks = (audio.read(clip) for clip in sorted(CLIPS.glob("*/*.ogg")))
    heard: list[np.ndarray] = []
    while sum(map(len, heard)) < n:
        heard.append(next(blocks))
    return (np.concatenate(heard)[:n] * 32767).astype(np.int16)


def measure(seconds: float, rounds: int, speech: Path) -> list[dict]:
    workers = {
        "tapword": start_worker(sys.executable, "tapword"),
        "openwakeword": start_worker(other_python(), "openwakeword"),
    }
    taken: dict[tuple[str, str], list[float]] = {}
    memory: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for scene, sound in scenes(seconds, speech).items():
            paths[scene] = Path(folder) / f"{scene}.npy"
            np.save(paths[scene], sound)
        for number in range(rounds + 1):
            for scene, path in paths.items():
                for name, worker in workers.items():
                    answer = ask(worker, path)
                    memory[name] = answer["memory_mb"]
                    # The first round warms up.
                    if number:
                        taken.setdefault((scene, name), []).extend(answer["times_ms"])
    for worker in workers.values():
        worker.communicate()
    return [
        {
            "scene": scene,
            "who": name,
            "mean_ms": float(np.mean(times)),
            "p50_ms": float(np.median(times)),
            "p95_ms": float(np.quantile(times, 0.95)),
            "max_ms": float(np.max(times)),
            "load_percent": float(np.mean(times)) / (CHUNK / RATE * 1000) * 100,
            "memory_mb": memory[name],
        }
        for (scene, name), times in taken.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each sound")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--speech", type=Path, default=SPEECH, help="continuous speech")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return
    records = measure(options.seconds, options.rounds, options.speech)
    keys = ("mean_ms", "p50_ms", "p95_ms", "max_ms", "load_percent", "memory_mb")
    print("| sound | who | mean ms | p50 | p95 | max | % of a core | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for record in records:
        numbers = " | ".join(f"{record[key]:.2f}" for key in keys)
        print(f"| {record['scene']} | {record['who']} | {numbers} |")
    if options.json:
        options.json.write_text(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
