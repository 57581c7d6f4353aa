"""The command line: a few lines per command over the public API, a file per kind of user."""

from tapword.cli.app import main

__all__ = ["main"]
