"""Our own backbone: a small network that hears a stream frame by frame."""

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
from tapword.backbones.onnx_graph import Graph
from tapword.backbones.sessions import open_session
from tapword.errors import InputError, ModelFileError

# What it hears: log-mel bands of so many hertz, moved and scaled.
BANDS, LOW_HZ, HIGH_HZ = 40, 60.0, 7600.0
SHIFT, SCALE = 2.0, 3.0
# Samples between two frames. A frame comes this many frames after the sound it is of: five for
# what the network sees ahead, two by which it was trained to answer late.
HOP = 640
LATE = 5 + 2
# Samples that a log-mel frame hears beyond its own: so much of the sound before is heard again.
OVERLAP = WINDOW - STEP
# Numbers of a frame, and those after them that say where in a word to look.
FRAME, LOOKS = 96, 5
# Of each block of the network: steps of bands and of time between two outputs, and steps of the
# future that it sees.
BAND_BLOCKS = ((1, 1), 1), ((2, 1), 1), ((1, 2), 1), ((1, 1), 0), ((2, 1), 0), ((1, 1), 0)
TIME_BLOCKS = (((1, 1), 1),) * 3 + (((1, 1), 0),) * 2
# Channels before, between and after the blocks over bands, and of each where it is wide; channels
# of those over time.
BAND_CHANNELS, BAND_WIDE = (24, 24, 32, 40, 40, 64, 64), (48, 72, 96, 120, 160, 192)
TIME_CHANNELS, TIME_WIDE = 184, 368


class TapwordEar(Backbone):
    """Our own ear, 0.84M parameters: 96 numbers every 40 ms, heard as a stream.

    Parameters
    ----------
    weights
        Path of weights that `training/ear` made; None takes those that are shipped.
    threads
        Threads the network may use.

    Notes
    -----
    A clip is heard as it would be in a stream, between silence and silence, and gives one frame for
    every 40 ms of it. After the 96 numbers come five that say where in a word to look, for the
    pooling `attentive`. docs/model_card.md says how it was trained.

    Examples
    --------
    >>> TapwordEar().frames(np.full(16000, 0.1, dtype=np.float32))[0].shape
    (25, 101)
    """

    machine_arguments = ("weights", "threads")
    dims = (FRAME + LOOKS,)
    hop = HOP

    weights: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self._require_threads()

    @property
    def network(self) -> "Network":
        """The network, opened once per process."""
        return _open(self.weights, self.threads)

    @property
    def params(self) -> int:  # type: ignore[override]
        """Trained parameters of the network."""
        return self.network.params

    @property
    def weights_sha256(self) -> str:  # type: ignore[override]
        """SHA-256 of the weights."""
        return self.network.sha256

    def stream(self) -> "EarStream":
        """Begin to hear a stream."""
        return EarStream(self.network)

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [EarStream(self.network, len(audio)).whole(audio)]


class EarStream(FrameStream):
    """Streams that the ear hears side by side from their beginning.

    Nothing was heard before it, which is not the same as silence: the ear was trained on windows
    that begin so. After silence it tells fewer words apart.

    Parameters
    ----------
    network
        Of the ear.
    count
        How many streams.
    """

    def __init__(self, network: "Network", count: int = 1):
        self._network = network
        self._state = network.nothing(count)
        # Of the sound before, as much as the next log-mel frames hear of it.
        self._before = np.zeros((count, OVERLAP), dtype=np.float32)
        # Frames that are still to come and are of nothing.
        self._early = LATE

    def hear(self, audio: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Hear what follows, whole hops of it."""
        sound = np.concatenate([self._before, audio[None]], axis=1)
        settled, self._state = self._network(hear(sound), self._state)
        self._before = sound[:, sound.shape[1] - OVERLAP :]
        early = min(self._early, settled.shape[1])
        self._early -= early
        ending = np.pad(self._before, ((0, 0), (0, LATE * HOP)))
        after, _ = self._network(hear(ending), self._state)
        return [settled[0, early:]], [after[0, self._early :]]

    def whole(self, audio: np.ndarray) -> np.ndarray:
        """Give all frames (b, t, 101) of clips (b, n), one for every 40 ms that they begin."""
        missing = -audio.shape[1] % HOP + LATE * HOP
        sound = np.pad(audio, ((0, 0), (OVERLAP, missing)))
        return self._network(hear(sound), self._state)[0][:, LATE:]


class Network:
    """The network with its weights.

    Parameters
    ----------
    path
        Of the weights.
    threads
        That it may use.

    Attributes
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution, float16.
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
        self._graph = _Stream(self.arrays)
        # Of the numbers alone: what is said of them beside them may change.
        content = b"".join(self.arrays[name].tobytes() for name in sorted(self.arrays))
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.params = sum(array.size for array in self.arrays.values())

    @functools.cached_property
    def _session(self) -> Any:
        return open_session(self.graph(), self._threads)

    def _other(self) -> ModelFileError:
        return ModelFileError(f"{self._path} does not hold the weights of tapword_ear")

    def __call__(
        self, mel: np.ndarray, state: list[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Hear what follows.

        Parameters
        ----------
        mel
            Log-mel frames (b, 4 t, 40), as `hear` gives them.
        state
            What was kept of what came before.

        Returns
        -------
        tuple
            Frames (b, t, 101), which are of sound that came seven frames earlier, and what to keep.
        """
        given = {"mel": np.ascontiguousarray(mel.transpose(0, 2, 1)[:, None])}
        given |= {f"before_{index}": one for index, one in enumerate(state)}
        frames, *state = self._session.run(None, given)
        return frames[:, :, 0].transpose(0, 2, 1), state

    def nothing(self, count: int) -> list[np.ndarray]:
        """Give what is kept before anything was heard, for `count` streams at once."""
        return [np.zeros((count, *shape), dtype=np.float32) for shape in self._graph.states]

    def graph(self) -> bytes:
        """Give the network as an ONNX file: `mel` and what was kept -> `frames` and what to keep.

        What is kept is named `before_0`, `before_1`, ... and `after_0`, `after_1`, ...
        """
        return self._graph.content()

    def graph_with_inputs(self) -> tuple[bytes, list[str]]:
        """Give the same with what each convolution hears coming out, too, and the names of it."""
        return self._graph.content(self._graph.convolved), self._graph.convolved


class _Stream(Graph):
    """The network as a graph: log-mel frames and what was kept -> frames and what to keep.

    Parameters
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution.

    Attributes
    ----------
    states
        Shapes (channels, bands, time) of what is kept.
    convolved
        What each convolution hears, by name.
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
        self.output(x, "frames", ["batch", FRAME + LOOKS, 1, "frames"])
        for index, (name, shape) in enumerate(zip(self._kept, self.states, strict=True)):
            self.output(name, f"after_{index}", ["batch", *shape])

    def _block(self, x: str, name: str, stride: tuple[int, int], ahead: int, bands: int) -> str:
        """Widen, look around in each channel, narrow, and add the input where shapes allow."""
        y = self._convolution(x, f"{name}.widen")
        y = self._convolution(y, f"{name}.look", stride, bands, depthwise=True)
        y = self._convolution(y, f"{name}.narrow", relu=False)
        channels = self._arrays[f"{name}.widen.weight"].shape[1]
        if stride != (1, 1) or len(self._arrays[f"{name}.narrow.bias"]) != channels:
            return y
        if ahead:
            # What is added waits for what lies ahead of it.
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
        """Put what was kept of earlier steps before what comes, and keep its last `count` steps."""
        shape = (channels, bands, count)
        before = self.input(f"before_{len(self.states)}", ["batch", *shape])
        self.states.append(shape)
        x = self.node("Concat", before, x, axis=3)
        self._kept.append(self._last(x, count))
        return x

    def _last(self, x: str, count: int, but: bool = False) -> str:
        """Give the last `count` steps of time, or all but them."""
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
        "out": (FRAME + LOOKS, TIME_CHANNELS, 1, 1),
    }
    for name, before, after, wide, look in blocks:
        weights[f"{name}.widen"] = (wide, before, 1, 1)
        weights[f"{name}.look"] = (wide, 1, *look)
        weights[f"{name}.narrow"] = (after, wide, 1, 1)
    return {f"{name}.weight": shape for name, shape in weights.items()} | {
        f"{name}.bias": shape[:1] for name, shape in weights.items()
    }


def hear(audio: np.ndarray) -> np.ndarray:
    """Turn audio (b, n) into what the network hears, (b, 1 + (n - 400) // 160, 40)."""
    return (log_mel(audio, BANDS, LOW_HZ, HIGH_HZ) + np.float32(SHIFT)) / np.float32(SCALE)


@functools.lru_cache(maxsize=4)
def _open(weights: str | None, threads: int) -> Network:
    if weights is not None:
        return Network(Path(weights), threads)
    file = resources.files("tapword.assets").joinpath("tapword_ear.safetensors")
    with resources.as_file(file) as path:
        return Network(path, threads)
