"""tapword's own backbone: a small network that takes a stream frame by frame."""

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import ClassVar

import numpy as np
import safetensors
import safetensors.numpy

from tapword.backbones.base import Backbone, FrameStream
from tapword.backbones.ear_layers import BlockKind, Layers, Observer
from tapword.backbones.logmel import STEP, WINDOW, log_mel
from tapword.errors import InputError, ModelFileError
from tapword.support.threads import one_blas_thread

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
# Of each block over bands: stride over bands and over time, and steps of look-ahead. Blocks over
# time have no stride, and the first of them look ahead.
BAND_BLOCKS = ((1, 1), 1), ((2, 1), 1), ((1, 2), 1), ((1, 1), 0), ((2, 1), 0), ((1, 1), 0)
TIME_AHEAD = 3
# Log-mel frames that pass the network together, of one clip or of several: about four seconds. More
# take longer each, outside a core's cache, and more memory.
AT_ONCE = 512


class TapwordEar(Backbone):
    """tapword's own network, 0.84M parameters: 96 numbers every 40 ms, as a stream.

    Parameters
    ----------
    weights
        Path of weights that `training/ear` made; None takes the shipped ones.
    threads
        Threads the network may use for several clips.

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
    # File of the shipped weights, and hops of silence that pass the network before a stream.
    shipped: ClassVar[str] = "tapword_ear.safetensors"
    silence_before: ClassVar[int] = 0

    weights: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self._require_threads()

    @property
    def network(self) -> "EarNetwork":
        """The network, opened once per process."""
        given = self.weights
        return _open(self.shipped, True) if given is None else _open(given, False)

    @property
    def latency(self) -> int:
        """Hops by which frames lag behind the sound."""
        return LATENCY_FRAMES

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
        return EarStream(self.network, 1, self.silence_before)

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        clips = max(1, AT_ONCE * STEP // (audio.shape[1] + LATENCY_FRAMES * HOP))
        parts = [audio[start : start + clips] for start in range(0, len(audio), clips)]
        if self.threads == 1 or len(parts) == 1:
            return [np.concatenate([self._whole(part) for part in parts])]
        with ThreadPoolExecutor(min(self.threads, len(parts))) as pool:
            return [np.concatenate(list(pool.map(self._whole, parts)))]

    def _whole(self, audio: np.ndarray) -> np.ndarray:
        return EarStream(self.network, len(audio), self.silence_before).whole(audio)


class EarStream(FrameStream):
    """Streams side by side, from their beginning.

    Parameters
    ----------
    network
        The network.
    count
        Number of streams.
    silence_before
        Hops of silence before the streams. Without any, the state starts empty, which differs from
        a state after silence.
    """

    def __init__(self, network: "EarNetwork", count: int = 1, silence_before: int = 0):
        self._network = network
        self._state = network.initial_state(count, silence_before)
        # The end of the earlier audio, which the next log-mel windows overlap.
        self._before = np.zeros((count, OVERLAP), dtype=np.float32)
        # Frames still to drop: they describe what came before the stream.
        self._early = LATENCY_FRAMES

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
        ending = np.pad(self._before, ((0, 0), (0, LATENCY_FRAMES * HOP)))
        after, _ = self._network(mel_features(ending), self._state)
        return [after[0, self._early :]]

    def whole(self, audio: np.ndarray) -> np.ndarray:
        """Frames (b, t, d) of whole clips (b, n), one for every 40 ms begun."""
        missing = -audio.shape[1] % HOP + LATENCY_FRAMES * HOP
        sound = np.pad(audio, ((0, 0), (OVERLAP, missing)))
        return self._network(mel_features(sound), self._state)[0][:, LATENCY_FRAMES:]


class EarNetwork:
    """The network with its weights.

    Parameters
    ----------
    path
        File of the weights.

    Attributes
    ----------
    arrays
        Weights (out, in, bands, time) and biases of each convolution, float16.
    """

    def __init__(self, path: Path):
        other = ModelFileError(f"{path} does not hold the weights of ear_s or tapword_ear")
        try:
            self.arrays = safetensors.numpy.load_file(path)
        except FileNotFoundError:
            raise InputError(f"ear_s or tapword_ear: no weight file at {path}") from None
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise other from error
        if not _fit(self.arrays):
            raise other
        self._layers = Layers(self.arrays, BANDS, BAND_BLOCKS, time_blocks(self.arrays))
        # Of the numbers alone: the file's notes may change.
        content = b"".join(self.arrays[name].tobytes() for name in sorted(self.arrays))
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.params = sum(array.size for array in self.arrays.values())
        self._after_silence: dict[int, list[np.ndarray]] = {}

    @one_blas_thread
    def __call__(
        self, mel: np.ndarray, state: Sequence[np.ndarray], observe: Observer | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute the next frames.

        Parameters
        ----------
        mel
            Log-mel frames (b, 4 t, 40), as `mel_features` gives them.
        state
            State after the frames before.
        observe
            Called with the name and the input of every convolution, piece by piece.

        Returns
        -------
        tuple
            Frames (b, t, d), `LATENCY_FRAMES` behind the input, and the new state.
        """
        if mel.shape[1] <= AT_ONCE:
            return self._layers(mel, state, observe)
        frames = []
        for start in range(0, mel.shape[1], AT_ONCE):
            made, state = self._layers(mel[:, start : start + AT_ONCE], state, observe)
            frames.append(made)
        return np.concatenate(frames, axis=1), list(state)

    def initial_state(self, count: int, silence_before: int = 0) -> list[np.ndarray]:
        """State at the beginning of `count` streams: arrays (count, time, bands * channels).

        Hops of silence before them are computed once.
        """
        if not silence_before:
            return self._layers.initial_state(count)
        if silence_before not in self._after_silence:
            silence = np.zeros((1, OVERLAP + silence_before * HOP), dtype=np.float32)
            _, state = self(mel_features(silence), self._layers.initial_state(1))
            self._after_silence[silence_before] = state
        return [np.repeat(one, count, axis=0) for one in self._after_silence[silence_before]]


def time_blocks(arrays: Mapping[str, np.ndarray]) -> tuple[BlockKind, ...]:
    """Describe the blocks over time of weights: the first ones look ahead."""
    count = sum(name.startswith("time.") and name.endswith(".look.bias") for name in arrays)
    return tuple(((1, 1), int(index < TIME_AHEAD)) for index in range(count))


def _fit(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether weights (out, in, bands, time) and biases are those of such a network.

    Numbers of channels are free, but one layer's outputs are the next one's inputs.
    """
    found = {name: array.shape for name, array in arrays.items()}
    wanted: dict[str, tuple[int, ...]] = {}

    def layer(name: str, inputs: int, bands: int = 1, time: int = 1) -> int:
        out = math.prod(found[f"{name}.bias"])
        wanted[f"{name}.weight"], wanted[f"{name}.bias"] = (out, inputs, bands, time), (out,)
        return out

    def block(name: str, inputs: int, bands: int, time: int) -> int:
        wide = layer(f"{name}.widen", inputs)
        same = layer(f"{name}.look", 1, bands, time) == wide
        return layer(f"{name}.narrow", wide) if same else 0

    try:
        channels = layer("first", 1, 5, 5)
        for index in range(len(BAND_BLOCKS)):
            channels = block(f"bands.{index}", channels, 3, 3)
        # The first convolution and two blocks halve the bands.
        channels = layer("flat", channels * (BANDS // 8))
        for index in range(len(time_blocks(arrays))):
            channels = block(f"time.{index}", channels, 1, 7)
        layer("out", channels)
    except KeyError:
        return False
    return found == wanted and all(np.isfinite(one).all() for one in arrays.values())


def mel_features(audio: np.ndarray) -> np.ndarray:
    """Input of the network for audio (b, n): (b, 1 + (n - 400) // 160, 40)."""
    return (log_mel(audio, BANDS, LOW_HZ, HIGH_HZ) + np.float32(SHIFT)) / np.float32(SCALE)


@functools.lru_cache(maxsize=4)
def _open(weights: str, shipped: bool) -> EarNetwork:
    if not shipped:
        return EarNetwork(Path(weights))
    with resources.as_file(resources.files("tapword.assets").joinpath(weights)) as path:
        return EarNetwork(path)
