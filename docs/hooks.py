"""Hooks of mkdocs that turn the pages, which also work on GitHub, into a site."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Where `make try` builds the demo page.
BUILT = ROOT / "build" / "web"
# What pages hold in comments, since only the site has it: API directives and the demo page.
ON_SITE = re.compile(r"<!-- (::: .+|\[.+\]\(try/index\.html\)\.) -->")
# Pages at the root of the repository, and their names on the site.
AT_ROOT = {path.name: path.name.lower() for path in ROOT.glob("*.md") if path.stem != "README"}
# The page that compares figures with the code, so it is made from the code that is here.
STATUS = "results/status.md"
# Link and picture targets that are files.
TARGET = re.compile(r'(?<=\]\()[^)#:\s]+|(?<=src=")[^":]+')
# Anything that a page loads from another host.
LOADED = re.compile(r'<(?:(?:script|img|iframe)[^>]+src|link[^>]+href)="?(?:https?:)?//')
# Names of a numpy docstring that share one description.
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the root, and the demo page."""
    for path in (BUILT / "try").rglob("*"):
        if path.is_file() and path.suffix != ".md":
            name = path.relative_to(BUILT).as_posix()
            files.append(File(name, str(BUILT), config.site_dir, use_directory_urls=False))
    for path, name in AT_ROOT.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Resolve links to files, and enable what pages hold in comments for the site."""
    uri = page.file.src_uri
    if uri == STATUS:
        command = [sys.executable, str(ROOT / "results" / "run.py"), "--status"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    folder = ROOT if uri in AT_ROOT.values() else (DOCS / uri).parent

    def resolve(target: re.Match[str]) -> str:
        path = (folder / target[0]).resolve()
        if path.is_relative_to(DOCS) or not path.is_file():
            return target[0].removeprefix("docs/")
        name = path.relative_to(ROOT).as_posix()
        return AT_ROOT.get(name) or _as_text(name, config, files)

    # The site's own pages are linked by their place in it, wherever it is.
    up = "../" * uri.count("/")
    text = text.replace(f"]({config.extra['published']}", f"]({up}")
    return ON_SITE.sub(r"\1", TARGET.sub(resolve, text))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """Refuse a page that loads anything from another host."""
    if loaded := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {loaded[0]}")


def _as_text(name: str, config: MkDocsConfig, files: Files) -> str:
    """Add another file of the repository to the site, as text."""
    shown = f"source/{name}.txt"
    if files.get_file_from_path(shown) is None:
        files.append(File.generated(config, shown, content=(ROOT / name).read_text()))
    return shown


class SplitParameters(griffe.Extension):
    """Split parameters that share a description: griffe would give them one type."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Repeat the description of `a, b` for each name."""
        if obj.docstring:
            obj.docstring.value = TOGETHER.sub(
                lambda found: "".join(f"{name}\n{found[2]}" for name in found[1].split(", ")),
                f"{obj.docstring.value}\n",
            )
