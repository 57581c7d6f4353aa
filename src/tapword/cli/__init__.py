"""The command line: a few lines per command over the public API, a file per kind of user."""

from tapword.cli import models, reproduce, research, teach
from tapword.cli.app import main

__all__ = ["main", "models", "reproduce", "research", "teach"]
