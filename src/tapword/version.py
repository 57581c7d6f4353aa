"""The version, readable by every package."""

__version__ = "0.2.0"
