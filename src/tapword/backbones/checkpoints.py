"""Weights of torch networks: downloaded once, read without running code in them, hashed."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tapword.backbones.base import Unavailable, first_line
from tapword.errors import InputError, ModelFileError

# Of weights that are downloaded: the largest, hubert_xlarge, have 964 million 4-byte numbers.
MAX_BYTES = 5 * 10**9


def read_state(path: str | Path, part: str) -> dict[str, Any]:
    """Read the tensors of a `.safetensors` file or a torch state dict, by name.

    Only tensors are unpickled; a file with code is refused. `part` is the backbone's name, for
    messages.
    """
    import torch

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{part}: no weight file at {path}")
    try:
        if path.suffix == ".safetensors":
            import safetensors.torch

            state: Any = safetensors.torch.load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # torch raises many types; later lines of its messages advise to disable the protection.
        raise ModelFileError(
            f"{part}: {path} is no state dict of torch and no safetensors file: {first_line(error)}"
        ) from error
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in state.items()
    ):
        raise ModelFileError(f"{part}: {path} holds more than tensors by name; give a state dict")
    return dict(state)


def fill(model: Any, state: Mapping[str, Any], part: str, source: str | Path) -> None:
    """Load a state dict into a network; refuse missing and unknown tensors."""
    try:
        missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if "size mismatch" in line]
        raise ModelFileError(
            f"{part}: {source} holds another network: {(lines or [str(error)])[0]}"
        ) from error
    found = (("tensors are missing", missing), ("are unexpected", unexpected))
    wrong = [f"{len(names)} {what} (first: {names[0]})" for what, names in found if names]
    if wrong:
        raise ModelFileError(
            f"{part}: {source} holds another network: {'; '.join(wrong)}; "
            "for a Hugging Face checkpoint use transformers:model=FOLDER"
        )


def fingerprint(state: Mapping[str, Any]) -> str:
    """Hash the names, types, shapes and bytes of tensors; the file format does not matter."""
    import torch

    digest = hashlib.sha256()
    named = {_old_name(name): tensor for name, tensor in state.items()}
    for name in sorted(named):
        tensor = named[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        if tensor.numel():
            digest.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def _old_name(name: str) -> str:
    # torch renamed the two halves of a weight-normed weight; the weights are the same.
    for number, letter in (("0", "g"), ("1", "v")):
        name = name.replace(f"parametrizations.weight.original{number}", f"weight_{letter}")
    return name


def hub_file(part: str, url: str, *folders: str) -> Path:
    """Find a published file in torch hub's cache, below `folders`, or download it."""
    import torch

    path = Path(torch.hub.get_dir(), *folders, url.rpartition("/")[2])
    if not path.is_file():
        try:
            download(url, path)
        except OSError as error:
            raise Unavailable(
                f"{part}: {path.name} is not here and could not be fetched ({error}); get it from "
                f"{url} and put it at {path}, or give a file you hold: {part}:weights=PATH "
                f"({part}:weights=random needs none)"
            ) from error
    return path


def download(url: str, path: Path) -> None:
    """Download weights, completely or not at all."""
    # Imported here: http and ssl take as long to import as this package.
    from tapword.support import downloads

    downloads.download(url, path, MAX_BYTES)
