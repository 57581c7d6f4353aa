import csv
import json

from tests.research.test_open_set import words_on_axes, write_vectors


def test_the_command_on_vectors(rng, run, tmp_path):
    split = words_on_axes(rng, 0.5)
    write_vectors(split, tmp_path / "v.npz")
    paths = [tmp_path / f"r.{kind}" for kind in ("json", "csv", "html", "tex")]
    outputs = [part for path in paths for part in ("--out", path)]
    code, out, error = run(
        "evaluate", "--open-set", "--known", 3, "--shots", 2, "--shots", 5, "--draws", 3,
        "--features", tmp_path / "v.npz", "--learner", "cosine", "--learner", "ncm", *outputs,
    )  # fmt: skip
    assert code == 0, error
    assert "AUROC" in out and "FRR" in out and "±" in out
    records = json.loads(paths[0].read_text())
    assert records["config"]["order"] == "open-set" and records["config"]["known"] == 3
    assert [(r["learner"], r["shots"]) for r in records["results"]] == [
        ("cosine", 2), ("cosine", 5), ("ncm", 2), ("ncm", 5),
    ]  # fmt: skip
    with open(paths[1], newline="") as file:
        assert float(next(csv.DictReader(file))["auroc"]) == records["results"][0]["auroc"]
    page = paths[2].read_text()
    assert "No results" not in page and "AUROC" in page
    assert "AUROC" in paths[3].read_text()


def test_the_command_refuses_other_protocols(run, tmp_path):
    code, _, error = run("evaluate", "--open-set", "--order", "iid", "--data", tmp_path)
    assert code == 2 and "--known, --shots, --draws and --voice" in error
