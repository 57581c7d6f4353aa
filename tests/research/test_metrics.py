import itertools

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import balanced_accuracy_score

from tapword.errors import InputError
from tapword.research import metrics

NAN = np.nan
# Worked by hand: best earlier accuracies 100, 90, 70 against a last row of 60, 80, 50.
R = np.array(
    [
        [100.0, NAN, NAN, NAN],
        [80.0, 90.0, NAN, NAN],
        [90.0, 60.0, 70.0, NAN],
        [60.0, 80.0, 50.0, 40.0],
    ]
)


def test_the_matrix_by_hand():
    assert metrics.plasticity(R) == (100 + 90 + 70 + 40) / 4
    assert metrics.forgetting(R) == pytest.approx((40 + 10 + 20) / 3)
    assert metrics.backward_accuracy(R) == (80 + 90 + 60 + 60 + 80 + 50) / 6
    assert metrics.backward_transfer(R) == pytest.approx((-40 - 10 - 20) / 3)


def test_what_stands_above_the_diagonal_does_not_matter():
    full = np.where(np.isnan(R), 12.0, R)
    for metric in (
        metrics.plasticity,
        metrics.forgetting,
        metrics.backward_accuracy,
        metrics.backward_transfer,
    ):
        assert metric(full) == metric(R)
    assert full[0, 1] == 12.0


def test_later_tasks_may_help_earlier_ones():
    better = np.array([[50.0, NAN], [70.0, 80.0]])
    assert metrics.forgetting(better) == -20 and metrics.backward_transfer(better) == 20


def test_forgetting_is_from_the_best_and_transfer_from_the_first():
    matrix = np.array([[50.0, NAN, NAN], [90.0, 80.0, NAN], [60.0, 80.0, 80.0]])
    assert metrics.forgetting(matrix) == 15 and metrics.backward_transfer(matrix) == 5


def test_one_task_has_nothing_to_forget():
    matrix = np.array([[75.0]])
    assert metrics.plasticity(matrix) == 75
    assert metrics.forgetting(matrix) is None
    assert metrics.backward_accuracy(matrix) is None
    assert metrics.backward_transfer(matrix) is None


def test_a_task_without_test_samples_is_left_out():
    matrix = R.copy()
    matrix[:, 1] = NAN
    assert metrics.plasticity(matrix) == (100 + 70 + 40) / 3
    assert metrics.forgetting(matrix) == 30
    assert metrics.backward_accuracy(matrix) == (80 + 90 + 60 + 50) / 4
    assert metrics.backward_transfer(matrix) == -30
    assert metrics.plasticity(np.full((2, 2), NAN)) is None


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"shape \(K, K\), K >= 1; got \(2, 3\)"),
        (np.ones(3), r"got \(3,\)"),
        (np.ones((0, 0)), r"got \(0, 0\)"),
        (np.array([[1.0, NAN], [NAN, 1.0]]), "a number wherever j <= i"),
        (np.array([[101.0]]), "from 0 to 100"),
        (np.array([[-1.0]]), "from 0 to 100"),
    ],
)
def test_matrices_that_are_none(matrix, message):
    with pytest.raises(InputError, match=message):
        metrics.plasticity(matrix)


def test_a_matrix_of_whole_numbers():
    matrix = [[100, 0], [50, 90]]
    assert metrics.forgetting(matrix) == 50 and metrics.plasticity(matrix) == 95


def test_accuracies_agree_with_scikit_learn(rng):
    words = ["go", "no", "up", "zoom in"]
    truth = rng.choice(words, size=200, p=[0.7, 0.1, 0.1, 0.1])
    predicted = rng.choice(words, size=200)
    assert metrics.accuracy(truth == predicted) == pytest.approx(100 * (truth == predicted).mean())
    wanted = 100 * balanced_accuracy_score(truth, predicted)
    assert metrics.balanced_accuracy(truth, predicted) == pytest.approx(wanted)
    assert metrics.balanced_accuracy(list(truth), list(predicted)) == pytest.approx(wanted)


def test_a_prediction_of_nothing_is_wrong():
    assert metrics.balanced_accuracy(["a", "b"], ["a", None]) == 50


def test_predictions_that_do_not_fit():
    with pytest.raises(InputError, match="got 1 for 2"):
        metrics.balanced_accuracy(["a", "b"], ["a"])
    with pytest.raises(InputError, match="got 0 for 0"):
        metrics.balanced_accuracy([], [])
    for right in (np.zeros(0, bool), np.ones(3), np.ones((2, 2), bool)):
        with pytest.raises(InputError, match="accuracy needs bools"):
            metrics.accuracy(right)


def test_gains_and_costs():
    # The paper's TAP-SLDA over SLDA, 76.7 to 85.5 on average.
    assert metrics.relative_gain(76.7, 85.5) == pytest.approx(37.77, abs=0.01)
    assert metrics.relative_gain(50, 25) == -50
    assert metrics.relative_gain(100, 100) is None
    assert metrics.delta_p(3840**2, 95_000_000) == pytest.approx(15.5, abs=0.03)
    assert metrics.delta_fs(5 * 768, 768) == 5
    assert metrics.delta_p(3, 1) == 300 and metrics.delta_fs(3, 1) == 3
    with pytest.raises(InputError, match="parameters must be at least 1, got 0"):
        metrics.delta_p(1, 0)
    with pytest.raises(InputError, match="length of a frame must be at least 1, got 0"):
        metrics.delta_fs(1, 0)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (5, 7, 1), (4, 6, 9), (1, 1, 1)])
def test_distances_agree_with_scipy(rng, sizes):
    labels = np.repeat(["a", "b", "c"], sizes)
    vectors = rng.standard_normal((len(labels), 8)).astype(np.float32)
    # Ties and a feature on another scale.
    vectors[:, 0] = vectors[:, 0].round()
    vectors[:, 1] *= 1e4
    scaled = vectors.astype(np.float64) / vectors.std(axis=0, dtype=np.float64)
    pairs = {"raw": [], "standardised": []}
    for first, second in itertools.combinations("abc", 2):
        for name, values in [("raw", vectors), ("standardised", scaled)]:
            one, two = values[labels == first], values[labels == second]
            distances = list(map(scipy.stats.wasserstein_distance, one.T, two.T))
            found = metrics.wasserstein_by_feature(one, two)
            np.testing.assert_allclose(found, distances, rtol=1e-5)
            pairs[name].append(np.mean(distances))
    found = metrics.wasserstein(vectors, labels)
    np.testing.assert_allclose(found.raw_mean, np.mean(pairs["raw"]), rtol=1e-6)
    np.testing.assert_allclose(found.raw_std, np.std(pairs["raw"]), rtol=1e-5)
    np.testing.assert_allclose(found.standardised_mean, np.mean(pairs["standardised"]), rtol=1e-6)
    np.testing.assert_allclose(found.standardised_std, np.std(pairs["standardised"]), rtol=1e-5)


def test_a_constant_feature_has_no_distance():
    vectors = np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 3.0]], dtype=np.float32)
    found = metrics.wasserstein(vectors, ["a", "b", "b"])
    assert found.raw_mean == 1 and found.raw_std == 0
    assert found.standardised_mean == pytest.approx(1 / np.std([1, 3, 3]))


@pytest.mark.parametrize(
    ("vectors", "labels", "message"),
    [
        (np.ones((3, 2)), ["a", "b"], r"got \(3, 2\), 2"),
        (np.ones(3), ["a", "b", "b"], r"got \(3,\), 3"),
        (np.ones((2, 1)), ["a", "a"], "at least two words, got a"),
        (np.array([[1.0], [NAN]]), ["a", "b"], "NaN"),
    ],
)
def test_distances_of_nothing(vectors, labels, message):
    with pytest.raises(InputError, match=message):
        metrics.wasserstein(vectors, labels)


def test_distances_do_not_overflow(rng):
    vectors = rng.normal(size=(20, 3)).astype(np.float32)
    small = metrics.wasserstein(vectors, ["a", "b"] * 10)
    large = metrics.wasserstein(vectors * np.float32(1e30), ["a", "b"] * 10)
    assert large.raw_mean == pytest.approx(1e30 * small.raw_mean)
    assert large.standardised_mean == pytest.approx(small.standardised_mean)


@pytest.mark.parametrize("wrong", [[], [[0.1, 0.2]], [0.1, np.nan]])
def test_scores_that_are_none(wrong):
    with pytest.raises(InputError, match="need scores"):
        metrics.auroc([0.5], wrong)
    with pytest.raises(InputError, match="need scores"):
        metrics.auroc(wrong, [0.5])


def test_auroc_is_that_of_scikit_learn(rng):
    from sklearn.metrics import roc_auc_score

    for digits in (8, 1):
        known, unknown = (np.round(rng.normal(shift, 1, 60), digits) for shift in (0.7, 0))
        truth, scores = [1] * 60 + [0] * 60, np.concatenate([known, unknown])
        assert metrics.auroc(known, unknown) == pytest.approx(100 * roc_auc_score(truth, scores))


def test_the_threshold_lets_no_more_in_than_was_allowed(rng):
    for count, allowed in itertools.product((1, 19, 20, 21, 400), (0, 5, 50)):
        unknown = np.round(rng.normal(size=count), 1)
        threshold = metrics.threshold_at(unknown, allowed)
        assert np.mean(unknown > threshold) <= allowed / 100
        # Any lower and there would be too many.
        assert np.mean(unknown >= threshold) > allowed / 100
    with pytest.raises(InputError, match="below 100"):
        metrics.threshold_at([0.0], 100)
    with pytest.raises(InputError, match="without NaN"):
        metrics.auroc([NAN], [0.0])


def test_an_interval_over_speakers_is_wider_than_one_over_clips(rng):
    """Twenty people, each understood wholly or not at all: clips tell less than they seem to."""
    speakers = [f"p{number}" for number in range(20) for _ in range(50)]
    right = np.repeat(rng.permutation([1.0] * 16 + [0.0] * 4), 50)
    low, high = metrics.speaker_interval(right, speakers)
    # Of 20 people the standard error of 80% is 8.9 points, of 1,000 clips 1.3.
    assert 57 < low < 68 and 92 < high <= 100
    low, high = metrics.speaker_interval(right, [None] * 1000)
    assert 77 < low < 78.5 and 81.5 < high < 83


def test_an_interval_over_speakers_weighs_them_by_their_clips():
    right, speakers = np.array([1.0, 1.0, 1.0, 0.0]), ["ann", "ann", "ann", "bob"]
    assert metrics.speaker_interval(right, speakers) == (0.0, 100.0)
    halves = metrics.speaker_interval(np.full(4, 0.5), speakers)
    assert halves == (50.0, 50.0)


@pytest.mark.parametrize(("right", "speakers"), [([], []), ([1.0], []), ([[1.0]], ["ann"])])
def test_an_interval_over_speakers_wants_a_speaker_for_each(right, speakers):
    with pytest.raises(InputError, match="n speakers"):
        metrics.speaker_interval(np.array(right), speakers)
