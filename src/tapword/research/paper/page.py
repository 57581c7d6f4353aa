"""Reproduced tables on a console, and on a self-contained HTML page."""

from collections.abc import Iterator
from html import escape
from importlib import resources

from rich import box
from rich.console import RenderableType
from rich.containers import Renderables
from rich.table import Table
from rich.text import Text

from tapword.research.paper.compare import Comparison, Reproduced
from tapword.research.paper.reproduce import Reproduction
from tapword.research.report import Writers, shell, write_json, write_text

STYLE = resources.files("tapword.research.paper").joinpath("page.css").read_text("utf-8")


# Characters that fit on a page of 1280 pixels.
PAGE_COLUMNS = 150


def console_tables(comparison: Comparison, width: int = 100) -> Iterator[RenderableType]:
    """Tables for a console, each with as many groups as fit into `width`."""
    for start, end in _chunks(comparison, width):
        title = comparison.title + (" (continued)" if start else "")
        shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        shown.add_column(Text(f"\n{comparison.corner}"), no_wrap=True)
        for group in comparison.groups[start:end]:
            first, *rest = group.columns()
            shown.add_column(Text(f"{group.title}\n{first}"), justify="right", no_wrap=True)
            for heading in rest:
                lines = heading if " " in heading else f" {heading}"
                label = Text(lines.replace(" ", "\n", 1))
                shown.add_column(label, justify="right", no_wrap=True, style="dim")
        for name, cells in comparison.rows:
            texts: list[Text] = []
            for group, cell in zip(comparison.groups[start:end], cells[start:end], strict=True):
                texts += map(Text, group.cells(cell))
            shown.add_row(Text(name), *texts)
        yield Renderables([Text(f"\n{title}", style="italic"), shown])


def _chunks(comparison: Comparison, room: int) -> Iterator[tuple[int, int]]:
    """Ranges of groups that fit side by side."""
    names = [comparison.corner, *(name for name, _ in comparison.rows)]
    # Each column has a space of padding and one of the box; the box has two edges.
    first = max(map(len, names)) + 2 + 2
    start, width = 0, first
    for index, group in enumerate(comparison.groups):
        headings = [heading.partition(" ")[2] or heading for heading in group.columns()]
        headings[0] = max(headings[0], group.title, key=len)
        rows = [headings, *(group.cells(cells[index]) for _, cells in comparison.rows)]
        own = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
        if index > start and width + own > room:
            yield start, index
            start, width = index, first
        width += own
    if comparison.groups:
        yield start, len(comparison.groups)


def page(reproduction: Reproduction) -> str:
    """Write the whole HTML page."""
    names = ", ".join(table.name for table in reproduction.tables)
    loud = "".join(f'<p class="loud"><b>{escape(line)}</b></p>' for line in reproduction.banner)
    run = shell.facts(reproduction.config | vars(reproduction.environment))
    run += shell.command_line(reproduction.command)
    unavailable = [f"{name}: {why}" for name, why in reproduction.unavailable.items()]
    if unavailable:
        run += f'<p class="soft">Unavailable backbones:</p>{_list(unavailable)}'
    sections = [shell.section("What was run", run), *map(_section, reproduction.tables)]
    title = f"tapword compared with the paper: {names}"
    return shell.html_page(title, loud + "".join(sections), STYLE, shell.SCRIPT)


# Suffix of a file -> what writes a reproduction as such a file.
WRITERS: Writers = {
    ".html": lambda reproduction, path: write_text(path, page(reproduction)),
    ".json": lambda reproduction, path: write_json(reproduction.as_json(), path),
}


def _section(table: Reproduced) -> str:
    tables = [
        _table(one, *chunk) for one in table.comparisons for chunk in _chunks(one, PAGE_COLUMNS)
    ]
    body = "".join([*table.drawings, *tables, _list(table.notes)])
    return shell.section(f"{table.name}: {table.title}", body)


def _list(notes: list[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>'


def _table(shown: Comparison, start: int, end: int) -> str:
    """Table of the groups from `start` to `end`."""
    groups = shown.groups[start:end]
    title = shown.title + (" (continued)" if start else "")
    top = "".join(
        f'<th scope="colgroup" colspan="{len(group.columns())}">{escape(group.title)}</th>'
        for group in groups
    )
    below = "".join(_row('th scope="col"', group.columns()) for group in groups)
    rows = ""
    for name, cells in shown.rows:
        pairs = zip(groups, cells[start:end], strict=True)
        texts = "".join(_row("td", group.cells(cell)) for group, cell in pairs)
        rows += f'<tr><th scope="row" class="name">{escape(name)}</th>{texts}</tr>'
    table = (
        '<table class="compared"><thead>'
        f'<tr><th class="name" rowspan="2" scope="col">{escape(shown.corner)}</th>{top}</tr>'
        f"<tr>{below}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return f"<h3>{escape(title)}</h3>{shell.scrolling(table, title)}"


def _row(tag: str, texts: list[str]) -> str:
    """Cells of one group: ours first, then the paper's and the difference."""
    kinds = ["first ours", *["theirs"] * (len(texts) - 1)]
    return "".join(
        f'<{tag} class="{kind}">{escape(text)}</{tag.partition(" ")[0]}>'
        for kind, text in zip(kinds, texts, strict=True)
    )
