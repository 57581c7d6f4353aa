"""What makes a site of the pages, which are written to be read on GitHub too; mkdocs calls it."""

import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# The sources of the page to try tapword in the browser, and where `make try` puts it.
TRY, BUILT = ROOT / "site" / "try", ROOT / "build" / "web"
# Pages that lie at the root of the repository, and their names on the site.
AT_ROOT = {path.name: path.name.lower() for path in ROOT.glob("*.md") if path.stem != "README"}
# Targets of links and pictures that are files.
TARGET = re.compile(r'(?<=\]\()[^)#:\s]+|(?<=src=")[^":]+')
# What a page loads from another host.
LOADED = re.compile(r'<(?:(?:script|img|iframe)[^>]+src|link[^>]+href)="?(?:https?:)?//')
# Names of a numpy docstring that have their explanation in common.
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie at the root, and the page to try tapword in the browser."""
    for path in (BUILT / "try").rglob("*"):
        if path.is_file() and path.suffix != ".md":
            name = path.relative_to(BUILT).as_posix()
            files.append(File(name, str(BUILT), config.site_dir, use_directory_urls=False))
    for path, name in AT_ROOT.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their files are, and show what a page of the API names in comments."""
    uri = page.file.src_uri
    folder = ROOT if uri in AT_ROOT.values() else (DOCS / uri).parent

    def lead(target: re.Match[str]) -> str:
        path = (folder / target[0]).resolve()
        if path == TRY:
            return "try/index.html"
        if path.is_relative_to(DOCS) or not path.is_file():
            return target[0].removeprefix("docs/")
        name = path.relative_to(ROOT).as_posix()
        return AT_ROOT.get(name) or _as_text(name, config, files)

    return re.sub(r"<!-- (::: .+) -->", r"\1", TARGET.sub(lead, text))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """Refuse a page that loads something from another host."""
    if loaded := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} is to load nothing from elsewhere: {loaded[0]}")


def _as_text(name: str, config: MkDocsConfig, files: Files) -> str:
    """Put another file of the repository on the site, as text that a browser shows."""
    shown = f"source/{name}.txt"
    if files.get_file_from_path(shown) is None:
        files.append(File.generated(config, shown, content=(ROOT / name).read_text()))
    return shown


class OneByOne(griffe.Extension):
    """Arguments that a docstring explains together, each by itself: griffe has one type for all."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write the explanation of `a, b` once for each."""
        if obj.docstring:
            obj.docstring.value = TOGETHER.sub(
                lambda found: "".join(f"{name}\n{found[2]}" for name in found[1].split(", ")),
                f"{obj.docstring.value}\n",
            )
