"""A whole spotter as one ONNX file: waveform in, word scores out."""

import json
from typing import Any

import numpy as np

from tapword.audio import SAMPLE_RATE
from tapword.errors import InputError
from tapword.export import onnx_back, onnx_front
from tapword.export.graph import Graph
from tapword.priors.prior import weights
from tapword.spotter import NOT, Spotter
from tapword.vectors import block_poolings
from tapword.version import __version__


def build(spotter: Spotter) -> Any:
    """Make the ONNX model of a spotter as it is taught now.

    Parameters
    ----------
    spotter
        With words; of backbones speech_embedding and logmel.

    Returns
    -------
    onnx.ModelProto
        Input `audio` (samples,) float32 at 16 kHz; output `scores`, one for each of the words that
        the metadata lists, then one for each word of which sounds were rejected.
    """
    require_words(spotter)
    graph = Graph()
    clip = (onnx_front.align if spotter.align else onnx_front.fill)(graph, "audio")
    sides = []
    for backbone, pooling in spotter.front.sides:
        mel = onnx_front.log_mel(graph, clip, onnx_front.padding(backbone))
        blocks = onnx_front.blocks(graph, backbone, mel)
        poolings = block_poolings(pooling, backbone)
        pooled = [onnx_back.pool(graph, *pair) for pair in zip(poolings, blocks, strict=True)]
        sides.append(graph.add("Concat", *pooled, axis=1))
    if spotter.priors:
        whitened = zip(spotter.priors, weights(spotter.priors), sides, strict=True)
        sides = [onnx_back.whiten(graph, *one) for one in whitened]
    vector = graph.add("Concat", *sides, axis=1)
    names = list(spotter.learner.words)
    columns = sorted(range(len(names)), key=lambda index: names[index].startswith(NOT))
    scores = onnx_back.score(graph, spotter.learner, columns, vector)
    about = {key: json.dumps(value, ensure_ascii=False) for key, value in describe(spotter).items()}
    return graph.model({"audio": ["samples"]}, {"scores": (scores, [len(names)])}, about)


def build_frames(spotter: Spotter) -> Any:
    """Make the ONNX model of the backbone alone, which a C header leaves outside.

    Returns
    -------
    onnx.ModelProto
        Input `mel` (frames, 32), as the header's `tapword_log_mel` gives it; outputs `block_0`,
        `block_1`, ... (frames, numbers), as its `tapword_vector` takes them.
    """
    [backbone] = spotter.backbones
    graph = Graph()
    found = onnx_front.blocks(graph, backbone, graph.add("Unsqueeze", "mel", graph.ints(0)))
    outputs: dict[str, tuple[str, list[int | str]]] = {
        f"block_{index}": (block, [f"frames_{index}", width])
        for index, (block, width) in enumerate(zip(found, backbone.dims, strict=True))
    }
    return graph.model({"mel": ["frames", 32]}, outputs, {"tapword": json.dumps(__version__)})


def require_words(spotter: Spotter) -> None:
    """Refuse a spotter that was taught nothing."""
    if not spotter.words:
        raise InputError("the model has no words yet; teach it before it is exported")


def describe(spotter: Spotter) -> dict[str, Any]:
    """Say what a program that runs the file needs to know beside the scores."""
    return {
        "tapword": __version__,
        "sample_rate": SAMPLE_RATE,
        "words": list(spotter.words),
        "rejected": list(spotter.rejected),
        "thresholds": thresholds(spotter),
        "align": "the file aligns the clip itself" if spotter.align else "none",
        "parts": f"{spotter.front!r} -> {spotter.learner.spec}",
    }


def thresholds(spotter: Spotter) -> dict[str, float]:
    """Word -> score from which it counts as said; only measured ones where others are unknown."""
    try:
        return spotter.thresholds()
    except InputError:
        return dict(spotter.calibrated)


class Runner:
    """A file's scores by onnxruntime alone.

    Parameters
    ----------
    model
        Content of the file.
    """

    def __init__(self, model: bytes):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        about = self.session.get_modelmeta().custom_metadata_map
        self.words: list[str] = json.loads(about["words"])

    def scores(self, clip: np.ndarray) -> np.ndarray:
        """Scores of the words for a clip (n,) float32: (K,)."""
        return self.session.run(["scores"], {"audio": clip})[0][: len(self.words)]
