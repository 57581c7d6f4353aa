"""Run learners over seeded orderings of a stream of vectors, in several processes."""

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
from tapword.research import metrics, orders, sklearn_adapter
from tapword.research.records import Config, Ordering, Result, as_json
from tapword.research.sklearn_adapter import SklearnLearner
from tapword.spotter.cohort import normalize
from tapword.support.threads import one_thread

# Called with (step, done, total).
Progress = Callable[[str, int, int], None]

# Classifiers that see all samples at once, which no device can.
UPPER_BOUNDS = ("offline-lda", "offline-logistic")
# Vectors that are learned and predicted one at a time to be timed; the median is reported.
N_TIMED = 32
# Most frequent confusions in a result.
N_CONFUSIONS = 20


class Split(NamedTuple):
    """Vectors to learn and to test, (n, D) float32 each, and the word of each vector.

    Test vectors have `speakers` where these are known, and `cohort_score`, (n,), where there is a
    cohort.
    """

    train: np.ndarray
    train_words: list[str]
    test: np.ndarray
    test_words: list[str]
    speakers: Sequence[str | None] = ()
    cohort_score: np.ndarray | None = None

    def scores(self, learner: Learner, rows: Any = slice(None)) -> np.ndarray:
        """Score test vectors for a learner's words, as a spotter does: (n, K)."""
        X = self.test[rows]
        words, negatives = learner.all_scores(X)
        if self.cohort_score is not None and learner.supports_thresholds:
            words, _ = normalize(learner, X, words, negatives, self.cohort_score[rows])
        return words


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The paper's protocol: a stream of words, one pass, accuracy after each task.

    Test clips of untaught words are left out.

    Parameters
    ----------
    order
        "class-iid" or "iid"; with `shots`, always "few-shot".
    orderings
        Seeded orderings to average over.
    shots
        Samples a word; a result for each count.
    draws
        Seeded draws to average over, with `shots`.
    classes_per_task
        New words in each task.
    upper_bound
        Add classifiers that see all samples at once.
    matrix
        Measure after every task; False: only after the last.
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
        """Name of the order in `orders.make`."""
        return "few-shot" if self.shots else self.order

    def config(self) -> Config:
        """Describe the protocol."""
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
        """Run learners: a result for each, and for each of `shots`.

        Learners are names with arguments, or classifiers of other libraries with `predict` and
        `partial_fit`. Classifiers with `fit` instead see all samples at once.
        """
        n_seeds = self.draws if self.shots else self.orderings
        if n_seeds < 1:
            raise InputError("at least one ordering or draw is needed")
        for one in learners:
            if isinstance(one, str):
                registry.build("learners", one)
            else:
                sklearn_adapter.require_classifier(one)
        kept = np.flatnonzero(np.isin(split.test_words, split.train_words)).tolist()
        if not len(kept):
            raise InputError("no test clip is of a taught word")
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
            _result(
                split, sklearn_adapter.name_of(one), shots, outcomes[n_seeds * index :][:n_seeds]
            )
            for index, (one, shots) in enumerate(rows)
        ]


class Pass(NamedTuple):
    """One learner on one seeded ordering."""

    stream: Stream
    learner: Any
    shots: int | None
    seed: int


class Finished(NamedTuple):
    """Predictions of all test vectors, and numbers as in `records.Result`."""

    tasks: list[list[str]]
    predicted: list[str | None]
    curve: list[float | None]
    matrix: np.ndarray | None
    state_bytes: int | None
    learn_ms: float
    predict_ms: float


# One pass.


def run_pass(split: Split, one: Pass) -> Finished | InputError:
    """Learn one ordering and measure, or return the error, such as a too large state."""
    order, per_task = one.stream.stream_order, one.stream.classes_per_task
    tasks = orders.make(order, split.train_words, one.seed, one.shots, per_task)
    try:
        every_task = one.stream.matrix and order != "iid"
        if isinstance(one.learner, str) and one.learner not in UPPER_BOUNDS:
            learner = registry.build("learners", one.learner)
            return _run_stream(split, learner, tasks, every_task)
        if hasattr(one.learner, "partial_fit"):
            learner = SklearnLearner(one.learner, split.train_words)
            return _run_stream(split, learner, tasks, every_task)
        return _run_offline(split, one.learner, tasks)
    except InputError as error:
        return error


def _run_stream(
    split: Split, learner: Learner | SklearnLearner, tasks: Sequence[orders.Task], every_task: bool
) -> Finished:
    """Learn task by task; measure after each, or only after the last."""
    truth = np.array(split.test_words)
    tests = [np.flatnonzero(np.isin(truth, task.words)) for task in tasks]
    predicted = np.full(len(truth), None, dtype=object)
    matrix = np.full((len(tasks), len(tasks)), np.nan)
    curve: list[float | None] = []
    learn_ms, predict_ms = [], []
    for i, task in enumerate(tasks):
        last = i == len(tasks) - 1
        # Learning in bulk equals learning one at a time; only the last few are timed.
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
    """Learn all samples at once with an upper bound, by name, or a copy of a classifier."""
    model = _upper_bound(learner) if isinstance(learner, str) else copy.deepcopy(learner)
    rows = np.concatenate([task.indices for task in tasks])
    train = split.train[rows]
    start = time.perf_counter()
    try:
        model.fit(train, [split.train_words[row] for row in rows])
    except (ValueError, IndexError) as error:
        # scikit-learn's classifiers refuse a single class, or a single sample a class.
        raise InputError(f"{sklearn_adapter.name_of(learner)}: {error}") from error
    learn_ms = _ms_since(start) / len(train)
    start = time.perf_counter()
    predicted = np.asarray(model.predict(split.test))
    predict_ms = _ms_since(start) / len(predicted)
    return Finished(
        tasks=[list(task.words) for task in tasks],
        predicted=predicted.tolist(),
        curve=[_accuracy(predicted == np.array(split.test_words))],
        matrix=None,
        # Such a classifier must keep all samples.
        state_bytes=train.nbytes,
        learn_ms=learn_ms,
        predict_ms=predict_ms,
    )


def _accuracy(right: np.ndarray) -> float | None:
    """Accuracy in percent; None where a task's words have no test clips."""
    return metrics.accuracy(right.astype(bool)) if len(right) else None


def _ms_since(start: float) -> float:
    return 1000 * (time.perf_counter() - start)


# Means over passes.


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
        key: metrics.mean(getattr(one, key) for one in orderings)
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


# Several processes.


def _map(split: Split, passes: list[Pass], jobs: int) -> Iterator[Finished | InputError]:
    """Run the passes in order; processes share the vectors through the disk."""
    if jobs == 1 or len(passes) == 1:
        for one in passes:
            yield run_pass(split, one)
        return
    with tempfile.TemporaryDirectory(prefix="tapword-") as folder:
        np.save(Path(folder, "train"), split.train)
        np.save(Path(folder, "test"), split.test)
        shared = (folder, split.train_words, split.test_words, registry.loaded_files())
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(passes)), context, _attach, shared) as pool:
            yield from pool.map(_run_shared, passes)


# Vectors of a worker process.
_shared: Split


def _attach(
    folder: str, train_words: list[str], test_words: list[str], part_files: list[Path]
) -> None:
    global _shared
    for path in part_files:
        registry.load_file(path)
    # Processes are the parallelism; BLAS threads would compete for the same cores.
    one_thread()
    train, test = (np.load(Path(folder, name), mmap_mode="r") for name in ("train.npy", "test.npy"))
    _shared = Split(train, train_words, test, test_words)


def _run_shared(one: Pass) -> Finished | InputError:
    return run_pass(_shared, one)
