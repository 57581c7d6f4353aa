"""Five of the paper's backbones, through torchaudio's bundles; they differ in constants."""

import hashlib
from abc import abstractmethod
from pathlib import Path
from typing import Any

from tapword.backbones.checkpoints import fill, fingerprint, hub_file, read_state
from tapword.backbones.torch_backbone import Network, TorchBackbone
from tapword.errors import InputError

# Where torchaudio's bundles publish their weights; the library keeps it private.
SOURCE = "https://download.pytorch.org/torchaudio"


class Bundle(TorchBackbone):
    """A pre-trained network of torchaudio.

    Attributes
    ----------
    layers
        Its transformer layers.
    width, inner_width
        Numbers per frame of its output and of an inner layer.
    """

    layers: int
    width: int
    inner_width: int

    def __init__(
        self,
        layer: int | None = None,
        weights: str = "pretrained",
        seed: int = 0,
        device: str = "auto",
        half: bool = True,
        threads: int | None = None,
    ):
        self.layer = layer
        self.weights = weights
        self.seed = seed
        self.device = device
        self.half = half
        self.threads = threads
        self._check(self.layers)
        if not weights:
            raise InputError(f"{self.name}: weights must be pretrained, random or a file")

    @property
    @abstractmethod
    def bundle(self) -> str:
        """Name in `torchaudio.pipelines`."""

    @abstractmethod
    def _make(self, bundle: Any) -> Any:
        """Make the encoder with torchaudio's initial weights."""

    @abstractmethod
    def _fetch(self, bundle: Any) -> Path:
        """Give the file of the pre-trained weights."""

    @property
    def dims(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers per frame."""
        return (self.width if self.layer is None else self.inner_width,)

    @property
    def machine_arguments(self) -> tuple[str, ...]:  # type: ignore[override]
        """Where it runs, and the weights where they are a file of this machine."""
        own = () if self.weights in ("pretrained", "random") else ("weights",)
        return (*own, "device", "half", "threads")

    @property
    def params(self) -> int:  # type: ignore[override]
        """Trained parameters of the encoder, counted without making them."""
        torch = self._import("torch")
        with torch.device("meta"):
            model = self._make(self._bundle)
        return sum(parameter.numel() for parameter in model.parameters())

    @property
    def weights_sha256(self) -> str:  # type: ignore[override]
        """Hash of the tensors; for random ones, of all that makes them what they are."""
        if self.weights != "random":
            return self._network.sha256
        release = self._import("torch").__version__.partition("+")[0]
        return hashlib.sha256(f"{self.name} {self.seed} {release}".encode()).hexdigest()

    @property
    def _bundle(self) -> Any:
        self._import("torch")
        return getattr(self._import("torchaudio.pipelines"), self.bundle)

    def _identity(self) -> tuple:
        return (self.weights, self.seed if self.weights == "random" else None)

    def _build(self) -> Network:
        torch, bundle = self._import("torch"), self._bundle
        if self.weights == "random":
            with torch.random.fork_rng(devices=[]):
                # torch.manual_seed would seed the caller's GPUs as well.
                torch.default_generator.manual_seed(self.seed)
                return Network(self._make(bundle), self.weights_sha256)
        pretrained = self.weights == "pretrained"
        path = self._fetch(bundle) if pretrained else Path(self.weights)
        state = read_state(path, self.name)
        with torch.device("meta"):
            model = self._make(bundle)
        fill(model, self._own(state), self.name, path)
        model.float()
        return Network(model, fingerprint(model.state_dict()))

    def _own(self, state: dict[str, Any]) -> dict[str, Any]:
        """Tensors of a published file that belong to the encoder."""
        return state


class Wav2vec2Base(Bundle):
    """wav2vec 2.0 base, 94M parameters: 768 numbers every 20 ms (extra `torch`).

    Parameters
    ----------
    layer
        Give the output of this transformer layer, counted from 1; None: the encoder's output.
    weights
        "pretrained" (from torch hub's cache, else downloaded), "random", or a file with a state
        dict: `.safetensors`, or what `torch.save` wrote.
    seed
        Of random weights.
    device
        "auto" (a GPU where there is one), "cpu", "cuda", "cuda:1".
    half
        Half precision; on a GPU alone.
    threads
        CPU threads it may use; None leaves torch's own setting.

    Notes
    -----
    Trained by Meta on 960 hours of LibriSpeech without labels (MIT). The four below take the same
    arguments. Where layers are normalised ahead (`hubert_large`, `hubert_xlarge`) the encoder's
    output is the last layer's, normalised; `layer=24` (48) gives it as it is.

    Examples
    --------
    >>> Wav2vec2Base(layer=6).dims
    (768,)
    """

    public_name = "wav2vec2_base"
    bundle = "WAV2VEC2_BASE"
    layers, width, inner_width = 12, 768, 768

    def _make(self, bundle: Any) -> Any:
        return self._import("torchaudio.models").wav2vec2_model(**bundle._params)

    def _fetch(self, bundle: Any) -> Path:
        return hub_file(self.name, f"{SOURCE}/models/{bundle._path}", "checkpoints")

    def _run(self, network: Network, audio: Any) -> Any:
        if self._bundle._normalize_waveform:
            # Each clip by itself: torchaudio's own wrapper would mix the clips of a batch.
            layer_norm = self._import("torch.nn.functional").layer_norm
            audio = layer_norm(audio, audio.shape[1:])
        audio = audio.to(next(network.model.parameters()).dtype)
        if self.layer is None:
            return network.model(audio)[0]
        return network.model.extract_features(audio, num_layers=self.layer)[0][-1]


class Wav2vec2Large(Wav2vec2Base):
    """wav2vec 2.0 large, 315M parameters: 1024 numbers every 20 ms (extra `torch`)."""

    public_name = "wav2vec2_large"
    bundle = "WAV2VEC2_LARGE"
    layers, width, inner_width = 24, 1024, 1024


class HubertBase(Wav2vec2Base):
    """HuBERT base, 94M parameters: 768 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_base"
    bundle = "HUBERT_BASE"


class HubertLarge(Wav2vec2Base):
    """HuBERT large, 315M parameters: 1024 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_large"
    bundle = "HUBERT_LARGE"
    layers, width, inner_width = 24, 1024, 1024


class HubertXlarge(Wav2vec2Base):
    """HuBERT extra large, 962M parameters: 1280 numbers every 20 ms (extra `torch`)."""

    public_name = "hubert_xlarge"
    bundle = "HUBERT_XLARGE"
    layers, width, inner_width = 48, 1280, 1280
