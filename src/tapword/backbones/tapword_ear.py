"""tapword's own backbone: a small network that takes a stream frame by frame."""

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from tapword.backbones.base import Backbone, FrameStream
from tapword.backbones.logmel import STEP, WINDOW, log_mel
from tapword.backbones.onnx_files import OnnxWriter
from tapword.errors import InputError, ModelFileError
from tapword.support.onnx_sessions import open_session

# Its input: log-mel bands of this range, shifted and scaled.
BANDS, LOW_HZ, HIGH_HZ = 40, 60.0, 7600.0
SHIFT, SCALE = 2.0, 3.0
# Samples between two frames, and by how many frames the output lags behind the sound: five of
# look-ahead, and two by which the network was trained to answer later.
HOP = 640
LATENCY_FRAMES = 5 + 2
# Samples that two neighbouring log-mel windows share.
OVERLAP = WINDOW - STEP
# Numbers of a frame, and the attention logits after them, one for each head of the pooling.
FRAME, HEADS = 96, 5
# Of each block of the network: stride over bands and over time, and steps of look-ahead.
BAND_BLOCKS = ((1, 1), 1), ((2, 1), 1), ((1, 2), 1), ((1, 1), 0), ((2, 1), 0), ((1, 1), 0)
TIME_BLOCKS = (((1, 1), 1),) * 3 + (((1, 1), 0),) * 2
# Channels before, between and after the blocks over bands, and inside each; channels of the blocks
# over time, and inside them.
BAND_CHANNELS, BAND_WIDE = (24, 24, 32, 40, 40, 64, 64), (48, 72, 96, 120, 160, 192)
TIME_CHANNELS, TIME_WIDE = 184, 368


class TapwordEar(Backbone):
    """tapword's own network, 0.84M parameters: 96 numbers every 40 ms, as a stream.

    Parameters
    ----------
    weights
        Path of weights that `training/ear` made; None takes the shipped ones.
    threads
        Threads the network may use.

    Notes
    -----
    A clip is treated as a stream that ends in silence, and gives one frame for every 40 ms of it.
    After the 96 numbers come five attention logits for the pooling `attentive`.
    docs/model_card.md says how it was trained.

    Examples
    --------
    >>> TapwordEar().frames(np.full(16000, 0.1, dtype=np.float32))[0].shape
    (25, 101)
    """

    machine_arguments = ("weights", "threads")
    dims = (FRAME + HEADS,)
    hop = HOP

    weights: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self._require_threads()

    @property
    def network(self) -> "EarNetwork":
        """The network, opened once per process."""
        return _open(self.weights, self.threads)

    @property
    def params(self) -> int:
        """Trained parameters of the network."""
        return self.network.params

    @property
    def weights_sha256(self) -> str:
        """SHA-256 of the weights."""
        return self.network.sha256

    def stream(self) -> "EarStream":
        """Start a stream."""
        return EarStream(self.network)

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [EarStream(self.network, len(audio)).whole(audio)]


class EarStream(FrameStream):
    """Streams side by side, from their beginning.

    The state starts empty, as in training, which differs from a state after silence: after silence
    the network distinguishes fewer words.

    Parameters
    ----------
    network
        The network.
    count
        Number of streams.
    """

    def __init__(self, network: "EarNetwork", count: int = 1):
        self._network = network
        self._state = network.initial_state(count)
        # The end of the earlier audio, which the next log-mel windows overlap.
        self._before = np.zeros((count, OVERLAP), dtype=np.float32)
        # Frames still to drop: they describe what came before the stream.
        self._early = LATENCY_FRAMES

    def push(self, audio: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Take the next samples (n,), a whole number of hops."""
        sound = np.concatenate([self._before, audio[None]], axis=1)
        settled, self._state = self._network(mel_features(sound), self._state)
        self._before = sound[:, sound.shape[1] - OVERLAP :]
        early = min(self._early, settled.shape[1])
        self._early -= early
        ending = np.pad(self._before, ((0, 0), (0, LATENCY_FRAMES * HOP)))
        after, _ = self._network(mel_features(ending), self._state)
        return [settled[0, early:]], [after[0, self._early :]]

    def whole(self, audio: np.ndarray) -> np.ndarray:
        """Frames (b, t, 101) of whole clips (b, n), one for every 40 ms begun."""
        missing = -audio.shape[1] % HOP + LATENCY_FRAMES * HOP
        sound = np.pad(audio, ((0, 0), (OVERLAP, missing)))
        return self._network(mel_features(sound), self._state)[0][:, LATENCY_FRAMES:]


class EarNetwork:
    """The network with its weights.

    Parameters
    ----------
    path
        File of the weights.
    threads
        Threads it may use.

    Attributes
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution, float16.
    graph
        The network as an ONNX graph.
    """

    def __init__(self, path: Path, threads: int):
        self._path, self._threads = path, threads
        try:
            self.arrays = safetensors.numpy.load_file(path)
        except FileNotFoundError:
            raise InputError(f"tapword_ear: no weight file at {path}") from None
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise self._other() from error
        found = {name: array.shape for name, array in self.arrays.items()}
        if found != shapes() or not all(np.isfinite(one).all() for one in self.arrays.values()):
            raise self._other()
        self.graph = EarGraph(self.arrays)
        # Of the numbers alone: the file's notes may change.
        content = b"".join(self.arrays[name].tobytes() for name in sorted(self.arrays))
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.params = sum(array.size for array in self.arrays.values())

    @functools.cached_property
    def _session(self) -> Any:
        return open_session(self.graph.content(), self._threads)

    def _other(self) -> ModelFileError:
        return ModelFileError(f"{self._path} does not hold the weights of tapword_ear")

    def __call__(
        self, mel: np.ndarray, state: list[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute the next frames.

        Parameters
        ----------
        mel
            Log-mel frames (b, 4 t, 40), as `mel_features` gives them.
        state
            State after the frames before.

        Returns
        -------
        tuple
            Frames (b, t, 101), `LATENCY_FRAMES` behind the input, and the new state.
        """
        given = {"mel": np.ascontiguousarray(mel.transpose(0, 2, 1)[:, None])}
        given |= {f"before_{index}": one for index, one in enumerate(state)}
        frames, *state = self._session.run(None, given)
        return frames[:, :, 0].transpose(0, 2, 1), state

    def initial_state(self, count: int) -> list[np.ndarray]:
        """State at the beginning of `count` streams."""
        return [np.zeros((count, *shape), dtype=np.float32) for shape in self.graph.states]


class EarGraph(OnnxWriter):
    """The network as an ONNX graph: `mel` and the state give `frames` and the new state.

    The state's arrays are named `before_0`, `before_1`, ... and `after_0`, `after_1`, ...

    Parameters
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution.

    Attributes
    ----------
    states
        Shapes (channels, bands, time) of the state's arrays.
    convolved
        Names of the convolutions' inputs.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        super().__init__()
        self.states: list[tuple[int, int, int]] = []
        self.convolved: list[str] = []
        self._arrays = arrays
        self._kept: list[str] = []
        x = self.input("mel", ["batch", 1, BANDS, "time"])
        x = self._convolution(x, "first", (2, 2), bands=BANDS)
        bands = BANDS // 2
        for index, (stride, ahead) in enumerate(BAND_BLOCKS):
            x = self._block(x, f"bands.{index}", stride, ahead, bands)
            bands //= stride[0]
        # All bands of all channels become channels.
        x = self.node("Reshape", x, self.constant(np.array([0, -1, 1, 0])))
        x = self._convolution(x, "flat")
        for index, (stride, ahead) in enumerate(TIME_BLOCKS):
            x = self._block(x, f"time.{index}", stride, ahead, 1)
        x = self._convolution(x, "out", relu=False)
        self.output(x, "frames", ["batch", FRAME + HEADS, 1, "frames"])
        for index, (name, shape) in enumerate(zip(self._kept, self.states, strict=True)):
            self.output(name, f"after_{index}", ["batch", *shape])

    def _block(self, x: str, name: str, stride: tuple[int, int], ahead: int, bands: int) -> str:
        """Inverted residual block: expand, depthwise convolution, project, add the input."""
        y = self._convolution(x, f"{name}.widen")
        y = self._convolution(y, f"{name}.look", stride, bands, depthwise=True)
        y = self._convolution(y, f"{name}.narrow", relu=False)
        channels = self._arrays[f"{name}.widen.weight"].shape[1]
        if stride != (1, 1) or len(self._arrays[f"{name}.narrow.bias"]) != channels:
            return y
        if ahead:
            # The input is delayed by the look-ahead before it is added.
            x = self._last(self._after(x, ahead, channels, bands), ahead, but=True)
        return self.node("Add", x, y)

    def _convolution(
        self,
        x: str,
        name: str,
        stride: tuple[int, int] = (1, 1),
        bands: int = 1,
        depthwise: bool = False,
        relu: bool = True,
    ) -> str:
        weight, bias = (
            self._arrays[f"{name}.{kind}"].astype(np.float32) for kind in ("weight", "bias")
        )
        out, channels, high, wide = weight.shape
        if wide > 1:
            x = self._after(x, wide - 1, out if depthwise else channels, bands)
        edge = high // 2
        self.convolved.append(x)
        x = self.node(
            "Conv",
            x,
            self.constant(weight),
            self.constant(bias),
            group=out if depthwise else 1,
            strides=stride,
            pads=(edge, 0, edge, 0),
        )
        return self.node("Relu", x) if relu else x

    def _after(self, x: str, count: int, channels: int, bands: int) -> str:
        """Put the state's steps before `x`, and keep the last `count` steps as the new state."""
        shape = (channels, bands, count)
        before = self.input(f"before_{len(self.states)}", ["batch", *shape])
        self.states.append(shape)
        x = self.node("Concat", before, x, axis=3)
        self._kept.append(self._last(x, count))
        return x

    def _last(self, x: str, count: int, but: bool = False) -> str:
        """Take the last `count` steps of time, or all but them."""
        ends = (0, -count) if but else (-count, np.iinfo(np.int64).max)
        places = [self.constant(np.array([place])) for place in (*ends, 3)]
        return self.node("Slice", x, *places)


def shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the weights (out, in, bands, time) and biases by name."""
    blocks = [
        (f"bands.{index}", before, after, wide, (3, 3))
        for index, (before, after, wide) in enumerate(
            zip(BAND_CHANNELS[:-1], BAND_CHANNELS[1:], BAND_WIDE, strict=True)
        )
    ]
    sizes = (TIME_CHANNELS, TIME_CHANNELS, TIME_WIDE, (1, 7))
    blocks += [(f"time.{index}", *sizes) for index in range(len(TIME_BLOCKS))]
    # The first convolution and two blocks halve the bands.
    weights: dict[str, tuple[int, ...]] = {
        "first": (BAND_CHANNELS[0], 1, 5, 5),
        "flat": (TIME_CHANNELS, BAND_CHANNELS[-1] * (BANDS // 8), 1, 1),
        "out": (FRAME + HEADS, TIME_CHANNELS, 1, 1),
    }
    for name, before, after, wide, look in blocks:
        weights[f"{name}.widen"] = (wide, before, 1, 1)
        weights[f"{name}.look"] = (wide, 1, *look)
        weights[f"{name}.narrow"] = (after, wide, 1, 1)
    return {f"{name}.weight": shape for name, shape in weights.items()} | {
        f"{name}.bias": shape[:1] for name, shape in weights.items()
    }


def mel_features(audio: np.ndarray) -> np.ndarray:
    """Input of the network for audio (b, n): (b, 1 + (n - 400) // 160, 40)."""
    return (log_mel(audio, BANDS, LOW_HZ, HIGH_HZ) + np.float32(SHIFT)) / np.float32(SCALE)


@functools.lru_cache(maxsize=4)
def _open(weights: str | None, threads: int) -> EarNetwork:
    if weights is not None:
        return EarNetwork(Path(weights), threads)
    file = resources.files("tapword.assets").joinpath("tapword_ear.safetensors")
    with resources.as_file(file) as path:
        return EarNetwork(path, threads)
