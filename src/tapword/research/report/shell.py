"""Shared parts of the HTML pages: self-contained, light and dark."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Any

# A longer fact gets double width.
LONG_FACT = 14
# Labels of keys of records, where the key itself is unclear.
LABELS = {"n_words": "words", "n_train": "train clips", "n_test": "test clips"}
LABELS |= {"skipped": "clips skipped", "cpus": "CPUs"}

_FOLDER = resources.files("tapword.research.report")
STYLE = _FOLDER.joinpath("page.css").read_text(encoding="utf-8")
# Copies tables and texts, sorts the table of results, selects a result, highlights a line.
SCRIPT = _FOLDER.joinpath("page.js").read_text(encoding="utf-8")


def html_page(title: str, body: str, style: str = "", script: str = "") -> str:
    """Make a page of a plain-text title, an HTML body, extra CSS, and `SCRIPT` or no script.

    Its security policy lets the browser load nothing and run only this script.
    """
    policy = "default-src 'none';style-src 'unsafe-inline'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f";script-src 'sha256-{digest}'"
        script = f"<script>{script}</script>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>{body}</main>{script}</body></html>\n"
    )


def soft(text: str) -> str:
    """Make a muted paragraph of plain text."""
    return f'<p class="soft">{escape(text)}</p>'


def section(title: str, body: str, note: str = "") -> str:
    """Make a section with a plain-text heading and note; nothing for an empty body."""
    below = soft(note) if note else ""
    return f"<section><h2>{escape(title)}</h2>{below}{body}</section>\n" if body else ""


def what_was_run(config: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """Make a section on a configuration and a machine, as from `records.as_json`."""
    values = {key: value for key, value in config.items() if key not in ("command", "notes")}
    notes = "".join(map(soft, config["notes"]))
    run = facts(values) + notes + command_line(config["command"]) + facts(environment)
    return section("What was run", run)


def facts(values: Mapping[str, Any]) -> str:
    """List keys and values, as from `records.as_json`, without empty ones."""
    rows = ""
    for key, value in values.items():
        if value is None or value in ("", [], {}):
            continue
        text = _text(value)
        wide = ' class="long"' if len(text) > LONG_FACT else ""
        name = LABELS.get(key, key.replace("_", " "))
        rows += f"<div{wide}><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
    return f"<dl>{rows}</dl>" if rows else ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def command_line(command: str | None) -> str:
    """Show a command; its copy button needs `SCRIPT`."""
    if not command:
        return ""
    # Break lines between arguments, not after their hyphens.
    tokens = " ".join(f"<span>{escape(token)}</span>" for token in command.split(" "))
    return f'<pre id="command">{tokens}</pre>{copy_button("command", "Copy command")}'


def copy_button(of: str, text: str = "Copy as TSV") -> str:
    """Make a button that copies the element of this id; it needs `SCRIPT`."""
    return f'<button class="js-only" data-copy="{of}">{text}</button>'


def table(attributes: str, head: str, rows: Iterable[str]) -> str:
    """Make a table from the cells of the head and of each row."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table {attributes}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def scrolling(table: str, label: str) -> str:
    """Let a wide table scroll by itself."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'
    )
