"""Open-set recognition: teach some of a data set's words, test clips of all words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapword import registry
from tapword.errors import InputError
from tapword.research import metrics, orders
from tapword.research.records import AnyResult, Config, Draw, OpenSetResult
from tapword.research.runner import Progress, Split

# Percentage of unknown clips that may be accepted: the usual operating point.
FALSE_ACCEPTS = 5.0


@dataclass(frozen=True, kw_only=True)
class OpenSet:
    """Teach some words, test all; the train and test splits should share no speaker.

    Parameters
    ----------
    known
        How many words are taught; all others are unknown.
    shots
        Samples a word; a result for each count.
    draws
        Seeded choices of words and samples to average over.
    """

    known: int = 5
    shots: Sequence[int] = (5,)
    draws: int = 10

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(f"at least one draw is needed, got {self.draws}")

    def check_known(self, n_words: int) -> None:
        """Refuse to teach none of `n_words` words, or all."""
        if not 1 <= self.known < n_words:
            raise InputError(
                f"known must leave unknown words: 1 to {n_words - 1} of the {n_words} words, "
                f"got {self.known}"
            )

    def config(self) -> Config:
        """Describe the protocol."""
        shots = list(dict.fromkeys(self.shots))
        return Config(order="open-set", known=self.known, shots=shots, draws=self.draws)

    def run(
        self, split: Split, learners: Sequence[str], jobs: int = 1, progress: Progress | None = None
    ) -> Sequence[AnyResult]:
        """Average over the draws in one process: they are quick."""
        words = sorted(set(split.train_words))
        self.check_known(len(words))
        rows = [(name, count) for name in learners for count in self.shots]
        results = []
        for number, (name, count) in enumerate(rows):
            made: list[Draw] = []
            for seed in range(self.draws):
                chosen = np.random.default_rng(seed).permutation(len(words))[: self.known]
                made.append(_draw(split, name, [words[index] for index in chosen], count, seed))
                if progress:
                    progress("draws", number * self.draws + seed + 1, len(rows) * self.draws)
            numbers: dict[str, Any] = {"known": self.known, "dim": split.train.shape[1]}
            for key in ("auroc", "frr", "acc_open"):
                values = [getattr(one, key) for one in made]
                numbers |= {key: float(np.mean(values)), f"{key}_std": float(np.std(values))}
            results.append(OpenSetResult(learner=name, shots=count, orderings=made, **numbers))
        return results


def _draw(split: Split, learner_name: str, words: list[str], shots: int, seed: int) -> Draw:
    """Teach these words from seeded samples, and test every test clip."""
    learner = registry.build("learners", learner_name)
    own = np.flatnonzero(np.isin(split.train_words, words))
    for task in orders.make("few-shot", [split.train_words[i] for i in own], seed, shots):
        rows = own[task.indices]
        learner.learn_many(split.train[rows], [split.train_words[row] for row in rows])
    scores = split.scores(learner)
    best = scores.max(axis=1)
    predicted = np.array(list(learner.words))[scores.argmax(axis=1)]
    truth = np.array(split.test_words)
    taught = np.isin(truth, words)
    if taught.all() or not taught.any():
        raise InputError(f"test clips must include taught words and others; taught: {words}")
    accepted = best > metrics.threshold_at(best[~taught], FALSE_ACCEPTS)
    return Draw(
        seed=seed,
        words=words,
        auroc=metrics.auroc(best[taught], best[~taught]),
        frr=100 - metrics.accuracy(accepted[taught]),
        acc_open=metrics.accuracy((accepted & (predicted == truth))[taught]),
    )
