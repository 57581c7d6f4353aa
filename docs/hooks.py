"""What makes a site of the pages, which are written to be read on GitHub too; mkdocs calls it."""

import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages of the site that lie at the root of the repository.
AT_ROOT = {"CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
# Targets of links and pictures that are files.
TARGET = re.compile(r'(?<=\]\()[^)#:\s]+|(?<=src=")[^":]+')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie at the root."""
    for path, name in AT_ROOT.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their files are to be found, and show what the API page names."""
    folder = ROOT if page.file.src_uri in AT_ROOT.values() else DOCS

    def lead(target: re.Match[str]) -> str:
        path = (folder / target[0]).resolve()
        if not path.exists():
            return target[0]
        if path.is_relative_to(DOCS):
            return path.relative_to(DOCS).as_posix()
        name = path.relative_to(ROOT).as_posix()
        return AT_ROOT.get(name) or f"{_repository()}/blob/main/{name}"

    return re.sub(r"<!-- (::: .+) -->", r"\1", TARGET.sub(lead, text))


def _repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project.get("urls", {}).get("Source", "https://github.com/tapword/tapword")
