"""Records -> console table, and files written whole or not at all."""

import contextlib
import csv
import io
import json
import os
import re
import uuid
from pathlib import Path

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from tapword.errors import InputError
from tapword.report.columns import (
    COLUMNS,
    NAMES,
    NESTED,
    NONE,
    Records,
    cell,
    clean,
    dataset_name,
    prepare,
    refused,
    same,
)
from tapword.report.page import page

PathLike = str | os.PathLike[str]


def table(records: Records) -> Table:
    """Show results on a console of 100 columns: one row each, the best accuracy in bold."""
    results, columns, best = prepare(records, brief=True)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 0), title_justify="left")
    # A name that is the same in every row is said once, so that the others have room.
    alike = [
        c for c in same(results) if c.key in NAMES and len(results) > 1 and results[0].get(c.key)
    ]
    if alike:
        shown.title = Text(", ".join(f"{c.title} {results[0][c.key]}" for c in alike))
    columns = [column for column in columns if column not in alike]
    for column in columns:
        name = column.key in NAMES
        justify: JustifyMethod = "left" if name else "right"
        # Names give way first: a number cut in two misleads.
        title = column.title.replace(" ms", "\nms")
        shown.add_column(title, justify=justify, overflow="fold", no_wrap=not name)
    for index, result in enumerate(results):
        styles = ["bold" if c.key == "acc" and index in best else "" for c in columns]
        cells = [cell(result, column) for column in columns]
        shown.add_row(*map(Text, cells, styles))
    return shown


def write_json(records: Records, path: PathLike) -> None:
    """Write everything as strict JSON: a number that is not finite becomes null."""
    write_text(
        path, json.dumps(clean(records), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    )


def write_csv(records: Records, path: PathLike) -> None:
    """Write one row per result, under the names of the records; an absent value is empty."""
    results = clean(records).get("results") or []
    keys = dict.fromkeys(
        [column.key for column in COLUMNS] + ["error"] + [key for r in results for key in r]
    )
    text = io.StringIO()
    names = [key for key in keys if key not in NESTED]
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(results)
    write_text(path, text.getvalue())


def write_latex(records: Records, path: PathLike) -> None:
    r"""Write a table for ``\input``; the document needs ``\usepackage{booktabs}``.

    Letters outside Latin are left as they are, for XeLaTeX or LuaLaTeX.
    """
    results, columns, best = prepare(records, brief=True)
    config = clean(records).get("config") or {}
    # What is the same in every row goes into the caption, and times stay with their machine.
    alike = [column for column in columns if column in same(results)]
    columns = [c for c in columns if c not in alike and not c.key.endswith("_ms")]
    rows = []
    for index, result in enumerate(results):
        cells = [_latex(cell(result, column, deviation=False)) for column in columns]
        for place, column in enumerate(columns):
            if column.key == "acc" and result.get("acc") is not None:
                value = f"\\mathbf{{{cells[place]}}}" if index in best else cells[place]
                deviation = result.get("acc_std")
                cells[place] = f"${value}" + (
                    "$" if deviation is None else f" \\pm {deviation:.2f}$"
                )
        rows.append(" & ".join(cells) + r" \\")
    align = "".join("l" if column.key in NAMES else "r" for column in columns)
    head = " & ".join(_latex(column.title) for column in columns)
    facts = {"dataset": dataset_name(config), "order": config.get("order")}
    facts |= {column.title: results[0][column.key] for column in alike}
    caption = ", ".join(f"{key} {value}" for key, value in facts.items() if value)
    notes = "".join(
        f"\\par\\smallskip{{\\footnotesize {_latex(line)}}}\n" for line in refused(results)
    )
    body = "\n".join(rows) or r"no results \\"
    write_text(
        path,
        "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\\small\n"
        f"\\caption{{{_latex(caption) or 'Results'}.}}\n\\begin{{tabular}}{{{align or 'l'}}}\n"
        f"\\toprule\n{head} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n{notes}"
        "\\end{table}\n",
    )


def write_html(records: Records, path: PathLike) -> None:
    """Write a page with tables and charts in one file that loads nothing from anywhere."""
    write_text(path, page(records))


def _latex(text: str) -> str:
    # A bracket or a star at the start of a row would be read as an argument of the row's end.
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {c: f"{{{c}}}" for c in "[]*"}
    special |= {'"': "''", NONE: "--", "±": r"$\pm$", "Δ": r"$\Delta$"}
    names = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less"}
    names |= {">": "greater", "|": "bar", "·": "periodcentered"}
    special |= {c: rf"\text{name}{{}}" for c, name in names.items()}
    return "".join(special.get(c, c) for c in re.sub(r"[\x00-\x1f\x7f]+", " ", text))


def write_text(path: PathLike, text: str) -> None:
    """Write a file whole or not at all, links followed."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {target.parent} does not exist")
    # Devices and pipes are written to, never replaced.
    plain = target.is_file() or not target.exists()
    place = target.with_name(f".{uuid.uuid4().hex}.tmp") if plain else target
    try:
        place.write_text(text, encoding="utf-8", newline="\n")
        if plain:
            os.replace(place, target)
    except OSError as error:
        if plain:
            with contextlib.suppress(OSError):
                place.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
