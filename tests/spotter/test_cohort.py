"""Scores against running speech: what they are, and what they do not depend on."""

import numpy as np
import pytest

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.errors import InputError
from tapword.spotter.cohort import NEAREST, WEIGHT, Windows
from tapword.spotter.encoder import Encoded
from tapword.spotter.whitening import Whitening, shipped
from tests.conftest import tone


def clips(word):
    return sorted((CLIPS / word).glob("*.ogg"))


def test_a_level_is_a_share_of_the_mean_of_the_nearest(rng):
    vectors = rng.normal(size=(50, 8))
    X = rng.normal(size=(4, 8))
    cosines = [sorted(x @ v / np.linalg.norm(x) / np.linalg.norm(v) for v in vectors) for x in X]
    for nearest in (1, NEAREST, 30):
        wanted = WEIGHT * np.mean([one[-nearest:] for one in cosines], axis=1)
        given = Windows(vectors, nearest=nearest).cohort_score(X)
        np.testing.assert_allclose(given, wanted, rtol=1e-5)
    wanted = Windows(vectors).cohort_score(X)
    np.testing.assert_array_equal(Windows(vectors, nearest=NEAREST).cohort_score(X), wanted)
    np.testing.assert_allclose(Windows(3 * vectors).cohort_score(7 * X), wanted, rtol=1e-5)
    half = Windows(vectors, weight=WEIGHT / 2)
    np.testing.assert_allclose(half.cohort_score(X), wanted / 2, rtol=1e-5)
    np.testing.assert_allclose(half.own_scores, Windows(vectors).own_scores / 2, rtol=1e-5)


def test_a_whitening_says_how_much_is_taken_off():
    shares = {name: Spotter(name).scorer.cohort for name in ("tapword_ear", "speech_embedding")}
    assert {name: (one.words.weight, one.phrases.weight) for name, one in shares.items()} == {
        "tapword_ear": (WEIGHT, WEIGHT),
        "speech_embedding": (0.5, 0.5),
    }
    assert shares["speech_embedding"].first(10).words.weight == 0.5
    about = shipped("ear_s").about
    cohort = Spotter("ear_s").scorer.cohort.first(10)
    assert cohort.words.weight == about.get("share", WEIGHT)
    assert cohort.phrases.nearest == about.get("nearest", NEAREST)


def test_a_window_is_no_neighbour_of_itself(rng):
    vectors = rng.normal(size=(50, 8))
    windows = Windows(vectors)
    others = Windows(np.delete(vectors, 7, axis=0))
    assert windows.own_scores[7] == pytest.approx(others.cohort_score(vectors[7:8])[0], rel=1e-5)


def test_a_score_is_the_cosine_less_what_running_speech_has_of_it():
    spotter = Spotter()
    for word in ("lamp", "music"):
        spotter.learn_many(clips(word)[:3], [word] * 3)
    asked = spotter.encode(clips("lamp")[3:5])
    unit = asked.vectors / np.linalg.norm(asked.vectors, axis=1, keepdims=True)
    taught = {
        word: spotter.encode(clips(word)[:3], learning=True).vectors.mean(axis=0)
        for word in spotter.words
    }
    level = spotter.scorer.cohort.score(asked.vectors, asked.seconds)
    own = spotter.learner.scores(asked.vectors)
    for row, scores in enumerate(spotter.score_encoded(asked)):
        wanted = unit[row] @ taught["lamp"] / np.linalg.norm(taught["lamp"]) - level[row]
        assert scores.words["lamp"] == pytest.approx(wanted, abs=1e-4)
        behind = scores.words["lamp"] - scores.words["music"]
        assert behind == pytest.approx(own[row, 0] - own[row, 1], abs=1e-4) and behind > 0


def test_a_score_depends_neither_on_other_words_nor_on_how_often_a_sample_came():
    one, other = Spotter(), Spotter()
    taught = one.encode(clips("lamp")[:5], learning=True)
    one.learn_encoded(taught, ["lamp"] * 5)
    other.learn_encoded(Encoded.concatenate([taught] * 20), ["lamp"] * 100)
    other.learn_many(clips("music")[:4] + clips("door")[:3], ["music"] * 4 + ["door"] * 3)
    asked = one.encode(clips("lamp")[5:11])
    few = [scores.words["lamp"] for scores in one.score_encoded(asked)]
    many = [scores.words["lamp"] for scores in other.score_encoded(asked)]
    np.testing.assert_allclose(few, many, atol=1e-5)
    first, second = (spotter.scorer.tails()["lamp"].tail_mean for spotter in (one, other))
    assert first == pytest.approx(second, abs=1e-5)


def test_other_learners_leave_the_background_out():
    spotter = Spotter(learner="slda:prior=shipped")
    spotter.learn(tone(300), "low")
    assert spotter.scorer.cohort is None and not spotter.has_thresholds
    with pytest.raises(InputError, match="Thresholds are unavailable"):
        spotter.thresholds()


def test_a_background_goes_with_its_whitening(tmp_path, rng):
    found = shipped("speech_embedding")
    assert found.cohort.dtype == np.int8 and len(found.cohort) == 1000
    found.save(tmp_path / "again.safetensors")
    again = Whitening.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.cohort, found.cohort)
    assert again.sha256 == found.sha256
    X = rng.normal(size=(20, len(found.mean))).astype(np.float32)
    again.set_cohort(X)
    kept = again.cohort / np.linalg.norm(again.cohort, axis=1, keepdims=True)
    whitened = again(X) / np.linalg.norm(again(X), axis=1, keepdims=True)
    assert np.einsum("nd,nd->n", kept, whitened).min() > 0.999
    with pytest.raises(InputError, match="windows do not fit"):
        Whitening(found.about, found.mean, found.maps, found.within, found.cohort[:, 1:])
