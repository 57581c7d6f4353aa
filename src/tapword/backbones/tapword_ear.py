"""tapword's own backbone: a small network that takes a stream frame by frame."""

import functools
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

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
# Samples between two frames.
HOP = 640
# Samples that two neighbouring log-mel windows share.
OVERLAP = WINDOW - STEP
# Where a weights file describes its network, and the shipped one, which has no description.
KEY = "network"


class Layout(NamedTuple):
    """What the shapes of the weights do not tell about the network.

    Attributes
    ----------
    bands
        Of each block over bands: stride over bands and over time, and steps of look-ahead.
    time
        Steps of look-ahead of each block over time.
    delay
        Frames by which it was trained to answer later than its look-ahead requires.
    heads
        Attention logits at the end of a frame, one for each head of the pooling.
    """

    bands: tuple[tuple[tuple[int, int], int], ...] = (
        ((1, 1), 1),
        ((2, 1), 1),
        ((1, 2), 1),
        ((1, 1), 0),
        ((2, 1), 0),
        ((1, 1), 0),
    )
    time: tuple[int, ...] = (1, 1, 1, 0, 0)
    delay: int = 2
    heads: int = 5

    @classmethod
    def parse(cls, text: str) -> "Layout":
        """Read the description in a weights file, JSON of the attributes by name."""
        given = json.loads(text)
        bands = tuple(((int(a), int(b)), int(ahead)) for (a, b), ahead in given["bands"])
        time = tuple(map(int, given["time"]))
        return cls(bands, time, int(given["delay"]), int(given["heads"]))

    @property
    def latency(self) -> int:
        """Frames by which the output lags behind the sound."""
        # The first convolution halves the time and looks 2 steps ahead.
        late, per_frame = 1, 2
        for (_, right), ahead in self.bands:
            late, per_frame = (late + ahead) // right, per_frame * right
        return late + sum(self.time) + self.delay


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
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame, attention logits included."""
        return (self.network.frame,)

    @property
    def latency(self) -> int:
        """Hops by which frames lag behind the sound."""
        return self.network.latency

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
        self._early = network.latency

    def advance(self, audio: np.ndarray) -> list[np.ndarray]:
        """Take the next samples (n,), a whole number of hops; return final frames."""
        sound = np.concatenate([self._before, audio[None]], axis=1)
        settled, self._state = self._network(mel_features(sound), self._state)
        self._before = sound[:, sound.shape[1] - OVERLAP :]
        early = min(self._early, settled.shape[1])
        self._early -= early
        return [settled[0, early:]]

    def provisional(self) -> list[np.ndarray]:
        """Compute the frames that follow in silence."""
        ending = np.pad(self._before, ((0, 0), (0, self._network.latency * HOP)))
        after, _ = self._network(mel_features(ending), self._state)
        return [after[0, self._early :]]

    def whole(self, audio: np.ndarray) -> np.ndarray:
        """Frames (b, t, d) of whole clips (b, n), one for every 40 ms begun."""
        late = self._network.latency
        sound = np.pad(audio, ((0, 0), (OVERLAP, -audio.shape[1] % HOP + late * HOP)))
        return self._network(mel_features(sound), self._state)[0][:, late:]


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
    layout
        The rest of its description.
    frame, latency
        Numbers per frame, and frames by which the output lags behind the sound.
    graph
        The network as an ONNX graph.
    """

    def __init__(self, path: Path, threads: int):
        self._path, self._threads = path, threads
        try:
            with safetensors.safe_open(path, "numpy") as file:
                described = (file.metadata() or {}).get(KEY)
                self.arrays = {name: file.get_tensor(name) for name in list(file.keys())}
            self.layout = Layout() if described is None else Layout.parse(described)
            fits = shapes(self.arrays, self.layout) == {
                name: array.shape for name, array in self.arrays.items()
            }
        except FileNotFoundError:
            raise InputError(f"tapword_ear: no weight file at {path}") from None
        except (OSError, LookupError, ValueError, TypeError, safetensors.SafetensorError) as error:
            raise self._other() from error
        if not fits or not all(np.isfinite(one).all() for one in self.arrays.values()):
            raise self._other()
        self.frame, self.latency = len(self.arrays["out.bias"]), self.layout.latency
        self.graph = EarGraph(self.arrays, self.layout)
        # Of the numbers and the layout alone: the file's other notes may change.
        content = b"".join(self.arrays[name].tobytes() for name in sorted(self.arrays))
        content += b"" if described is None else repr(self.layout).encode()
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
            Frames (b, t, d), `latency` behind the input, and the new state.
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
    layout
        The rest of the description.

    Attributes
    ----------
    states
        Shapes (channels, bands, time) of the state's arrays.
    convolved
        Names of the convolutions' inputs.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], layout: Layout):
        super().__init__()
        self.states: list[tuple[int, int, int]] = []
        self.convolved: list[str] = []
        self._arrays = arrays
        self._kept: list[str] = []
        x = self.input("mel", ["batch", 1, BANDS, "time"])
        x = self._convolution(x, "first", (2, 2), bands=BANDS)
        bands = BANDS // 2
        for index, (stride, ahead) in enumerate(layout.bands):
            x = self._block(x, f"bands.{index}", stride, ahead, bands)
            bands //= stride[0]
        # All bands of all channels become channels.
        x = self.node("Reshape", x, self.constant(np.array([0, -1, 1, 0])))
        x = self._convolution(x, "flat")
        for index, ahead in enumerate(layout.time):
            x = self._block(x, f"time.{index}", (1, 1), ahead, 1)
        x = self._convolution(x, "out", relu=False)
        self.output(x, "frames", ["batch", len(arrays["out.bias"]), 1, "frames"])
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


def shapes(arrays: Mapping[str, np.ndarray], layout: Layout) -> dict[str, tuple[int, ...]]:
    """Shapes that weights (out, in, bands, time) and biases must have to fit together, by name.

    The number of channels and the lengths of filters are those of `arrays`.
    """
    result: dict[str, tuple[int, ...]] = {}

    def convolution(name: str, inputs: int, high: int = 1, wide: int = 1) -> int:
        [out] = arrays[f"{name}.bias"].shape
        result[f"{name}.weight"], result[f"{name}.bias"] = (out, inputs, high, wide), (out,)
        return out

    def block(name: str, inputs: int, ahead: int) -> int:
        high, wide = arrays[f"{name}.look.weight"].shape[2:]
        if wide < 2 or not 0 <= ahead < wide or high % 2 != 1:
            raise ValueError(f"a filter of {high} bands and {wide} steps, {ahead} ahead")
        between = convolution(f"{name}.widen", inputs)
        if convolution(f"{name}.look", 1, high, wide) != between:
            raise ValueError(f"{name} has two widths")
        return convolution(f"{name}.narrow", between)

    bands = BANDS // 2
    channels = convolution("first", 1, 5, 5)
    for index, ((down, _), ahead) in enumerate(layout.bands):
        channels = block(f"bands.{index}", channels, ahead)
        bands //= down
    channels = convolution("flat", channels * bands)
    for index, ahead in enumerate(layout.time):
        channels = block(f"time.{index}", channels, ahead)
    if convolution("out", channels) <= layout.heads:
        raise ValueError("a frame holds attention logits alone")
    return result


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
