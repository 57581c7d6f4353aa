"""Programs beside the package: all they import is there, and they say how to call them."""

import runpy
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAMS = [
    path
    for folder in ("benchmarks", "training", "results")
    for path in sorted((ROOT / folder).glob("*.py"))
    if "__main__" in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_program_answers_help(path: Path, monkeypatch, capsys):
    if "\nimport torch\n" in path.read_text("utf-8"):
        pytest.importorskip("torch")
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    before = set(sys.modules)
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    finally:
        # Another folder may have a module of the same name.
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(path.parent)):
                del sys.modules[name]
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ")
