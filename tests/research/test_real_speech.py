"""What the parts are for: recordings of people who taught nothing, recognised.

Speech Commands' own split, 30 words; vectors are made once for all tests of this file.
"""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tapword import registry
from tapword.research.cache import Cache
from tapword.research.runner import Split, Stream
from tests.conftest import extract, shared

pytestmark = pytest.mark.xdist_group("real_speech")
POOLINGS = ("avg", "tap")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """Pooling -> vectors to learn from and to ask."""
    root = shared("data", "speech_commands_v0.01_subset")
    dataset = registry.build("datasets", "speech_commands:version=v0.01", root=str(root))
    backbone = registry.build("backbones", "speech_embedding")
    poolings = [registry.build("poolings", name) for name in POOLINGS]
    cache = Cache(tmp_path_factory.mktemp("vectors"))
    parts = [
        extract(dataset, split, backbone, poolings, cache, jobs=2) for split in ("train", "test")
    ]
    return {
        name: Split(train.vectors, train.words, test.vectors, test.words)
        for name, train, test in zip(POOLINGS, *parts, strict=True)
    }


def accuracy(split, learner, order):
    learner.learn_many(split.train[order], [split.train_words[index] for index in order])
    right = [a == b for a, b in zip(learner.predict(split.test), split.test_words, strict=True)]
    assert len(right) == 1200
    return 100 * np.mean(right)


@pytest.mark.parametrize(
    ("pooling", "learner", "at_least"),
    [("avg", "slda", 93.5), ("tap", "slda", 94.2), ("tap", "ridge", 94.7)],
)
def test_accuracy(splits, pooling, learner, at_least):
    split = splits[pooling]
    made = registry.build("learners", learner)
    assert accuracy(split, made, np.arange(len(split.train))) >= at_least


@pytest.mark.parametrize("learner", ["slda", "ridge"])
def test_any_order_gives_the_same_answers(splits, learner):
    split = splits["tap"]
    answers = []
    for seed in range(3):
        made = registry.build("learners", learner)
        accuracy(split, made, np.random.default_rng(seed).permutation(len(split.train)))
        answers.append(made.predict(split.test))
    assert answers[0] == answers[1] == answers[2]


def test_slda_is_scikit_learns_lda(splits):
    """Same means, same covariance, same labels; one sample at a time against all at once."""
    split = splits["avg"]
    learner = registry.build("learners", "slda:eps=1e-4")
    for index in np.random.default_rng(0).permutation(len(split.train)):
        learner.learn_one(split.train[index], split.train_words[index])
    reference = LinearDiscriminantAnalysis(
        solver="lsqr", shrinkage=0.0, store_covariance=True, priors=np.full(30, 1 / 30)
    ).fit(split.train.astype(np.float64), split.train_words)
    order = [list(learner.words).index(name) for name in sorted(learner.words)]
    state = learner.state()
    np.testing.assert_allclose(state["means"][order], reference.means_, atol=1e-3)
    covariance = np.zeros((96, 96))
    covariance.T[np.triu_indices(96)] = state["scatter"] / state["n_scatter"]
    np.testing.assert_allclose(
        covariance, np.tril(reference.covariance_), atol=1e-3 * np.abs(reference.covariance_).max()
    )
    theirs = reference.predict(split.test.astype(np.float64))
    # eps = 1e-4 is the only difference between the two.
    assert np.mean(np.array(learner.predict(split.test)) == theirs) >= 0.999


def test_who_forgets_and_who_does_not(splits):
    """The paper's protocol: five class orders, and all words mixed."""
    acc = {}
    for pooling, split in splits.items():
        results = Stream(matrix=False).run(split, ["finetune", "perceptron", "ncm", "slda"])
        for result in results:
            acc[pooling, result.learner] = result.acc
            if result.learner in ("ncm", "slda"):
                assert max(abs(o.acc - result.acc) for o in result.orderings) <= 0.1
        [mixed] = Stream(order="iid", orderings=2).run(split, ["slda"])
        assert mixed.acc == pytest.approx(acc[pooling, "slda"], abs=0.1)
        assert acc[pooling, "finetune"] < 10 and acc[pooling, "perceptron"] < 10
        assert acc[pooling, "ncm"] > 90
    assert acc["tap", "slda"] > acc["avg", "slda"]
