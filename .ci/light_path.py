"""Use the package with its own dependencies only: `light_path.py`, in the environment of the wheel.

The tests need packages that bring optional ones along, so they cannot notice that the package needs
one of these.
"""

import importlib.util
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
    """Teach every learner, and a spotter that listens."""
    found = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    if found:
        sys.exit(f"not an environment of the wheel alone: {', '.join(found)}")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, LONG), dtype=np.float32)
    X[:4] += 1
    for name in registry.classes("learners"):
        learner = registry.build("learners", name)
        learner.learn_many(X, ["high"] * 4 + ["low"] * 4)
        learner.learn_one(X[0], "high")
        if learner.predict(X[:4]) != ["high"] * 4:
            sys.exit(f"{name}: wrong without scipy")
    spotter = tapword.Spotter()
    words = "lamp", "music"
    clips = {word: [read(path) for path in sorted((CLIPS / word).iterdir())] for word in words}
    for word, recordings in clips.items():
        for clip in recordings[:5]:
            spotter.learn(clip, word)
    for word, recordings in clips.items():
        if spotter.predict(recordings[-1]).word != word:
            sys.exit(f"{word}: not recognised")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "home.tap")
        spotter.save(path)
        detector = tapword.Detector(tapword.load(path))
    pause = np.zeros(16_000, dtype=np.float32)
    events = detector(np.concatenate([pause, clips["music"][-1], pause])) + detector.flush()
    if [event.word for event in events] != ["music"]:
        sys.exit(f"heard {events}")
    print(f"all learners and a spotter work without {', '.join(OPTIONAL)}")


main()
