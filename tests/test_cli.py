import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

import tapword
from tests.conftest import tone

NEW = ["--backbone", "logmel", "--pooling", "tap:R=2", "--learner", "ncm"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for word, pitch in [("low", 300), ("high", 1200)]:
        (tmp_path / "clips" / word).mkdir(parents=True)
        for take in range(3):
            path = tmp_path / "clips" / word / f"{take}.wav"
            soundfile.write(path, tone(pitch * (1 + 0.05 * take)), 16_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder, run):
    assert run("learn-folder", "home.tap", "clips", *NEW)[0] == 0
    return Path("home.tap")


def test_learn_predict_info(folder, run):
    code, output, _ = run("learn", "home.tap", "low", "clips/low", *NEW)
    assert code == 0 and "learned 3 clips" in output
    code, output, _ = run("learn", "home.tap", "high", "clips/high/0.wav", "clips/high/[12].wav")
    assert code == 0 and "2 words, 6 samples" in output
    code, output, _ = run("predict", "home.tap", "clips/high/1.wav", "clips/low", "--json")
    answers = json.loads(output)
    assert [answer["word"] for answer in answers] == ["high", "low", "low", "low"]
    assert set(answers[0]) == {"file", "word", "score", "probabilities"}
    assert answers[0]["file"] == "clips/high/1.wav"
    assert set(answers[0]["probabilities"]) == {"low", "high"}
    code, output, _ = run("predict", "home.tap", "clips/high/1.wav")
    assert "high" in output and "next best" in output
    facts = json.loads(run("info", "home.tap", "--json")[1])
    assert facts["words"] == {"low": 3, "high": 3}
    assert facts["poolings"] == [{"name": "tap", "arguments": {"R": 2}}]
    assert facts["state_bytes"]["total"] == 8 + 2 * (4 * 64 + 8)
    assert facts["keeps_vectors"] is False
    _, text, _ = run("info", "home.tap")
    assert "never a recording" in text and "tap:R=2" in text


def test_predict_with_nothing_taught(folder, run):
    tapword.Spotter("logmel").save("empty.tap")
    answers = json.loads(run("predict", "empty.tap", "clips/low/0.wav", "--json")[1])
    assert answers == [
        {"file": "clips/low/0.wav", "word": None, "score": None, "probabilities": {}}
    ]
    assert "no words yet" in run("predict", "empty.tap", "clips/low/0.wav")[1]
    assert "no words yet" in run("info", "empty.tap")[1]


def test_forget_rename_merge(folder, run, model):
    assert run("rename", model, "low", "deep")[0] == 0
    assert tapword.load(model).words == {"high": 3, "deep": 3}
    assert run("forget", model, "high")[0] == 0
    assert tapword.load(model).words == {"deep": 3}
    run("learn", "other.tap", "high", "clips/high", *NEW)
    assert run("merge", "both.tap", model, "other.tap")[0] == 0
    assert tapword.load("both.tap").words == {"deep": 3, "high": 3}
    code, _, error = run("merge", "both.tap", model, "other.tap")
    assert code == 2 and "both.tap exists" in error


def test_list(run):
    for room in ("backbones", "poolings", "learners"):
        parts = json.loads(run("list", room, "--json")[1])
        assert all(set(part) == {"name", "arguments", "summary"} for part in parts)
    assert {"name": "tap", "arguments": {"R": 5}}.items() <= next(
        part for part in json.loads(run("list", "poolings", "--json")[1]) if part["name"] == "tap"
    ).items()
    assert "slda" in run("list", "learners")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "gone.tap", "clips/low/0.wav"], "gone.tap does not exist"),
        (["forget", "gone.tap", "low"], "gone.tap does not exist"),
        (["forget", "home.tap", "medium"], "no word 'medium' is taught; known: high, low"),
        (["rename", "home.tap", "low", "high"], "'high' is already taught"),
        (["predict", "home.tap", "gone.wav"], "gone.wav does not exist"),
        (["predict", "home.tap", "home.tap"], "is not audio"),
        (["learn", "home.tap", "low", "nothing/*.wav"], "no sound files there"),
        (["learn", "home.tap", "low", "empty"], "no sound files there"),
        (["learn", "home.tap", "low", "clips/low", "--pooling", "avg"], "only for a new model"),
        (["learn", "new.tap", "low", "clips/low", "--pooling", "men"], "no pooling named 'men'"),
        (["learn", "no/new.tap", "low", "clips/low", *NEW], "does not exist"),
        (["learn-folder", "home.tap", "gone"], "gone is not a folder"),
        (["learn-folder", "home.tap", "empty"], "no sound files in folders"),
        (["list", "rooms"], "known: backbones, poolings, learners"),
        (["learn"], "Missing argument 'MODEL'"),
        (["lern", "home.tap"], "No such command 'lern'"),
        (["predict", "home.tap", "clips/low/0.wav", "--jsn"], "No such option"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(folder, run, model, arguments, message):
    (folder / "empty").mkdir()
    before = model.read_bytes()
    code, output, error = run(*arguments)
    assert code == 2 and output == ""
    assert message in error
    assert error.startswith("tapword: ") and error.count("\n") == 1
    assert model.read_bytes() == before
    assert not Path("new.tap").exists()


def test_bad_files_can_be_skipped(folder, run, model):
    (folder / "clips/low/broken.wav").write_text("no sound")
    code, _, error = run("learn", model, "low", "clips/low")
    assert code == 2 and "broken.wav" in error
    code, output, error = run("learn", model, "low", "clips/low", "--skip-bad")
    assert code == 0 and "learned 3 clips" in output and "skipped" in error
    (folder / "clips/bad").mkdir()
    os.rename("clips/low/broken.wav", "clips/bad/broken.wav")
    code, _, error = run("learn", model, "bad", "clips/bad", "--skip-bad")
    assert code == 2 and "nothing was taught" in error


def test_version_help_and_debug(run, folder):
    assert run("--version")[1].strip() == tapword.__version__
    for help_text in (run("--help")[1], run()[1]):
        for command in ("learn-folder", "predict", "merge", "demo", "--debug"):
            assert command in help_text
    process = subprocess.run(
        [sys.executable, "-m", "tapword", "--debug", "info", "gone.tap"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1 and "Traceback" in process.stderr
    process = subprocess.run(
        [sys.executable, "-m", "tapword", "info", "gone.tap"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2 and "Traceback" not in process.stderr


def test_demo_teaches_and_remembers(run):
    code, output, _ = run("demo")
    assert code == 0
    rows = re.findall(r"│ (\w+) +│ +(\d+) +│ +([\d.]+)%", output)
    assert len(rows) >= 12
    assert float(rows[-1][2]) >= 80
    assert "no recording kept" in output
