"""A foreign ONNX graph: how it wants to be fed, read off its inputs and off two trial runs."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword.backbones.logmel import log_mel
from tapword.backbones.sessions import count_parameters, open_session
from tapword.errors import InputError, ModelFileError

FLOATS = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8"}
OTHERS = {"tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(bool)": "?"}


class Feed(NamedTuple):
    """How audio becomes the first input.

    Attributes
    ----------
    bands
        Log-mel bands it takes; None: the waveform.
    swapped
        Whether bands come before time.
    lone
        Axis of size 1 it wants beside them; None where there is none.
    batched
        Whether it has an axis for clips.
    length
        Samples it takes; None: any number.
    """

    bands: int | None
    swapped: bool
    lone: int | None
    batched: bool
    length: int | None


def read_feed(shape: list[Any], wanted: str, label: str) -> Feed:
    """Tell from an input's shape (numbers, or names where it is free) how to feed it."""
    rank = len(shape)
    channel = rank == 3 and shape[1] == 1
    if wanted == "waveform" or (wanted == "auto" and (rank <= 2 or channel)):
        if rank not in (1, 2) and not channel:
            raise InputError(f"{label}: its input {shape} is no waveform (n,), (b, n) or (b, 1, n)")
        length = shape[-1] if isinstance(shape[-1], int) else None
        return Feed(None, False, 1 if channel else None, rank > 1, length)
    inner = list(range(1, rank)) if rank > 2 else list(range(rank))
    lone = next((axis for axis in inner if shape[axis] == 1), None) if rank == 4 else None
    inner = [axis for axis in inner if axis != lone]
    fixed = [axis for axis in inner if isinstance(shape[axis], int)]
    if len(inner) != 2 or len(fixed) != 1:
        raise InputError(
            f"{label}: its input {shape} takes no log-mel frames, any number of them and a stated "
            "number of bands: (b, t, 32) or (b, 32, t)"
        )
    return Feed(shape[fixed[0]], fixed[0] == inner[0], lone, rank > 2, None)


class Graph:
    """A session, how it is fed, and which of its outputs holds the frames.

    Parameters
    ----------
    path
        The ONNX file.
    wanted
        "waveform", "logmel" or "auto".
    output
        Name of the output; None: the first that holds frames.
    layout
        "btd", "bdt" or "auto".
    range_hz
        Lowest and highest frequency of the log-mel bands.
    threads
        Threads one call may use.
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
        import onnx

        self.label, self.range_hz = f"onnx: {path}", range_hz
        try:
            model = onnx.load(path, load_external_data=False)
            self.session = open_session(path, threads)
        except Exception as error:
            # onnx and onnxruntime raise a dozen unrelated types on a file that is no network.
            reason = str(error).partition("\n")[0]
            raise ModelFileError(f"{self.label} is no ONNX network: {reason}") from error
        self.sha256, self.params = _digest(path, model), count_parameters(model)
        self.audio, *self.others = self.session.get_inputs()
        strange = [node for node in self.others if node.type not in FLOATS | OTHERS]
        if self.audio.type not in FLOATS or strange:
            inputs = ", ".join(f"{x.name} {x.type} {x.shape}" for x in self.session.get_inputs())
            raise InputError(f"{self.label} does not begin with audio; its inputs: {inputs}")
        self.feed = read_feed(list(self.audio.shape), wanted, self.label)
        # Such graphs round by the largest number of the batch: neighbours would change a clip.
        rounding = any(node.op_type.startswith("DynamicQuantize") for node in model.graph.node)
        self.alone = rounding or not self.feed.batched or self.audio.shape[0] == 1
        self._choose(output, layout)

    def frames(self, audio: np.ndarray) -> np.ndarray:
        """(b, n) float32 -> (b, t, d) float32."""
        parts = audio[:, None] if self.alone else [audio]
        blocks = [self._run(part, [self.output])[0] for part in parts]
        shaped = [block.reshape(len(parts[0]), *block.shape[-2:]) for block in blocks]
        frames = np.concatenate(shaped).astype(np.float32, copy=False)
        return np.ascontiguousarray(frames.transpose(0, 2, 1)) if self.swapped else frames

    def _choose(self, output: str | None, layout: str) -> None:
        """Find the output, and its time axis: the one that grows from 1 s to 2 s of audio."""
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
            shapes = ", ".join(
                f"{name} {x.shape}" for name, x in zip(names, trials[0], strict=True)
            )
            raise InputError(f"{self.label} gives no frames (b, t, d); its outputs: {shapes}")
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
        if feed.lone is not None:
            given = np.expand_dims(given, feed.lone)
        if not feed.batched:
            given = given[0]
        inputs = {self.audio.name: given.astype(FLOATS[self.audio.type])}
        for node in self.others:
            # Beside audio stand a mask (b, n) or lengths (b,); clips of a batch are equally long.
            kind = (FLOATS | OTHERS)[node.type]
            mask = np.ones((len(audio), count), dtype=kind)
            lengths = np.full(len(audio), count).astype(kind)
            inputs[node.name] = mask if len(node.shape) == 2 else lengths
        try:
            return self.session.run(outputs, inputs)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"{self.label} cannot take a clip of {audio.shape[1]} samples: {reason}"
            ) from error


def _digest(path: str, model: Any) -> str:
    """SHA-256 of the file and of those that hold its large tensors."""
    places = {
        entry.value
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    digest = hashlib.sha256(Path(path).read_bytes())
    for place in sorted(places):
        digest.update(Path(path).with_name(place).read_bytes())
    return digest.hexdigest()
