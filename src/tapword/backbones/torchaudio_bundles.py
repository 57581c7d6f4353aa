"""Five of the paper's backbones, through torchaudio's bundles; they differ in constants."""

import hashlib
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from tapword.backbones.checkpoints import fill, fingerprint, hub_file, read_state
from tapword.backbones.torch_backbone import TorchBackbone, TorchNetwork

# Where torchaudio's bundles publish their weights; the library keeps it private.
SOURCE = "https://download.pytorch.org/torchaudio"


class Bundle(TorchBackbone):
    """A pre-trained network of torchaudio.

    Parameters
    ----------
    weights
        "pretrained" (from torch hub's cache, else downloaded), "random", or a file with a state
        dict: `.safetensors`, or what `torch.save` wrote.
    seed
        Of random weights.
    layer, device, half, threads
        See `TorchBackbone`.

    Attributes
    ----------
    bundle_name
        Its name in `torchaudio.pipelines`.
    layers
        Number of its transformer layers.
    width, inner_width
        Numbers per frame of its output and of an inner layer.
    """

    bundle_name: ClassVar[str]
    layers: ClassVar[int]
    width: ClassVar[int]
    inner_width: ClassVar[int]

    layer: int | None = None
    weights: str = "pretrained"
    seed: int = 0
    device: str = "auto"
    half: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        self._check(self.layers)
        self._require("weights", bool(self.weights), "pretrained, random or a file")
        self._require_whole("seed", 0)

    @abstractmethod
    def _fetch(self) -> Path:
        """Return the file of the pre-trained weights."""

    @property
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame."""
        return (self.width if self.layer is None else self.inner_width,)

    @property
    def machine_arguments(self) -> tuple[str, ...]:
        """Where it runs, and the weights if they are a file of this machine."""
        own = () if self.weights in ("pretrained", "random") else ("weights",)
        return (*own, "device", "half", "threads")

    def _hash(self) -> str:
        # Of the tensors; for random ones, of everything that determines them.
        if self.weights != "random":
            return self.network.sha256
        release = self._import("torch").__version__.partition("+")[0]
        return hashlib.sha256(f"{self.name} {self.seed} {release}".encode()).hexdigest()

    @property
    def bundle(self) -> Any:
        """Description by torchaudio: sizes, and where the weights are published."""
        self._import("torch")
        return getattr(self._import("torchaudio.pipelines"), self.bundle_name)

    def _identity(self) -> tuple:
        return (self.weights, self.seed if self.weights == "random" else None)

    def _build(self) -> TorchNetwork:
        torch = self._import("torch")
        if self.weights == "random":
            with torch.random.fork_rng(devices=[]):
                # torch.manual_seed would seed the caller's GPUs as well.
                torch.default_generator.manual_seed(self.seed)
                return TorchNetwork(self.make_model(), self._hash())
        path = self._fetch() if self.weights == "pretrained" else Path(self.weights)
        state = read_state(path, self.name)
        with torch.device("meta"):
            model = self.make_model()
        fill(model, self._own(state), self.name, path)
        model.float()
        return TorchNetwork(model, fingerprint(model.state_dict()))

    def _own(self, state: dict[str, Any]) -> dict[str, Any]:
        """Pick the tensors of a published file that belong to the encoder."""
        return state


class Wav2vec2Base(Bundle):
    """wav2vec 2.0 base, 94M parameters: 768 numbers every 20 ms (extra `torch`).

    Trained by Meta on 960 hours of LibriSpeech without labels (MIT). Arguments, here and in the
    four below: see `Bundle`. Where layers are normalised ahead (`hubert_large`, `hubert_xlarge`)
    the encoder's output is the last layer's, normalised; `layer=24` (48) gives it as it is.

    Examples
    --------
    >>> Wav2vec2Base(layer=6).dims
    (768,)
    """

    public_name = "wav2vec2_base"
    bundle_name = "WAV2VEC2_BASE"
    layers, width, inner_width = 12, 768, 768

    def make_model(self) -> Any:
        """Make the encoder with torchaudio's initial weights."""
        return self._import("torchaudio.models").wav2vec2_model(**self.bundle._params)

    def _fetch(self) -> Path:
        return hub_file(self.name, f"{SOURCE}/models/{self.bundle._path}", "checkpoints")

    def _run(self, network: TorchNetwork, audio: Any) -> Any:
        if self.bundle._normalize_waveform:
            # Each clip alone: torchaudio's wrapper would mix the clips of a batch.
            layer_norm = self._import("torch.nn.functional").layer_norm
            audio = layer_norm(audio, audio.shape[1:])
        audio = audio.to(next(network.model.parameters()).dtype)
        if self.layer is None:
            return network.model(audio)[0]
        return network.model.extract_features(audio, num_layers=self.layer)[0][-1]


class Wav2vec2Large(Wav2vec2Base):
    """wav2vec 2.0 large, 315M parameters: 1024 numbers every 20 ms (extra `torch`)."""

    public_name = "wav2vec2_large"
    bundle_name = "WAV2VEC2_LARGE"
    layers, width, inner_width = 24, 1024, 1024


class HubertBase(Wav2vec2Base):
    """HuBERT base, 94M parameters: 768 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_base"
    bundle_name = "HUBERT_BASE"


class HubertLarge(Wav2vec2Base):
    """HuBERT large, 315M parameters: 1024 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_large"
    bundle_name = "HUBERT_LARGE"
    layers, width, inner_width = 24, 1024, 1024


class HubertXlarge(Wav2vec2Base):
    """HuBERT extra large, 962M parameters: 1280 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_xlarge"
    bundle_name = "HUBERT_XLARGE"
    layers, width, inner_width = 48, 1280, 1280
