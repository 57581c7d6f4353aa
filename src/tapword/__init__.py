"""Keyword spotting that keeps learning on the device.

>>> import tapword
>>> spotter = tapword.Spotter()
>>> spotter.words
{}
"""

from tapword.errors import InputError, MissingExtra, ModelFileError, TapwordError
from tapword.listening.decider import Event
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Prediction, Spotter, load
from tapword.version import __version__

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
