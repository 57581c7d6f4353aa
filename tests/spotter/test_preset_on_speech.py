"""What the default is for: few clips a word, of people who are not those that ask.

Speech Commands' own split, 30 words: 30 training clips of each to draw from, 20 test clips to ask.
"""

import itertools

import numpy as np
import pytest

from tapword import Spotter, registry
from tests.conftest import shared

pytestmark = pytest.mark.xdist_group("real_speech")
CLIPS = {"train": 30, "test": 20}
SHOTS, DRAWS = (1, 5, 10, 20), 5
# What the default was before there were priors.
PLAIN = {"backbone": "speech_embedding", "pooling": "tap", "learner": "ridge"}


def some(dataset, split):
    """As many clips of each word, whoever comes first."""
    taken = {}
    for clip in dataset.clips(split):
        taken.setdefault(clip.word, []).append(clip)
    return [clip for found in taken.values() for clip in found[: CLIPS[split]]]


def batches(clips, n=60):
    return [clips[start : start + n] for start in range(0, len(clips), n)]


@pytest.fixture(scope="module")
def accuracies():
    """Accuracy in percent by (default or plain, shots), over the same draws for both."""
    root = shared("data", "speech_commands_v0.01_subset")
    dataset = registry.build("datasets", "speech_commands:version=v0.01", root=str(root))
    train, test = (some(dataset, split) for split in ("train", "test"))
    assert (len(train), len(test)) == (900, 600)
    found = {}
    for name, parts in [("default", {}), ("plain", PLAIN)]:
        spotter = Spotter(**parts)
        X, Y = (
            np.concatenate([spotter.vectors([c.path for c in part]) for part in batches(clips)])
            for clips in (train, test)
        )
        words, asked = (np.array([clip.word for clip in clips]) for clips in (train, test))
        results = {shots: [] for shots in SHOTS}
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permuted(np.arange(900).reshape(30, 30), axis=1)
            learner = registry.build("learners", spotter.learner.spec)
            for start, stop in itertools.pairwise((0, *SHOTS)):
                rows = order[:, start:stop].ravel()
                learner.learn_many(X[rows], list(words[rows]))
                results[stop].append(100 * np.mean(np.array(learner.predict(Y)) == asked))
        found |= {(name, shots): np.mean(values) for shots, values in results.items()}
    return found


@pytest.mark.parametrize(("shots", "margin"), [(1, 1.5), (5, 0.7)])
def test_the_default_does_better_from_few_clips(accuracies, shots, margin):
    assert accuracies["default", shots] >= accuracies["plain", shots] + margin, accuracies


def test_more_clips_do_no_harm(accuracies):
    for fewer, more in itertools.pairwise(SHOTS):
        assert accuracies["default", more] >= accuracies["default", fewer] - 0.3, accuracies


def test_how_good_it_is(accuracies):
    assert accuracies["default", 1] > 82 and accuracies["default", 20] > 93, accuracies
