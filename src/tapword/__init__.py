"""Keyword spotting that keeps learning on the device.

>>> import tapword
>>> spotter = tapword.Spotter()
>>> spotter.words
{}
"""

import importlib
from typing import TYPE_CHECKING, Any

from tapword.errors import InputError, MissingExtra, ModelFileError, TapwordError
from tapword.version import __version__

if TYPE_CHECKING:
    from tapword.listening.decider import Event
    from tapword.listening.detector import Detector
    from tapword.spotter.spotter import Prediction, Spotter, load

__all__ = [
    "Detector",
    "Event",
    "InputError",
    "MissingExtra",
    "ModelFileError",
    "Prediction",
    "Spotter",
    "TapwordError",
    "__version__",
    "load",
]

# Imported on first use: `tapword --help` needs none of these, nor numpy.
_LATER = {
    "Detector": "tapword.listening.detector",
    "Event": "tapword.listening.decider",
    "Prediction": "tapword.spotter.spotter",
    "Spotter": "tapword.spotter.spotter",
    "load": "tapword.spotter.spotter",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
