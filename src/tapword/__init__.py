"""Keyword spotting that keeps learning on the device.

>>> import tapword
>>> spotter = tapword.Spotter()
>>> spotter.words
{}
"""

from tapword.detector import Detector
from tapword.spotter import Spotter, load
from tapword.version import __version__

__all__ = ["Detector", "Spotter", "__version__", "load"]
