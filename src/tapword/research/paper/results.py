"""Results the paper's tables need on one data set: no clip is encoded twice, nothing run twice."""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.poolings.base import Pooling
from tapword.research.cache import Cache, store
from tapword.research.datasets.base import Dataset
from tapword.research.experiment import describe
from tapword.research.paper import names
from tapword.research.paper.published import FIGURE3_WORDS
from tapword.research.records import Result
from tapword.research.runner import Progress, Split, Stream
from tapword.spotter.encoder import group_lengths


class Run(NamedTuple):
    """One result of a table: pooling by our name, learner by the paper's.

    `order` is "class-iid" or "iid". With `matrix`, BwT, Forg and Pla are measured too.
    """

    pooling: str
    learner: str
    order: str = "class-iid"
    matrix: bool = False


@dataclass(kw_only=True)
class TooLarge(Result):
    """A result that was not measured: the learner's state would be too large."""


@dataclass
class ReproduceOptions:
    """What to run and how; `tapword reproduce --help` describes the options.

    Attributes
    ----------
    data, dataset, mswc
        Folder and kind of the data set, and folder of MSWC where that is not `data`: figure 3 then
        also shows the data set's most common words.
    backbones, weights
        Backbones or their names (none: all available ones), and "random" for untrained networks.
    exact
        Use the correct learning rules, not those the paper's code most likely used.
    pad_to_s
        Pad clips with silence to this length; None: 1 s.
    n_words
        Words of figure 3's micro-sets.
    timed_clips
        Clips that TAP's overhead is measured on.
    max_gb
        Skip learners whose state would be larger.
    orderings, jobs, cache, progress
        As for `tapword.research.evaluate`.
    """

    data: Path
    dataset: str = "speech_commands"
    mswc: Path | None = None
    backbones: Sequence[str | Backbone] = ()
    weights: str | None = None
    orderings: int = 5
    exact: bool = False
    pad_to_s: float | None = None
    n_words: Sequence[int] = FIGURE3_WORDS
    timed_clips: int = 96
    max_gb: float = Learner.max_gb
    jobs: int = 1
    cache: Cache = field(default_factory=Cache)
    progress: Progress | None = None


class PaperResults:
    """Results of backbones on one data set, shared by all tables."""

    def __init__(self, dataset: Dataset, options: ReproduceOptions):
        pad_to_s = options.pad_to_s
        if pad_to_s is not None:
            if pad_to_s < dataset.clip_s:
                raise InputError(f"--pad-to-s must be at least {dataset.clip_s:g}, got {pad_to_s}")
            # The data set's fingerprint covers it, so padded vectors have their own cache entries.
            dataset.clip_s = pad_to_s
        self.dataset = dataset
        self.options = options
        self.skipped = 0
        # By the backbone's name with arguments.
        self.by_run: dict[tuple[str, Run], Result] = {}

    def facts(self) -> dict[str, Any]:
        """Describe the data as plain values: data set, words and clips."""
        return {
            "dataset": describe(self.dataset),
            "notes": self.dataset.notes,
            "n_words": len(self.dataset.words),
            "n_train": len(self.dataset.clips("train")),
            "n_test": len(self.dataset.clips("test")),
            "skipped": self.skipped,
            "orderings": self.options.orderings,
            "clip_s": max(self.dataset.clip_s, 1.0),
        }

    def as_json(self) -> dict[str, Any]:
        """Give the facts and every result as plain values."""
        results = [
            {"order": run.order, "paper_name": run.learner, **asdict(result)}
            for (_, run), result in self.by_run.items()
        ]
        return {**self.facts(), "results": results}

    def get(self, backbone: Backbone, run: Run) -> Result:
        """Look up a result; one without numbers where nothing was run."""
        # A run with its matrix also serves requests without one.
        for key in (run, run._replace(matrix=True)):
            if (backbone.spec, key) in self.by_run:
                return self.by_run[backbone.spec, key]
        return Result(learner=run.learner, dim=0)

    def accuracy(self, backbone: Backbone, run: Run) -> float | None:
        """Accuracy of a result in percent; None where there is none."""
        return self.get(backbone, run).acc

    def run(self, backbone: Backbone, runs: Iterable[Run]) -> None:
        """Run what has no result yet."""
        chosen = dict.fromkeys(runs)
        poolings: dict[str, Pooling] = {}
        wanted: dict[str, list[Run]] = defaultdict(list)
        # Counting a torch network's parameters builds it, so count once.
        costs = backbone.params, sum(backbone.dims)

        def keep(run: Run, result: Result) -> None:
            named = replace(result, backbone=backbone.spec, pooling=run.pooling)
            self.by_run[backbone.spec, run] = named.with_costs(*costs)

        for run in chosen:
            served = not run.matrix and run._replace(matrix=True) in chosen
            known = self.get(backbone, run)
            if served or known.acc is not None or known.error:
                continue
            if run.pooling not in poolings:
                poolings[run.pooling] = self.pooling(run.pooling, backbone)
            refusal = self._refusal(backbone, poolings[run.pooling], run.learner)
            if refusal:
                keep(run, refusal)
            else:
                wanted[run.pooling].append(run)
        left = {spec: poolings[spec] for spec in wanted}
        for spec, split in self.splits(backbone, left):
            groups: dict[tuple[str, bool], list[Run]] = defaultdict(list)
            for run in wanted[spec]:
                groups[run.order, run.matrix].append(run)
            for (order, matrix), some in groups.items():
                stream = Stream(order=order, orderings=self.options.orderings, matrix=matrix)
                learners = [self.learner(run.learner) for run in some]
                jobs, progress = self.options.jobs, self.options.progress
                results = stream.run(split, learners, jobs, progress)
                for run, result in zip(some, results, strict=True):
                    keep(run, result)
        self.options.cache.trim()

    def splits(
        self, backbone: Backbone, poolings: dict[str, Pooling]
    ) -> Iterator[tuple[str, Split]]:
        """Vectors by pooling, one at a time in memory; the backbone encodes each clip once."""
        options, stored = self.options, []
        for part in ("train", "test") if poolings else ():
            step = None
            if options.progress:
                step = functools.partial(options.progress, f"{backbone.spec}, {part} clips")
            arguments = self.dataset, part, backbone, list(poolings.values()), options.cache
            stored.append(store(*arguments, jobs=options.jobs, progress=step))
        for spec, *parts in zip(poolings, *stored, strict=True):
            train, test = (part.load() for part in parts)
            self.skipped = max(self.skipped, train.skipped + test.skipped)
            vectors = train.encoded.vectors, test.encoded.vectors
            yield spec, Split(vectors[0], train.words, vectors[1], test.words)

    def pooling(self, spec: str, backbone: Backbone) -> Pooling:
        """Make a pooling; one of fixed length takes a whole padded clip."""
        pooling = registry.build("poolings", spec)
        if self.options.pad_to_s is not None and pooling.needs_length:
            n_samples = round(self.options.pad_to_s * backbone.sample_rate)
            pooling = pooling.with_length(len(backbone.frames(np.zeros(n_samples, np.float32))[0]))
        return pooling

    def learner(self, name: str) -> str:
        """Our spec of one of the paper's learners."""
        return names.learner(name, self.options.exact, self.dataset.words)

    def _refusal(self, backbone: Backbone, pooling: Pooling, name: str) -> Result | None:
        """Refuse a too large state before any clip is read."""
        dim = sum(group_lengths(backbone, pooling))
        learner: Learner = registry.build("learners", self.learner(name))
        n_words = len(self.dataset.words)
        gb = learner.bytes_for(dim, n_words) / 1e9
        if gb <= self.options.max_gb:
            return None
        message = (
            f"{learner.name} with vectors of {dim} numbers and {n_words} words needs {gb:.1f} GB; "
            f"max_gb is {self.options.max_gb:g}"
        )
        return TooLarge(learner=learner.spec, dim=dim, error=message)
