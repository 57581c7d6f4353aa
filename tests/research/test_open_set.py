import csv
import json

import numpy as np
import pytest

from tapword import registry
from tapword.errors import InputError
from tapword.research import report
from tapword.research.cache import Cache
from tapword.research.evaluate import evaluate, evaluate_vectors
from tapword.research.open_set import OpenSet
from tapword.research.runner import Split


def write_vectors(split, path):
    """Write vectors as `evaluate --features` takes them."""
    np.savez(
        path,
        train_x=split.train,
        train_y=split.train_words,
        test_x=split.test,
        test_y=split.test_words,
    )


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
    [result] = OpenSet(known=3, shots=[5], draws=3).run(words_on_axes(rng, 0.05), ["ncm"])
    assert result.auroc == 100 and result.frr == 0 and result.acc_open == 100
    assert result.auroc_std == 0 and len(result.orderings) == 3


def test_noise_costs_and_more_samples_help(rng):
    split = words_on_axes(rng, 0.5)
    one, many = OpenSet(known=3, shots=[1, 20], draws=5).run(split, ["ncm"])
    assert 50 < one.auroc < many.auroc < 100
    assert one.acc_open < many.acc_open and one.frr > many.frr > 0
    assert all(draw.acc_open <= 100 - draw.frr for draw in one.orderings)


def test_labels_that_mean_nothing_are_chance(rng):
    split = words_on_axes(rng, 0.05, clips=40)
    split = split._replace(test_words=list(rng.permutation(split.test_words)))
    [result] = OpenSet(known=4, shots=[5], draws=8).run(split, ["ncm"])
    assert result.auroc == pytest.approx(50, abs=8)
    assert result.frr == pytest.approx(95, abs=5)


def test_draws_are_seeded_and_differ(rng):
    split = words_on_axes(rng, 0.5)
    first, again = (OpenSet(known=3, draws=4).run(split, ["ncm"]) for _ in range(2))
    assert first == again
    chosen = {tuple(sorted(draw.words)) for draw in first[0].orderings}
    assert len(chosen) > 1 and all(len(words) == 3 for words in chosen)


def test_what_cannot_be_run_is_refused(rng):
    split = words_on_axes(rng)
    with pytest.raises(InputError, match="1 to 7 of the 8 words, got 8"):
        OpenSet(known=8).run(split, ["ncm"])
    with pytest.raises(InputError, match="have fewer"):
        OpenSet(known=3, shots=[31]).run(split, ["ncm"])
    with pytest.raises(InputError, match="one draw"):
        OpenSet(known=3, draws=0).run(split, ["ncm"])
    only = split._replace(test=split.test[:30], test_words=["word0"] * 30)
    with pytest.raises(InputError, match="taught words and others"):
        OpenSet(known=3).run(only, ["ncm"])


def test_records_are_written_in_every_kind(rng, tmp_path):
    split = words_on_axes(rng, 0.5)
    protocol = OpenSet(known=3, shots=[2, 5], draws=3)
    records = evaluate_vectors(split, ["cosine", "ncm"], protocol=protocol)
    for suffix in report.WRITERS:
        report.write(records, tmp_path / f"records{suffix}")
    written = json.loads((tmp_path / "records.json").read_text())
    assert written["config"]["order"] == "open-set" and written["config"]["known"] == 3
    assert written["config"]["shots"] == [2, 5] and written["config"]["n_test"] == 240
    rows = [("cosine", 2), ("cosine", 5), ("ncm", 2), ("ncm", 5)]
    assert [(result["learner"], result["shots"]) for result in written["results"]] == rows
    with open(tmp_path / "records.csv", newline="") as file:
        assert float(next(csv.DictReader(file))["auroc"]) == records.results[0].auroc
    page = (tmp_path / "records.html").read_text()
    assert "No results" not in page and "known words" in page
    assert "AUROC" in (tmp_path / "records.tex").read_text()


def test_real_words(speech_commands, tmp_path):
    """Twelve words, few clips of each, through audio and backbone."""
    source = registry.build("datasets", "speech_commands", root=str(speech_commands))
    for split, most in (("train", 6), ("test", 4)):
        for word in sorted(source.words)[:12]:
            clips = [clip for clip in source.clips(split) if clip.word == word][:most]
            folder = tmp_path / "data" / split / word
            folder.mkdir(parents=True)
            for clip in clips:
                (folder / clip.path.name).symlink_to(clip.path)
    records = evaluate(
        registry.build("datasets", "folder", root=str(tmp_path / "data")),
        sizes=["small"],
        cache=Cache(tmp_path / "cache"),
        jobs=1,
        protocol=OpenSet(draws=3),
    )
    [result] = records.results
    assert result.size == "small" and 85 < result.auroc <= 100
    assert result.acc_open > 50
