"""A model as a library for Arduino and PlatformIO, or a component for ESP-IDF or ESPHome."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from tapword.errors import InputError
from tapword.export.c import header as c_header
from tapword.export.c.reduced import in_eight_bits
from tapword.spotter.spotter import Spotter
from tapword.support import atomic_files
from tapword.version import __version__

TEMPLATES = resources.files("tapword.export.boards")
# Ends the name of a template that other programs would take for theirs.
TEMPLATE = ".in"
# In every package, by which one is recognised.
CORE = "tapword_core.h"
CONFIG = '#include "tapword_config.h"\n'


class Kind(NamedTuple):
    """A kind of package: what it is called, and where in it headers and sources are."""

    title: str
    headers: str
    sources: str


KINDS = {
    "arduino": Kind("library for Arduino and PlatformIO", "src", "src"),
    "esp-idf": Kind("component for ESP-IDF", "include", "src"),
    "esphome": Kind("component for ESPHome", "tapword", "tapword"),
}


def write(spotter: Spotter, folder: Path, kind: str, max_words: int, exact: bool = False) -> int:
    """Write a package into a folder, a new one or that of an earlier package.

    Parameters
    ----------
    spotter
        Of size small; its words are in the package.
    folder
        Files that the package does not have stay as they are.
    kind
        One of `KINDS`.
    max_words
        Room for words.
    exact
        Whether weights are floats.

    Returns
    -------
    int
        Bytes of the constant tables.
    """
    files = dict(_files(kind, max_words))
    header = c_header.build(spotter, max_words, not exact and in_eight_bits(spotter))
    if "#define TAPWORD_HAS_LISTENER 1\n" not in header.text:
        raise InputError("a package for boards needs a model of size small")
    files[f"{KINDS[kind].headers}/{CORE}"] = CONFIG + header.text
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write(path, text.encode())
    return header.flash_bytes


def check(folder: Path, kind: str, force: bool) -> None:
    """Refuse a kind that is unknown, and a folder with anything else than an earlier package."""
    if kind not in KINDS:
        raise InputError(f"no package for {kind!r}; known: {', '.join(KINDS)}")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not (folder / KINDS[kind].headers / CORE).exists():
        raise InputError(f"{folder} is not a {KINDS[kind].title}; give a new folder")
    if not force:
        raise InputError(f"{folder} exists; give another folder, or --force to replace it")


def _files(kind: str, max_words: int) -> Iterator[tuple[str, str]]:
    """Paths in the package and texts of its files, all but the core."""
    values = {"@VERSION@": __version__, "@MAX_WORDS@": str(max_words)}

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    for name, file in _walk(TEMPLATES / kind):
        yield name.removesuffix(TEMPLATE), filled(file.read_text("utf-8"))
    for name, file in _walk(TEMPLATES / "common"):
        folder = KINDS[kind].headers if name.endswith(".h") else KINDS[kind].sources
        yield f"{folder}/{name}", file.read_text("utf-8")


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.is_file():
            yield before + path.name, path
        else:
            yield from _walk(path, f"{before}{path.name}/")
