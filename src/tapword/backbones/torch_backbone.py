"""What torch backbones share: lazy building, device, precision, threads."""

import contextlib
import importlib
import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tapword.backbones.base import Backbone, Unavailable
from tapword.errors import InputError, MissingExtra


class Network:
    """A network in eval mode on its device, and the hash of its weights.

    Attributes
    ----------
    model
        What turns a batch into frames.
    front
        What turns audio into the model's input, where that is more than a line.
    sha256
        Hash of the weights.
    """

    def __init__(self, model: Any, sha256: str, front: Any = None):
        self.model, self.sha256, self.front = model, sha256, front


# What a batch may hold. More gains little, long clips would not fit a small GPU, and in single
# precision cuDNN turns to convolutions that are four times slower and want 36 GB.
SAMPLES = 32 * 16_000
SAMPLES_IN_HALF = 128 * 16_000
# Backbones that differ in `layer` alone share a network; it is freed with the last of them.
_NETWORKS: WeakValueDictionary[tuple, Network] = WeakValueDictionary()
_BUILDING = threading.RLock()


class TorchBackbone(Backbone):
    """Frozen torch network, built on first use. A subclass gives `_identity`, `_build`, `_run`.

    Attributes
    ----------
    shortest
        Samples of the shortest clip that gives a frame.
    extra
        Our extra that installs its packages.
    """

    layer: int | None
    device: str
    half: bool
    threads: int | None
    shortest: int = 400
    extra: str = "torch"
    max_batch = 128
    _held: Network | None = None

    @abstractmethod
    def _identity(self) -> tuple:
        """Everything its network depends on, except where it runs."""

    @abstractmethod
    def _build(self) -> Network:
        """Make the network, float32 on the CPU, in eval mode."""

    @abstractmethod
    def _run(self, network: Network, audio: Any) -> Any:
        """(b, n) float32 on the device -> frames (b, t, d) of any precision."""

    def _check(self, layers: int) -> None:
        """Refuse arguments that cannot be meant."""
        if self.layer is not None and not 1 <= self.layer <= layers:
            raise InputError(f"{self.name}: layer must be 1 to {layers}, got {self.layer}")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"{self.name}: threads must be at least 1, got {self.threads}")

    def _place(self) -> tuple[Any, Any]:
        """Device and precision to run at."""
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

    @property
    def _network(self) -> Network:
        if self._held is None:
            device, precision = self._place()
            key = (type(self), *self._identity(), str(device), precision)
            with _BUILDING:
                network = _NETWORKS.get(key)
                if network is None:
                    network = self._build()
                    network.model.requires_grad_(False).eval().to(device, precision)
                    if hasattr(network.front, "to"):
                        network.front.to(device)
                    _NETWORKS[key] = network
                self._held = network
        return self._held

    @property
    def precision(self) -> str:  # type: ignore[override]
        """What it computes in, on this machine."""
        return str(self._place()[1]).removeprefix("torch.")

    @property
    def weights_sha256(self) -> str:  # type: ignore[override]
        """SHA-256 that tells the weights from others."""
        return self._network.sha256

    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        return [self._frames(audio).cpu().numpy()]

    def tensors(self, audio: np.ndarray) -> list[Any] | None:
        """(b, n) audio of one length -> torch blocks left on a GPU; None where there is none."""
        return [self._frames(audio)] if self._place()[0].type == "cuda" else None

    def _frames(self, audio: np.ndarray) -> Any:
        """(b, n) float32 -> frames (b, t, d), float32, on the device."""
        if audio.shape[1] < self.shortest:
            raise InputError(
                f"{self.name}: audio has {audio.shape[1]} samples; at least {self.shortest} "
                "are needed"
            )
        network, (device, precision) = self._network, self._place()
        torch = self._import("torch")
        most = SAMPLES_IN_HALF if precision is torch.float16 else SAMPLES
        clips = max(1, most // audio.shape[1])
        with torch.inference_mode(), self._settings(torch, device):
            frames = [
                self._run(network, torch.from_numpy(audio[start : start + clips]).to(device))
                for start in range(0, len(audio), clips)
            ]
            return torch.cat(frames).float()

    @contextlib.contextmanager
    def _settings(self, torch: Any, device: Any) -> Iterator[None]:
        """Threads and reproducible convolutions for one call; what was set before comes back."""
        before = torch.get_num_threads()
        with contextlib.ExitStack() as stack:
            if self.threads is not None and self.threads != before:
                torch.set_num_threads(self.threads)
                stack.callback(torch.set_num_threads, before)
            if device.type == "cuda":
                stack.enter_context(
                    torch.backends.cudnn.flags(
                        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
                    )
                )
            yield

    def _import(self, name: str) -> Any:
        """Import a heavy module, or say what to install."""
        package = name.partition(".")[0]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = (error.name or package).partition(".")[0]
            raise MissingExtra(self.name, missing, self.extra) from error
        except (ImportError, OSError) as error:
            # A compiled extension made for another torch fails to load with OSError.
            reason = str(error).partition("\n")[0]
            raise Unavailable(
                f"{self.name}: {package} is installed but cannot be imported ({reason}); "
                f"install the release of {package} that was made for the installed torch"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        # Another process builds its own network: gigabytes do not travel with a pickled part.
        return {name: value for name, value in vars(self).items() if name != "_held"}
