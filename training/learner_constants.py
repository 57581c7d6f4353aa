"""Print the accuracy of learners with other values of their constants, on other speakers.

    python training/learner_constants.py [DIR]

DIR has Speech Commands v0.01 with its official lists; by default it is next to the repository.
Words are taught some training clips each and tested on all validation clips, which are by other
speakers. Accuracies decide the strengths; the likelihood of the right words decides the sharpness
of probabilities.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword import Spotter, registry
from tapword.learners.base import Learner

DATA = Path(__file__).parents[2] / "shared" / "data" / "speech_commands_v0.01_subset"
# Vectors whitened as in the size small, and plain ones of 96 numbers.
SPOTTERS = {
    "whitened": lambda: Spotter(size="small", augment=False),
    "plain": lambda: Spotter("speech_embedding", "avg", "ncm"),
}
# Training clips of each word.
FEW, MANY = (1, 3, 5, 10, 20), (5, 20, 50, 100)


class Trial(NamedTuple):
    """A constant: its learner, its name, the values to try, and the clips of each word."""

    learner: str
    name: str
    values: Sequence[float]
    shots: Sequence[int]


TRIALS = {
    "whitened": [
        Trial("cosine:prior=shipped,covariance=full", "strength", (0.25, 0.5, 1, 2, 4, 8), FEW),
        Trial("slda:prior=shipped", "strength", (0.125, 0.25, 0.5, 1, 2), FEW),
        Trial("cosine:prior=shipped,covariance=full", "sharpness", (5, 10, 15, 20, 30, 40), FEW),
    ],
    "plain": [
        Trial("slda:prior=diagonal", "strength", (0.125, 0.25, 0.5, 1, 2), FEW),
        Trial("ridge", "oas_times", (1, 2, 4, 8), FEW),
        # In samples: 1 to 8 for each of the vector's 96 numbers.
        Trial("sqda", "enough", (96, 192, 384, 768), MANY),
        Trial("snb", "enough", (0, 10, 20, 50, 100, 200), MANY),
        Trial("ridge", "sharpness", (2.5, 5, 10, 20, 40), FEW),
        Trial("perceptron", "sharpness", (1, 2, 4, 8, 16), FEW),
    ],
}


def main() -> None:
    """Print a row for each value, with a column for each number of clips."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    root = parser.parse_args().folder
    held_out = (root / "validation_list.txt").read_text("utf-8").split()
    kept_away = {*held_out, *(root / "testing_list.txt").read_text("utf-8").split()}
    words = sorted(path.name for path in root.iterdir() if path.is_dir() and path.name[0] != "_")
    taught = {
        word: [path for path in sorted((root / word).glob("*.wav")) if name(path) not in kept_away]
        for word in words
    }
    for kind, trials in TRIALS.items():
        spotter = SPOTTERS[kind]()
        most = max(shots for trial in trials for shots in trial.shots)
        X = {word: spotter.encode(taught[word][:most]).vectors for word in words}
        Y = spotter.encode([root / path for path in held_out]).vectors
        truth = np.array([words.index(path.partition("/")[0]) for path in held_out])
        for trial in trials:
            measure = "ln p(right)" if trial.name == "sharpness" else "% right"
            print(f"\n{trial.learner}, {trial.name}: {measure} after {trial.shots} clips a word")
            for value in trial.values:
                judge = log_likelihood if trial.name == "sharpness" else accuracy
                learners = taught_learners(trial, value, X)
                results = [judge(learner, Y, truth) for learner in learners]
                print(
                    f"{value:8g}", *(f"{one:7.2f}" for one in results), f"{np.mean(results):9.3f}"
                )


def name(path: Path) -> str:
    """Name a clip as the lists do."""
    return f"{path.parent.name}/{path.name}"


def taught_learners(trial: Trial, value: float, X: dict[str, np.ndarray]) -> Iterator[Learner]:
    """Teach a learner, clip by clip of all words in turn, up to each number of clips."""
    learner: Learner = registry.build("learners", trial.learner)
    setattr(learner, trial.name, value)
    before = 0
    for shots in trial.shots:
        for shot in range(before, shots):
            learner.learn_many(np.stack([rows[shot] for rows in X.values()]), list(X))
        before = shots
        yield learner


def accuracy(learner: Learner, Y: np.ndarray, truth: np.ndarray) -> float:
    """Percentage of vectors whose best word is right."""
    return 100 * float((learner.scores(Y).argmax(axis=1) == truth).mean())


def log_likelihood(learner: Learner, Y: np.ndarray, truth: np.ndarray) -> float:
    """Mean natural logarithm of the probability of the right word."""
    shares = learner.probabilities(learner.scores(Y))[np.arange(len(Y)), truth]
    return float(np.log(np.maximum(shares, 1e-12)).mean())


if __name__ == "__main__":
    main()
