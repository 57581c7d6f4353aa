"""The commands for those who compare methods, run as a person would."""

import csv
import json
import zipfile
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword.spotter.whitening import Whitening
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
    files = ["--out", "r.json", "--out", "r.html", "--out", "r.csv", "--out", "r.tex"]
    code, output, _ = run("evaluate", "--data", "clips", *QUICK, "--jobs", "1", *files)
    assert code == 0 and "3 words, 24 clips to learn, 6 to test" in output
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
        "--shots", "1", "--shots", "3", "--draws", "2", "--out", "r.json",
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
    code, _, _ = run("evaluate", "--features", "v.npz", "--learner", "ncm", "--out", "r.json")
    assert code == 0
    [result] = json.loads((clips / "r.json").read_text())["results"]
    assert result["acc"] == 100 and result["dim"] == 3
    assert sorted(chain(*result["orderings"][0]["tasks"])) == list("abcd")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the folder of a data set with --data"),
        (["--data", "gone"], "gone does not exist"),
        (["--data", "clips", "--dataset", "librispeech"], "no dataset named 'librispeech'"),
        (["--data", "clips", "--learner", "slad"], "no learner named 'slad'"),
        (["--data", "clips", "--order", "sorted"], "no order named 'sorted'"),
        (["--data", "clips", "--out", "no/r.json"], "its folder does not exist"),
        (["--data", "clips", "--out", "clips.html"], "cannot write clips.html: it is a folder"),
        (["--data", "clips", "--out", "r.txt"], "known: .html, .json, .csv, .tex"),
        (["--data", "clips", "--order", "iid", "--shots", "1"], "leave out --order iid"),
        (["--data", "clips", "--shots", "9", *QUICK], "9"),
        (["--features", "gone.npz"], "gone.npz does not exist"),
        (["--features", "clips/low/0.wav"], "is not an .npz file"),
    ],
)
def test_evaluate_says_what_is_wrong(clips, run, arguments, message):
    Path("clips.html").mkdir()
    code, _, error = run("evaluate", *arguments)
    assert code == 2 and message in error and error.count("\n") == 1


VECTORS = {
    "train_x": np.arange(12.0).reshape(6, 2),
    "train_y": np.arange(6) % 2,
    "test_x": np.arange(4.0).reshape(2, 2),
    "test_y": np.arange(2),
    "words": np.array(["a", "b"]),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_x": np.full((6, 2), "x")}, "train_x must be numbers, not str"),
        ({"train_x": np.full((6, 2), np.nan)}, "train_x contains NaN"),
        ({"test_x": np.full((2, 2), 1e300)}, "test_x contains NaN, infinite or too large"),
        ({"test_x": np.ones((2, 3))}, "got (6, 2) and (2, 3)"),
        ({"test_x": np.ones((2, 0)), "train_x": np.ones((6, 0))}, "got (6, 0) and (6,)"),
        ({"train_y": np.arange(5)}, "got (6, 2) and (5,)"),
        ({"train_y": np.zeros(6)}, "train_y must be integers, as there are words; not float64"),
        ({"train_y": np.arange(6)}, "train_y must be 0 to 1, indices of words; got 2"),
        ({"test_y": np.array([-1, 0])}, "test_y must be 0 to 1, indices of words; got -1"),
        ({"words": np.array(3)}, "words must be (K,) of text, got () of int64"),
        (
            {"words": None, "test_y": np.array([b"a", b"b"])},
            "must be words or numbers, not bytes",
        ),
        ({"train_y": np.array(["a", None] * 3)}, "is not an .npz file of plain arrays"),
        ({"test_x": None, "test_y": None}, "lacks test_x, test_y; found: train_x, train_y, words"),
    ],
)
def test_ready_made_vectors_are_checked(clips, run, change, message):
    np.savez("v.npz", **{key: x for key, x in (VECTORS | change).items() if x is not None})
    code, output, error = run("evaluate", "--features", "v.npz")
    assert code == 2 and not output
    assert error.startswith("tapword: v.npz") and message in error and error.count("\n") == 1


def test_files_that_are_no_vectors(clips, run):
    np.save("one.npy", np.ones(3))
    (clips / "fake.npz").write_bytes(b"PK\x03\x04 and no more")
    np.savez("cut.npz", **VECTORS)
    whole = (clips / "cut.npz").read_bytes()
    (clips / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile("text.npz", "w") as file:
        file.writestr("train_x", "no array")
    (clips / "empty.npz").touch()
    for name in ("one.npy", "fake.npz", "cut.npz", "text.npz", "empty.npz", "clips"):
        code, _, error = run("evaluate", "--features", name)
        assert code == 2 and error.count("\n") == 1
        assert error.startswith(f"tapword: {name} is not an .npz file of plain arrays: ")


def test_ready_made_vectors_need_no_parts(clips, run):
    for option, value in [
        ("--data", "clips"),
        ("--dataset", "folder"),
        ("--backbone", "logmel"),
        ("--pooling", "avg"),
        ("--size", "small"),
    ]:
        code, _, error = run("evaluate", "--features", "gone.npz", option, value)
        assert code == 2 and f"--features cannot go with {option}" in error
    code, _, error = run("evaluate", "--features", "gone.npz", "--learner", "slad")
    assert code == 2 and "no learner named 'slad'" in error


def test_refusals_stand_below_the_table(clips, run):
    common = ["evaluate", "--data", "clips", "--backbone", "logmel", "--jobs", "1"]
    # Vectors of 96,032 numbers, whose covariance would take 18 GB.
    common += ["--orderings", "1", "--pooling", "maxw:l=1500", "--learner", "sqda"]
    common += ["--out", "r.json"]
    code, output, error = run(*common, "--learner", "ncm")
    assert code == 0 and not error
    [line] = [line for line in output.splitlines() if "max_gb" in line]
    assert line.startswith("logmel · maxw:l=1500 · sqda: sqda with 96032 numbers per vector and 1 ")
    assert len(line) > 80, "not broken into the table's width"
    code, output, error = run(*common)
    assert code == 2 and "max_gb" in output and "every combination was refused" in error
    assert json.loads((clips / "r.json").read_text())["results"][0]["acc"] is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_every_report_is_tried(clips, run):
    Path("r.json").symlink_to("/dev/full")
    run_it = ["evaluate", "--data", "clips", *QUICK, "--jobs", "1", "--out", "r.json"]
    code, _, error = run(*run_it, "--out", "r.csv")
    assert code == 2 and error == "tapword: cannot write r.json: No space left on device\n"
    assert (clips / "r.csv").is_file()
    Path("r.html").symlink_to("/dev/full")
    code, _, error = run(*run_it, "--out", "r.html")
    assert code == 2 and "r.json" in error and "r.html" in error and error.count("\n") == 1


def test_folders_that_cannot_be_written_are_said_before_the_run(clips, run, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(clips))
    code, output, error = run("evaluate", "--data", "clips", *QUICK, "--out", "r.html")
    assert code == 2 and "cannot write r.html: permission denied" in error and not output


def test_a_whitening_is_computed_and_used(clips, run):
    made = ["--source", "tones", "--backbone", "logmel", "--pooling", "tap:R=2", "--align"]
    code, output, error = run("whitening", "priors", "--data", "clips", *made)
    assert code == 0 and "logmel.safetensors: " in output and " kB" in output, error
    parts = ["--backbone", "logmel", "--pooling", "tap:R=2", "--learner", "cosine:prior=shipped"]
    common = ["evaluate", "--data", "clips", *parts, "--orderings", "1", "--jobs", "1"]
    given = ["--align", "--whitening", "priors/logmel.safetensors", "--out", "r.json"]
    code, output, error = run(*common, *given)
    assert code == 0 and "learned from these words" in error
    records = json.loads((clips / "r.json").read_text())
    assert records["config"]["whitening_of_same_data"] is True
    [result] = records["results"]
    assert result["align"] is True and result["whitening"] == "tones" and result["acc"] == 100
    code, _, error = run(*common, "--whitening", "priors/logmel.safetensors")
    assert code == 2 and "no whitening for logmel -> tap:R=2;" in error
    code, _, error = run(*common, "--align")
    assert code == 2 and "no whitening for" in error and "`tapword whitening` makes one" in error


def test_a_whitening_for_the_default_parts(clips, run):
    code, output, error = run("whitening", "priors", "--data", "clips", "--source", "tones")
    assert code == 0 and "ear_s.safetensors" in output, error
    made = Whitening.load(clips / "priors" / "ear_s.safetensors")
    assert made.signed_sqrt and made.about["block"] == 1, "it is of the kind that is shipped"
    common = ["evaluate", "--data", "clips", "--orderings", "1", "--jobs", "1"]
    code, _, error = run(*common, "--out", "r.json")
    assert code == 0 and error == ""
    [shipped] = json.loads((clips / "r.json").read_text())["results"]
    assert "speechocean762" in shipped["whitening"] and shipped["align"] is True
    code, _, error = run(*common, "--whitening", "priors/ear_s.safetensors", "--out", "own.json")
    assert code == 0 and "learned from these words" in error
    [own] = json.loads((clips / "own.json").read_text())["results"]
    assert own["whitening"] == "tones" and own["size"] == "small"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whitening", "p", "--data", "clips"], "Missing option '--source'"),
        (["whitening", "p", "--data", "gone", "--source", "s"], "gone does not exist"),
        (
            ["whitening", "p", "--data", "clips", "--source", "s", "--size", "small", "--align"],
            "give either --size or parts",
        ),
        (["whitening", "p", "--data", "clips", "--source", "s", "--size", "tiny"], "no size named"),
        (["evaluate", "--data", "clips", "--whitening", "gone.st"], "gone.st does not exist"),
        (["evaluate", "--data", "clips", "--whitening", "clips/low/0.wav"], "is not a whitening"),
        (["evaluate", "--data", "clips", "--whitening", "clips"], "is not a whitening"),
    ],
)
def test_whitenings_that_cannot_be_are_said(clips, run, arguments, message):
    code, output, error = run(*arguments)
    assert code == 2 and not output and message in error and error.count("\n") == 1


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
