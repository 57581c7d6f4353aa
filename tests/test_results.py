"""`docs/results/` is the output of `make results`; a small run works from end to end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from tests.conftest import ROOT, tone

DOCS = ROOT / "docs" / "results"


@pytest.fixture
def results(monkeypatch):
    """Import the modules of results/, a folder of programs and not a package."""
    monkeypatch.syspath_prepend(str(ROOT / "results"))
    import page
    import run
    import subjects

    yield run, page, subjects
    for name in ("dependencies", "page", "run", "subjects"):
        sys.modules.pop(name)


@pytest.fixture
def words(tmp_path):
    """Create a data set of two words that differ in pitch."""
    for word, pitch in (("low", 300), ("high", 900)):
        for number in range(6):
            path = tmp_path / "data" / word / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, tone(pitch + 10 * number), 16_000)
    return tmp_path / "data"


def test_pages_are_what_was_measured(results):
    """Detect numbers typed by hand, and measurements that were not written."""
    _, page, subjects = results
    for name, subject in subjects.SUBJECTS.items():
        kept = json.loads((DOCS / f"{name}.json").read_text("utf-8"))
        assert (DOCS / f"{name}.md").read_text("utf-8") == page.render(name, subject, kept)
        measured = {run: one["command"] for run, one in kept.items()}
        assert measured == subject.runs, "measure what is new in the list: make results"


def test_a_small_run(results, words, tmp_path, monkeypatch):
    run, page, subjects = results
    command = "tapword evaluate --data {english} --backbone logmel --pooling avg --quiet"
    runs = {
        "few": f"{command} --learner ncm --learner slda --draws 2 --shots 1 --shots 2",
        "all": f"{command} --learner ncm --orderings 2",
        "elsewhere": f"{command} --learner ncm --dataset {{arabic}}",
    }
    subject = subjects.Subject("Small", runs)
    monkeypatch.setitem(subjects.SUBJECTS, "small", subject)
    monkeypatch.setattr(page, "PAGES", tmp_path)
    (tmp_path / "small.md").write_text(
        "{{command few}}\n\n{{counts few}}\n\n{{table all learner acc}}\n\n{{counts elsewhere}}\n"
    )
    data = {"english": (words,)}
    run.measure("small", data, tmp_path)
    kept = json.loads((tmp_path / "small.json").read_text("utf-8"))
    assert list(kept) == ["few", "all"]
    assert kept["few"]["data"] == {"english": run.digest((words,))}
    assert str(words) not in json.dumps(kept)
    assert "orderings" not in kept["few"]["found"]["results"][0]
    written = page.render("small", subject, kept)
    assert "tapword evaluate --data ENGLISH --backbone logmel" in written
    assert "| `slda` | 100.0 ± 0.0 | 100.0 ± 0.0 |" in written
    assert "| ncm | 100.0 ± 0.0 |" in written
    assert "Not measured yet: elsewhere." in written

    def refuse(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(run, "run", refuse)
    run.measure("small", data, tmp_path)
    # Other code, other numbers.
    with monkeypatch.context() as changed, pytest.raises(AssertionError, match="measured again"):
        changed.setattr(run, "code_hash", lambda command: "other")
        run.measure("small", data, tmp_path)
    # Other data, other numbers.
    (words / "low" / "0.wav").unlink()
    run.digest.cache_clear()
    with pytest.raises(AssertionError, match="measured again"):
        run.measure("small", data, tmp_path)


@pytest.fixture
def dependencies(results):
    import dependencies

    return dependencies


def test_a_command_depends_on_its_program_its_imports_and_the_parts_it_names(dependencies):
    def depends_on(command: str) -> set[str]:
        return {path.relative_to(ROOT).as_posix() for path in dependencies.files(command)}

    taught = depends_on("tapword evaluate --data {english} --learner icarl")
    assert {"src/tapword/cli/evaluate.py", "src/tapword/research/runner.py"} < taught
    assert "src/tapword/learners/icarl.py" in taught
    # The default's parts are named in a module, and have weights.
    assert "src/tapword/learners/cosine.py" in taught
    assert "src/tapword/assets/whitening/ear_s.safetensors" in taught
    # A class in a file of several parts.
    assert "src/tapword/backbones/pip_encoders.py" in taught
    never = ("learners/snb.py", "cli/serve.py", "serve/", "export/", "version.py")
    assert not [path for path in taught if path.removeprefix("src/tapword/").startswith(never)]
    program = depends_on("python benchmarks/beside_peers.py {english}")
    assert {"benchmarks/beside_peers.py", "benchmarks/timing.py"} < program


def test_only_code_changes_a_hash(dependencies, tmp_path):
    def hashed(text: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text, "utf-8")
        return dependencies.file_hash(path)

    code = hashed('"""Doc."""\ndef double(x):\n    """Twice."""\n    return 2 * x  # why\n')
    assert code == hashed("def double(x):\n\n    return (2 * x)\n")
    assert code != hashed("def double(x):\n    return 3 * x\n")
    assert code != hashed('def double(x):\n    "a"\n    "b"\n    return 2 * x\n')


def test_the_status_page_names_every_figure_and_what_is_stale(results, tmp_path, monkeypatch):
    run, page, subjects = results
    code = "tapword evaluate --data {english}"
    one = {"command": code, "commit": "abc", "code": run.code_hash(code)}
    kept = {"new": one, "old": one | {"code": "0" * 16}, "first": one | {"code": None}}
    (tmp_path / "sizes.json").write_text(json.dumps(kept))
    monkeypatch.setattr(run, "SUBJECTS", {"sizes": subjects.Subject("Sizes", {})})
    written = run.status(tmp_path)
    assert "3 figures: 1 current, 1 stale, 1 measured before code hashes were recorded." in written
    for name, state in (("new", page.CURRENT), ("old", page.STALE), ("first", page.UNKNOWN)):
        assert f"| [Sizes](sizes.md) | {name} | abc | {state} |" in written
    # The stored page has every figure; its states are those of the day it was written.
    now = (DOCS / "status.md").read_text("utf-8")
    for name, subject in subjects.SUBJECTS.items():
        assert all(f"]({name}.md) | {one} |" in now for one in subject.runs)


def test_a_number_is_written_with_its_spread(results):
    _, page, _ = results
    row = {"acc": 91.26, "acc_std": 0.44, "frr_1": 10.0, "frr_1_ci": [8.1, 12.0], "bwt": None}
    row |= {"state_bytes": 984_900, "acc_speakers_ci": [90.0, 92.5], "alarms": 0.375}
    written = [page._cell(row, key) for key in ("acc", "frr_1", "bwt", "state_bytes")]
    assert written == ["91.3 ± 0.4", "10.0 (8.1 to 12.0)", "—", "985 kB"]
    assert page._cell(row, "acc_speakers_ci") == "90.0 to 92.5"
    assert page._cell(row, "alarms:2") == "0.38"
    assert page._cell(row | {"alarms_ci": [0.125, 0.5]}, "alarms:2") == "0.38 (0.12 to 0.50)"


def test_files_are_given_one_by_one_and_hashed(results, tmp_path, monkeypatch):
    run, page, _ = results
    heard = tmp_path / "a.flac", tmp_path / "b.flac"
    for path in heard:
        path.write_bytes(path.name.encode())
    command = "python some.py {english}/noise.wav --negatives {negatives}"
    given = []

    def answer(words, **_):
        given.extend(words)
        Path(words[-1]).write_text('[{"missed": 1.0}]', encoding="utf-8")

    monkeypatch.setattr(run.subprocess, "run", answer)
    data = {"english": (tmp_path,), "negatives": heard}
    assert run.run(command, data) == [{"missed": 1.0}]
    assert given[2:-1] == [f"{tmp_path}/noise.wav", "--negatives", *map(str, heard), "--out"]
    assert page.shown_command(command).endswith("some.py ENGLISH/noise.wav --negatives FILE ...")
    before = run.digest(heard)
    heard[1].write_bytes(b"other")
    run.digest.cache_clear()
    assert run.digest(heard) != before


def test_tables_of_reproduce_have_the_papers_number_in_brackets(results):
    _, page, _ = results
    groups = [
        {"title": "ours", "digits": 1, "signed": False},
        {"title": "gain", "digits": 1, "signed": True},
    ]
    rows = [
        {
            "name": "SLDA",
            "cells": [
                {"ours": 94.04, "paper": 76.7, "text": ""},
                {"ours": -0.04, "paper": None, "text": ""},
            ],
        },
        {
            "name": "FLAT",
            "cells": [
                {"ours": None, "paper": 78.2, "text": "too large"},
                {"ours": 2.0, "paper": -1.0, "text": ""},
            ],
        },
    ]
    table = {"title": "Acc", "corner": "learner", "groups": groups, "rows": rows}
    found = {"tables": [{"tables": [table], "notes": ["Ours is small.", "Theirs is not."]}]}
    assert page._compare({"table1": {"found": found}}, ["table1"]) == (
        "Acc:\n\n"
        "| learner | ours | gain |\n"
        "|---|---|---|\n"
        "| SLDA | 94.0 (76.7) | +0.0 |\n"
        "| FLAT | too large (78.2) | +2.0 (-1.0) |\n\n"
        "- Ours is small.\n- Theirs is not."
    )


def test_lines_are_the_records_that_have_all_columns(results):
    _, page, _ = results
    rows = [{"words": 1, "alarms_an_hour": 0.7321}, {"takes": 3, "missed": 0.5}]
    assert page._lines({"small": {"found": rows}}, ["small", "words", "alarms_an_hour:2"]) == (
        "| words | alarms per hour |\n|---|---|\n| 1 | 0.73 |"
    )


def test_the_commit_is_dirty_by_what_is_run_and_not_by_what_is_written(
    results, tmp_path, monkeypatch
):
    run, *_ = results
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "DOCS", tmp_path / "docs" / "results")
    assert run.commit() == "unknown"
    code, written = tmp_path / "code.py", tmp_path / "docs" / "results" / "small.json"
    written.parent.mkdir(parents=True)
    for path in (code, written):
        path.write_text("1")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    written.write_text("2")
    clean = run.commit()
    assert re.fullmatch("[0-9a-f]{10}", clean)
    code.write_text("2")
    assert run.commit() == f"{clean}-dirty"
