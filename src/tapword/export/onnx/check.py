"""Compare the scores of an ONNX file with the model's."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.spotter.spotter import Spotter
from tapword.support.onnx_sessions import open_session


class OnnxModel:
    """An ONNX file's content, run by onnxruntime."""

    def __init__(self, model: bytes):
        self.session = open_session(model)
        about = self.session.get_modelmeta().custom_metadata_map
        self.words: list[str] = json.loads(about["words"])

    def scores(self, clip: np.ndarray) -> np.ndarray:
        """Scores of the words for a clip (n,) float32: (K,)."""
        return self.session.run(["scores"], {"audio": clip})[0][: len(self.words)]


class Check(NamedTuple):
    """Number of clips, and the largest difference of a word's score.

    `model_right` and `file_right` of the clips were right; None where the words are unknown.
    """

    clips: int
    difference: float
    model_right: int | None
    file_right: int | None


def compare(
    spotter: Spotter, content: bytes, clips: Sequence[np.ndarray], words: Sequence[str] | None
) -> Check:
    """Score clips (n,) float32 at 16 kHz with a model and with its ONNX file.

    `words` are those of the clips; None where they are not the model's.
    """
    exported = OnnxModel(content)
    scored = [spotter.score_encoded(spotter.encode([clip]))[0].words for clip in clips]
    wanted = np.array([list(scores.values()) for scores in scored])
    given = np.stack([exported.scores(clip) for clip in clips])
    difference = float(np.abs(given - wanted).max())
    if words is None:
        return Check(len(clips), difference, None, None)
    named = [np.array(exported.words)[scores.argmax(axis=1)] for scores in (wanted, given)]
    return Check(len(clips), difference, *(int((one == np.array(words)).sum()) for one in named))
