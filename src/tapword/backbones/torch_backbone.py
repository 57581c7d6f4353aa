"""Shared by torch backbones: lazy building, device, precision, threads."""

import contextlib
import importlib
import threading
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import numpy as np

from tapword.backbones.base import Backbone, Unavailable, first_line, other_weights
from tapword.errors import InputError, MissingExtra


@dataclass(eq=False)
class TorchNetwork:
    """A network in eval mode on its device, the hash of its weights, and its front end."""

    model: Any
    sha256: str
    front_end: Any = None


# Backbones that differ only in `layer` share a network; it is freed with the last of them.
_networks: WeakValueDictionary[tuple, TorchNetwork] = WeakValueDictionary()
_building = threading.RLock()


class TorchBackbone(Backbone):
    """A frozen torch network, built on first use; subclasses give `_identity`, `_build`, `_run`.

    Parameters
    ----------
    layer
        Transformer layer whose output is used, counted from 1; None: the encoder's output.
    device
        "auto" (a GPU if there is one), "cpu", "cuda", "cuda:1".
    half
        Half precision, on a GPU only.
    threads
        CPU threads it may use; None keeps torch's setting.

    Attributes
    ----------
    extra
        tapword's extra that installs its packages.
    max_samples, max_samples_half
        Largest number of samples that pass the network together, in single and half precision.
        More gains little and does not fit a small GPU; in single precision cuDNN would choose
        convolutions that are four times slower and take 36 GB (`benchmarks/torch_backbones.py`).
    """

    if TYPE_CHECKING:
        layer: int | None
        device: str
        half: bool
        threads: int | None
    min_samples = 400
    extra = "torch"
    # Hash of the weights that a model file expects.
    _claimed = cast(str | None, None)
    max_batch = 128
    max_samples, max_samples_half = 32 * 16_000, 128 * 16_000

    @abstractmethod
    def make_model(self) -> Any:
        """Make the encoder with the library's initial weights."""

    @abstractmethod
    def _identity(self) -> tuple:
        """Everything its network depends on, except the device."""

    @abstractmethod
    def _build(self) -> TorchNetwork:
        """Make the network, float32 on the CPU, in eval mode."""

    @abstractmethod
    def _run(self, network: TorchNetwork, audio: Any) -> Any:
        """(b, n) float32 on the device -> frames (b, t, d) of any precision."""

    def _check(self, layers: int) -> None:
        """Check the arguments that all torch backbones have."""
        inside = self.layer is None or 1 <= self.layer <= layers
        self._require("layer", inside, f"1 to {layers}")
        self._require_threads(none=True)

    def _place(self) -> tuple[Any, Any]:
        """Device and precision to run with."""
        torch = self._import("torch")
        try:
            wanted = "cuda" if torch.cuda.is_available() else "cpu"
            device = torch.device(wanted if self.device == "auto" else self.device)
        except RuntimeError as error:
            raise InputError(
                f"{self.name}: device must be auto, cpu, cuda or cuda:N, got {self.device!r}"
            ) from error
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise InputError(f"{self.name}: device {self.device!r} is not on this machine")
        halved = device.type == "cuda" and self.half
        return device, torch.float16 if halved else torch.float32

    @cached_property
    def network(self) -> TorchNetwork:
        """The network on its device, shared by backbones that differ only in `layer`."""
        device, precision = self._place()
        key = (type(self), *self._identity(), str(device), precision)
        with _building:
            network = _networks.get(key)
            if network is None:
                network = self._build()
                network.model.requires_grad_(False).eval().to(device, precision)
                if hasattr(network.front_end, "to"):
                    network.front_end.to(device)
                _networks[key] = network
        if self._claimed not in (None, network.sha256):
            raise other_weights(self.name, self._claimed, network.sha256)
        return network

    def claim_weights(self, sha256: str) -> None:
        """Expect weights with this hash; building the network checks it."""
        if self._claimed is None and "network" not in vars(self):
            self._claimed = sha256

    @property
    def params(self) -> int:
        """Number of trained parameters, counted without allocating them."""
        with self._import("torch").device("meta"):
            return sum(parameter.numel() for parameter in self.make_model().parameters())

    @property
    def precision(self) -> str:
        """Number format it computes in on this machine."""
        return str(self._place()[1]).removeprefix("torch.")

    @property
    def weights_sha256(self) -> str:
        """Hash of the tensors."""
        return self._hash() if self._claimed is None else self._claimed

    def _hash(self) -> str:
        return self.network.sha256

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [self._frames(audio).cpu().numpy()]

    def tensors(self, audio: np.ndarray) -> list[Any] | None:
        """Turn audio (b, n) into torch blocks that stay on a GPU; None without a GPU."""
        return [self._frames(audio)] if self._place()[0].type == "cuda" else None

    def _frames(self, audio: np.ndarray) -> Any:
        """(b, n) float32 -> frames (b, t, d), float32, on the device."""
        network, (device, precision) = self.network, self._place()
        torch = self._import("torch")
        most = self.max_samples_half if precision is torch.float16 else self.max_samples
        clips = max(1, most // audio.shape[1])
        with torch.inference_mode(), self._settings(torch, device):
            frames = [
                self._run(network, torch.from_numpy(audio[start : start + clips]).to(device))
                for start in range(0, len(audio), clips)
            ]
            return torch.cat(frames).float()

    @contextlib.contextmanager
    def _settings(self, torch: Any, device: Any) -> Iterator[None]:
        """Set threads and reproducible convolutions for one call, then restore them."""
        before = torch.get_num_threads()
        with contextlib.ExitStack() as stack:
            if self.threads is not None and self.threads != before:
                torch.set_num_threads(self.threads)
                stack.callback(torch.set_num_threads, before)
            if device.type == "cuda":
                exact = {"benchmark": False, "deterministic": True, "allow_tf32": False}
                stack.enter_context(torch.backends.cudnn.flags(enabled=True, **exact))
            yield

    def _import(self, name: str) -> Any:
        """Import a heavy module, or raise an error that says what to install."""
        package = name.partition(".")[0]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = (error.name or package).partition(".")[0]
            raise MissingExtra(self.name, missing, self.extra) from error
        except (ImportError, OSError) as error:
            # A compiled extension made for another torch fails to load with OSError.
            raise Unavailable(
                f"{self.name}: {package} is installed but cannot be imported ({first_line(error)});"
                f" install the release of {package} that was made for the installed torch"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        # Another process builds its own network, rather than unpickle gigabytes.
        return {name: value for name, value in vars(self).items() if name != "network"}
