"""Learners over seeded orderings of a stream of vectors, spread over processes."""

import copy
import itertools
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword import registry
from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.learners.packed import one_thread
from tapword.research import foreign, metrics, orders
from tapword.research.foreign import Foreign
from tapword.research.records import Config, Ordering, Result, as_json
from tapword.spotter.cohort import normalize

# Called with (what is done, how much of it, of how much).
Progress = Callable[[str, int, int], None]

# Classifiers that see all samples at once, as no device can.
UPPER_BOUNDS = ("offline-lda", "offline-logistic")
# Vectors that are learned, and that are named, one at a time to be timed; the median is told.
N_TIMED = 32
# Pairs of words in a result's list of confusions.
N_CONFUSIONS = 20


class Split(NamedTuple):
    """Vectors to learn from and to name: (n, D) float32 each, and the word of each vector.

    Of the vectors to name, `speakers` are given where they are known, and `level`, (n,), what the
    cohort takes off their scores, where there is one.
    """

    train: np.ndarray
    train_words: list[str]
    test: np.ndarray
    test_words: list[str]
    speakers: Sequence[str | None] = ()
    level: np.ndarray | None = None

    def scores(self, learner: Learner, rows: Any = slice(None)) -> np.ndarray:
        """Score vectors to name for a learner's words, as a spotter does: (n, K)."""
        X = self.test[rows]
        words, negatives = learner.all_scores(X)
        if self.level is not None and learner.supports_thresholds:
            words, _ = normalize(learner, X, words, negatives, self.level[rows])
        return words


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The paper's protocol: a stream of words, one pass, accuracy after each task.

    Test clips of words that are never taught are left out.

    Parameters
    ----------
    order
        "class-iid" or "iid"; with `shots`, always "few-shot".
    orderings
        Seeded orderings to average over.
    shots
        Samples of each word; each count gives a result of its own.
    draws
        Seeded draws to average over where `shots` are given.
    classes_per_task
        New words in each task.
    upper_bound
        Add results of classifiers that see all samples at once.
    matrix
        Measure after every task; False: after the last alone, where the final accuracy is enough.
    """

    order: str = "class-iid"
    orderings: int = 5
    shots: Sequence[int] = ()
    draws: int = 10
    classes_per_task: int = 1
    upper_bound: bool = False
    matrix: bool = True

    @property
    def stream_order(self) -> str:
        """Order of the samples, as `orders.make` calls it."""
        return "few-shot" if self.shots else self.order

    def config(self) -> Config:
        """Say what is run."""
        return Config(
            order=self.stream_order,
            orderings=self.orderings,
            shots=list(self.shots) or None,
            draws=self.draws if self.shots else None,
            classes_per_task=self.classes_per_task,
        )

    def run(
        self, split: Split, learners: Sequence[Any], jobs: int = 1, progress: Progress | None = None
    ) -> list[Result]:
        """Run learners: one result for each and for each of `shots`.

        They are names with arguments, or classifiers of another library: with `partial_fit` and
        `predict`, or with `fit` instead, which then see all samples at once.
        """
        n_seeds = self.draws if self.shots else self.orderings
        if n_seeds < 1:
            raise InputError("at least one ordering or draw is needed")
        for one in learners:
            if isinstance(one, str):
                registry.build("learners", one)
            else:
                foreign.require_classifier(one)
        kept = np.flatnonzero(np.isin(split.test_words, split.train_words)).tolist()
        if not len(kept):
            raise InputError("no test clip is of a word that is taught")
        words = [split.test_words[index] for index in kept]
        speakers = [split.speakers[index] for index in kept] if len(split.speakers) else ()
        split = split._replace(test=split.test[kept], test_words=words, speakers=speakers)
        all_learners = [*learners, *(UPPER_BOUNDS if self.upper_bound else ())]
        rows = list(itertools.product(all_learners, self.shots or (None,)))
        passes = [Pass(self, one, shots, seed) for one, shots in rows for seed in range(n_seeds)]
        outcomes: list[Finished | InputError] = []
        for outcome in _map(split, passes, jobs):
            outcomes.append(outcome)
            if progress:
                progress("streams", len(outcomes), len(passes))
        return [
            _result(split, foreign.name_of(one), shots, outcomes[n_seeds * index :][:n_seeds])
            for index, (one, shots) in enumerate(rows)
        ]


class Pass(NamedTuple):
    """One learner that goes once over one seeded ordering."""

    stream: Stream
    learner: Any
    shots: int | None
    seed: int


class Finished(NamedTuple):
    """What a pass gives: answers to all test vectors, and numbers as in `records.Result`."""

    tasks: list[list[str]]
    predicted: list[str | None]
    curve: list[float | None]
    matrix: np.ndarray | None
    state_bytes: int | None
    learn_ms: float
    predict_ms: float


# One pass.


def run_pass(split: Split, one: Pass) -> Finished | InputError:
    """Learn one ordering and measure, or say why not: the state would be too large, for example."""
    order, per_task = one.stream.stream_order, one.stream.classes_per_task
    tasks = orders.make(order, split.train_words, one.seed, one.shots, per_task)
    try:
        every_task = one.stream.matrix and order != "iid"
        if isinstance(one.learner, str) and one.learner not in UPPER_BOUNDS:
            learner = registry.build("learners", one.learner)
            return _run_stream(split, learner, tasks, every_task)
        if hasattr(one.learner, "partial_fit"):
            learner = Foreign(one.learner, split.train_words)
            return _run_stream(split, learner, tasks, every_task)
        return _run_offline(split, one.learner, tasks)
    except InputError as error:
        return error


def _run_stream(
    split: Split, learner: Learner | Foreign, tasks: Sequence[orders.Task], every_task: bool
) -> Finished:
    """Learn task after task; measure after every one, or after the last alone."""
    truth = np.array(split.test_words)
    tests = [np.flatnonzero(np.isin(truth, task.words)) for task in tasks]
    predicted = np.full(len(truth), None, dtype=object)
    matrix = np.full((len(tasks), len(tasks)), np.nan)
    curve: list[float | None] = []
    learn_ms, predict_ms = [], []
    for i, task in enumerate(tasks):
        last = i == len(tasks) - 1
        # Learning in bulk equals learning one at a time; the last few are timed singly.
        n_single = min(N_TIMED, len(task.indices)) if last else 0
        bulk, single = np.split(task.indices, [len(task.indices) - n_single])
        learner.learn_many(split.train[bulk], [split.train_words[index] for index in bulk])
        for index in single:
            start = time.perf_counter()
            learner.learn_one(split.train[index], split.train_words[index])
            learn_ms.append(_ms_since(start))
        if not last and not every_task:
            continue
        seen = np.concatenate(tests[: i + 1])
        predicted[seen] = learner.predict(split.test[seen])
        curve.append(_accuracy(predicted[seen] == truth[seen]))
        # numpy turns None into NaN.
        matrix[i, : i + 1] = [_accuracy(predicted[rows] == truth[rows]) for rows in tests[: i + 1]]
    for x in split.test[:N_TIMED]:
        start = time.perf_counter()
        learner.predict(x[None])
        predict_ms.append(_ms_since(start))
    state = learner.state_bytes
    return Finished(
        tasks=[list(task.words) for task in tasks],
        predicted=predicted.tolist(),
        curve=curve,
        matrix=matrix if every_task else None,
        state_bytes=None if state is None else state.total,
        learn_ms=float(np.median(learn_ms)),
        predict_ms=float(np.median(predict_ms)),
    )


def _upper_bound(name: str) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "offline-lda":
        classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    else:
        classifier = LogisticRegression(C=0.1, max_iter=200, tol=1e-3)
    return make_pipeline(StandardScaler(), classifier)


def _run_offline(split: Split, learner: Any, tasks: Sequence[orders.Task]) -> Finished:
    """Learn all samples at once, by an upper bound's name or a classifier, of which a copy does."""
    model = _upper_bound(learner) if isinstance(learner, str) else copy.deepcopy(learner)
    rows = np.concatenate([task.indices for task in tasks])
    train = split.train[rows]
    start = time.perf_counter()
    try:
        model.fit(train, [split.train_words[row] for row in rows])
    except (ValueError, IndexError) as error:
        # One class, or one sample a class: scikit-learn's classifiers have no answer for these.
        raise InputError(f"{foreign.name_of(learner)}: {error}") from error
    learn_ms = _ms_since(start) / len(train)
    start = time.perf_counter()
    predicted = np.asarray(model.predict(split.test))
    predict_ms = _ms_since(start) / len(predicted)
    return Finished(
        tasks=[list(task.words) for task in tasks],
        predicted=predicted.tolist(),
        curve=[_accuracy(predicted == np.array(split.test_words))],
        matrix=None,
        # All samples must be kept for such a classifier.
        state_bytes=train.nbytes,
        learn_ms=learn_ms,
        predict_ms=predict_ms,
    )


def _accuracy(right: np.ndarray) -> float | None:
    """Accuracy in percent; None where a task's words have no test clips."""
    return metrics.accuracy(right.astype(bool)) if len(right) else None


def _ms_since(start: float) -> float:
    return 1000 * (time.perf_counter() - start)


# The mean of several passes.


def _result(
    split: Split, learner: str, shots: int | None, outcomes: Sequence[Finished | InputError]
) -> Result:
    dim = split.train.shape[1]
    finished = [one for one in outcomes if isinstance(one, Finished)]
    if len(finished) < len(outcomes):
        reason = next(str(one) for one in outcomes if isinstance(one, InputError))
        return Result(learner=learner, shots=shots, dim=dim, error=reason)
    orderings = [_ordering(split, seed, one) for seed, one in enumerate(finished)]
    means: dict[str, Any] = {
        key: _mean([getattr(one, key) for one in orderings])
        for key in ("acc", "acc_balanced", "bwt", "bwt_signed", "forg", "pla")
    }
    matrices = [one.matrix for one in finished if one.matrix is not None]
    pairs = (pair for one in finished for pair in zip(split.test_words, one.predicted, strict=True))
    confused = Counter((truth, found) for truth, found in pairs if truth != found)
    return Result(
        learner=learner,
        shots=shots,
        dim=dim,
        **means,
        acc_std=float(np.std([one.acc for one in orderings])),
        acc_speakers_ci=_over_speakers(split, finished),
        state_bytes=finished[-1].state_bytes,
        learn_ms=float(np.median([one.learn_ms for one in finished])),
        predict_ms=float(np.median([one.predict_ms for one in finished])),
        orderings=orderings,
        matrix=as_json(np.mean(matrices, axis=0)) if matrices else None,
        confusion=[(*pair, count) for pair, count in confused.most_common(N_CONFUSIONS)],
    )


def _over_speakers(split: Split, finished: Sequence[Finished]) -> tuple[float, float] | None:
    if all(one is None for one in split.speakers):
        return None
    truth = np.array(split.test_words, dtype=object)
    right = [truth == np.array(one.predicted, dtype=object) for one in finished]
    return metrics.speaker_interval(np.mean(right, axis=0), split.speakers)


def _ordering(split: Split, seed: int, one: Finished) -> Ordering:
    ordering = Ordering(
        seed=seed,
        acc=metrics.accuracy(np.array(split.test_words) == np.array(one.predicted)),
        acc_balanced=metrics.balanced_accuracy(split.test_words, one.predicted),
        tasks=one.tasks,
        curve=one.curve,
    )
    if one.matrix is not None:
        ordering.bwt = metrics.backward_accuracy(one.matrix)
        ordering.bwt_signed = metrics.backward_transfer(one.matrix)
        ordering.forg = metrics.forgetting(one.matrix)
        ordering.pla = metrics.plasticity(one.matrix)
    return ordering


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


# Several processes.


def _map(split: Split, passes: list[Pass], jobs: int) -> Iterator[Finished | InputError]:
    """Make the passes in order; several processes share the vectors through the disk."""
    if jobs == 1 or len(passes) == 1:
        for one in passes:
            yield run_pass(split, one)
        return
    with tempfile.TemporaryDirectory(prefix="tapword-") as folder:
        np.save(Path(folder, "train"), split.train)
        np.save(Path(folder, "test"), split.test)
        shared = (folder, split.train_words, split.test_words)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(passes)), context, _attach, shared) as pool:
            yield from pool.map(_run_shared, passes)


# The vectors of this process, where it is one of several.
_shared: Split


def _attach(folder: str, train_words: list[str], test_words: list[str]) -> None:
    global _shared
    # One process per core is the parallelism; BLAS threads on top would fight for the same cores.
    one_thread()
    train, test = (np.load(Path(folder, name), mmap_mode="r") for name in ("train.npy", "test.npy"))
    _shared = Split(train, train_words, test, test_words)


def _run_shared(one: Pass) -> Finished | InputError:
    return run_pass(_shared, one)
