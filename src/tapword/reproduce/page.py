"""The page of a reproduction: stands alone, loads nothing, looks like the report's."""

from html import escape
from typing import Any

from tapword.report import charts as report_charts
from tapword.report import page as report_page
from tapword.reproduce import charts
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced

STYLE = """
.loud{border-left:4px solid #c46a00;background:var(--card);padding:.6rem .9rem;max-width:60rem}
.compared thead th.name{vertical-align:bottom;padding-left:.5rem}
.compared thead tr:first-child th:not(.name){text-align:left;padding-left:1.2rem}
.compared .first{padding-left:1.2rem}.compared .theirs{color:var(--soft)}
.compared td.ours{font-weight:600}
ul.notes{font-size:.875rem;color:var(--soft);padding-left:1.1rem;max-width:60rem}
"""
POLICY = "default-src 'none';style-src 'unsafe-inline'"


def page(outcome: dict[str, Any], tables: list[Reproduced]) -> str:
    """Write the whole page.

    Parameters
    ----------
    outcome
        "banner", "config" and "environment" as `tapword.reproduce.run` gives them.
    tables
        What was reproduced.
    """
    title = "tapword beside the paper: " + ", ".join(table.name for table in tables)
    sections = [
        f"<h1>{escape(title)}</h1>",
        *(f'<p class="loud"><b>{escape(line)}</b></p>' for line in outcome["banner"]),
        f"<section><h2>What was run</h2>{_facts(outcome)}</section>",
        *map(_section, tables),
    ]
    style = report_page.STYLE + report_charts.STYLE + charts.STYLE + STYLE
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main>{''.join(sections)}</main></body></html>\n"
    )


def _facts(outcome: dict[str, Any]) -> str:
    rows = ""
    for key, value in (outcome["config"] | outcome["environment"]).items():
        if value in (None, [], "") or isinstance(value, dict) or key == "command":
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if isinstance(value, int) and not isinstance(value, bool):
            text = f"{value:,}"
        wide = ' class="long"' if len(text) > 14 else ""
        name = escape(key.replace("n_", "", 1).replace("_", " "))
        rows += f"<div{wide}><dt>{name}</dt><dd>{escape(text)}</dd></div>"
    lacking = "".join(
        f"<li>{escape(name)}: {escape(why)}</li>"
        for name, why in outcome["config"]["lacking"].items()
    )
    if lacking:
        lacking = f'<p class="soft">Backbones left out:</p><ul class="notes">{lacking}</ul>'
    command = outcome["config"].get("command")
    shown = f"<pre>{escape(command)}</pre>" if command else ""
    return f"<dl>{rows}</dl>{shown}{lacking}"


def _section(table: Reproduced) -> str:
    body = "".join(map(_table, table.comparisons))
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    drawings = "".join(table.drawings)
    return (
        f'<section id="{table.name}"><h2>{escape(table.name)}: {escape(table.title)}</h2>'
        f'{drawings}{body}<ul class="notes">{notes}</ul></section>\n'
    )


def _table(shown: Comparison) -> str:
    top = "".join(
        f'<th scope="colgroup" colspan="{len(group.columns())}">{escape(group.title)}</th>'
        for group in shown.groups
    )
    below = "".join(
        f'<th scope="col"{_kind(index, "theirs")}>{escape(heading)}</th>'
        for group in shown.groups
        for index, heading in enumerate(group.columns())
    )
    rows = "".join(
        f'<tr><th scope="row" class="name">{escape(name)}</th>'
        + "".join(_cells(group, cell) for group, cell in zip(shown.groups, cells, strict=True))
        + "</tr>"
        for name, cells in shown.rows
    )
    return (
        f'<h3>{escape(shown.title)}</h3><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(shown.title)}"><table class="compared"><thead>'
        f'<tr><th class="name" rowspan="2" scope="col">{escape(shown.corner)}</th>{top}</tr>'
        f"<tr>{below}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(group: Group, cell: Cell) -> str:
    return "".join(
        f"<td{_kind(index, 'theirs')}>{escape(text)}</td>"
        for index, text in enumerate(group.cells(cell))
    )


def _kind(index: int, other: str) -> str:
    return f' class="{other if index else "first ours"}"'
