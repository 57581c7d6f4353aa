"""local-wake: its own loop over a recording instead of a microphone."""

import contextlib
import json
import logging
import sys
import time
import types

import numpy as np

try:
    import sounddevice  # noqa: F401
except OSError:
    # PortAudio may be missing, and no microphone is needed.
    sys.modules["sounddevice"] = types.ModuleType("sounddevice")

from lwake import listen

logging.disable()


class Recording:
    """A recording in place of the microphone."""

    samplerate = 16_000

    def __init__(self, sound: np.ndarray):
        self.sound = sound
        self.decisions = 0

    def read(self, n: int) -> tuple[np.ndarray, bool]:
        """Read the next samples (n, 1)."""
        start = self.decisions * n
        if start + n > len(self.sound):
            raise EOFError
        self.decisions += 1
        return self.sound[start : start + n, None], False


def hear(folder: str, sound: np.ndarray) -> tuple[float, int]:
    """Listen with every reference of a folder, none of which matches: seconds, and decisions."""
    recording = Recording(sound)
    started = time.process_time()
    with contextlib.suppress(EOFError):
        listen(folder, threshold=-1.0, stream=recording)
    return time.process_time() - started, recording.decisions


def size_mb(kind: str) -> float:
    """Resident memory of this process, of a kind that Linux names."""
    with open("/proc/self/status") as file:
        [line] = [line for line in file if line.startswith(kind)]
    return int(line.split()[1]) * 1.024e-3


print("ready", flush=True)
for line in sys.stdin:
    question = json.loads(line)
    sound = np.load(question["file"]).astype(np.float32) / 32768
    # Reading the references is learning; the rest is listening.
    reading_s, _ = hear(question["folder"], sound[:0])
    all_s, decisions = hear(question["folder"], sound)
    listening_ms = 1000 * (all_s - reading_s)
    answer = {
        "decision_ms": listening_ms / decisions,
        "second_ms": listening_ms / (len(sound) / 16_000),
        "peak_mb": size_mb("VmHWM"),
        "end_mb": size_mb("VmRSS"),
    }
    print(json.dumps(answer), flush=True)
