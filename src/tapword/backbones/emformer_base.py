"""The paper's sixth backbone: Emformer, a streaming recogniser's encoder."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from tapword.backbones.checkpoints import hub_file
from tapword.backbones.torch_backbone import Network
from tapword.backbones.torchaudio_bundles import SOURCE, Bundle
from tapword.errors import ModelFileError

# Power of a full-scale sample on the 16-bit scale that the front end was trained on.
GAIN = 32767.0**2
# With random weights there are no published statistics: about the mean and deviation of the
# front end's values over speech, the same in every band.
NEUTRAL_MEAN, NEUTRAL_DEVIATION = 15.0, 6.0


class EmformerBase(Bundle):
    """Emformer base, 64M parameters in its encoder: 1024 numbers every 40 ms (extra `torch`).

    Parameters
    ----------
    layer
        Give the output of this transformer layer (512 numbers), counted from 1; None: the
        encoder's output.
    weights
        "pretrained" (from torch hub's cache, else downloaded), "random", or a file with a state
        dict of the whole recogniser or of its encoder; the front end's statistics,
        `global_stats_rnnt_librispeech.json`, lie beside it or in torch hub's cache.
    seed
        Of random weights. The front end then takes a mean of 15 and a deviation of 6 for every
        band, about what speech gives.
    device
        "auto" (a GPU where there is one), "cpu", "cuda", "cuda:1".
    half
        Half precision; on a GPU alone.
    threads
        CPU threads it may use; None leaves torch's own setting.

    Notes
    -----
    Trained by torchaudio's authors on LibriSpeech with transcripts. The right context that the
    last segment looks at is padded with zeros, as the bundle does.

    Examples
    --------
    >>> EmformerBase().dims, EmformerBase(layer=3).dims
    ((1024,), (512,))
    """

    bundle = "EMFORMER_RNNT_BASE_LIBRISPEECH"
    layers, width, inner_width = 20, 1024, 512
    shortest = 480

    def _make(self, bundle: Any) -> Any:
        return bundle._rnnt_factory_func().transcriber

    def _fetch(self, bundle: Any) -> Path:
        return self._asset(bundle._rnnt_path)

    def _asset(self, key: str) -> Path:
        return hub_file(
            self.name, f"{SOURCE}/{key}", "torchaudio", *key.rpartition("/")[0].split("/")
        )

    def _own(self, state: dict[str, Any]) -> dict[str, Any]:
        prefix = "transcriber."
        own = {name[len(prefix) :]: state[name] for name in state if name.startswith(prefix)}
        return own or state

    def _identity(self) -> tuple:
        return (*super()._identity(), self.layer)

    def _build(self) -> Network:
        network, bundle = super()._build(), self._bundle
        if self.layer is not None:
            del network.model.transformer.emformer_layers[self.layer :]
        mean, scale = [NEUTRAL_MEAN], [1 / NEUTRAL_DEVIATION]
        sha256 = network.sha256
        if self.weights != "random":
            mean, scale = self._statistics(bundle)
            sha256 = hashlib.sha256(f"{sha256} {mean} {scale}".encode()).hexdigest()
        torch, transforms = self._import("torch"), self._import("torchaudio.transforms")
        front = torch.nn.Module()
        front.mel = transforms.MelSpectrogram(
            sample_rate=bundle.sample_rate,
            n_fft=bundle.n_fft,
            n_mels=bundle.n_mels,
            hop_length=bundle.hop_length,
        )
        front.register_buffer("mean", torch.tensor(mean))
        front.register_buffer("scale", torch.tensor(scale))
        return Network(network.model, sha256, front)

    def _statistics(self, bundle: Any) -> tuple[list[float], list[float]]:
        """Mean and inverse deviation of each band, as published."""
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

    def _run(self, network: Network, audio: Any) -> Any:
        torch, front, model = self._import("torch"), network.front, network.model
        power = front.mel(audio).transpose(1, 2) * GAIN
        level = torch.where(power > math.e, power.log(), power)
        # Small logarithms are divided too: a slip in the bundle's front end, but the weights were
        # trained behind it.
        level = torch.where(level <= math.e, level / math.e, level)
        features = ((level - front.mean) * front.scale).to(model.input_linear.weight.dtype)
        context = self._bundle.right_context_length
        features = torch.nn.functional.pad(features, (0, 0, 0, context))
        lengths = torch.full((len(features),), features.shape[1] - context, device=audio.device)
        if self.layer is None:
            return model(features, lengths)[0]
        reduced, lengths = model.time_reduction(model.input_linear(features), lengths)
        return model.transformer(reduced, lengths)[0]
