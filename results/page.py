"""Pages of `docs/results/`: text from `pages/`, numbers from the measurements.

A page may contain

- `{{table RUN COLUMN ...}}`: the results of a run,
- `{{counts RUN ...}}`: accuracies by samples per word, of one or several runs,
- `{{compare RUN}}`: tables of `reproduce`, ours with the paper's in brackets,
- `{{lines RUN COLUMN ...}}`: the plain records that have all of the columns,
- `{{command RUN ...}}`: the commands.

A column may end in ":N", the number of decimals.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from subjects import Subject

PAGES = Path(__file__).parent / "pages"
NONE = "—"
TITLES = {
    "acc": "Acc",
    "acc_speakers_ci": "95% over speakers",
    "bwt": "BwT",
    "bwt_signed": "BwT (signed)",
    "forg": "Forg",
    "pla": "Pla",
    "state_bytes": "state",
    "params": "parameters",
    "frr_5": "FRR at 5%",
    "frr_1": "FRR at 1%",
    "owner_5": "owner at 5%",
    "owner_1": "owner at 1%",
    "alarms_an_hour": "alarms per hour",
    "strict_missed_clean": "missed clean, no alarm",
    "strict_missed_in_noise": "missed in noise, no alarm",
    "median_alarms_an_hour": "median alarms per hour",
    "others_let_in": "others accepted",
    "own_others_let_in": "own others accepted",
    "heard_as_two": "two events",
    "asked": "tested",
    "likest_let_in": "most similar accepted",
    "likest_let_in_after_use": "most similar accepted after use",
    "likest_let_in_taught_twice": "most similar accepted, taught twice",
    "likest_let_in_worse": "more accepted",
    "likest_let_in_better": "fewer accepted",
}
WIDTH = 100
# How a shown command names data; folders go by their own names.
FILES = {"negatives": "FILE ..."}

# States of a figure's code.
CURRENT, STALE, UNKNOWN = "current", "stale", "measured before code hashes were recorded"
STATUS_HEAD = """
`make results` writes this page, and the site makes it again when it is built. Each figure names a
hash of the code it was measured by: the modules its command imports, the parts it names and their
weights, without comments and docstrings. A figure is stale if this code has changed since.
`make results` measures every figure again that is not current.
""".strip()

Kept = dict[str, dict[str, Any]]


def render(name: str, subject: Subject, kept: Kept) -> str:
    """Render a page from the measurements; missing runs are named."""
    text = (PAGES / f"{name}.md").read_text("utf-8")

    def fill(found: re.Match[str]) -> str:
        kind, *words = found[1].split()
        if kind == "command":
            commands = subject.runs | {run: one["command"] for run, one in kept.items()}
            shown = "\n".join(shown_command(commands[run]) for run in words)
            return f"```sh\n{shown}\n```"
        runs = words[:1] if kind in ("table", "lines") else words
        missing = [run for run in runs if run not in kept]
        return f"Not measured yet: {', '.join(missing)}." if missing else KINDS[kind](kept, words)

    body = re.sub(r"\{\{(.+?)\}\}", fill, text).strip()
    head = (
        f"# {subject.title}\n\nWritten by `make results`. [{name}.json]({name}.json) has "
        "the numbers, commands and data."
    )
    return f"{head}\n\n{body}\n\n{_sources(kept)}"


def _table(kept: Kept, words: list[str]) -> str:
    """Render the results of a run, one row each."""
    name, *columns = words
    rows = kept[name]["found"]["results"]
    return markdown(
        [TITLES.get(one, one) for one in columns],
        ([_cell(row, column) for column in columns] for row in rows),
    )


def _counts(kept: Kept, names: list[str]) -> str:
    """Render accuracies: a row per preset, backbone or learner, a column per count."""
    results = [one for name in names for one in kept[name]["found"]["results"]]
    counts = sorted({one["shots"] for one in results})
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for one in results:
        named = f"**size {one['size']}**" if one["size"] else f"`{_named(one, results)}`"
        rows.setdefault(named, {})[one["shots"]] = one
    body = []
    for named, found in rows.items():
        cells = [_cell(found[count], "acc") if count in found else NONE for count in counts]
        most = found[max(found)]
        body.append([named, *cells, _cell(most, "acc_speakers_ci"), _cell(most, "state_bytes")])
    head = ["", *map(str, counts), f"95% over speakers at {counts[-1]}", "state"]
    return markdown(head, body)


def _named(one: dict[str, Any], results: Sequence[dict[str, Any]]) -> str:
    """Name a result by the part that differs within its table."""
    parts = [other for other in results if not other["size"]]
    for part in ("learner", "backbone", "pooling"):
        if len({other[part] for other in parts}) > 1:
            return str(one[part])
    return str(one["backbone"])


def _compare(kept: Kept, words: list[str]) -> str:
    """Render tables of `reproduce`: ours, the paper's in brackets, and notes."""
    written = []
    for reproduced in kept[words[0]]["found"]["tables"]:
        for table in reproduced["tables"]:
            head = [table["corner"], *(group["title"] for group in table["groups"])]
            rows = [
                [row["name"], *map(_beside, table["groups"], row["cells"])] for row in table["rows"]
            ]
            written.append(f"{table['title']}:\n\n{markdown(head, rows)}")
        written += ["\n".join(f"- {note}" for note in reproduced["notes"])]
    return "\n\n".join(filter(None, written))


def _beside(group: dict[str, Any], cell: dict[str, Any]) -> str:
    """Render our number in a table of `reproduce`, and the paper's."""

    def written(value: float | None) -> str:
        if value is None:
            return NONE
        # Adding 0 removes the sign of a rounded -0.
        digits = group["digits"]
        return f"{round(value, digits) + 0.0:{'+' if group['signed'] else ''}.{digits}f}"

    ours = cell["text"] or written(cell["ours"])
    return ours if cell["paper"] is None else f"{ours} ({written(cell['paper'])})"


def _lines(kept: Kept, words: list[str]) -> str:
    """Render the plain records of a run that have all of these columns."""
    name, *columns = words
    keys = [one.partition(":")[0] for one in columns]
    rows = [row for row in kept[name]["found"] if all(key in row for key in keys)]
    head = [TITLES.get(key, key.replace("_", " ")) for key in keys]
    return markdown(head, ([_cell(row, column) for column in columns] for row in rows))


def shown_command(command: str) -> str:
    """Render a command in lines of at most `WIDTH` characters, with data as FILE or named.

    Examples
    --------
    >>> shown_command("tapword evaluate --data {english}")
    'tapword evaluate --data ENGLISH'
    """
    command = re.sub(r"\{(\w+)\}", lambda found: FILES.get(found[1], found[1].upper()), command)
    # An option and its value stay together.
    command = re.sub(r"(--[\w-]+) (?!--)", "\\1\0", command)
    lines = textwrap.wrap(command, WIDTH, break_long_words=False, break_on_hyphens=False)
    return " \\\n    ".join(lines).replace("\0", " ")


KINDS: dict[str, Callable[[Kept, list[str]], str]] = {
    "table": _table,
    "counts": _counts,
    "compare": _compare,
    "lines": _lines,
}


def _cell(row: dict[str, Any], column: str) -> str:
    """Render a value, with its standard deviation or interval if it has one."""
    key, _, digits = column.partition(":")
    value = row.get(key)
    if value is None:
        return NONE
    if key == "state_bytes":
        return f"{value / 1000:,.0f} kB"
    if key == "params":
        return f"{value / 1e6:.1f}M"
    if isinstance(value, list):
        return f"{value[0]:.1f} to {value[1]:.1f}"
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.{digits or 1}f}"
    if row.get(f"{key}_std") is not None:
        text += f" ± {row[f'{key}_std']:.{digits or 1}f}"
    if row.get(f"{key}_ci") is not None:
        low, high = row[f"{key}_ci"]
        text += f" ({low:.{digits or 1}f} to {high:.{digits or 1}f})"
    return text


def _sources(kept: Kept) -> str:
    """Render the source of each number of a page."""
    rows = []
    for name, one in kept.items():
        data = ", ".join(f"{key} {value}" for key, value in one["data"].items())
        code = one["code"] or "not recorded"
        rows.append([name, one["commit"], code, data, f"{one['seconds']:,.0f} s"])
    return "## Sources\n\n" + markdown(["run", "commit", "code", "data", "took"], rows) + "\n"


def render_status(
    subjects: Mapping[str, Subject], measured: Mapping[str, Kept], now: Mapping[str, str]
) -> str:
    """Render the page that shows which figures are stale.

    Parameters
    ----------
    subjects
        Pages by name.
    measured
        Name of a page -> its measurements.
    now
        Command -> hash of the code that it would run now.
    """
    rows = []
    for name, kept in measured.items():
        for run, one in kept.items():
            state = UNKNOWN if one["code"] is None else STALE
            state = CURRENT if one["code"] == now[one["command"]] else state
            rows.append([f"[{subjects[name].title}]({name}.md)", run, one["commit"], state])
    counts = Counter(row[-1] for row in rows)
    summary = ", ".join(f"{counts[state]} {state}" for state in (CURRENT, STALE, UNKNOWN))
    return (
        f"# Status of the figures\n\n{STATUS_HEAD}\n\n{len(rows)} figures: {summary}.\n\n"
        f"{markdown(['page', 'figure', 'commit', 'code'], rows)}\n"
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
