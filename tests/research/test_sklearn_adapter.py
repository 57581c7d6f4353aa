import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import SGDClassifier

from tapword.errors import InputError
from tapword.estimator import WordClassifier
from tapword.research import orders
from tapword.research.evaluate import evaluate_vectors
from tapword.research.open_set import OpenSet
from tapword.research.runner import Stream


def test_a_classifier_of_ours_from_outside_is_the_learner_itself(split):
    model = WordClassifier("slda")
    ours, theirs = Stream(orderings=2).run(split, ["slda", model])
    assert theirs.learner == "WordClassifier(learner='slda')"
    assert (theirs.acc, theirs.forg, theirs.matrix) == (ours.acc, ours.forg, ours.matrix)
    assert theirs.state_bytes is None
    # Copies learned, one for each ordering.
    assert not hasattr(model, "learner_")


def test_theirs_are_told_the_words_and_see_one_sample_at_a_time(split):
    [sgd] = Stream(orderings=1).run(split, [SGDClassifier(random_state=0)])
    again, words = SGDClassifier(random_state=0), sorted(set(split.train_words))
    for task in orders.make("class-iid", split.train_words, 0, None, 1):
        for row in task.indices:
            again.partial_fit(split.train[[row]], [split.train_words[row]], classes=words)
    right = again.predict(split.test) == np.array(split.test_words)
    assert sgd.acc == pytest.approx(100 * right.mean())
    # It forgets each word for the next.
    assert sgd.acc < 60 and sgd.forg > 50


def test_one_that_cannot_learn_on_sees_all_at_once(split):
    [bound] = Stream(orderings=1).run(split, [LinearDiscriminantAnalysis()])
    fitted = LinearDiscriminantAnalysis().fit(split.train, split.train_words)
    assert bound.acc == pytest.approx(100 * fitted.score(split.test, split.test_words))
    assert bound.matrix is None and bound.state_bytes == split.train.nbytes


def test_several_processes_give_the_same(split):
    models = [WordClassifier("perceptron")]
    one, two = (Stream(orderings=2).run(split, models, jobs=jobs)[0] for jobs in (1, 2))
    assert one.acc == two.acc and one.matrix == two.matrix


@pytest.mark.parametrize("nonsense", [SGDClassifier, object(), 3])
def test_what_is_no_classifier_is_refused(split, nonsense):
    with pytest.raises(InputError, match="partial_fit or fit"):
        Stream().run(split, [nonsense])


def test_other_protocols_take_names_alone(split):
    with pytest.raises(InputError, match="by name, got SGDClassifier"):
        evaluate_vectors(split, [SGDClassifier()], protocol=OpenSet())
