"""The HTML page of an evaluation."""

import math
import re
from collections.abc import Sequence
from html import escape

from tapword.research.records import (
    AnyResult,
    OpenSetResult,
    Records,
    Result,
    VoiceResult,
    as_json,
)
from tapword.research.report import charts, columns, shell
from tapword.research.report.shell import section

NUMBER = columns.Column("", "#", str, False, "number in the charts")
ACCURACY = next(column for column in columns.COLUMNS if column.key == "acc")
# The colour scale of a matrix starts here at the latest, so a good one shows differences.
HIGHEST_LOW = 90.0
# Width of the longest bar of the confusions, in percent; the count is next to it.
LONGEST_BAR = 75


def page(records: Records) -> str:
    """Write the whole page."""
    streams = [result for result in records.results if isinstance(result, Result)]
    config = as_json(records.config)
    if config["draws"]:
        del config["orderings"]
    return shell.html_page(
        f"tapword evaluation: {records.config.dataset}",
        _headline(records)
        + shell.what_was_run(config, as_json(records.environment))
        + section("Results", _results(records.results))
        + section(
            "Accuracy against samples a word",
            charts.few_shot(streams),
            "Bands show one standard deviation over draws.",
        )
        + section(
            "Accuracy as words are learned",
            charts.curves(streams),
            "On the test clips of all words learned so far, mean over orderings. Lines have the "
            "numbers of the table; hover over a line or its name to highlight it.",
        )
        + section("One result in detail", _details(streams)),
        script=shell.SCRIPT,
    )


def _headline(records: Records) -> str:
    results = records.results
    top: AnyResult
    if best := columns.best_of(results):
        top = max(best, key=lambda result: result.acc or 0.0)
        forgot = f"; {top.forg:.1f} points forgotten" if top.forg is not None else ""
        right = f"<b>{columns.cell(top, ACCURACY)}%</b> right"
        text = f"{right} on {records.config.n_words} words{forgot}."
    elif open_set := [result for result in results if isinstance(result, OpenSetResult)]:
        top = max(open_set, key=lambda result: result.auroc)
        text = (
            f"AUROC <b>{top.auroc:.2f}%</b> for {top.known} known words; where 5% of other "
            f"clips pass, <b>{top.acc_open:.2f}%</b> of theirs are accepted and right."
        )
    elif voices := [result for result in results if isinstance(result, VoiceResult)]:
        top = min(voices, key=lambda result: result.frr_1)
        whose = "own voice" if top.voice == "own" else "others' voices"
        text = (
            f"taught by {whose}: where 1% of other people's other words pass, "
            f"<b>{top.frr_1:.1f}%</b> of known words are rejected."
        )
    else:
        return '<p class="lead">No results.</p>'
    name = escape(columns.name_of(top))
    return f'<p class="lead">Best of {len(results)}: <b>{name}</b>, {text}</p>'


def _results(results: Sequence[AnyResult]) -> str:
    if not results:
        return ""
    shown, same = columns.columns_of(results, brief=False), columns.same(results)
    best = columns.best_of(results)

    def kind(column: columns.Column) -> str:
        if column.key.endswith("_ci"):
            return "interval"
        return "name same" if column in same else "name" if column.key in columns.NAMES else ""

    head = "".join(
        f'<th scope="col" class="{kind(column)}" data-v="{column.title}" '
        f'title="{column.meaning}"><button>{column.title}</button></th>'
        for column in [NUMBER, *shown]
    )
    rows = []
    for number, result in enumerate(results, start=1):
        row = f"<td>{number}</td>"
        for column in shown:
            value = columns.value_of(result, column.key)
            raw = "" if value is None else escape(str(value))
            text, look = columns.cell(result, column, deviation=False), kind(column)
            if column is ACCURACY and result in best:
                look = "best"
            if column is ACCURACY and value is None:
                text = "refused"
            shown_text = escape(text)
            if column.key in columns.NAMES:
                # Break long names between their parts.
                shown_text = re.sub(r"(?<=[_:,+=|])(?=\w)", "<wbr>", shown_text)
            row += f'<td class="{look}" data-v="{raw}">{shown_text}</td>'
        rows.append(row)
    table = shell.scrolling(shell.table('id="results"', head, rows), "results")
    meant = [(column.title, column.meaning) for column in shown]
    presets = {one.size: one for one in results if one.size is not None}
    for size, one in presets.items():
        meant.append((size, " -> ".join(getattr(one, key) for key in columns.PARTS)))
    meanings = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(meaning)}</dd></div>" for name, meaning in meant
    )
    notes = [f"Refused: {reason}" for reason in columns.refused(results)]
    notes += columns.no_deviation(results)
    below = "".join(map(shell.soft, notes))
    return (
        f"{shell.copy_button('results')}{table}{below}"
        f"<details><summary>What the columns mean</summary><dl>{meanings}</dl></details>"
    )


def _details(results: Sequence[Result]) -> str:
    """Matrix and confusions of each result; a menu selects one, at first the best."""
    top = max(columns.best_of(results), key=lambda result: result.acc or 0.0, default=None)
    values = [v for r in results for row in r.matrix or [] for v in row if v is not None]
    low = min(HIGHEST_LOW, math.floor(min(values, default=0) / 10) * 10)
    options, articles = [], []
    for number, result in enumerate(results, start=1):
        # With several orderings, a task has different words in each.
        tasks = result.orderings[0].tasks if len(result.orderings) == 1 else []
        body = _confusion(result)
        if drawing := charts.heat_map(result.matrix, low, tasks):
            drawing = f"<h4>Accuracy on each task</h4>{charts.scale(low)}{drawing}"
            body = f"<figure>{drawing}{_taught(result)}</figure>{body}"
        if not body:
            continue
        accuracies = ", ".join(f"{ordering.acc:.2f}" for ordering in result.orderings)
        name = escape(f"{number}: {columns.name_of(result)}")
        chosen = " selected" if result is top else ""
        options.append(f'<option value="result-{number}"{chosen}>{name}</option>')
        each = shell.soft(f"acc by ordering: {accuracies}")
        articles.append(
            f'<article id="result-{number}"><h3>{name}</h3>{each}<div class="panels">{body}</div>'
            "</article>"
        )
    if not articles:
        return ""
    pick = f'<label>Result <select id="pick">{"".join(options)}</select></label>'
    return f'<p class="js-only">{pick}</p>{"".join(articles)}'


def _taught(result: Result) -> str:
    """List the words of each ordering's tasks, which a drawing can only number."""
    if len(result.orderings) == 1:
        return ""
    rows = "".join(
        f"<dt>{number}</dt><dd>{escape('; '.join(map(', '.join, ordering.tasks)))}</dd>"
        for number, ordering in enumerate(result.orderings, start=1)
    )
    name = "Words of the tasks in each ordering"
    return f'<details><summary>{name}</summary><dl class="rows">{rows}</dl></details>'


def _confusion(result: Result) -> str:
    if not result.confusion:
        return ""
    most = max(count for _, _, count in result.confusion)
    rows = (
        f'<td class="name">{escape(word)}</td>'
        f'<td class="name">{escape(predicted or columns.NONE)}</td>'
        f'<td><span class="bar" style="width:{LONGEST_BAR * count / most:.0f}%"></span>{count}</td>'
        for word, predicted, count in result.confusion
    )
    titles = ("word", "recognised as", "clips")
    head = "".join(f'<th scope="col" class="name">{title}</th>' for title in titles)
    table = shell.table('class="confused"', head, rows)
    n = len(result.orderings)
    runs = "orderings" if result.shots is None else "draws"
    summed = shell.soft(f"Clips are added up over {n} {runs}.") if n > 1 else ""
    return f"<figure><h4>Words most often confused</h4>{summed}{table}</figure>"
