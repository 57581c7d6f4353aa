"""Time of tapword_ear and of Google's speech embedding, on a clip of 1 s and on a stream.

    python benchmarks/ear.py

They take turns on one thread. Printed are medians of the CPU time in ms, and their ratio.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from tapword.backbones.speech_embedding import SpeechEmbedding
from tapword.backbones.tapword_ear import TapwordEar

ROUNDS, TIMES = 5, 40
PIECE = 5120


def main() -> None:
    """Print all rounds."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    ear, other = TapwordEar(), SpeechEmbedding(layers=("b64", "emb", "emb"))
    clip = np.random.default_rng(0).standard_normal(16_000, dtype=np.float32) * np.float32(0.05)
    for _ in range(ROUNDS):
        whole = [milliseconds(partial(one.frames, clip)) for one in (ear, other)]
        streams = [one.stream() for one in (ear, other)]
        pieces = [milliseconds(partial(one.push, clip[:PIECE])) for one in streams]
        for name, (a, b) in (("a clip of 1 s", whole), ("0.32 s of a stream", pieces)):
            print(f"{name}: tapword_ear {a:.2f}, speech_embedding {b:.2f}, ratio {a / b:.2f}")


def milliseconds(run: Callable[[], object]) -> float:
    """Median of the CPU time."""
    took = []
    for _ in range(TIMES):
        start = time.process_time()
        run()
        took.append(time.process_time() - start)
    return 1000 * float(np.median(took))


if __name__ == "__main__":
    main()
