"""Any ONNX file that takes a waveform or log-mel frames.

Its inputs and two trial runs show how to feed it.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword.backbones.base import Backbone, Unavailable, first_line
from tapword.backbones.logmel import HIGH_HZ, LOW_HZ, log_mel
from tapword.backbones.onnx_files import count_parameters, onnx_package
from tapword.errors import InputError, ModelFileError
from tapword.support.onnx_sessions import onnx_runtime, open_session

# Types of ONNX inputs -> types of numpy.
FLOATS = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8"}
OTHERS = {"tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(bool)": "?"}


class Onnx(Backbone):
    """Any ONNX file that takes a waveform or log-mel frames (extra `onnx`).

    Parameters
    ----------
    file
        The ONNX file.
    input
        Its first input: "waveform" (n,), (b, n) or (b, 1, n), in [-1, 1] at 16 kHz; "logmel"
        (b, t, bands) or (b, bands, t), with or without one more axis of size 1; "auto" decides by
        the shape. Further inputs are a mask (b, n) or lengths (b,).
    output
        Name of the output that holds the frames; None: the first of three dimensions.
    layout
        Axes of that output: "btd" (b, t, d), "bdt" (b, d, t), "auto" tries clips of two lengths.
    low_hz, high_hz
        Range of the log-mel bands. The rest of the front end is that of `logmel`, with the
        input's number of bands.
    threads
        Threads the network may use.
    """

    machine_arguments = ("file", "threads")
    located_by = "file"

    file: str = ""
    input: str = "auto"
    output: str | None = None
    layout: str = "auto"
    low_hz: float = LOW_HZ
    high_hz: float = HIGH_HZ
    threads: int = 1

    def __post_init__(self) -> None:
        self._require_one_of("input", "auto", "waveform", "logmel")
        self._require_one_of("layout", "auto", "btd", "bdt")
        if not 0 <= self.low_hz < self.high_hz <= self.sample_rate / 2:
            raise InputError(f"onnx: no bands between {self.low_hz} and {self.high_hz} Hz")
        self._require_threads()

    @property
    def _path(self) -> str:
        if not self.file:
            raise Unavailable(
                "onnx: say which file: onnx:file=PATH "
                "(for a saved spotter: load(path, backbones=[...]))"
            )
        if not Path(self.file).is_file():
            raise InputError(f"onnx: no file at {self.file}")
        return str(Path(self.file).resolve())

    @property
    def _network(self) -> "OnnxNetwork":
        range_hz = (self.low_hz, self.high_hz)
        return _open(self._path, self.input, self.output, self.layout, range_hz, self.threads)

    @property
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame."""
        return (self._network.width,)

    @property
    def params(self) -> int:
        """Trained parameters of the network."""
        return self._network.params

    @property
    def weights_sha256(self) -> str:
        """SHA-256 of the file and of its external tensors, without opening the network."""
        return _read(self._path).sha256

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [self._network.frames(audio)]


class Feed(NamedTuple):
    """How audio becomes a network's first input."""

    bands: int | None  # log-mel bands; None for a waveform
    swapped: bool  # bands come before time
    extra_axis: int | None  # index of an additional axis of size 1
    batched: bool  # there is an axis for clips
    length: int | None  # samples it takes; None for any number


def read_feed(shape: list[Any], wanted: str, label: str) -> Feed:
    """Find out how to feed an input from its shape: numbers, or names for axes of any size."""
    rank = len(shape)
    channel = rank == 3 and shape[1] == 1
    if wanted == "waveform" or (wanted == "auto" and (rank <= 2 or channel)):
        if rank not in (1, 2) and not channel:
            raise InputError(f"{label}: its input {shape} is no waveform (n,), (b, n) or (b, 1, n)")
        length = shape[-1] if isinstance(shape[-1], int) else None
        return Feed(None, False, 1 if channel else None, rank > 1, length)
    inner = list(range(1, rank)) if rank > 2 else list(range(rank))
    extra_axis = next((axis for axis in inner if shape[axis] == 1), None) if rank == 4 else None
    inner = [axis for axis in inner if axis != extra_axis]
    fixed = [axis for axis in inner if isinstance(shape[axis], int)]
    if len(inner) != 2 or len(fixed) != 1:
        raise InputError(
            f"{label}: its input {shape} takes no log-mel frames, any number of them and a stated "
            "number of bands: (b, t, 32) or (b, 32, t)"
        )
    return Feed(shape[fixed[0]], fixed[0] == inner[0], extra_axis, rank > 2, None)


class OnnxNetwork:
    """A network, how to feed it, and the output that holds the frames.

    Arguments are those of `Onnx`; `range_hz` holds the lowest and the highest frequency.
    """

    def __init__(
        self,
        path: str,
        wanted: str,
        output: str | None,
        layout: str,
        range_hz: tuple[float, float],
        threads: int,
    ):
        self.label, self.range_hz = f"onnx: {path}", range_hz
        facts = _read(path)
        onnx_runtime("onnx")
        try:
            self.session = open_session(path, threads)
        except Exception as error:
            # onnxruntime raises a dozen unrelated types on a file that is no network.
            raise ModelFileError(
                f"{self.label} is not an ONNX network: {first_line(error)}"
            ) from error
        self.params = facts.params
        self.audio, *self.others = self.session.get_inputs()
        unsupported = [node for node in self.others if node.type not in FLOATS | OTHERS]
        if self.audio.type not in FLOATS or unsupported:
            inputs = ", ".join(f"{x.name} {x.type} {x.shape}" for x in self.session.get_inputs())
            raise InputError(f"{self.label} does not begin with audio; its inputs: {inputs}")
        self.feed = read_feed(list(self.audio.shape), wanted, self.label)
        # Dynamic quantisation scales by a batch's largest number: neighbours would change a clip.
        self.alone = facts.dynamic or not self.feed.batched or self.audio.shape[0] == 1
        self._choose(output, layout)

    def frames(self, audio: np.ndarray) -> np.ndarray:
        """(b, n) float32 -> (b, t, d) float32."""
        parts = audio[:, None] if self.alone else [audio]
        blocks = [self._run(part, [self.output])[0] for part in parts]
        shaped = [block.reshape(len(parts[0]), *block.shape[-2:]) for block in blocks]
        frames = np.concatenate(shaped).astype(np.float32, copy=False)
        return np.ascontiguousarray(frames.transpose(0, 2, 1)) if self.swapped else frames

    def _choose(self, output: str | None, layout: str) -> None:
        """Find the output and its time axis, the one that grows from 1 s to 2 s of audio."""
        names = [node.name for node in self.session.get_outputs()]
        if output is not None and output not in names:
            raise InputError(f"{self.label} has no output {output!r}; it has: {', '.join(names)}")
        noise = 0.1 * np.random.default_rng(0).standard_normal((1, 32_000), dtype=np.float32)
        lengths = [self.feed.length] if self.feed.length else [16_000, 32_000]
        trials = [self._run(np.resize(noise, (1, length)), names) for length in lengths]
        ranks = (3,) if self.feed.batched else (2, 3)
        found = [
            index
            for index, array in enumerate(trials[0])
            if array.ndim in ranks and array.dtype.kind == "f" and output in (None, names[index])
        ]
        if not found:
            shapes = [f"{name} {x.shape}" for name, x in zip(names, trials[0], strict=True)]
            given = ", ".join(shapes)
            raise InputError(f"{self.label} gives no frames (b, t, d); its outputs: {given}")
        shapes_of_trials = [trial[found[0]].shape[-2:] for trial in trials]
        self.output = names[found[0]]
        if layout == "auto":
            growing = [axis for axis in (0, 1) if len({s[axis] for s in shapes_of_trials}) > 1]
            if len(growing) != 1:
                raise InputError(
                    f"{self.label}: cannot tell time from features in {self.output} "
                    f"{shapes_of_trials[0]}; say layout=btd (time first) or layout=bdt"
                )
            layout = "btd" if growing == [0] else "bdt"
        self.swapped = layout == "bdt"
        self.width = int(shapes_of_trials[0][0 if self.swapped else 1])

    def _run(self, audio: np.ndarray, outputs: list[str]) -> list[np.ndarray]:
        feed, count = self.feed, audio.shape[1]
        if feed.length not in (None, count):
            raise InputError(f"{self.label} takes {feed.length} samples, the clip has {count}")
        given = audio
        if feed.bands is not None:
            given = log_mel(audio, feed.bands, *self.range_hz)
            count = given.shape[1]
            given = given.transpose(0, 2, 1) if feed.swapped else given
        if feed.extra_axis is not None:
            given = np.expand_dims(given, feed.extra_axis)
        if not feed.batched:
            given = given[0]
        inputs = {self.audio.name: given.astype(FLOATS[self.audio.type])}
        for node in self.others:
            # Further inputs are a mask (b, n) or lengths (b,); clips of a batch have one length.
            kind = (FLOATS | OTHERS)[node.type]
            mask = np.ones((len(audio), count), dtype=kind)
            lengths = np.full(len(audio), count).astype(kind)
            inputs[node.name] = mask if len(node.shape) == 2 else lengths
        try:
            return self.session.run(outputs, inputs)
        except Exception as error:
            taken = f"{self.label} cannot take a clip of {audio.shape[1]} samples"
            raise InputError(f"{taken}: {first_line(error)}") from error


_open = lru_cache(maxsize=4)(OnnxNetwork)


class FileFacts(NamedTuple):
    """Facts about a file that is not run.

    Attributes
    ----------
    sha256
        Hash of the file and its external tensors.
    params
        Number of trained parameters.
    dynamic
        Whether it is quantised dynamically, by the largest number of a batch.
    """

    sha256: str
    params: int
    dynamic: bool


@lru_cache(maxsize=4)
def _read(path: str) -> FileFacts:
    """Read a file's facts without running it."""
    onnx = onnx_package("onnx")
    content = Path(path).read_bytes()
    digest = hashlib.sha256(content)
    try:
        model = onnx.load_model_from_string(content)
        entries = [entry for tensor in model.graph.initializer for entry in tensor.external_data]
        for place in sorted({entry.value for entry in entries if entry.key == "location"}):
            digest.update(Path(path).with_name(place).read_bytes())
    except Exception as error:
        # onnx raises its parser's own types.
        raise ModelFileError(f"onnx: {path} is not an ONNX network: {first_line(error)}") from error
    dynamic = any(node.op_type.startswith("DynamicQuantize") for node in model.graph.node)
    return FileFacts(digest.hexdigest(), count_parameters(model), dynamic)
