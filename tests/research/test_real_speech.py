"""What the parts and the default are for: recordings of people who taught nothing, recognised.

Speech Commands' own split, 30 words; vectors are made once for all tests of this file.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tapword import Spotter, registry
from tapword.research.runner import Split, Stream
from tests.conftest import shared

# Parts that no whitening is shipped for: the default before there was one.
PLAIN = {"backbone": "speech_embedding", "pooling": "tap", "learner": "ridge"}
# Clips of each word for the parts, and for the default, which is for few.
MANY, FEW = {"train": 50, "test": 40}, {"train": 30, "test": 20}
SHOTS, DRAWS = (1, 5, 10, 20), 5


def first(words, count):
    """Rows of the first clips of each word."""
    seen: Counter[str] = Counter()
    rows = []
    for row, word in enumerate(words):
        seen[word] += 1
        if seen[word] <= count:
            rows.append(row)
    return rows


def split_of(spotter, clips):
    """Vectors of the first clips of each word, whoever they are of."""
    root = shared("data", "speech_commands_v0.01_subset")
    dataset = registry.build("datasets", "speech_commands:version=v0.01", root=str(root))
    parts = []
    for split, count in clips.items():
        found = dataset.clips(split)
        found = [found[row] for row in first([clip.word for clip in found], count)]
        assert len(found) == 30 * count
        paths = [clip.path for clip in found]
        batches = [paths[start : start + 60] for start in range(0, len(paths), 60)]
        parts += [np.concatenate([spotter.encode(batch).vectors for batch in batches])]
        parts += [[clip.word for clip in found]]
    return Split(*parts)


@pytest.fixture(scope="module")
def splits():
    """Pooling -> vectors to learn from and to ask; the average is the first that tap gives."""
    tap = split_of(Spotter(**PLAIN), MANY)
    avg = Split(tap.train[:, :96], tap.train_words, tap.test[:, :96], tap.test_words)
    return {"avg": avg, "tap": tap}


def accuracy(split, learner, order):
    learner.learn_many(split.train[order], [split.train_words[index] for index in order])
    right = [a == b for a, b in zip(learner.predict(split.test), split.test_words, strict=True)]
    assert len(right) == 1200
    return 100 * np.mean(right)


@pytest.mark.parametrize(
    ("pooling", "learner", "at_least"),
    [("avg", "slda", 93.0), ("tap", "slda", 93.7), ("tap", "ridge", 94.7)],
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


@pytest.fixture(scope="module")
def accuracies(splits):
    """Accuracy in percent by (default or plain, shots), over the same draws for both."""
    tap, found = splits["tap"], {}
    train, test = first(tap.train_words, FEW["train"]), first(tap.test_words, FEW["test"])
    plain = Split(
        *(tap.train[train], [tap.train_words[row] for row in train]),
        *(tap.test[test], [tap.test_words[row] for row in test]),
    )
    default = Spotter()
    for name, spec, split in [
        ("default", default.learner.spec, split_of(default, FEW)),
        ("plain", PLAIN["learner"], plain),
    ]:
        results = {shots: [] for shots in SHOTS}
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permuted(np.arange(900).reshape(30, 30), axis=1)
            learner = registry.build("learners", spec)
            for start, stop in itertools.pairwise((0, *SHOTS)):
                rows = order[:, start:stop].ravel()
                learner.learn_many(split.train[rows], [split.train_words[row] for row in rows])
                right = np.array(learner.predict(split.test)) == split.test_words
                results[stop].append(100 * np.mean(right))
        found |= {(name, shots): np.mean(values) for shots, values in results.items()}
    return found


@pytest.mark.parametrize(("shots", "margin"), [(1, 1.5), (5, 0.7)])
def test_the_default_does_better_from_few_clips(accuracies, shots, margin):
    assert accuracies["default", shots] >= accuracies["plain", shots] + margin, accuracies


def test_more_clips_do_no_harm(accuracies):
    for fewer, more in itertools.pairwise(SHOTS):
        assert accuracies["default", more] >= accuracies["default", fewer] - 0.3, accuracies


def test_how_good_the_default_is(accuracies):
    assert accuracies["default", 1] > 82 and accuracies["default", 20] > 93, accuracies
