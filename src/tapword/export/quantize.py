"""The backbone's convolutions in 8 bits."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapword.errors import InputError

# By this entry onnxruntime knows that a model needs no preparing before it is quantised.
_PREPARED = "onnx.quant.pre_process", "onnxruntime.quant"
# Ranges set by clean clips alone cut off what louder voices and noisy rooms reach: on recordings
# of people, scores then differ about three times as much.
_LEVELS, _NOISES = (0.1, 0.3, 1.0, 3.0), (0.0, 0.003, 0.02, 0.1)


def quantize(model: Any, clips: Sequence[np.ndarray]) -> bytes:
    """Turn the backbone's convolutions to 8-bit weights and activations.

    The front end, the poolings, the prior and the learner stay as they are: they are small, and
    what is lost in them is lost for good.

    Parameters
    ----------
    model
        What `onnx_file.build` gave.
    clips
        Clips (n,) float32 by which the range of each activation is set; each is heard at another
        level and in another noise, as rooms have them.

    Returns
    -------
    bytes
        Content of the file.
    """
    import onnx
    from onnxruntime import quantization

    nodes = [node.name for node in model.graph.node if node.op_type == "Conv"]
    inner = [name for name in nodes if name.startswith("part_")]
    if not inner:
        raise InputError("there is nothing to quantise: the backbone has no convolutions")
    prepared = onnx.ModelProto()
    prepared.CopyFrom(model)
    entry = prepared.metadata_props.add()
    entry.key, entry.value = _PREPARED

    class Reader(quantization.CalibrationDataReader):
        feeds = iter([{"audio": clip} for clip in _in_rooms(clips)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "quantised.onnx")
        quantization.quantize_static(
            prepared,
            str(path),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["Conv"],
            nodes_to_quantize=inner,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        result = onnx.load(path)
    kept = [entry for entry in result.metadata_props if entry.key != _PREPARED[0]]
    del result.metadata_props[:]
    result.metadata_props.extend(kept)
    return result.SerializeToString()


def _in_rooms(clips: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Clips, each at a level and in white noise of another pair of the two."""
    rng = np.random.default_rng(0)
    heard = []
    for index, clip in enumerate(clips):
        loud, noise = index % len(_LEVELS), index // len(_LEVELS) % len(_NOISES)
        made = _LEVELS[loud] * clip + _NOISES[noise] * rng.standard_normal(len(clip))
        heard.append(np.clip(made, -1, 1).astype(np.float32))
    return heard
