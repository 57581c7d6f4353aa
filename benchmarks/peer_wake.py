"""openWakeWord 0.4.0 on the streams of wake_words.py.

Its wake word models are under a non-commercial licence: they are measured from its wheel, in an
environment of their own (build/openwakeword), and nothing of them is shipped. There is a score for
every 80 ms.
Scores that reach a threshold are one event if less than `APART_S` lies between them.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

NAME = "openWakeWord 0.4.0"
# Its models for these phrases.
MODELS = {"alexa": "alexa_v0.1.onnx"}
# The threshold that its README recommends to begin with.
THRESHOLD = 0.5
RATE, CHUNK = 16_000, 1_280
# A choice: the scores of one utterance stay high for up to a second.
APART_S = 1.0
# Its score peaks after the end of a phrase: this much later still counts as found.
LATE_S = 1.0


def scores(phrase: str, sounds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Score recordings, (n,) int16 each, in its environment: one number for every 80 ms."""
    from streaming import other_python

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.npy") for number in range(len(sounds))]
        for path, sound in zip(paths, sounds, strict=True):
            np.save(path, sound)
        command = [str(other_python()), __file__, MODELS[phrase]]
        # A process for each: it uses one core.
        workers = [subprocess.Popen([*command, str(path)]) for path in paths]
        if any([worker.wait() for worker in workers]):
            raise subprocess.CalledProcessError(1, command)
        return [np.load(path) for path in paths]


def event_times(found: np.ndarray, threshold: float) -> np.ndarray:
    """Seconds at which events begin, of scores (n,) of one recording."""
    ends_s = (np.flatnonzero(found >= threshold) + 1) * CHUNK / RATE
    return ends_s[np.diff(ends_s, prepend=-np.inf) >= APART_S]


def count(found: Sequence[np.ndarray], threshold: float) -> int:
    """Count the events in recordings."""
    return sum(len(event_times(one, threshold)) for one in found)


def lowest_threshold(found: Sequence[np.ndarray], most: float) -> float:
    """Lowest threshold with at most this many events."""
    for score in sorted(set(np.concatenate(found).tolist()), reverse=True):
        if count(found, score) > most:
            return float(np.nextafter(np.float32(score), np.float32(np.inf)))
    return 0.0


def work(model: str, path: str) -> None:
    """Score the recording in a file, and write the scores in its place."""
    import openwakeword
    from openwakeword.model import Model

    models = Path(openwakeword.__file__).parent / "resources" / "models"
    network = Model(wakeword_model_paths=[str(models / model)])
    sound, found = np.load(path), []
    for start in range(0, len(sound) - CHUNK + 1, CHUNK):
        [score] = network.predict(sound[start : start + CHUNK]).values()
        found.append(score)
    np.save(path, np.array(found, dtype=np.float32))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="file name of a model in its wheel")
    parser.add_argument("path", help="recording (n,) int16, replaced by its scores")
    options = parser.parse_args()
    work(options.model, options.path)
