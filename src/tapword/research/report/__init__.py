"""Reports of an evaluation: a console table, and JSON, CSV, LaTeX and HTML files."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from tapword.errors import InputError
from tapword.research.records import Records, as_json
from tapword.research.report import columns
from tapword.research.report.columns import human_bytes, no_deviation, refused
from tapword.research.report.page import page
from tapword.support import atomic_files
from tapword.support.atomic_files import PathLike, check_writable

__all__ = [
    "WRITERS",
    "Writers",
    "check",
    "human_bytes",
    "no_deviation",
    "refused",
    "table",
    "write",
]
__all__ += ["write_csv", "write_html", "write_json", "write_latex", "write_text"]

# Fields of a result that do not fit into a CSV cell.
NESTED = ("orderings", "matrix", "confusion")

# Suffix of a file -> its writer.
Writers = Mapping[str, Callable[[Any, PathLike], None]]


def table(records: Records) -> Table:
    """Results as a table for a console of 100 columns, the best accuracy in bold."""
    results, best = records.results, columns.best_of(records.results)
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 0), title_justify="left")
    # A name that is the same in every row is shown once, to save space.
    same = [one for one in columns.same(results) if columns.value_of(results[0], one.key)]
    if same:
        names = (f"{one.title} {columns.value_of(results[0], one.key)}" for one in same)
        made.title = Text(as_json(", ".join(names)))
    shown = [column for column in columns.columns_of(results, brief=True) if column not in same]
    for column in shown:
        name = column.key in columns.NAMES
        made.add_column(
            column.title.replace(" ms", "\nms"),
            justify="left" if name else "right",
            overflow="fold",
            # Wrap names, not numbers: a number cut in two misleads.
            no_wrap=not name,
        )
    for result in results:
        row = []
        for column in shown:
            bold = column.key == "acc" and result in best
            row.append(Text(as_json(columns.cell(result, column)), "bold" if bold else ""))
        made.add_row(*row)
    return made


def write_json(records: Any, path: PathLike) -> None:
    """Write records of any kind as strict JSON: NaN and infinity become null."""
    text = json.dumps(as_json(records), ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, text + "\n")


def write_csv(records: Records, path: PathLike) -> None:
    """Write one row per result, with the field names of the records; None is empty."""
    names = dict.fromkeys([column.key for column in columns.COLUMNS] + ["error"])
    for result in records.results:
        names |= dict.fromkeys(item.name for item in fields(result) if item.name not in NESTED)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(as_json(records.results))
    write_text(path, text.getvalue())


def write_latex(records: Records, path: PathLike) -> None:
    r"""Write a table for ``\input``; the document needs ``\usepackage{booktabs}``.

    Non-Latin letters need XeLaTeX or LuaLaTeX.
    """
    results, best = records.results, columns.best_of(records.results)
    same = columns.same(results)
    # What is the same in every row goes into the caption; times depend on the machine.
    shown = [
        column
        for column in columns.columns_of(results, brief=True)
        if column not in same and not column.key.endswith("_ms")
    ]
    rows = []
    for result in results:
        cells = []
        for column in shown:
            text = _latex(columns.cell(result, column, deviation=False))
            if column.key == "acc" and columns.value_of(result, "acc") is not None:
                text = f"\\mathbf{{{text}}}" if result in best else text
                deviation = columns.value_of(result, "acc_std")
                text += "" if deviation is None else f" \\pm {deviation:.2f}"
                text = f"${text}$"
            cells.append(text)
        rows.append(" & ".join(cells) + r" \\")
    align = "".join("l" if column.key in columns.NAMES else "r" for column in shown)
    head = " & ".join(_latex(column.title) for column in shown)
    facts = {"dataset": records.config.dataset, "order": records.config.order}
    facts |= {column.title: columns.value_of(results[0], column.key) for column in same}
    caption = ", ".join(f"{key} {value}" for key, value in facts.items() if value)
    lines = map(_latex, refused(results) + no_deviation(results))
    notes = "".join(f"\\par\\smallskip{{\\footnotesize {line}}}\n" for line in lines)
    body = "\n".join(rows) or r"no results \\"
    write_text(
        path,
        "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\\small\n"
        f"\\caption{{{_latex(caption)}.}}\n\\begin{{tabular}}{{{align or 'l'}}}\n"
        f"\\toprule\n{head} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n{notes}"
        "\\end{table}\n",
    )


def _latex(text: str) -> str:
    # A bracket or star at the start of a row would be read as an argument of the row before.
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {c: f"{{{c}}}" for c in "[]*"}
    special |= {'"': "''", columns.NONE: "--", "±": r"$\pm$", "Δ": r"$\Delta$"}
    names = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less"}
    names |= {">": "greater", "|": "bar", "·": "periodcentered"}
    special |= {c: rf"\text{name}{{}}" for c, name in names.items()}
    return "".join(special.get(c, c) for c in re.sub(r"[\x00-\x1f\x7f]+", " ", text))


def write_html(records: Records, path: PathLike) -> None:
    """Write a self-contained page with tables and charts."""
    write_text(path, page(records))


WRITERS: Writers = {
    ".html": write_html, ".json": write_json, ".csv": write_csv, ".tex": write_latex,
}  # fmt: skip


def check(path: PathLike, writers: Writers = WRITERS) -> None:
    """Refuse a path that `write` cannot write, before the work."""
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise InputError(
            f"cannot write {path}: no file type ends in {suffix!r}; known: {', '.join(writers)}"
        )
    check_writable(path)


def write(records: Any, path: PathLike, writers: Writers = WRITERS) -> None:
    """Write records as the file type of the path's suffix."""
    check(path, writers)
    writers[Path(path).suffix.lower()](records, path)


def write_text(path: PathLike, text: str) -> None:
    """Write a text file atomically; characters that UTF-8 cannot encode become "?"."""
    atomic_files.write(path, text.encode("utf-8", "replace"))
