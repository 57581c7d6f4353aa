import json

import numpy as np
import pytest
import soundfile

from tapword import Spotter, evaluate, features, passes, plans, registry, runs, sizes
from tapword.errors import InputError
from tests.conftest import shared, tone

KEYS = {"backbone", "pooling", "learner", "shots", "size", "dim", "params", "delta_p", "delta_fs"}
KEYS |= {"align", "copies", "prior"}
KEYS |= {"acc", "acc_std", "acc_balanced", "bwt", "bwt_signed", "forg", "pla"}
KEYS |= {"state_bytes", "learn_ms", "predict_ms", "orderings", "matrix", "confusion"}


@pytest.fixture
def split(rng):
    """Vectors of five words, 20 to learn and 10 to ask of each."""
    centres = rng.normal(scale=2, size=(5, 8))

    def part(n):
        words = [f"word{k}" for k in range(5) for _ in range(n)]
        vectors = np.repeat(centres, n, axis=0) + rng.normal(size=(5 * n, 8))
        return vectors.astype(np.float32), words

    return passes.Split(*part(20), *part(10))


def test_records_hold_every_key_and_are_json(split):
    records = evaluate.evaluate_vectors(split, ["slda", "ncm"], orderings=2)
    assert set(records) == {"config", "results", "environment"}
    for result in records["results"]:
        assert set(result) == KEYS
        assert len(result["orderings"]) == 2 and len(result["matrix"]) == 5
        assert result["matrix"][0][1] is None
    json.dumps(records, allow_nan=False)
    assert records["config"]["n_words"] == 5 and records["config"]["n_test"] == 50


def test_forgetting_learners_forget_and_prototypes_do_not(split):
    results = runs.run_all(split, ["finetune", "ncm", "slda"], orderings=3)
    by_name = {result["learner"]: result for result in results}
    assert by_name["finetune"]["acc"] < 60
    assert by_name["finetune"]["forg"] > 50
    assert by_name["finetune"]["pla"] > 95
    for name in ("ncm", "slda"):
        assert by_name[name]["acc"] > 85
        assert by_name[name]["forg"] < 15
        assert by_name[name]["acc_std"] == pytest.approx(0, abs=1e-9)


def test_matrix_by_hand(split):
    """The last row of the matrix, weighted, is the accuracy; the curve is each row's mean."""
    [result] = runs.run_all(split, ["ncm"], orderings=1)
    matrix = np.array(result["matrix"], dtype=float)
    assert np.isnan(matrix[np.triu_indices(5, 1)]).all()
    assert matrix[-1].mean() == pytest.approx(result["acc"])
    curve = result["orderings"][0]["curve"]
    for i in range(5):
        assert matrix[i, : i + 1].mean() == pytest.approx(curve[i])
    assert result["pla"] == pytest.approx(np.diag(matrix).mean())


def test_iid_has_no_matrix_and_the_same_accuracy(split):
    [ordered] = runs.run_all(split, ["slda"], orderings=2)
    [mixed] = runs.run_all(split, ["slda"], order="iid", orderings=2)
    assert mixed["matrix"] is None and mixed["bwt"] is None and mixed["pla"] is None
    assert mixed["acc"] == pytest.approx(ordered["acc"])


def test_shots_are_rows_of_their_own(split):
    results = runs.run_all(split, ["ncm", "slda"], shots=[1, 5], draws=4)
    assert [(r["learner"], r["shots"]) for r in results] == [
        ("ncm", 1),
        ("ncm", 5),
        ("slda", 1),
        ("slda", 5),
    ]
    assert all(len(result["orderings"]) == 4 for result in results)
    assert results[1]["acc"] > results[0]["acc"]
    assert results[0]["acc_std"] > 0
    with pytest.raises(InputError, match="20"):
        runs.run_all(split, ["ncm"], shots=[21])


def test_processes_give_the_same_records(split):
    one = runs.run_all(split, ["slda", "icarl"], orderings=2, jobs=1)
    two = runs.run_all(split, ["slda", "icarl"], orderings=2, jobs=2)
    for a, b in zip(one, two, strict=True):
        assert a["acc"] == b["acc"] and a["matrix"] == b["matrix"]


def test_upper_bound_rows(split):
    results = runs.run_all(split, ["slda"], orderings=1, upper_bound=True)
    assert [r["learner"] for r in results] == ["slda", "offline-lda", "offline-logistic"]
    assert all(result["acc"] > 85 for result in results)


def test_a_state_too_large_is_a_row_that_says_so(split, monkeypatch):
    monkeypatch.setattr("tapword.learners.base.Learner.max_gb", 5e-7)
    [small, large] = runs.run_all(split, ["ncm", "sqda"], orderings=1)
    assert small["acc"] is not None
    assert large["acc"] is None and "max_gb" in large["error"]


def test_several_words_a_task(split):
    [result] = runs.run_all(split, ["ncm"], orderings=1, classes_per_task=2)
    assert [len(words) for words in result["orderings"][0]["tasks"]] == [2, 2, 1]
    assert len(result["matrix"]) == 3


def test_test_words_that_are_never_taught_are_left_out(split):
    strange = split._replace(test_words=["unknown"] * 10 + split.test_words[10:])
    [result] = runs.run_all(strange, ["ncm"], orderings=1)
    assert sum(len(words) for words in result["orderings"][0]["tasks"]) == 5
    with pytest.raises(InputError, match="no test clip"):
        runs.run_all(split._replace(test_words=["unknown"] * 50), ["ncm"])


def test_confusions_are_counted(split):
    wrong = split._replace(test_words=["word1"] * 10 + split.test_words[10:])
    [result] = runs.run_all(wrong, ["ncm"], orderings=2)
    assert result["confusion"][0][:2] == ["word1", "word0"]
    assert result["confusion"][0][2] >= 16


def test_names_are_checked_before_audio_is_read(tmp_path):
    dataset = registry.build("datasets", "folder", root=str(tmp_path / "gone"))
    with pytest.raises(InputError, match="no learner named 'slad'"):
        evaluate.evaluate(dataset, learners=["slad"])


def test_a_real_data_set_from_audio_to_records(tmp_path):
    """Arabic words, read and passed through the backbone, every learner of the paper but sqda."""
    root = shared("data", "mswc_layout")
    dataset = registry.build("datasets", "mswc:language=ar", root=str(root))
    learners = ["slda", "snb", "ncm", "cbcl", "sovr", "perceptron", "finetune", "icarl"]
    records = evaluate.evaluate(
        dataset,
        poolings=["avg", "tap"],
        learners=learners,
        orderings=2,
        matrix=False,
        cache=features.Cache(tmp_path),
    )
    by_name = {(r["pooling"], r["learner"]): r for r in records["results"]}
    assert records["config"]["n_words"] == 40 and records["config"]["skipped"] == 0
    for pooling in ("avg", "tap"):
        assert by_name[pooling, "finetune"]["acc"] < 10
        for learner in ("slda", "snb", "ncm", "cbcl"):
            assert by_name[pooling, learner]["acc"] > 95
        assert by_name[pooling, "slda"]["acc_std"] < 0.1
        assert by_name[pooling, "slda"]["delta_fs"] == (1 if pooling == "avg" else 5)


@pytest.fixture
def tones(tmp_path):
    """A folder of three words, and a prior for logmel from other tones."""
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


def test_a_prior_and_alignment_are_in_the_records(tones, tmp_path):
    taught, others = tones
    cache = features.Cache(tmp_path / "cache")
    spotter = Spotter("logmel", "tap:R=2", "ncm", align=True)
    [made] = plans.fit_priors(others, spotter, "other tones", cache, jobs=1)
    assert made.about["source"] == "other tones" and made.about["groups"] == [64]
    common = {"orderings": 1, "jobs": 1, "cache": cache, "matrix": False}
    parts = (["logmel"], ["tap:R=2"])
    whitened = evaluate.evaluate(
        taught, *parts, ["ncm", "cosine:prior=shipped"], align=True, prior=[made], **common
    )
    for result in whitened["results"]:
        assert result["align"] is True and result["prior"] == "other tones"
        assert result["acc"] == 100
    plain = evaluate.evaluate(taught, *parts, ["ncm"], **common)
    assert plain["results"][0]["align"] is False and plain["results"][0]["prior"] is None
    assert plain["config"]["prior_of_same_data"] is False
    same = evaluate.evaluate(others, *parts, ["ncm"], align=True, prior=[made], **common)
    assert same["config"]["prior_of_same_data"] is True
    json.dumps(whitened, allow_nan=False)
    with pytest.raises(InputError, match="no prior at hand for logmel"):
        evaluate.evaluate(taught, *parts, ["cosine:prior=shipped"], **common)


def test_records_are_those_of_a_spotter_with_the_same_prior(tones, tmp_path):
    taught, others = tones
    cache = features.Cache(tmp_path / "cache")
    raw = Spotter("logmel", "tap:R=2", "ncm", align=True)
    priors = plans.fit_priors(others, raw, "other tones", cache, jobs=1)
    records = evaluate.evaluate(
        taught, ["logmel"], ["tap:R=2"], ["cosine:prior=shipped"],
        align=True, prior=priors, orderings=1, jobs=1, cache=cache, matrix=False,
    )  # fmt: skip
    spotter = Spotter("logmel", "tap:R=2", "cosine:prior=shipped", align=True, prior=priors)
    for clip in taught.clips("train"):
        spotter.learn(clip.path, clip.word)
    asked = taught.clips("test")
    right = [spotter.predict(clip.path).word == clip.word for clip in asked]
    assert records["results"][0]["acc"] == pytest.approx(100 * np.mean(right))
    assert records["results"][0]["state_bytes"] == spotter.learner.state_bytes.total


def test_learners_that_want_no_prior_see_vectors_as_they_are(tones, tmp_path):
    """Beside one that asks for the shipped prior, in one run."""
    taught, _ = tones
    small = sizes.size("small")
    records = evaluate.evaluate(
        taught, small.backbones, small.poolings, ["ncm", small.learner],
        align=True, orderings=1, jobs=1, cache=features.Cache(tmp_path / "cache"), matrix=False,
    )  # fmt: skip
    by_name = {result["learner"]: result for result in records["results"]}
    assert by_name["ncm"]["prior"] is None
    assert "Ghandoura" in by_name[small.learner]["prior"]
    assert records["config"]["prior_of_same_data"] is False


def test_a_word_without_test_clips_costs_nothing(split):
    """Whatever its place in the order; its task is left out of the means."""
    fewer = [i for i, word in enumerate(split.test_words) if word != "word2"]
    lacking = split._replace(
        test=split.test[fewer], test_words=[split.test_words[i] for i in fewer]
    )
    results = runs.run_all(lacking, ["ncm", "slda"], orderings=8)
    for result in results:
        assert "error" not in result and result["acc"] > 80 and result["pla"] > 80
    curves = [ordering["curve"] for ordering in results[0]["orderings"]]
    assert any(curve[0] is None for curve in curves), "no ordering began with the word"


def test_upper_bounds_that_cannot_be_had_are_rows_that_say_so(split):
    results = runs.run_all(split, ["ncm"], shots=[1], draws=1, upper_bound=True)
    assert results[0]["acc"] is not None
    assert "offline-lda" in results[1]["error"]
