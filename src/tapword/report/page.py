"""The HTML page of an evaluation: stands alone, loads nothing."""

import base64
import hashlib
import math
from html import escape
from typing import Any

from tapword.report import charts
from tapword.report.columns import (
    COLUMNS,
    NAMES,
    NONE,
    Column,
    Records,
    Result,
    cell,
    clean,
    dataset_name,
    name_of,
    prepare,
    refused,
    same,
)

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--card:#f6f7f9;--ink:#1b1f24;--soft:#57606a;
--rule:#dde1e6;--link:#0064a0;--bar:#9cc7e6}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--card:#1d2127;--ink:#e8eaed;
--soft:#a3abb5;--rule:#343a42;--link:#7cc4ff;--bar:#2f5f85}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:1.5rem 1.25rem 4rem;background:var(--ground);
color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.75rem;overflow-wrap:anywhere;line-height:1.2;margin:.5rem 0}
h2{font-size:1.25rem;margin:2.75rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.25rem 0 .5rem;overflow-wrap:anywhere}
h4{font-size:.95rem;margin:0 0 .25rem}
p{margin:.4rem 0;max-width:46rem}.lead{font-size:1.1rem;overflow-wrap:anywhere}
.soft,figcaption,dt{color:var(--soft);font-size:.875rem}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));
gap:.5rem 1rem;margin:1rem 0}.long{grid-column:span 2}
dd{margin:0;overflow-wrap:anywhere}
pre{background:var(--card);padding:.75rem;border-radius:6px;white-space:pre-wrap;
font-size:.85rem;margin:.25rem 0}
pre span{display:inline-block;max-width:100%;overflow-wrap:anywhere}
button,select{font:inherit;font-size:.875rem;color:inherit;background:var(--card);
border:1px solid var(--rule);border-radius:6px;padding:.3rem .7rem;max-width:100%;cursor:pointer}
:focus-visible{outline:2px solid var(--link);outline-offset:1px}
html:not(.js) .js-only{display:none}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th.name,td.name{text-align:left}
#results th{padding:.2rem 0;vertical-align:bottom;white-space:normal}
#results th button{border:0;background:none;font-weight:600;text-align:inherit;
padding:.2rem .5rem}
th[aria-sort=ascending] button::after{content:" ▲"}
th[aria-sort=descending] button::after{content:" ▼"}
#results tbody tr:hover{background:var(--card)}
.best{font-weight:700}.refused{text-align:left;color:var(--soft);white-space:normal}
figure{margin:0}figcaption{font-weight:600}
.panels{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}
.one{display:block}
.one .lines{display:grid;gap:1rem;grid-template-columns:minmax(0,2fr) minmax(250px,1fr)}
.one .legend{align-self:center;max-width:22rem}
.scale{display:flex;gap:.6rem;align-items:center;font-size:.875rem;color:var(--soft)}
.ramp{flex:0 1 240px;height:12px;border-radius:3px}
.confused{width:100%}.confused td:last-child{width:50%;text-align:left}
.confused td.name{white-space:normal;overflow-wrap:anywhere}
.bar{display:inline-block;height:.8em;background:var(--bar);border-radius:2px;margin-right:.4em}
@media(max-width:760px){h1{font-size:1.4rem}.same{display:none}
.one .lines{grid-template-columns:minmax(0,1fr)}}
@media print{.js-only{display:none}}
"""

SCRIPT = """
const all=(q,r=document)=>[...r.querySelectorAll(q)];
document.documentElement.classList.add('js');
async function copy(text,button){
 try{await navigator.clipboard.writeText(text)}
 catch{const area=document.body.appendChild(document.createElement('textarea'));
  area.value=text;area.select();document.execCommand('copy');area.remove();button.focus()}
 const old=button.dataset.old??=button.textContent;
 button.textContent='Copied';setTimeout(()=>button.textContent=old,1500)}
const value=cell=>cell.dataset.v??cell.textContent;
all('[data-copy]').forEach(button=>button.onclick=()=>{
 const from=document.getElementById(button.dataset.copy);
 copy(from.rows?[...from.rows].map(row=>[...row.cells].map(value).join('\\t')).join('\\n')
  :from.textContent,button)});
all('#results th button').forEach(button=>button.onclick=()=>{
 const head=button.parentNode,body=head.closest('table').tBodies[0],at=head.cellIndex;
 const down=head.getAttribute('aria-sort')==='ascending';
 all('th',head.parentNode).forEach(other=>other.removeAttribute('aria-sort'));
 head.setAttribute('aria-sort',down?'descending':'ascending');
 const key=row=>row.cells[at]?value(row.cells[at]):'';
 [...body.rows].sort((a,b)=>{const x=key(a),y=key(b);
  if(x===''||y==='')return(x==='')-(y==='');
  return(down?-1:1)*(x-y||x.localeCompare(y))}).forEach(row=>body.append(row))});
all('#pick').forEach(pick=>{
 const show=()=>all('article').forEach(part=>part.hidden=part.id!==pick.value);
 pick.onchange=show;show()});
all('.lines').forEach(figure=>{
 const light=event=>{const item=event.target.closest('[data-line]');
  const on=item&&!/leave|out/.test(event.type);
  figure.classList.toggle('picking',!!on);
  all('[data-line]',figure).forEach(line=>
   line.classList.toggle('picked',!!on&&line.dataset.line===item.dataset.line))};
 ['pointerover','pointerleave','focusin','focusout'].forEach(on=>figure.addEventListener(on,light))});
"""


def page(records: Records) -> str:
    """Write the whole page."""
    results, columns, best = prepare(records, brief=False)
    cleaned = clean(records)
    config, environment = cleaned.get("config") or {}, cleaned.get("environment") or {}
    title = f"tapword evaluation: {dataset_name(config) or 'no data set named'}"
    # The browser is told to load nothing and to run this script alone.
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none';style-src 'unsafe-inline';script-src 'sha256-{digest}'"
    command = config.pop("command", None)
    if config.get("draws"):
        config.pop("orderings", None)
    sections = [
        f"<h1>{escape(title)}</h1>{_headline(results, best, config)}",
        _section("What was run", _facts(config) + _command(command) + _facts(environment)),
        _section("Results", _results(results, columns, best)),
        _section(
            "Accuracy against samples a word",
            charts.few_shot(results),
            "Bands are one standard deviation over the draws.",
        ),
        _section(
            "Accuracy as words are learned",
            charts.curves(results),
            "Over the test clips of all words learned so far, mean over orderings. Numbers are "
            "those of the table; point at a line or at its name to see it alone.",
        ),
        _section("One result in detail", _details(results, best)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{charts.STYLE}</style></head>\n"
        f"<body><main>{''.join(sections)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _section(title: str, body: str, note: str = "") -> str:
    note = f'<p class="soft">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{note}{body}</section>\n" if body else ""


def _headline(results: list[Result], best: set[int], config: dict[str, Any]) -> str:
    if not best:
        return _open_set_headline(results)
    top = max((results[index] for index in best), key=lambda result: result["acc"])
    lost = top.get("forg")
    forgot = f"; {lost:.1f} points forgotten on the way" if lost is not None else ""
    words = f" over {config['n_words']} words" if config.get("n_words") else ""
    accuracy = cell(top, next(column for column in COLUMNS if column.key == "acc"))
    return (
        f'<p class="lead">Best of {len(results)}: <b>{escape(name_of(top))}</b>, '
        f"<b>{accuracy}%</b> right{words}{forgot}.</p>"
    )


def _open_set_headline(results: list[Result]) -> str:
    """Say which result tells known words from others best."""
    told = [result for result in results if result.get("auroc") is not None]
    if not told:
        return '<p class="lead">No results.</p>'
    top = max(told, key=lambda result: result["auroc"])
    return (
        f'<p class="lead">Best of {len(results)}: <b>{escape(name_of(top))}</b>, AUROC '
        f"<b>{top['auroc']:.2f}%</b> for {top['known']} known words; where 5% of the others are "
        f"accepted, <b>{top['acc_open']:.2f}%</b> are accepted and named right.</p>"
    )


def _facts(facts: dict[str, Any]) -> str:
    said = {"n_words": "words", "n_train": "train clips", "n_test": "test clips"}
    said |= {"skipped": "clips skipped", "cpus": "CPUs"}
    rows = ""
    for key, value in facts.items():
        if value is None or value == []:
            continue
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        text = f"{value:,}" if isinstance(value, int | float) else str(value)
        name = said.get(key, key.replace("_", " "))
        wide = ' class="long"' if len(text) > 18 else ""
        rows += f"<div{wide}><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
    return f"<dl>{rows}</dl>" if rows else ""


def _command(command: str | None) -> str:
    if not command:
        return ""
    # Lines break between arguments, not after the hyphens within them.
    tokens = " ".join(f"<span>{escape(token)}</span>" for token in command.split(" "))
    return (
        f'<pre id="command">{tokens}</pre>'
        '<button class="js-only" data-copy="command">Copy command</button>'
    )


def _results(results: list[Result], columns: list[Column], best: set[int]) -> str:
    if not results:
        return ""
    alike = same(results)

    def kinds(column: Column) -> str:
        return "name" * (column.key in NAMES) + " same" * (column in alike)

    number = Column("", "#", str, False, "number in the charts")
    head = "".join(
        f'<th scope="col" class="{kinds(column)}" data-v="{column.title}" '
        f'title="{column.meaning}"><button>{column.title}</button></th>'
        for column in [number, *columns]
    )
    rows = []
    for index, result in enumerate(results):
        cells = [f"<td>{index + 1}</td>"]
        for column in columns:
            value = result.get(column.key)
            raw = "" if value is None else escape(str(value))
            kind = "best" if column.key == "acc" and index in best else kinds(column)
            text = escape(cell(result, column, deviation=False))
            if column.key == "acc" and result.get("error"):
                text = "refused"
            cells.append(f'<td class="{kind}" data-v="{raw}">{text}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    meanings = "".join(
        f"<div><dt>{column.title}</dt><dd>{column.meaning}</dd></div>" for column in columns
    )
    refusals = "".join(f'<p class="soft">Refused: {escape(r)}</p>' for r in refused(results))
    return (
        '<button class="js-only" data-copy="results">Copy as TSV</button>'
        '<div class="scroll" tabindex="0" role="region" aria-label="results"><table id="results">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{refusals}"
        f"<details><summary>What the columns mean</summary><dl>{meanings}</dl></details>"
    )


def _details(results: list[Result], best: set[int]) -> str:
    first = max(best, key=lambda index: results[index]["acc"], default=0) + 1
    values = [v for r in results for row in r.get("matrix") or [] for v in row if v is not None]
    low = min(90.0, math.floor(min(values, default=0) / 10) * 10)
    options, parts = [], []
    for index, result in enumerate(results, start=1):
        orderings = result.get("orderings") or []
        # Positions stand for the same words only where there is one ordering.
        tasks = orderings[0].get("tasks") or [] if len(orderings) == 1 else []
        matrix = charts.heat_map(result.get("matrix"), low, tasks)
        if matrix:
            matrix = f"<figure><h4>Accuracy on each task</h4>{charts.scale(low)}{matrix}</figure>"
        body = matrix + _confusion(result.get("confusion") or [])
        if not body:
            continue
        runs = [f"{o['acc']:.2f}" for o in orderings if o.get("acc") is not None]
        note = f'<p class="soft">acc by ordering: {", ".join(runs)}</p>' if runs else ""
        name = escape(f"{index}: {name_of(result)}")
        chosen = " selected" if index == first else ""
        options.append(f'<option value="result-{index}"{chosen}>{name}</option>')
        parts.append(
            f'<article id="result-{index}"><h3>{name}</h3>{note}'
            f'<div class="panels">{body}</div></article>'
        )
    if not parts:
        return ""
    pick = f'<label>Result <select id="pick">{"".join(options)}</select></label>'
    return f'<p class="js-only">{pick}</p>{"".join(parts)}'


def _confusion(pairs: list[list[Any]]) -> str:
    pairs = [pair for pair in pairs if pair[2]]
    if not pairs:
        return ""
    most = max(count for _, _, count in pairs)
    rows = "".join(
        f'<tr><td class="name">{escape(str(true))}</td>'
        f'<td class="name">{escape(str(heard or NONE))}</td>'
        f'<td><span class="bar" style="width:{75 * count / most:.0f}%"></span>{count}</td></tr>'
        for true, heard, count in pairs
    )
    return (
        '<figure><h4>Words most often confused</h4><table class="confused"><thead><tr>'
        '<th scope="col" class="name">said</th><th scope="col" class="name">heard as</th>'
        '<th scope="col" class="name">clips</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></figure>"
    )
