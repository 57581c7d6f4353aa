import subprocess
import sys

import pytest

from tapword import registry
from tapword.research import paper
from tapword.spotter.presets import PRESETS
from tapword.spotter.spotter import Spotter
from tests.conftest import tone


@pytest.fixture
def complete(tmp_path, monkeypatch, run):
    """Complete the last word of a command line, in a folder with a model of two words."""
    monkeypatch.chdir(tmp_path)
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn_many([tone(300), tone(900)], ["lamp", "living room"])
    spotter.save("home.tap")

    def ask(line, shell="bash"):
        monkeypatch.setenv("_TAPWORD_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        return run()[1].split("\n")[:-1]

    return ask


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("forget home.tap ", ["lamp", r"living\ room"]),
        ("rename home.tap la", ["lamp"]),
        ("learn home.tap l", ["lamp", r"living\ room"]),
        ("sensitivity home.tap 0.5 --word la", ["lamp"]),
        ("listen home.tap --sensitivity la", ["lamp="]),
        ("listen home.tap --threshold la", ["lamp="]),
        ("learn new.tap lamp --size ", list(PRESETS)),
        ("studio new.tap --size m", ["medium"]),
        ("learn new.tap --pooling ta", ["tap"]),
        ("learn new.tap --learner s", ["slda", "snb", "sovr", "sqda"]),
        ("evaluate --dataset ", list(registry.classes("datasets"))),
        ("evaluate --backbone ", list(registry.classes("backbones"))),
        ("reproduce ", [*paper.TABLES, paper.ALL]),
        ("list ", ["backbones", "poolings", "learners", "voices", "datasets", "sizes"]),
        ("fetch ", ["speech_commands"]),
        ("forget gone.tap ", [""]),
    ],
)
def test_what_can_follow_is_completed(complete, line, found):
    assert complete(f"tapword {line}") == found


def test_other_shells_quote_by_themselves(complete):
    assert complete("tapword forget home.tap liv", "fish") == ["living room"]


def test_completing_imports_nothing_heavy():
    code = (
        "import sys\nfrom tapword.cli import complete\n"
        "for kind in ('backbone', 'learner', 'table'): complete.BY_PARAMETER[kind](None, '')\n"
        "print(*{'onnxruntime', 'scipy', 'torch', 'sklearn', 'onnx'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
