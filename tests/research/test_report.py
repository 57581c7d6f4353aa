import csv
import html.parser
import io
import json
import math
import re
import shutil
import subprocess
import time
from dataclasses import fields, replace

import numpy as np
import pytest
from rich.console import Console

from tapword.errors import InputError
from tapword.research import report
from tapword.research.records import (
    Config,
    Draw,
    Environment,
    OpenSetResult,
    Ordering,
    Records,
    Result,
)
from tapword.research.report.page import page as render
from tapword.research.report.shell import facts

HOSTILE = "<script>alert('x')</script>\"&"
WRITERS = tuple(report.WRITERS.values())
VOID = {"meta", "br", "wbr", "hr", "img", "input", "link"}


def result(pooling="tap:R=3", learner="slda", acc=90.0, tasks=4, orderings=2, **changed):
    """One result, in the shape that the evaluation gives."""
    curve = [100 - (100 - acc) * (i + 1) / tasks for i in range(tasks)]
    made = Result(
        backbone="speech_embedding",
        pooling=pooling,
        learner=learner,
        dim=480,
        acc=acc,
        acc_std=0.5,
        acc_balanced=1.5,
        bwt=1.5,
        bwt_signed=1.5,
        forg=3.0,
        pla=1.5,
        params=354_576,
        delta_p=1.5,
        delta_fs=1.5,
        state_bytes=36_864,
        learn_ms=1.5,
        predict_ms=1.5,
        orderings=[
            Ordering(
                seed=seed,
                acc=acc,
                acc_balanced=acc,
                tasks=[[f"w{i}"] for i in range(tasks)],
                curve=list(curve),
            )
            for seed in range(orderings)
        ],
        matrix=[[curve[i] if j <= i else None for j in range(tasks)] for i in range(tasks)],
        confusion=[("yes", "no", 7), ("no", "go", 3)],
    )
    return replace(made, **changed)


def refused(error="too large: needs 12.3 GB"):
    return Result(backbone="speech_embedding", pooling="flat", learner="sqda", dim=480, error=error)


def records(*results, **changed):
    config = Config(
        dataset="speech_commands",
        order="class-iid",
        orderings=2,
        classes_per_task=1,
        n_words=4,
        n_train=100,
        n_test=40,
        command="tapword evaluate speech_commands --learner slda",
    )
    environment = Environment.since(time.perf_counter())
    return Records(replace(config, **changed), list(results), environment)


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
    return records(*found, shots=[1, 5, 20], draws=2)


def iid():
    """Without tasks there is neither a matrix nor more than one point."""
    none = {"matrix": None, "bwt": None, "bwt_signed": None, "forg": None, "pla": None}
    return records(result(tasks=1, **none), result(learner="ncm", tasks=1, **none))


def sparse():
    """Words without test clips: gaps in curves and matrices, and a word taken for nothing."""
    holes = result(tasks=2, matrix=[[None, None], [None, 50.0]], confusion=[("a", None, 2)])
    holes.orderings[0].curve = [None, None]
    holes.orderings[1].curve = [None, 50.0]
    return records(Result(learner="slda", dim=8), holes)


def hostile():
    found = result(pooling=HOSTILE, learner=HOSTILE + "é\x00\udc80", orderings=1)
    found.backbone = f"[bold]*{HOSTILE}\\~^_%$#{{}}"
    found.orderings[0].tasks[0] = [HOSTILE, "\udc80"]
    found.confusion = [(HOSTILE, HOSTILE, 2)]
    bad = records(found, refused(HOSTILE), dataset=HOSTILE, command=HOSTILE, notes=[HOSTILE])
    bad.environment.platform = HOSTILE
    return bad


def open_set():
    draws = [Draw(seed=0, words=["up"], auroc=90.0, frr=20.0, acc_open=75.0) for _ in range(2)]
    spread = {"auroc_std": 1.0, "frr_std": 1.0, "acc_open_std": 1.0}
    one = OpenSetResult(
        learner="ncm", shots=5, dim=8, known=3, auroc=90.0, frr=20.0, acc_open=75.0, **spread,
        orderings=draws,
    )  # fmt: skip
    return records(one, order="open-set", known=3, shots=[5], draws=2)


CASES = {
    "one result": lambda: records(result()),
    "one task": lambda: records(result(tasks=1)),
    "empty": records,
    "many": many,
    "few-shot": few_shot,
    "iid": iid,
    "only refused": lambda: records(refused()),
    "sparse": sparse,
    "hostile": hostile,
    "open set": open_set,
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
    before = repr(given)
    for writer in WRITERS:
        writer(given, tmp_path / writer.__name__)
    shown(given)
    assert repr(given) == before
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
    given = records(result(learner="grüß 猫", acc=np.float32(90.5), dim=np.int64(3), forg=math.inf))
    report.write_json(given, tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert "grüß 猫" in text
    written = json.loads(text)
    assert set(written) == {"config", "results", "environment"}
    [found] = written["results"]
    assert found["acc"] == 90.5 and found["dim"] == 3 and found["forg"] is None
    assert found["confusion"][0] == ["yes", "no", 7] and found["orderings"][1]["seed"] == 1
    assert list(found) == [field.name for field in fields(Result)]


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
    assert "bwt" in plain and "bwt" not in shown(records(result(bwt=None)))
    assert "sqda" in plain and "too large" not in plain, "reasons are told apart from the table"
    assert re.findall(r"\x1b\[1m([^\x1b]*)", text)[-1].strip() == "87.00 ± 0.50"


def test_a_spread_of_nothing_is_shown_and_that_of_one_ordering_is_not(tmp_path):
    assert "90.00 ± 0.00" in shown(records(result(acc_std=0.0)))
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


def test_a_preset_is_called_by_its_name(tmp_path):
    spec = {"backbone": "b:layers=x", "pooling": "p:R=2", "learner": "l:prior=y"}
    small = replace(result(size="small"), **spec)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown(records(small, result())))
    assert re.search(r"small +— +— +— ", plain) and "layers" not in plain
    found = page(records(small), tmp_path)
    heads = [text for text in found.texts if text in ("size", "backbone", "pooling", "learner")]
    assert heads == ["size", "size"], "the parts have no column; what they are is told below"
    assert "1: small" in found.texts and "b:layers=x -> p:R=2 -> l:prior=y" in found.texts
    report.write_csv(records(small), tmp_path / "r.csv")
    [row] = csv.DictReader((tmp_path / "r.csv").read_text().splitlines())
    assert row["size"] == "small" and row["backbone"] == "b:layers=x"


def test_words_of_the_tasks_are_told_for_each_ordering(tmp_path):
    two = result(tasks=2)
    two.orderings[1].tasks = [["w1"], ["w0"]]
    texts = page(records(two), tmp_path).texts
    assert "w0; w1" in texts and "w1; w0" in texts
    alone = page(records(result(tasks=2, orderings=1)), tmp_path).texts
    assert "w0; w1" not in alone and alone.count("w0") == 2, "the matrix itself has them"


def test_page_escapes_hostile_words(tmp_path):
    found = page(hostile(), tmp_path)
    assert found.count("script") == 1
    assert sum(HOSTILE in text for text in found.texts) > 5
    assert HOSTILE in Page(facts({HOSTILE: HOSTILE})).texts
    assert HOSTILE not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("writer", WRITERS)
def test_unwritable_paths_are_named(writer, tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "none" / "r", tmp_path / "file" / "r", tmp_path):
        with pytest.raises(InputError, match=f"cannot write {re.escape(str(path))}"):
            writer(records(), path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_suffix_says_the_kind_of_file(tmp_path):
    for suffix, writer in report.WRITERS.items():
        report.write(many(), tmp_path / f"whole{suffix.upper()}")
        writer(many(), tmp_path / "alone")
        written = (tmp_path / f"whole{suffix.upper()}").read_bytes()
        if suffix in (".csv", ".tex"):
            assert written == (tmp_path / "alone").read_bytes()
        assert written
    for name in ("r.txt", "r", "r.json.gz"):
        for call in (report.check, lambda path: report.write(many(), path)):
            with pytest.raises(InputError, match=r"known: \.html, \.json, \.csv, \.tex"):
                call(tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(InputError, match="its folder does not exist"):
        report.check(tmp_path / "none" / "r.json")
    with pytest.raises(InputError, match=r"known: \.json$"):
        report.check(tmp_path / "r.html", {".json": report.write_json})


def test_confusions_say_that_they_are_added_up():
    note = "Clips are added up over 3 {}."
    assert note.format("orderings") in render(records(result(orderings=3)))
    assert note.format("draws") in render(records(result(orderings=3, shots=5), draws=3))
    assert "added up" not in render(records(result(orderings=1)))


def test_a_deviation_of_zero_is_explained(tmp_path):
    changing, constant = result(acc_std=0.3), result(acc_std=0.001)
    report.write(records(changing, constant), tmp_path / "t.tex", report.WRITERS)
    for text in (render(records(changing, constant)), (tmp_path / "t.tex").read_text()):
        assert "0.00: every ordering or draw gave the same accuracy" in text
    assert "every ordering or draw" not in render(records(changing))
    assert report.no_deviation([result(acc_std=0.0, orderings=1)]) == []
