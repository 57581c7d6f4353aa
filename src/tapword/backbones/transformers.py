"""Any speech encoder in Hugging Face's format, from a folder or from the hub."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tapword.backbones.base import Unavailable, first_line
from tapword.backbones.checkpoints import fingerprint
from tapword.backbones.torch_backbone import TorchBackbone, TorchNetwork
from tapword.errors import InputError, ModelFileError

# Replaces masked frames in training; some checkpoints leave it out, and no frame depends on it.
UNUSED = "masked_spec_embed"


class Transformers(TorchBackbone):
    """Any speech encoder of Hugging Face transformers, from a folder or the hub (extra `hf`).

    wav2vec 2.0, HuBERT, WavLM, data2vec-audio, Whisper's encoder and others that turn speech into
    one sequence of frames.

    Parameters
    ----------
    model
        A folder with `config.json`, `preprocessor_config.json` and safetensors, or a name on the
        hub ("microsoft/wavlm-base"). Code in it is never run.
    layer, device, half, threads
        See `TorchBackbone`; layers are counted as the library lists its hidden states.

    Notes
    -----
    The encoder's own feature extractor prepares a clip. Whisper takes 30 s at a time, so a clip is
    padded with silence and frames after the clip's end are dropped.
    """

    extra = "hf"
    machine_arguments = ("model", "device", "half", "threads")
    located_by = "model"

    model: str = ""
    layer: int | None = None
    device: str = "auto"
    half: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        # The number of layers is known once the configuration is read.
        self._check(layers=10_000)

    @property
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame, as the configuration says."""
        return (self._configuration.hidden_size,)

    def make_model(self) -> Any:
        """Make the encoder with the library's initial weights."""
        make, configuration = self._library.AutoModel.from_config, self._configuration
        with self._quietly():
            return _encoder(make(configuration, trust_remote_code=False))

    @property
    def _library(self) -> Any:
        self._import("torch")
        return self._import("transformers")

    @property
    def _configuration(self) -> Any:
        return self._read(self._library.AutoConfig, "config.json")

    def _identity(self) -> tuple:
        return (self.model,)

    def _build(self) -> TorchNetwork:
        library = self._library
        extractor = self._read(library.AutoFeatureExtractor, "preprocessor_config.json")
        rate = getattr(extractor, "sampling_rate", None)
        if rate != self.sample_rate:
            raise InputError(f"transformers: {self.model} takes {rate} Hz, not {self.sample_rate}")
        model, report = self._read(
            library.AutoModel,
            "model.safetensors",
            use_safetensors=True,
            output_loading_info=True,
            # Refused below, by name, instead of in a table on the terminal.
            ignore_mismatched_sizes=True,
            dtype=self._import("torch").float32,
        )
        encoder = _encoder(model)
        prefix = "" if encoder is model else "encoder."
        bad = [*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])]
        wrong = sorted(name for name in bad if name.startswith(prefix) and UNUSED not in name)
        if wrong:
            raise ModelFileError(
                f"transformers: {self.model} does not hold all weights of its encoder: {len(wrong)}"
                f" are missing or of another shape (first: {wrong[0]})"
            )
        state = {name: x for name, x in encoder.state_dict().items() if UNUSED not in name}
        return TorchNetwork(encoder, fingerprint(state), extractor)

    def _read(self, kind: Any, file: str, **options: Any) -> Any:
        """Call `kind.from_pretrained` without running code or printing, with clear errors."""
        if not self.model:
            raise Unavailable(
                "transformers: say which encoder, a folder or a name on the hub: "
                "transformers:model=FOLDER (for a saved spotter: load(path, backbones=[...]))"
            )
        local = Path(self.model).is_dir()
        if local and not any(Path(self.model).glob(file.replace("model.", "model*."))):
            raise ModelFileError(f"transformers: no {file} in the folder {self.model}")
        try:
            with self._quietly():
                return kind.from_pretrained(
                    self.model, trust_remote_code=False, local_files_only=local, **options
                )
        except OSError as error:
            if local:
                raise ModelFileError(f"transformers: {self.model}: {first_line(error)}") from error
            raise Unavailable(
                f"transformers: there is no folder {self.model}, and the hub did not give a model "
                f"of that name with {file}: {first_line(error)}"
            ) from error
        except Exception as error:
            # Broken JSON, unexpected tensors, unknown architectures: each its own type.
            wanted = "is not a speech encoder that can be read"
            raise ModelFileError(
                f"transformers: {self.model} {wanted}: {first_line(error)}"
            ) from error

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        """Show neither progress bars nor notices while the library reads."""
        logging = self._library.utils.logging
        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()

    def _run(self, network: TorchNetwork, audio: Any) -> Any:
        whisper = network.model.config.model_type == "whisper"
        extractor = network.front_end
        if whisper and audio.shape[1] > extractor.n_samples:
            raise InputError(f"transformers: Whisper takes {extractor.n_samples} samples at most")
        feed = extractor(
            list(audio.cpu().numpy()), sampling_rate=self.sample_rate, return_tensors="pt"
        ).to(audio.device, next(network.model.parameters()).dtype)
        output = network.model(**feed, output_hidden_states=self.layer is not None)
        frames = output.last_hidden_state
        if self.layer is not None:
            self._check(len(output.hidden_states) - 1)
            frames = output.hidden_states[self.layer]
        if whisper:
            # A frame is two steps of the log-mel front end.
            frames = frames[:, : -(-audio.shape[1] // (2 * extractor.hop_length))]
        return frames


def _encoder(model: Any) -> Any:
    return model.get_encoder() if model.config.is_encoder_decoder else model
