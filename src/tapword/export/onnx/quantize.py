"""Quantize the backbone's convolutions to 8 bits."""

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapword.errors import InputError
from tapword.export.sample_clips import in_rooms
from tapword.support.onnx_sessions import onnx_runtime

# This entry tells onnxruntime that a model needs no preprocessing.
_PREPARED = "onnx.quant.pre_process", "onnxruntime.quant"


def quantize(model: Any, clips: Sequence[np.ndarray]) -> bytes:
    """Quantize the backbone's convolutions to 8-bit weights and activations.

    The first convolution, log-mel energies, poolings, whitening and learner stay in floats: they
    are small, and errors there are not corrected later.

    Parameters
    ----------
    model
        From `file.build`.
    clips
        Clips (n,) float32 that set the ranges of activations, at several levels and noises.

    Returns
    -------
    bytes
        Content of the file.
    """
    import onnx

    onnx_runtime()
    from onnxruntime import quantization

    nodes = [node.name for node in model.graph.node if node.op_type == "Conv"]
    inner = [name for name in nodes if name.startswith("part_")]
    if not inner:
        raise InputError("nothing to quantize: the backbone has no convolutions")
    prepared = copy.deepcopy(model)
    prepared.metadata_props.add(key=_PREPARED[0], value=_PREPARED[1])

    feeds = ({"audio": clip} for clip in in_rooms(clips))

    class Reader(quantization.CalibrationDataReader):
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "quantised.onnx")
        quantization.quantize_static(
            prepared,
            str(path),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["Conv"],
            nodes_to_quantize=inner[1:],
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        result = onnx.load(path)
    result.metadata_props.remove(next(e for e in result.metadata_props if e.key == _PREPARED[0]))
    return result.SerializeToString()
