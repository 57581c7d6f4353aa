"""The commands for those who compare methods, run as a person would."""

import csv
import json
from itertools import chain

import numpy as np
import pytest
import soundfile

from tests.conftest import tone

QUICK = ["--backbone", "logmel", "--pooling", "avg", "--learner", "ncm", "--orderings", "2"]


@pytest.fixture
def clips(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for word, pitch in [("low", 300), ("mid", 600), ("high", 1200)]:
        (tmp_path / "clips" / word).mkdir(parents=True)
        for take in range(10):
            sound = tone(pitch * rng.uniform(0.95, 1.05))
            soundfile.write(tmp_path / "clips" / word / f"{take}.wav", sound, 16_000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_evaluate_writes_every_report(clips, run):
    files = ["--json", "r.json", "--html", "r.html", "--csv", "r.csv", "--latex", "r.tex"]
    code, output, _ = run("evaluate", "--data", "clips", *QUICK, "--jobs", "1", *files)
    assert code == 0 and "3 words, 24 clips to learn, 6 to ask" in output
    records = json.loads((clips / "r.json").read_text())
    assert records["results"][0]["acc"] == 100
    assert records["config"]["dataset"] == "folder", "no folder of this machine in a record"
    assert records["config"]["command"].startswith("tapword evaluate --data clips")
    assert "<svg" in (clips / "r.html").read_text()
    with open("r.csv", newline="") as file:
        assert next(csv.DictReader(file))["learner"] == "ncm"
    assert "toprule" in (clips / "r.tex").read_text()


def test_evaluate_several_at_once_and_shots(clips, run):
    code, _, _ = run(
        "evaluate", "--data", "clips", *QUICK, "--pooling", "max", "--learner", "slda",
        "--shots", "1", "--shots", "3", "--draws", "2", "--json", "r.json",
    )  # fmt: skip
    assert code == 0
    results = json.loads((clips / "r.json").read_text())["results"]
    assert [(r["pooling"], r["learner"], r["shots"]) for r in results] == [
        (pooling, learner, shots)
        for pooling in ("avg", "max")
        for learner in ("ncm", "slda")
        for shots in (1, 3)
    ]


def test_evaluate_ready_made_vectors(clips, run, rng):
    X, y = rng.normal(size=(40, 3)) + np.arange(40)[:, None] % 4 * 9, np.arange(40) % 4
    np.savez("v.npz", train_x=X, train_y=y, test_x=X, test_y=y, words=np.array(list("abcd")))
    code, _, _ = run("evaluate", "--features", "v.npz", "--learner", "ncm", "--json", "r.json")
    assert code == 0
    [result] = json.loads((clips / "r.json").read_text())["results"]
    assert result["acc"] == 100 and result["dim"] == 3
    assert sorted(chain(*result["orderings"][0]["tasks"])) == list("abcd")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the data set's folder with --data"),
        (["--data", "gone"], "gone does not exist"),
        (["--data", "clips", "--dataset", "librispeech"], "no dataset named 'librispeech'"),
        (["--data", "clips", "--learner", "slad"], "no learner named 'slad'"),
        (["--data", "clips", "--order", "sorted"], "no order named 'sorted'"),
        (["--data", "clips", "--json", "no/r.json"], "its folder does not exist"),
        (["--data", "clips", "--shots", "9", *QUICK], "9"),
        (["--features", "gone.npz"], "gone.npz does not exist"),
        (["--features", "clips/low/0.wav"], "is not an .npz file"),
    ],
)
def test_evaluate_says_what_is_wrong(clips, run, arguments, message):
    code, _, error = run("evaluate", *arguments)
    assert code == 2 and message in error and error.count("\n") == 1


def test_cache_is_shown_and_cleared(clips, run):
    run("evaluate", "--data", "clips", *QUICK, "--jobs", "1")
    code, output, _ = run("cache")
    assert code == 0 and not output.startswith("0 B")
    assert "freed" in run("cache", "--clear")[1]
    assert run("cache")[1].startswith("0 B")


def test_fetch_knows_its_data_sets(clips, run):
    code, _, error = run("fetch", "librispeech", "--to", "data")
    assert code == 2 and "known: speech_commands" in error
    code, _, error = run("fetch", "speech_commands", "--to", "data", "--version", "v9")
    assert code == 2 and "v0.02" in error
