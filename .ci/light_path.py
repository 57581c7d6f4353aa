"""Use the package with its own dependencies only: `light_path.py`, in the environment of the wheel.

The tests need packages that bring optional ones along, so they cannot notice that the package needs
one of these.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tapword
from tapword import registry
from tapword.assets import CLIPS
from tapword.audio.files import read

OPTIONAL = "scipy", "sklearn", "onnx", "onnxruntime", "torch"
# As long as the paper's vectors of one layer: above the length from which scipy is used.
LONG = 2000


def main() -> None:
    """Use every learner, a spotter and the commands."""
    found = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    if found:
        sys.exit(f"not an environment of the wheel alone: {', '.join(found)}")
    use_learners()
    use_spotter()
    with tempfile.TemporaryDirectory() as folder:
        use_commands(Path(folder))
    print(f"learners, a spotter and commands work without {', '.join(OPTIONAL)}")


def use_learners() -> None:
    """Teach every learner."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, LONG), dtype=np.float32)
    X[:4] += 1
    for name in registry.classes("learners"):
        learner = registry.build("learners", name)
        learner.learn_many(X, ["high"] * 4 + ["low"] * 4)
        learner.learn_one(X[0], "high")
        if learner.predict(X[:4]) != ["high"] * 4:
            sys.exit(f"{name}: wrong without scipy")


def use_spotter() -> None:
    """Teach a spotter, save and load it, and listen."""
    spotter = tapword.Spotter()
    words = "lamp", "music"
    clips = {word: [read(path) for path in sorted((CLIPS / word).iterdir())] for word in words}
    for word, recordings in clips.items():
        for clip in recordings[:5]:
            spotter.learn(clip, word)
    for word, recordings in clips.items():
        if spotter.predict(recordings[5]).word != word:
            sys.exit(f"{word}: not recognised")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "home.tap")
        spotter.save(path)
        detector = tapword.Detector(tapword.load(path))
    pause = np.zeros(16_000, dtype=np.float32)
    events = detector(np.concatenate([pause, clips["music"][5], pause])) + detector.flush()
    if [event.word for event in events] != ["music"]:
        sys.exit(f"heard {events}")


def use_commands(folder: Path) -> None:
    """Learn, predict, listen, undo and export, as a user does."""
    clips = {word: sorted((CLIPS / word).iterdir()) for word in ("lamp", "music")}
    model, header, bare = folder / "home.tap", folder / "home.h", folder / "core.h"
    for word, paths in clips.items():
        run("learn", model, word, *paths[:5])
    asked = clips["music"][5]
    [predicted] = json.loads(run("predict", model, asked, "--json"))
    if predicted["word"] != "music":
        sys.exit("predict: another word")
    if "music" not in run("listen", model, asked):
        sys.exit("listen: not heard")
    run("undo", model)
    if set(tapword.load(model).words) != {"lamp"}:
        sys.exit("undo: the last word is still known")
    run("export", model, header)
    run("export", "tapword_ear", bare)
    if not all("tapword_predict" in path.read_text("utf-8") for path in (header, bare)):
        sys.exit("export: no C header")


def run(*arguments: str | Path) -> str:
    """Run a command; its output."""
    command = [sys.executable, "-m", "tapword", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command[2:])}: {done.stderr}")
    return done.stdout


main()
