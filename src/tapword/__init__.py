"""Keyword spotting that keeps learning on the device.

>>> import tapword
>>> spotter = tapword.Spotter()
>>> spotter.words
{}
"""

from tapword.spotter import Spotter, load

__all__ = ["Spotter", "__version__", "load"]
__version__ = "0.1.0"
