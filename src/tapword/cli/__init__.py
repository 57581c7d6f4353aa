"""The command line: a few lines per command over the public API, a file per kind of user."""

from tapword.cli import listen, models, reproduce, research, studio, teach
from tapword.cli.app import main

__all__ = ["listen", "main", "models", "reproduce", "research", "studio", "teach"]
