"""Whether a file says what the model says, on clips."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword.export.onnx_file import Runner
from tapword.spotter import Spotter


class Check(NamedTuple):
    """What was seen on some clips.

    Attributes
    ----------
    clips
        How many.
    difference
        Largest difference of a word's score.
    model_right, file_right
        How many clips' words the model and the file name right; None where words are not known.
    """

    clips: int
    difference: float
    model_right: int | None
    file_right: int | None


def compare(
    spotter: Spotter, content: bytes, clips: Sequence[np.ndarray], words: Sequence[str] | None
) -> Check:
    """Ask a model and its ONNX file about the same clips.

    Parameters
    ----------
    spotter
        The model.
    content
        The file made of it.
    clips
        Each (n,) float32 at 16 kHz.
    words
        What is said in each; None where that is not a word of the model.
    """
    runner = Runner(content)
    columns = [list(spotter.learner.words).index(word) for word in runner.words]
    difference, right = 0.0, np.zeros(2, dtype=int)
    for index, clip in enumerate(clips):
        wanted = spotter.learner.scores(spotter.vectors([clip]))[0, columns]
        given = runner.scores(clip)
        difference = max(difference, float(np.abs(given - wanted).max()))
        if words is not None:
            heard = [runner.words[int(scores.argmax())] for scores in (wanted, given)]
            right += [word == words[index] for word in heard]
    model_right, file_right = (None, None) if words is None else map(int, right)
    return Check(len(clips), difference, model_right, file_right)
