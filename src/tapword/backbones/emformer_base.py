"""The paper's sixth backbone: Emformer, a streaming recogniser's encoder."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from tapword.backbones.checkpoints import hub_file
from tapword.backbones.torch_backbone import TorchNetwork
from tapword.backbones.torchaudio_bundles import SOURCE, Bundle
from tapword.errors import ModelFileError

# From samples in [-1, 1] to the 16-bit scale that the network was trained on, squared for power.
GAIN = 32767.0**2
# Random weights have no published statistics; these are about the mean and standard deviation of
# log-mel values of speech, the same in every band.
NEUTRAL_MEAN, NEUTRAL_DEVIATION = 15.0, 6.0


class EmformerBase(Bundle):
    """Emformer base, 64M parameters in its encoder: 1024 numbers every 40 ms (extra `torch`).

    Trained by torchaudio's authors on LibriSpeech with transcripts. The right context that the
    last segment looks at is padded with zeros, as the bundle does. Arguments: see `Bundle`; an
    inner layer gives 512 numbers. A weight file holds the whole recogniser or its encoder; the
    front end's statistics, `global_stats_rnnt_librispeech.json`, are next to it or in torch hub's
    cache. With random weights they are the same for every band, about those of speech.

    Examples
    --------
    >>> EmformerBase().dims, EmformerBase(layer=3).dims
    ((1024,), (512,))
    """

    bundle_name = "EMFORMER_RNNT_BASE_LIBRISPEECH"
    layers, width, inner_width = 20, 1024, 512
    min_samples = 480

    def make_model(self) -> Any:
        """Make the encoder with torchaudio's initial weights."""
        return self.bundle._rnnt_factory_func().transcriber

    def _fetch(self) -> Path:
        return self._asset(self.bundle._rnnt_path)

    def _asset(self, key: str) -> Path:
        return hub_file(self.name, f"{SOURCE}/{key}", "torchaudio", *Path(key).parent.parts)

    def _own(self, state: dict[str, Any]) -> dict[str, Any]:
        start = "transcriber."
        return {n.removeprefix(start): state[n] for n in state if n.startswith(start)} or state

    def _identity(self) -> tuple:
        return (*super()._identity(), self.layer)

    def _build(self) -> TorchNetwork:
        network, bundle = super()._build(), self.bundle
        if self.layer is not None:
            del network.model.transformer.emformer_layers[self.layer :]
        mean, scale = [NEUTRAL_MEAN], [1 / NEUTRAL_DEVIATION]
        sha256 = network.sha256
        if self.weights != "random":
            mean, scale = self._statistics()
            sha256 = hashlib.sha256(f"{sha256} {mean} {scale}".encode()).hexdigest()
        torch, transforms = self._import("torch"), self._import("torchaudio.transforms")
        front_end = torch.nn.Module()
        names = ("sample_rate", "n_fft", "n_mels", "hop_length")
        front_end.mel = transforms.MelSpectrogram(**{name: getattr(bundle, name) for name in names})
        front_end.register_buffer("mean", torch.tensor(mean))
        front_end.register_buffer("scale", torch.tensor(scale))
        return TorchNetwork(network.model, sha256, front_end)

    def _statistics(self) -> tuple[list[float], list[float]]:
        """Read the mean and the inverse deviation of each band, as published."""
        bundle = self.bundle
        name = Path(bundle._global_stats_path).name
        path = Path(self.weights).with_name(name)
        if self.weights == "pretrained" or not path.is_file():
            path = self._asset(bundle._global_stats_path)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            mean, scale = ([float(x) for x in stored[key]] for key in ("mean", "invstddev"))
            if {len(mean), len(scale)} != {bundle.n_mels}:
                raise ValueError(f"{len(mean)} and {len(scale)} numbers for {bundle.n_mels} bands")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"{self.name}: {path} does not hold the front end's statistics: {error!r}"
            ) from error
        return mean, scale

    def _run(self, network: TorchNetwork, audio: Any) -> Any:
        torch, front_end, model = self._import("torch"), network.front_end, network.model
        power = front_end.mel(audio).transpose(1, 2) * GAIN
        level = torch.where(power > math.e, power.log(), power)
        # Small logarithms are divided too: a slip in the bundle's front end, but the weights were
        # trained behind it.
        level = torch.where(level <= math.e, level / math.e, level)
        features = ((level - front_end.mean) * front_end.scale).to(model.input_linear.weight.dtype)
        context = self.bundle.right_context_length
        features = torch.nn.functional.pad(features, (0, 0, 0, context))
        lengths = torch.full((len(features),), features.shape[1] - context, device=audio.device)
        if self.layer is None:
            return model(features, lengths)[0]
        reduced, lengths = model.time_reduction(model.input_linear(features), lengths)
        return model.transformer(reduced, lengths)[0]
