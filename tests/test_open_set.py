import csv
import json

import numpy as np
import pytest

from tapword import open_set
from tapword.errors import InputError
from tapword.passes import Split


def words_on_axes(rng, spread=0.3, words=8, clips=30):
    """Words as directions with noise around: known and unknown ones are told apart by distance."""
    names = [f"word{number}" for number in range(words)]
    labels = [name for name in names for _ in range(clips)]
    axes = np.repeat(np.eye(words), clips, axis=0)
    train, test = (
        (axes + spread * rng.standard_normal(axes.shape)).astype(np.float32) for _ in range(2)
    )
    return Split(train, labels, test, list(labels))


def test_clear_words_are_told_from_others(rng):
    [result] = open_set.run(words_on_axes(rng, 0.05), ["ncm"], known=3, shots=[5], draws=3)
    assert result["auroc"] == 100 and result["frr"] == 0 and result["acc_open"] == 100
    assert result["auroc_std"] == 0 and len(result["orderings"]) == 3


def test_noise_costs_and_more_samples_help(rng):
    split = words_on_axes(rng, 0.5)
    one, many = open_set.run(split, ["ncm"], known=3, shots=[1, 20], draws=5)
    assert 50 < one["auroc"] < many["auroc"] < 100
    assert one["acc_open"] < many["acc_open"] and one["frr"] > many["frr"] > 0
    assert all(draw["acc_open"] <= 100 - draw["frr"] for draw in one["orderings"])


def test_labels_that_mean_nothing_are_chance(rng):
    split = words_on_axes(rng, 0.05, clips=40)
    split = split._replace(test_words=list(rng.permutation(split.test_words)))
    [result] = open_set.run(split, ["ncm"], known=4, shots=[5], draws=8)
    assert result["auroc"] == pytest.approx(50, abs=8)
    assert result["frr"] == pytest.approx(95, abs=5)


def test_draws_are_seeded_and_differ(rng):
    split = words_on_axes(rng, 0.5)
    first, again = (open_set.run(split, ["ncm"], known=3, draws=4) for _ in range(2))
    assert first == again
    chosen = {tuple(sorted(draw["words"])) for draw in first[0]["orderings"]}
    assert len(chosen) > 1 and all(len(words) == 3 for words in chosen)


def test_what_cannot_be_run_is_refused(rng):
    split = words_on_axes(rng)
    with pytest.raises(InputError, match="1 to 7 of the 8 words, got 8"):
        open_set.run(split, ["ncm"], known=8)
    with pytest.raises(InputError, match="have fewer"):
        open_set.run(split, ["ncm"], known=3, shots=[31])
    with pytest.raises(InputError, match="one draw"):
        open_set.run(split, ["ncm"], known=3, draws=0)
    only = split._replace(test=split.test[:30], test_words=["word0"] * 30)
    with pytest.raises(InputError, match="words taught and of others"):
        open_set.run(only, ["ncm"], known=3)


def test_the_command_on_vectors(rng, run, tmp_path):
    split = words_on_axes(rng, 0.5)
    np.savez(
        tmp_path / "v.npz",
        train_x=split.train,
        train_y=split.train_words,
        test_x=split.test,
        test_y=split.test_words,
    )
    paths = [tmp_path / f"r.{kind}" for kind in ("json", "csv", "html", "latex")]
    outputs = [part for path in paths for part in (f"--{path.suffix[1:]}", path)]
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
    assert code == 2 and "--known, --shots and --draws" in error


def test_real_words(speech_commands, tmp_path):
    """Twelve words, few clips of each, through audio and backbone."""
    from tapword import features, registry

    source = registry.build("datasets", "speech_commands", root=str(speech_commands))
    for split, most in (("train", 6), ("test", 4)):
        for word in sorted(source.words)[:12]:
            clips = [clip for clip in source.clips(split) if clip.word == word][:most]
            folder = tmp_path / "data" / split / word
            folder.mkdir(parents=True)
            for clip in clips:
                (folder / clip.path.name).symlink_to(clip.path)
    records = open_set.evaluate_open_set(
        registry.build("datasets", "folder", root=str(tmp_path / "data")),
        sizes=["small"],
        cache=features.Cache(tmp_path / "cache"),
        jobs=1,
        draws=3,
    )
    [result] = records["results"]
    assert result["size"] == "small" and 85 < result["auroc"] <= 100
    assert result["acc_open"] > 50
