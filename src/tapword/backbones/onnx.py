"""Any ONNX file that takes a waveform or log-mel frames."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from tapword.backbones.base import Backbone, Unavailable
from tapword.backbones.logmel import HIGH_HZ, LOW_HZ
from tapword.backbones.onnx_graph import Graph
from tapword.errors import InputError

INPUTS = ("auto", "waveform", "logmel")
LAYOUTS = ("auto", "btd", "bdt")


class Onnx(Backbone):
    """Any ONNX file that takes a waveform or log-mel frames.

    Parameters
    ----------
    file
        The ONNX file.
    input
        What its first input takes: "waveform" (n,), (b, n) or (b, 1, n), in [-1, 1] at 16 kHz;
        "logmel" (b, t, bands) or (b, bands, t), with or without one more axis of size 1; "auto"
        tells by the shape. Further inputs are a mask (b, n) or lengths (b,).
    output
        Name of the output that holds the frames; None: the first of three dimensions.
    layout
        Of that output: "btd" (b, t, d), "bdt" (b, d, t), "auto" tells by clips of two lengths.
    low_hz, high_hz
        Range of the log-mel bands; otherwise the front end is that of `logmel`, with as many
        bands as the input has.
    threads
        Threads the network may use.
    """

    machine_arguments = ("file", "threads")

    def __init__(
        self,
        file: str = "",
        input: str = "auto",
        output: str | None = None,
        layout: str = "auto",
        low_hz: float = LOW_HZ,
        high_hz: float = HIGH_HZ,
        threads: int = 1,
    ):
        self.file = file
        self.input = input
        self.output = output
        self.layout = layout
        self.low_hz = low_hz
        self.high_hz = high_hz
        self.threads = threads
        for name, value, known in (("input", input, INPUTS), ("layout", layout, LAYOUTS)):
            if value not in known:
                raise InputError(f"onnx: {name} must be of {', '.join(known)}; got {value!r}")
        if not 0 <= low_hz < high_hz <= self.sample_rate / 2:
            raise InputError(f"onnx: no bands lie between {low_hz} and {high_hz} Hz")
        if threads < 1:
            raise InputError(f"onnx: threads must be at least 1, got {threads}")

    @property
    def _graph(self) -> Graph:
        if not self.file:
            raise Unavailable(
                "onnx: say which file: onnx:file=PATH "
                "(for a saved spotter: load(path, backbones=[...]))"
            )
        if not Path(self.file).is_file():
            raise InputError(f"onnx: no file at {self.file}")
        hertz = (self.low_hz, self.high_hz)
        path = str(Path(self.file).resolve())
        return _load(path, self.input, self.output, self.layout, hertz, self.threads)

    @property
    def dims(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers per frame."""
        return (self._graph.width,)

    @property
    def params(self) -> int:  # type: ignore[override]
        """Trained parameters of the network."""
        return self._graph.params

    @property
    def weights_sha256(self) -> str:  # type: ignore[override]
        """SHA-256 of the file."""
        return self._graph.sha256

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [self._graph.frames(audio)]


@lru_cache(maxsize=4)
def _load(
    path: str,
    wanted: str,
    output: str | None,
    layout: str,
    range_hz: tuple[float, float],
    threads: int,
) -> Graph:
    """Open a file; once per process."""
    return Graph(path, wanted, output, layout, range_hz, threads)
