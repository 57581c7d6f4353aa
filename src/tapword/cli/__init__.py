"""The command line: a few lines per command over the public API, a file per kind of user."""

# Importing a file registers its commands; the help lists them in this order.
from tapword.cli import teach, listen, models, voices, export, serve  # noqa: F401, I001
from tapword.cli import evaluate, evaluate_stream, reproduce, datasets  # noqa: F401
from tapword.cli.app import main

__all__ = ["main"]
