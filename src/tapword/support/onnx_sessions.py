"""Open ONNX files with onnxruntime; nothing else imports it."""

import importlib
import os
from typing import Any

from tapword.errors import MissingExtra

PACKAGE = "onnxruntime"


def onnx_runtime(part: str = "an ONNX file", extra: str = "onnx") -> Any:
    """Import onnxruntime without its telemetry; an error names the `part` that needs the `extra`.

    By default it contacts its makers on import and keeps a device id and a list of events in the
    user's cache; `disable_telemetry_events` comes too late.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        return importlib.import_module(PACKAGE)
    except ImportError as error:
        raise MissingExtra(part, PACKAGE, extra) from error


def open_session(
    model: bytes | str, threads: int = 1, part: str = "an ONNX file", extra: str = "onnx"
) -> Any:
    """Open an ONNX file, by content or path, on the CPU; `part` and `extra` as above."""
    onnxruntime = onnx_runtime(part, extra)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads sleep, so that listening all day does not keep a core busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Errors come as exceptions; printing them too would repeat them.
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
