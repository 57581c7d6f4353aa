"""The command line: a few lines per command over the public API, a file per kind of user."""

from tapword.cli import (
    evaluate_stream,
    export,
    listen,
    models,
    reproduce,
    research,
    studio,
    teach,
    wyoming,
)
from tapword.cli.app import main

__all__ = [
    "evaluate_stream",
    "export",
    "listen",
    "main",
    "models",
    "reproduce",
    "research",
    "studio",
    "teach",
    "wyoming",
]
