import json

import numpy as np
import pytest
import soundfile

from tapword import Spotter, registry
from tapword.errors import InputError
from tapword.research import metrics, orders, runner
from tapword.research.cache import Cache
from tapword.research.evaluate import evaluate, evaluate_vectors
from tapword.research.experiment import fit_whitenings
from tapword.research.open_set import OpenSet
from tapword.research.records import as_json
from tapword.research.runner import Split
from tapword.spotter import presets
from tests.conftest import shared, tone

KEYS = {"backbone", "pooling", "learner", "shots", "size", "dim", "params", "delta_p", "delta_fs"}
KEYS |= {"align", "augment", "whitening"}
KEYS |= {"acc", "acc_std", "acc_speakers_ci", "acc_balanced", "bwt", "bwt_signed", "forg", "pla"}
KEYS |= {"state_bytes", "learn_ms", "predict_ms", "orderings", "matrix", "confusion", "error"}


def test_records_hold_every_key_and_are_json(split):
    records = as_json(evaluate_vectors(split, ["slda", "ncm"], orderings=2))
    assert set(records) == {"config", "results", "environment"}
    for result in records["results"]:
        assert set(result) == KEYS
        assert len(result["orderings"]) == 2 and len(result["matrix"]) == 5
        assert result["matrix"][0][1] is None
    json.dumps(records, allow_nan=False)
    assert records["config"]["n_words"] == 5 and records["config"]["n_test"] == 50


def test_names_are_checked_before_audio_is_read(tmp_path):
    dataset = registry.build("datasets", "folder", root=str(tmp_path / "gone"))
    with pytest.raises(InputError, match="no learner named 'slad'"):
        evaluate(dataset, learners=["slad"])


def test_a_real_data_set_from_audio_to_records(tmp_path):
    """Arabic words, read and passed through the backbone, every learner of the paper but sqda."""
    root = shared("data", "mswc_layout")
    dataset = registry.build("datasets", "mswc:language=ar,n_words=24", root=str(root))
    learners = ["slda", "snb", "ncm", "cbcl", "sovr", "perceptron", "finetune", "icarl"]
    records = evaluate(
        dataset,
        backbones=["speech_embedding"],
        poolings=["avg", "tap"],
        learners=learners,
        orderings=2,
        matrix=False,
        cache=Cache(tmp_path),
    )
    by_name = {(r.pooling, r.learner): r for r in records.results}
    assert records.config.n_words == 24 and records.config.skipped == 0
    for pooling in ("avg", "tap"):
        assert by_name[pooling, "finetune"].acc < 10
        for learner in ("slda", "snb", "ncm", "cbcl"):
            assert by_name[pooling, learner].acc > 95
        assert by_name[pooling, "slda"].acc_std < 0.1
        assert by_name[pooling, "slda"].delta_fs == (1 if pooling == "avg" else 5)


@pytest.fixture
def tones(tmp_path):
    """A folder of three words, and other tones to learn a whitening from."""
    for folder, pitches in [("taught", (300, 600, 1200)), ("others", (250, 500, 900, 1500))]:
        rng = np.random.default_rng(0)
        for pitch in pitches:
            (tmp_path / folder / str(pitch)).mkdir(parents=True)
            for take in range(10):
                sound = tone(pitch * rng.uniform(0.95, 1.05), rng.uniform(0.3, 0.9))
                sound = np.pad(sound, (rng.integers(8_000), 0))
                sound += 0.01 * rng.normal(size=len(sound)).astype(np.float32)
                soundfile.write(tmp_path / folder / str(pitch) / f"{take}.wav", sound, 16_000)
    return [
        registry.build("datasets", "folder:test_share=0.3", root=str(tmp_path / folder))
        for folder in ("taught", "others")
    ]


def test_whitening_and_alignment_are_in_the_records(tones, tmp_path):
    taught, others = tones
    cache = Cache(tmp_path / "cache")
    spotter = Spotter("logmel", "tap:R=2", "ncm", align=True)
    [made] = fit_whitenings(others, spotter, "other tones", cache, jobs=1)
    assert made.about["source"] == "other tones" and made.about["groups"] == [64]
    common = {"orderings": 1, "jobs": 1, "cache": cache, "matrix": False}
    parts = (["logmel"], ["tap:R=2"])
    whitened = evaluate(
        taught, *parts, ["ncm", "cosine:prior=shipped"], align=True, whitening=[made], **common
    )
    for result in whitened.results:
        assert result.align is True and result.whitening == "other tones"
        assert result.acc == 100
    plain = evaluate(taught, *parts, ["ncm"], **common)
    assert plain.results[0].align is False and plain.results[0].whitening is None
    assert plain.config.whitening_of_same_data is False
    assert plain.config.dataset == "folder:test_share=0.3", "its folder concerns one machine"
    same = evaluate(others, *parts, ["ncm"], align=True, whitening=[made], **common)
    assert same.config.whitening_of_same_data is True
    json.dumps(as_json(whitened), allow_nan=False)
    with pytest.raises(InputError, match="no whitening for logmel"):
        evaluate(taught, *parts, ["cosine:prior=shipped"], **common)


def test_records_are_those_of_a_spotter_with_the_same_whitening(tones, tmp_path):
    taught, others = tones
    cache = Cache(tmp_path / "cache")
    raw = Spotter("logmel", "tap:R=2", "ncm", align=True)
    whitenings = fit_whitenings(others, raw, "other tones", cache, jobs=1)
    records = evaluate(
        taught, ["logmel"], ["tap:R=2"], ["cosine:prior=shipped"],
        align=True, whitening=whitenings, orderings=1, jobs=1, cache=cache, matrix=False,
    )  # fmt: skip
    spotter = Spotter("logmel", "tap:R=2", "cosine:prior=shipped", align=True, whitening=whitenings)
    for clip in taught.clips("train"):
        spotter.learn(clip.path, clip.word)
    asked = taught.clips("test")
    right = [spotter.predict(clip.path).word == clip.word for clip in asked]
    assert records.results[0].acc == pytest.approx(100 * np.mean(right))
    assert records.results[0].state_bytes == spotter.learner.state_bytes.total


def test_learners_that_want_no_whitening_see_vectors_as_they_are(tones, tmp_path):
    """Beside one that asks for the shipped whitening, in one run."""
    taught, _ = tones
    small = presets.preset("small")
    records = evaluate(
        taught, small.backbones, small.poolings, ["ncm", small.learner],
        align=True, orderings=1, jobs=1, cache=Cache(tmp_path / "cache"), matrix=False,
    )  # fmt: skip
    by_name = {result.learner: result for result in records.results}
    assert by_name["ncm"].whitening is None
    assert "speechocean762" in by_name[small.learner].whitening
    assert records.config.whitening_of_same_data is False


@pytest.fixture
def phrases(tmp_path):
    """Recordings of five real phrases by twelve people each, most of them over a second."""
    root = shared("data", "phrases")
    for folder in sorted(path for path in root.iterdir() if path.is_dir())[:5]:
        (tmp_path / "phrases" / folder.name).mkdir(parents=True)
        for path in sorted(folder.iterdir())[:12]:
            (tmp_path / "phrases" / folder.name / path.name).symlink_to(path)
    return registry.build("datasets", "folder:test_share=0.5", root=str(tmp_path / "phrases"))


def taught_as_in(result, dataset, shots):
    """A spotter taught the same clips as in the first draw of a result."""
    clips = [clip for clip in dataset.clips("train") if clip.word in result]
    spotter = Spotter(size="small")
    for task in orders.make("few-shot", [clip.word for clip in clips], 0, shots):
        chosen = [clips[index] for index in task.indices]
        spotter.learn_many([clip.path for clip in chosen], [clip.word for clip in chosen])
    return spotter


def test_phrases_score_as_in_a_loop_of_predict(phrases, tmp_path, monkeypatch):
    """Clips over a second are normalised by windows of phrases, here as there."""
    seen = []
    scores = Split.scores

    def watched(self, *arguments):
        seen.append(scores(self, *arguments))
        return seen[-1]

    monkeypatch.setattr(Split, "scores", watched)
    protocol = OpenSet(known=3, shots=(3,), draws=1)
    [result] = evaluate(phrases, sizes=["small"], cache=Cache(tmp_path), protocol=protocol).results
    [draw] = result.orderings
    spotter, clips = taught_as_in(draw.words, phrases, 3), phrases.clips("test")
    answers = [spotter.predict(clip.path, closed=True) for clip in clips]
    [scored] = seen
    assert len(scored) == len(answers) == 30
    assert sum(spotter.encode([clip.path]).seconds[0] > 1 for clip in clips) > 20
    names = list(spotter.words)
    for row, answer in zip(scored, answers, strict=True):
        assert names[row.argmax()] == answer.word
        assert row.max() == pytest.approx(answer.score, abs=1e-5)
    known = np.array([clip.word in draw.words for clip in clips])
    best = np.array([answer.score for answer in answers])
    assert draw.auroc == metrics.auroc(best[known], best[~known])
    accepted = best > metrics.threshold_at(best[~known], 5)
    assert draw.frr == 100 - metrics.accuracy(accepted[known])


def test_phrases_are_named_as_in_a_loop_of_predict(phrases, tmp_path, monkeypatch):
    finished = []
    run_pass = runner.run_pass
    monkeypatch.setattr(
        runner, "run_pass", lambda *given: finished.append(run_pass(*given)) or finished[-1]
    )
    evaluate(phrases, sizes=["small"], cache=Cache(tmp_path), shots=(3,), draws=1, jobs=1)
    [one] = finished
    spotter = taught_as_in(phrases.words, phrases, 3)
    clips = phrases.clips("test")
    assert one.predicted == [spotter.predict(clip.path, closed=True).word for clip in clips]
