import numpy as np
import pytest

from tapword.errors import InputError
from tapword.research.runner import Split, Stream


def test_forgetting_learners_forget_and_prototypes_do_not(split):
    results = Stream(orderings=3).run(split, ["finetune", "ncm", "slda"])
    by_name = {result.learner: result for result in results}
    assert by_name["finetune"].acc < 60
    assert by_name["finetune"].forg > 50
    assert by_name["finetune"].pla > 95
    for name in ("ncm", "slda"):
        assert by_name[name].acc > 85
        assert by_name[name].forg < 15
        assert by_name[name].acc_std == pytest.approx(0, abs=1e-9)


def test_matrix_by_hand(split):
    """The last row of the matrix, weighted, is the accuracy; the curve is each row's mean."""
    [result] = Stream(orderings=1).run(split, ["ncm"])
    matrix = np.array(result.matrix, dtype=float)
    assert np.isnan(matrix[np.triu_indices(5, 1)]).all()
    assert matrix[-1].mean() == pytest.approx(result.acc)
    curve = result.orderings[0].curve
    for i in range(5):
        assert matrix[i, : i + 1].mean() == pytest.approx(curve[i])
    assert result.pla == pytest.approx(np.diag(matrix).mean())


def test_iid_has_no_matrix_and_the_same_accuracy(split):
    [ordered] = Stream(orderings=2).run(split, ["slda"])
    [mixed] = Stream(order="iid", orderings=2).run(split, ["slda"])
    assert mixed.matrix is None and mixed.bwt is None and mixed.pla is None
    assert mixed.acc == pytest.approx(ordered.acc)


def test_shots_are_rows_of_their_own(split):
    results = Stream(shots=[1, 5], draws=4).run(split, ["ncm", "slda"])
    assert [(r.learner, r.shots) for r in results] == [
        ("ncm", 1),
        ("ncm", 5),
        ("slda", 1),
        ("slda", 5),
    ]
    assert all(len(result.orderings) == 4 for result in results)
    assert results[1].acc > results[0].acc
    assert results[0].acc_std > 0
    with pytest.raises(InputError, match="20"):
        Stream(shots=[21]).run(split, ["ncm"])


def test_who_speaks_makes_an_interval(split):
    speakers = [f"p{index % 7}" for index in range(50)]
    known = split._replace(speakers=speakers)
    [result] = Stream(orderings=1).run(known, ["ncm"])
    low, high = result.acc_speakers_ci
    assert low < result.acc < high
    assert Stream(orderings=1).run(split, ["ncm"])[0].acc_speakers_ci is None
    # Clips of words that are never taught are left out, and so are those who spoke them.
    others = known._replace(
        test=np.concatenate([np.zeros((3, 8), np.float32), known.test]),
        test_words=["never"] * 3 + known.test_words,
        speakers=["stranger"] * 3 + speakers,
    )
    assert Stream(orderings=1).run(others, ["ncm"])[0].acc_speakers_ci == (low, high)


def test_processes_give_the_same_records(split):
    one = Stream(orderings=2).run(split, ["slda", "icarl"], jobs=1)
    two = Stream(orderings=2).run(split, ["slda", "icarl"], jobs=2)
    for a, b in zip(one, two, strict=True):
        assert a.acc == b.acc and a.matrix == b.matrix


def test_upper_bound_rows(split):
    results = Stream(orderings=1, upper_bound=True).run(split, ["slda"])
    assert [r.learner for r in results] == ["slda", "offline-lda", "offline-logistic"]
    assert all(result.acc > 85 for result in results)


def test_a_state_too_large_is_a_result_that_says_so(rng):
    """The covariance of 60,000 numbers takes 7 GB."""
    words = [f"word{k}" for k in range(5)]
    wide = rng.normal(size=(5, 60_000)).astype(np.float32)
    [small, large] = Stream(orderings=1).run(Split(wide, words, wide, words), ["ncm", "slda"])
    assert small.acc == 100
    assert large.acc is None and "max_gb" in large.error


def test_a_wrong_name_is_no_result(split):
    with pytest.raises(InputError, match="no learner named 'slad'"):
        Stream().run(split, ["slad"])


def test_several_words_a_task(split):
    [result] = Stream(orderings=1, classes_per_task=2).run(split, ["ncm"])
    assert [len(words) for words in result.orderings[0].tasks] == [2, 2, 1]
    assert len(result.matrix) == 3


def test_test_words_that_are_never_taught_are_left_out(split):
    strange = split._replace(test_words=["unknown"] * 10 + split.test_words[10:])
    [result] = Stream(orderings=1).run(strange, ["ncm"])
    assert sum(len(words) for words in result.orderings[0].tasks) == 5
    with pytest.raises(InputError, match="no test clip"):
        Stream().run(split._replace(test_words=["unknown"] * 50), ["ncm"])


def test_confusions_are_counted(split):
    wrong = split._replace(test_words=["word1"] * 10 + split.test_words[10:])
    [result] = Stream(orderings=2).run(wrong, ["ncm"])
    assert result.confusion[0][:2] == ("word1", "word0")
    assert result.confusion[0][2] >= 16


def test_a_word_without_test_clips_costs_nothing(split):
    """Whatever its place in the order; its task is left out of the means."""
    fewer = [i for i, word in enumerate(split.test_words) if word != "word2"]
    lacking = split._replace(
        test=split.test[fewer], test_words=[split.test_words[i] for i in fewer]
    )
    results = Stream(orderings=8).run(lacking, ["ncm", "slda"])
    for result in results:
        assert result.error is None and result.acc > 80 and result.pla > 80
    curves = [ordering.curve for ordering in results[0].orderings]
    assert any(curve[0] is None for curve in curves), "no ordering began with the word"


def test_upper_bounds_that_cannot_be_had_are_rows_that_say_so(split):
    results = Stream(shots=[1], draws=1, upper_bound=True).run(split, ["ncm"])
    assert results[0].acc is not None
    assert "offline-lda" in results[1].error
