"""Time of tapword_ear by numpy and by onnxruntime, and of Google's speech embedding.

    python benchmarks/ear.py

They take turns on one thread, on a clip of 1 s; the ear and the speech embedding also on a stream.
Printed are medians of the CPU time in ms, and their ratios.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapword.backbones import tapword_ear
from tapword.backbones.speech_embedding import SpeechEmbedding
from tapword.backbones.tapword_ear import TapwordEar
from tapword.export.onnx.ear_graph import EarGraph
from tapword.support.onnx_sessions import open_session

ROUNDS, TIMES = 5, 40
PIECE = 5120


class OnnxEar:
    """The ear's clips by onnxruntime, from its exported graph."""

    def __init__(self, ear: TapwordEar):
        graph = EarGraph(ear.network.arrays)
        self._session = open_session(graph.content())
        states = (np.zeros((1, *shape), dtype=np.float32) for shape in graph.states)
        self._given: dict[str, Any] = {f"before_{index}": one for index, one in enumerate(states)}

    def frames(self, clip: np.ndarray) -> np.ndarray:
        """Frames (t, 101) of a clip (n,)."""
        late = -len(clip) % tapword_ear.HOP + tapword_ear.LATENCY_FRAMES * tapword_ear.HOP
        mel = tapword_ear.mel_features(np.pad(clip, (tapword_ear.OVERLAP, late))[None])
        mel = np.ascontiguousarray(mel.transpose(0, 2, 1)[:, None])
        [frames] = self._session.run(["frames"], self._given | {"mel": mel})
        return frames[0, :, 0].T[tapword_ear.LATENCY_FRAMES :]


def main() -> None:
    """Print all rounds."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    ear, other = TapwordEar(), SpeechEmbedding(layers=("b64", "emb", "emb"))
    by_onnx = OnnxEar(ear)
    clip = np.random.default_rng(0).standard_normal(16_000, dtype=np.float32) * np.float32(0.05)
    difference = np.abs(by_onnx.frames(clip) - ear.frames(clip)[0]).max()
    print(f"numpy and onnxruntime differ by at most {difference:.1e}")
    for _ in range(ROUNDS):
        whole = [milliseconds(partial(one.frames, clip)) for one in (ear, by_onnx, other)]
        streams = [one.stream() for one in (ear, other)]
        pieces = [milliseconds(partial(one.push, clip[:PIECE])) for one in streams]
        a, b, c = whole
        print(
            f"a clip of 1 s: tapword_ear {a:.2f}, by onnxruntime {b:.2f}, ratio {a / b:.2f}; "
            f"speech_embedding {c:.2f}, ratio {a / c:.2f}"
        )
        a, b = pieces
        print(f"0.32 s of a stream: tapword_ear {a:.2f}, speech_embedding {b:.2f}, {a / b:.2f}")


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
