"""The default backbone: Google's speech embedding behind its original front end."""

import hashlib
import importlib.metadata
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tapword.backbones.base import Backbone
from tapword.backbones.logmel import log_mel
from tapword.backbones.sessions import count_parameters, open_session
from tapword.errors import InputError, ModelFileError

# Inner blocks by name: the graph's tensor and the numbers per frame.
BLOCKS = {
    "b51": ("model/tf.math.maximum_14/Maximum:0", 384),
    "b64": ("model/tf.math.maximum_18/Maximum:0", 192),
    "emb": ("model/conv2d_19/Conv2D:0", 96),
}
# Without context on both sides a 1 s clip gives 3 outputs instead of 16, and accuracy falls.
PAD = 8_000
MODEL_FILE = "openwakeword/resources/models/embedding_model.onnx"


class SpeechEmbedding(Backbone):
    """Google's speech embedding, 0.33M parameters: 96 numbers every 80 ms (the default).

    Parameters
    ----------
    layers
        Blocks to give as frames: "emb" (the output, 96 every 80 ms), "b64" (192 every 40 ms),
        "b51" (384 every 40 ms), or a tuple of them.
    weights
        Path of `embedding_model.onnx` for people who hold it elsewhere; None reads it from the
        installed package openwakeword 0.4.0 (which is never imported).
    threads
        Threads the network may use.

    Notes
    -----
    0.5 s of silence is put on each side of every clip: one output sees 0.775 s.
    The embedding is Google's (Apache-2.0).

    Examples
    --------
    >>> backbone = SpeechEmbedding(layers=("b64", "emb"))
    >>> [block.shape for block in backbone.frames(np.full(16000, 0.1, dtype=np.float32))]
    [(36, 192), (16, 96)]
    """

    machine_arguments = ("weights", "threads")

    def __init__(
        self, layers: str | tuple[str, ...] = "emb", weights: str | None = None, threads: int = 1
    ):
        self.layers = layers
        self.weights = weights
        self.threads = threads
        self._names = (layers,) if isinstance(layers, str) else tuple(layers)
        unknown = [name for name in self._names if name not in BLOCKS]
        if unknown or not self._names:
            wanted = ", ".join(BLOCKS)
            raise InputError(f"speech_embedding: layers must be of {wanted}; got {layers!r}")
        if threads < 1:
            raise InputError(f"speech_embedding: threads must be at least 1, got {threads}")
        self.dims = tuple(BLOCKS[name][1] for name in self._names)

    @property
    def _network(self) -> tuple[Any, str, int]:
        return _load(_weights_path(self.weights), self.threads)

    @property
    def params(self) -> int:  # type: ignore[override]
        """Trained parameters of the network."""
        return self._network[2]

    @property
    def weights_sha256(self) -> str:  # type: ignore[override]
        """SHA-256 of the weight file."""
        return self._network[1]

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return self.from_mel(log_mel(np.pad(audio, ((0, 0), (PAD, PAD)))))

    def from_mel(self, mel: np.ndarray) -> list[np.ndarray]:
        """(b, t, 32) log-mel frames -> one (b, t_i, d_i) array per layer."""
        outputs = self._network[0].run(
            [BLOCKS[name][0] for name in self._names], {"input_1": mel[..., None]}
        )
        # (b, channels, t, bands) -> (b, t, channels * bands)
        return [
            np.ascontiguousarray(output.transpose(0, 2, 1, 3)).reshape(
                len(output), output.shape[2], -1
            )
            for output in outputs
        ]


# Looking through a package's files takes half a millisecond, at every clip.
@lru_cache(maxsize=8)
def _weights_path(weights: str | None) -> str:
    if weights is not None:
        if not Path(weights).is_file():
            raise InputError(f"speech_embedding: no weight file at {weights}")
        return str(Path(weights).resolve())
    try:
        files = importlib.metadata.files("openwakeword") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if str(file) == MODEL_FILE:
            return str(file.locate())
    raise InputError(
        "speech_embedding reads its weights from the package openwakeword 0.4.0, which is not "
        "installed (later versions do not carry them); install it with: "
        "pip install openwakeword==0.4.0, or give the file: speech_embedding:weights=PATH"
    )


@lru_cache(maxsize=4)
def _load(path: str, threads: int) -> tuple[Any, str, int]:
    """Session, SHA-256 and parameter count of a weight file; once per process."""
    import onnx

    content = Path(path).read_bytes()
    try:
        model = onnx.load_model_from_string(content)
        _free_time_axis(model)
        session = open_session(model.SerializeToString(), threads)
    except Exception as error:
        # onnx and onnxruntime raise a dozen unrelated types on a file that is not this network.
        raise ModelFileError(
            f"{path} is not the speech embedding of openwakeword 0.4.0: {error}"
        ) from error
    return session, hashlib.sha256(content).hexdigest(), count_parameters(model)


def _free_time_axis(model: Any) -> None:
    """Let the network take any number of mel frames, and show its inner blocks."""
    import onnx

    graph = model.graph
    graph.input[0].type.tensor_type.shape.dim[1].dim_param = "time"
    reshape = next(node for node in graph.node if node.op_type == "Reshape")
    shape = next(tensor for tensor in graph.initializer if tensor.name == reshape.input[1])
    shape.CopyFrom(onnx.numpy_helper.from_array(np.array([0, 1, -1, 34]), shape.name))
    # The last node reshapes one output frame; with many it would mix channels and time.
    last = graph.node.pop()
    unused = [tensor for tensor in graph.initializer if tensor.name == last.input[1]]
    for tensor in unused:
        graph.initializer.remove(tensor)
    del graph.output[:]
    del graph.value_info[:]
    for tensor, _ in BLOCKS.values():
        graph.output.append(
            onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, None)
        )
