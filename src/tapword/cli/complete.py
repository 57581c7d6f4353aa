"""What the Tab key completes: words, sizes, parts, tables and kinds, by the name of a parameter."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from tapword import registry
from tapword.errors import TapwordError
from tapword.spotter.presets import PRESETS

Completer = Callable[[typer.Context, str], list[str]]
# What `tapword list` lists.
LISTED = (*registry.KINDS, "sizes")


def words(context: typer.Context, incomplete: str) -> list[str]:
    """Words of MODEL, from the header of its file alone."""
    return _fitting(_taught(context), incomplete)


def word_values(context: typer.Context, incomplete: str) -> list[str]:
    """Words of MODEL with the sign before their value."""
    return _fitting((f"{word}=" for word in _taught(context)), incomplete)


def tables(_: typer.Context, incomplete: str) -> list[str]:
    """Tables and figures of the paper."""
    from tapword.research import paper

    return _fitting([*paper.TABLES, paper.ALL], incomplete)


def one_of(names: Iterable[str]) -> Completer:
    """Complete one of these names."""
    known = tuple(names)

    def complete(_: typer.Context, incomplete: str) -> list[str]:
        return _fitting(known, incomplete)

    return complete


def parts(kind: str) -> Completer:
    """Complete the parts of a kind."""

    def complete(_: typer.Context, incomplete: str) -> list[str]:
        return _fitting(registry.classes(kind), incomplete)

    return complete


# Name of a parameter, in any command -> what it completes.
BY_PARAMETER: dict[str, Completer] = {
    "word": words,
    "old": words,
    "threshold": word_values,
    "sensitivity": word_values,
    "size": one_of(PRESETS),
    "backbone": parts("backbones"),
    "backbones": parts("backbones"),
    "pooling": parts("poolings"),
    "learner": parts("learners"),
    "dataset": parts("datasets"),
    "table": tables,
    "kind": one_of(LISTED),
}


def _taught(context: typer.Context) -> list[str]:
    # While the value of an option is missing, arguments are not assigned yet; MODEL is the first.
    given = context.params.get("model") or next(iter(context.args), "")
    from tapword.spotter import store

    try:
        return store.words(Path(given).expanduser())
    except TapwordError:
        return []


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    fitting = [name for name in names if name.startswith(incomplete)]
    # bash inserts a name as it is; the other shells escape it.
    bash = os.environ.get("_TAPWORD_COMPLETE", "").endswith("bash")
    return [re.sub(r"([^\w=:.-])", r"\\\1", name) for name in fitting] if bash else fitting
