import copy
import csv
import html.parser
import io
import json
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from rich.console import Console

from tapword import report
from tapword.errors import InputError

HOSTILE = "<script>alert('x')</script>\"&"
WRITERS = (report.write_json, report.write_csv, report.write_latex, report.write_html)
VOID = {"meta", "br", "hr", "img", "input", "link"}
NUMBERS = ("acc", "acc_std", "acc_balanced", "bwt", "bwt_signed", "forg", "pla", "params", "dim")
NUMBERS += ("delta_p", "delta_fs", "state_bytes", "learn_ms", "predict_ms")


def result(pooling="tap:R=3", learner="slda", acc=90.0, tasks=4, orderings=2, shots=None):
    """One entry of the results, in the shape that the evaluation gives."""
    curve = [100 - (100 - acc) * (i + 1) / tasks for i in range(tasks)]
    numbers = dict.fromkeys(NUMBERS, 1.5) | {"acc": acc, "acc_std": 0.5, "dim": 480}
    numbers |= {"params": 354_576, "state_bytes": 36_864, "forg": 3.0}
    return {
        "backbone": "speech_embedding",
        "pooling": pooling,
        "learner": learner,
        "shots": shots,
        "size": None,
        **numbers,
        "orderings": [
            {"seed": seed, "acc": acc, "tasks": [[f"w{i}"] for i in range(tasks)], "curve": curve}
            for seed in range(orderings)
        ],
        "matrix": [[curve[i] if j <= i else None for j in range(tasks)] for i in range(tasks)],
        "confusion": [["yes", "no", 7], ["no", "go", 3]],
    }


def refused():
    numbers = dict.fromkeys(NUMBERS)
    nested = {"orderings": [], "matrix": None, "confusion": []}
    return result("flat", "sqda") | numbers | nested | {"error": "too large: needs 12.3 GB"}


def records(*results):
    return {
        "config": {
            "dataset": "speech_commands",
            "order": "class-iid",
            "orderings": 2,
            "shots": None,
            "draws": None,
            "classes_per_task": 1,
            "n_words": 4,
            "n_train": 100,
            "n_test": 40,
            "skipped": 0,
            "command": "tapword evaluate speech_commands --learner slda",
        },
        "results": list(results),
        "environment": {"tapword": "0.1.0", "cpus": 4, "seconds": 1.25},
    }


def many():
    poolings = ("avg", "max", "tstp", "tap:R=2", "tap:R=3", "tap:R=5")
    pairs = [(p, learner) for p in poolings for learner in ("snb", "ncm", "slda")]
    found = [result(p, learner, 70 + i, tasks=30) for i, (p, learner) in enumerate(pairs)]
    return records(*found, refused())


def few_shot():
    found = [
        result(learner=learner, acc=50 + 2 * shots + i, tasks=2, shots=shots)
        for i, learner in enumerate(("ncm", "slda"))
        for shots in (1, 5, 20)
    ]
    return records(*found)


def iid():
    """Without tasks there is neither a matrix nor more than one point."""
    found = result(tasks=1) | {"matrix": None, "bwt": None, "bwt_signed": None, "forg": None}
    return records(found, result(learner="ncm", tasks=1) | {"matrix": None})


def sparse():
    """Every number and nested value absent."""
    bare = result() | dict.fromkeys((*NUMBERS, "orderings", "matrix", "confusion"))
    holes = result(tasks=2)
    holes["orderings"][0]["curve"] = [None, math.nan]
    holes["orderings"][1]["curve"] = []
    holes["matrix"] = [[None, None], [math.nan, 50.0]]
    holes["confusion"] = [["a", None, 2], ["b", "c", None]]
    return records(bare, holes)


def hostile():
    found = result(pooling=HOSTILE, learner=HOSTILE + "é\x00", orderings=1)
    found["backbone"] = f"[bold]*{HOSTILE}\\~^_%$#{{}}"
    found["orderings"][0]["tasks"][0] = [HOSTILE, "\udc80"]
    found["confusion"] = [[HOSTILE, HOSTILE, 2]]
    bad = records(found, refused() | {"error": HOSTILE})
    bad["config"] |= {"dataset": HOSTILE, "command": HOSTILE, HOSTILE: HOSTILE}
    bad["environment"] |= {"platform": HOSTILE, "floats": [1.5, math.nan]}
    return bad


CASES = {
    "one result": lambda: records(result()),
    "one task": lambda: records(result(tasks=1)),
    "empty": lambda: {"config": {}, "results": [], "environment": {}},
    "many": many,
    "few-shot": few_shot,
    "iid": iid,
    "only refused": lambda: records(refused()),
    "sparse": sparse,
    "hostile": hostile,
}
every_case = pytest.mark.parametrize("case", CASES)


def shown(case):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.table(case))
    return console.export_text(styles=True)


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order; collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag, **wanted):
        return sum(
            name == tag and all(attributes.get(k) == v for k, v in wanted.items())
            for name, attributes in self.tags
        )


def page(case, folder):
    path = folder / "report.html"
    report.write_html(case, path)
    return Page(path.read_text(encoding="utf-8"))


@every_case
def test_every_format_takes_every_shape_and_leaves_the_records_alone(case, tmp_path):
    given = CASES[case]()
    before = copy.deepcopy(given)
    for writer in WRITERS:
        writer(given, tmp_path / writer.__name__)
    shown(given)
    assert repr(given) == repr(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(w.__name__ for w in WRITERS)


@every_case
def test_page_is_well_formed_and_loads_nothing(case, tmp_path):
    found = page(CASES[case](), tmp_path)
    assert found.count("script") == 1 and found.count("h1") == 1
    for tag, attributes in found.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "image", "use", "base"}
        assert not {"src", "href", "xlink:href", "srcset", "data"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\(|@import", text)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


@every_case
def test_json_is_strict(case, tmp_path):
    def refuse(constant):
        raise AssertionError(constant)

    report.write_json(CASES[case](), tmp_path / "r.json")
    json.loads((tmp_path / "r.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_json_round_trip_and_letters(tmp_path):
    given = records(result(learner="grüß 猫") | {"acc": np.float32(90.5), "dim": np.int64(3)})
    given["results"][0]["forg"] = math.inf
    report.write_json(given, tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert "grüß 猫" in text
    wanted = given["results"][0] | {"acc": 90.5, "dim": 3, "forg": None}
    assert json.loads(text)["results"] == [wanted]


def test_csv_round_trip(tmp_path):
    given = records(result(learner='a,"b"\nc', acc=90.123456789), refused())
    report.write_csv(given, tmp_path / "r.csv")
    with open(tmp_path / "r.csv", encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert first["learner"] == 'a,"b"\nc' and float(first["acc"]) == 90.123456789
    assert int(first["state_bytes"]) == 36_864 and first["shots"] == first["error"] == ""
    assert second["error"] == "too large: needs 12.3 GB" and second["acc"] == ""
    assert not {"orderings", "matrix", "confusion"} & set(first)


def test_latex_escapes_and_marks_the_best(tmp_path):
    report.write_latex(records(result("a_b%&#$"), result(r"{x}\~^", acc=95.0)), tmp_path / "r.tex")
    text = (tmp_path / "r.tex").read_text(encoding="utf-8")
    assert r"a\_b\%\&\#\$ & $90.00 \pm 0.50$" in text
    assert r"\{x\}\textbackslash{}\textasciitilde{}\textasciicircum{}" in text
    assert r"$\mathbf{95.00} \pm 0.50$" in text and text.count("mathbf") == 1


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
@every_case
def test_latex_compiles(case, tmp_path):
    report.write_latex(CASES[case](), tmp_path / "table.tex")
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}"
    (tmp_path / "main.tex").write_text(document + r"\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout


def test_table_fits_and_leaves_out_empty_columns():
    text = shown(many())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 100
    assert "speech_embedding" in plain and "36.9 kB" in plain and "87.00 ± 0.50" in plain
    assert "shots" not in plain and "shots" in shown(few_shot())
    assert "bwt" in plain and "bwt" not in shown(records(result() | {"bwt": None}))
    assert "sqda" in plain and "too large" not in plain, "reasons are told apart from the table"
    assert re.findall(r"\x1b\[1m([^\x1b]*)", text)[-1].strip() == "87.00 ± 0.50"


def test_a_spread_of_nothing_is_shown_and_that_of_one_ordering_is_not(tmp_path):
    still = result() | {"acc_std": 0.0}
    assert "90.00 ± 0.00" in shown(records(still))
    assert "±" not in shown(records(result(orderings=1)))
    assert "± std" not in page(records(result(orderings=1)), tmp_path).texts


def test_best_is_found_among_equal_counts_of_shots(tmp_path):
    found = page(few_shot(), tmp_path)
    best = [a["data-v"] for tag, a in found.tags if tag == "td" and a.get("class") == "best"]
    assert best == ["53", "61", "91"]


def test_page_shows_each_part(tmp_path):
    found = page(many(), tmp_path)
    text = " ".join(found.texts)
    for wanted in ("What was run", "Results", "Accuracy as words are learned", "One result"):
        assert wanted in text
    assert "tapword evaluate speech_commands --learner slda" in "".join(found.texts)
    assert "samples a word" not in " ".join(t for t in found.texts if t.startswith("Accuracy"))
    assert found.count("article") == found.count("option") == 18
    chosen = [a["value"] for tag, a in found.tags if tag == "option" and "selected" in a]
    assert chosen == ["result-18"]
    assert "Accuracy against samples a word" in page(few_shot(), tmp_path).texts
    assert "Accuracy as words are learned" not in page(iid(), tmp_path).texts


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("folder:root=/home/me/clips", "folder"),
        ("speech_commands:root=/data,version=2", "speech_commands:version=2"),
        ("speech_commands:version=2,root=/data", "speech_commands:version=2"),
    ],
)
def test_titles_name_no_folder(given, wanted, tmp_path):
    case = records(result())
    case["config"]["dataset"] = given
    found = page(case, tmp_path)
    assert f"tapword evaluation: {wanted}" in found.texts and given in found.texts
    report.write_latex(case, tmp_path / "r.tex")
    assert "root" not in (tmp_path / "r.tex").read_text(encoding="utf-8")


def test_page_escapes_hostile_words(tmp_path):
    found = page(hostile(), tmp_path)
    assert found.count("script") == 1
    assert sum(HOSTILE in text for text in found.texts) > 5
    assert HOSTILE not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("writer", WRITERS)
def test_unwritable_paths_are_named(writer, tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "none" / "r", tmp_path / "file" / "r", tmp_path):
        with pytest.raises(InputError, match=f"cannot write {re.escape(str(path))}"):
            writer(records(), path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    report.write_json(records(), path)
    before = path.read_text()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report.writers.os, "replace", fail)
    with pytest.raises(InputError, match="No space left"):
        report.write_json(many(), path)
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]


def test_links_are_followed(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    report.write_json(records(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "real.json").is_file()
