"""A spotter as an ONNX file: waveform in, word scores out."""

import json
from typing import Any

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.export.layout import CLIP, front_end
from tapword.export.onnx.frames import blocks, cut, fill, log_mel
from tapword.export.onnx.graph_builder import GraphBuilder
from tapword.export.onnx.scores import measure, pool, score, whiten
from tapword.spotter.encoder import block_poolings
from tapword.spotter.spotter import Spotter
from tapword.spotter.whitening import weights
from tapword.version import __version__


def build(spotter: Spotter) -> Any:
    """Make the ONNX model of a spotter in its current state.

    Returns
    -------
    onnx.ModelProto
        Input `audio` (samples,) float32 at 16 kHz; output `scores`, one for each word in the
        metadata, then one for each word with negatives. Where clips are aligned, all scores are
        NaN for sound longer than a phrase can be.
    """
    require_words(spotter)
    encoder, rows = spotter.encoder, spotter.learner.rows
    graph = GraphBuilder()
    align = encoder.preparation.align
    clip, refused = cut(graph, "audio") if align else (fill(graph, "audio"), None)
    vectors = []
    for backbone, pooling in encoder.parts:
        frames = blocks(graph, backbone, log_mel(graph, clip, front_end(backbone)))
        parts = zip(block_poolings(pooling, backbone, align), frames, strict=True)
        pooled = [pool(graph, part, block) for part, block in parts]
        vectors.append(graph.node("Concat", *pooled, axis=1))
    if encoder.whitenings:
        weighed = zip(encoder.whitenings, weights(encoder.whitenings), vectors, strict=True)
        vectors = [whiten(graph, one, weight, vector) for one, weight, vector in weighed]
    order = sorted(range(len(rows)), key=lambda number: rows[number].negative)
    vector = graph.node("Concat", *vectors, axis=1)
    scores = score(graph, spotter.learner, order, vector)
    learner, cohort = spotter.learner, spotter.scorer.cohort
    if learner is not None and cohort is not None:
        long = graph.node("Greater", graph.length(clip), graph.ints(CLIP)) if align else None
        scores = measure(graph, learner, cohort, order, vector, scores, long)
    if refused is not None:
        scores = graph.node("Where", refused, graph.floats(np.nan), scores)
    # Metadata for programs that run the file.
    about = {
        "tapword": __version__,
        "sample_rate": SAMPLE_RATE,
        "words": list(spotter.words),
        "negatives": list(spotter.learner.negatives),
        "thresholds": thresholds(spotter),
        "align": "inside the file" if align else "none",
        "parts": f"{encoder!r} -> {spotter.learner.spec}",
    }
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in about.items()}
    return graph.model({"audio": ["samples"]}, {"scores": (scores, [len(rows)])}, texts)


def build_frames(spotter: Spotter) -> Any:
    """Make the ONNX model of the backbone that a C header leaves out.

    Returns
    -------
    onnx.ModelProto
        Input `mel` (frames, 32), as the header's `tapword_log_mel` gives it; outputs `block_0`,
        `block_1`, ... (frames, numbers), as its `tapword_vector` takes them.
    """
    [backbone] = spotter.encoder.backbones
    graph = GraphBuilder()
    found = blocks(graph, backbone, graph.node("Unsqueeze", "mel", graph.ints(0)))
    outputs: dict[str, tuple[str, list[int | str]]] = {
        f"block_{index}": (block, [f"frames_{index}", width])
        for index, (block, width) in enumerate(zip(found, backbone.dims, strict=True))
    }
    return graph.model({"mel": ["frames", 32]}, outputs, {"tapword": json.dumps(__version__)})


def require_words(spotter: Spotter) -> None:
    """Refuse a spotter without words."""
    if not spotter.words:
        raise InputError("the model has no words yet; teach it some before you export it")


def thresholds(spotter: Spotter) -> dict[str, float]:
    """Word -> threshold; empty where thresholds are unavailable."""
    return spotter.thresholds() if spotter.has_thresholds else {}
