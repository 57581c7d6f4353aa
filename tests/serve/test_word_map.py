"""The map of the words."""

import numpy as np
import pytest

import tapword
from tapword.serve.studio import word_map
from tests.conftest import tone
from tests.serve.conftest import SMALL, learn


def map_of(parts, taught):
    spotter = tapword.Spotter(**parts)
    for word, pitches in taught.items():
        for pitch in pitches:
            spotter.learn(tone(pitch, 0.5), word)
    return spotter, {point.word: point for point in word_map.word_map(spotter).points}


TAUGHT = {"low": (300, 310), "lower": (290, 305), "high": (3000, 3100)}


def test_map_of_words():
    _, points = map_of(SMALL, TAUGHT)
    assert list(points) == list(TAUGHT)
    assert points["low"].nearest == "lower" and points["lower"].nearest == "low"
    assert points["high"].distance > points["low"].distance
    assert points["high"].verdict == "distinct"
    place = {word: np.array([point.x, point.y]) for word, point in points.items()}
    near = np.linalg.norm(place["low"] - place["lower"])
    assert near < np.linalg.norm(place["low"] - place["high"])
    assert max(abs(float(value)) for xy in place.values() for value in xy) <= 1


def test_negatives_are_not_on_the_map():
    spotter, before = map_of(SMALL, TAUGHT)
    spotter.reject(tone(600, 0.5))
    assert [point.word for point in word_map.word_map(spotter).points] == list(before)


def test_a_page_asks_for_the_map(client):
    pytest.importorskip("starlette")
    assert client.get("/api/map").json() == {"revision": None, "points": [], "overlaps": []}
    for word, pitches in TAUGHT.items():
        for pitch in pitches:
            state = learn(client, word, pitch).json()
    answer = client.get("/api/map").json()
    assert answer["revision"] == state["revision"] is not None
    assert [point["word"] for point in answer["points"]] == list(TAUGHT)
    assert set(answer["points"][0]) == {"word", "x", "y", "nearest", "distance", "verdict"}


def test_distances_are_in_takes_of_one_word(rng):
    """Means of the same word taught twice lie at 0, whatever the number of takes."""
    scale = rng.uniform(0.5, 5, 400)
    centres = scale * rng.normal(0, 1, (2, 400)) * np.array([[0.0], [2.0]])
    for n in (2, 50):
        samples = centres[:, None] + scale * rng.normal(0, 1, (2, n, 400))
        means, counts = samples.mean(axis=1), np.array([n, n])
        apart = word_map.distances(means, counts, scale**2)[0, 1]
        assert apart == pytest.approx(2 / np.sqrt(2), rel=0.15)
    same = scale * rng.normal(0, 1, (2, 3, 400))
    apart = word_map.distances(same.mean(axis=1), np.array([3, 3]), scale**2)[0, 1]
    assert apart < 0.35


def test_layout_keeps_distances_of_a_plane(rng):
    places = rng.normal(0, 1, (7, 2))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    found = word_map.layout(apart)
    again = np.linalg.norm(found[:, None] - found[None], axis=2)
    off = ~np.eye(7, dtype=bool)
    ratio = again[off] / apart[off]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


@pytest.mark.parametrize("learner", ["ncm", "slda", "slda:scatter=per-word", "snb", "sqda"])
def test_learners_with_means_have_a_map(learner):
    parts = {"backbone": "logmel", "pooling": "avg", "learner": learner}
    _, points = map_of(parts, {"low": (300, 310), "high": (2000,)})
    assert list(points) == ["low", "high"] and points["low"].nearest == "high"


@pytest.mark.parametrize("learner", ["perceptron", "cbcl"])
def test_other_learners_have_none(learner):
    parts = {"backbone": "logmel", "pooling": "avg", "learner": learner}
    spotter, points = map_of(parts, {"low": (300, 310), "high": (2000,)})
    assert len(spotter.words) == 2 and points == {}


def test_words_whose_points_coincide_are_found(rng):
    """Words that are far from each other in ten dimensions may meet in two."""
    means = 3 * rng.normal(size=(30, 10))
    apart = np.linalg.norm(means[:, None] - means[None, :], axis=2)
    places = word_map.layout(apart)
    found = word_map.overlaps(apart, places)
    drawn = [(i, j) for i in range(30) for j in range(i + 1, 30) if near(places[i], places[j])]
    assert found == drawn and found
    assert word_map.overlaps(apart / apart.max(), places) == []


def near(one, other):
    return np.hypot(*(one - other)) < word_map.OVERLAP
