"""Runs what tables need on one data set: clips pass a backbone once, and nothing is run twice."""

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


class Need(NamedTuple):
    """One result that a table shows: pooling by our name, learner by the paper's.

    `order` is "class-iid" or "iid"; `matrix` asks for BwT, Forg and Pla besides the accuracy.
    """

    pooling: str
    learner: str
    order: str = "class-iid"
    matrix: bool = False


@dataclass(kw_only=True)
class TooLarge(Result):
    """A result that was not measured, as the learner's state would be too large."""


@dataclass
class Settings:
    """What is run and how; see `tapword reproduce --help`.

    Attributes
    ----------
    data, dataset, mswc
        Folder of the data set and its kind, and folder of MSWC if that is not `data`; figure 3 then
        shows the data set's commonest words besides.
    backbones, weights
        Backbones or their names, none: all that can be had; "random" for those without training.
    exact
        Take learners by the right rules, instead of as the paper's code very likely had them.
    pad_to_s
        Fill clips with silence to this length; None leaves them at 1 s.
    n_words
        Words of figure 3's micro-sets.
    timed_clips
        Clips that TAP's overhead is measured on.
    max_gb
        Learners whose state would be larger are not run.
    orderings, jobs, cache, progress
        As in `tapword.research.evaluate`.
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


class Bench:
    """Results of backbones on a data set, kept for all tables of one run."""

    def __init__(self, dataset: Dataset, settings: Settings):
        pad_to_s = settings.pad_to_s
        if pad_to_s is not None:
            if pad_to_s < dataset.clip_s:
                raise InputError(f"--pad-to-s must be at least {dataset.clip_s:g}, got {pad_to_s}")
            # A data set's fingerprint covers it, so padded vectors have cache entries of their own.
            dataset.clip_s = pad_to_s
        self.dataset = dataset
        self.settings = settings
        self.skipped = 0
        # By the backbone's name with arguments.
        self.results: dict[tuple[str, Need], Result] = {}

    def facts(self) -> dict[str, Any]:
        """Say what results are of, as plain values: data set, words and clips."""
        return {
            "dataset": describe(self.dataset),
            "notes": self.dataset.notes,
            "n_words": len(self.dataset.words),
            "n_train": len(self.dataset.clips("train")),
            "n_test": len(self.dataset.clips("test")),
            "skipped": self.skipped,
            "orderings": self.settings.orderings,
            "clip_s": max(self.dataset.clip_s, 1.0),
        }

    def as_json(self) -> dict[str, Any]:
        """Give facts and every result so far as plain values."""
        results = [
            {"order": need.order, "paper_name": need.learner, **asdict(result)}
            for (_, need), result in self.results.items()
        ]
        return {**self.facts(), "results": results}

    def get(self, backbone: Backbone, need: Need) -> Result:
        """Give a result that `run` made; one without numbers where nothing was run."""
        # One that was run with its matrix serves those that want none, too.
        for key in (need, need._replace(matrix=True)):
            if (backbone.spec, key) in self.results:
                return self.results[backbone.spec, key]
        return Result(learner=need.learner, dim=0)

    def accuracy(self, backbone: Backbone, need: Need) -> float | None:
        """Accuracy of a result in percent; None where there is none."""
        return self.get(backbone, need).acc

    def run(self, backbone: Backbone, needs: Iterable[Need]) -> None:
        """Run what is not there yet."""
        chosen = dict.fromkeys(needs)
        poolings: dict[str, Pooling] = {}
        wanted: dict[str, list[Need]] = defaultdict(list)
        # Torch networks are built anew to be counted.
        costs = backbone.params, sum(backbone.dims)

        def keep(need: Need, result: Result) -> None:
            named = replace(result, backbone=backbone.spec, pooling=need.pooling)
            self.results[backbone.spec, need] = named.with_costs(*costs)

        for need in chosen:
            served = not need.matrix and need._replace(matrix=True) in chosen
            known = self.get(backbone, need)
            if served or known.acc is not None or known.error:
                continue
            if need.pooling not in poolings:
                poolings[need.pooling] = self.pooling(need.pooling, backbone)
            refusal = self._refusal(backbone, poolings[need.pooling], need.learner)
            if refusal:
                keep(need, refusal)
            else:
                wanted[need.pooling].append(need)
        left = {spec: poolings[spec] for spec in wanted}
        for spec, split in self.splits(backbone, left):
            groups: dict[tuple[str, bool], list[Need]] = defaultdict(list)
            for need in wanted[spec]:
                groups[need.order, need.matrix].append(need)
            for (order, matrix), some in groups.items():
                stream = Stream(order=order, orderings=self.settings.orderings, matrix=matrix)
                learners = [self.learner(need.learner) for need in some]
                jobs, progress = self.settings.jobs, self.settings.progress
                results = stream.run(split, learners, jobs, progress)
                for need, result in zip(some, results, strict=True):
                    keep(need, result)
        self.settings.cache.trim()

    def splits(
        self, backbone: Backbone, poolings: dict[str, Pooling]
    ) -> Iterator[tuple[str, Split]]:
        """Vectors by pooling, one at a time in memory; the clips pass the backbone once."""
        settings, stored = self.settings, []
        for part in ("train", "test") if poolings else ():
            step = None
            if settings.progress:
                step = functools.partial(settings.progress, f"{backbone.spec}, {part} clips")
            arguments = self.dataset, part, backbone, list(poolings.values()), settings.cache
            stored.append(store(*arguments, jobs=settings.jobs, progress=step))
        for spec, *parts in zip(poolings, *stored, strict=True):
            train, test = (part.load() for part in parts)
            self.skipped = max(self.skipped, train.skipped + test.skipped)
            yield spec, Split(train.vectors, train.words, test.vectors, test.words)

    def pooling(self, spec: str, backbone: Backbone) -> Pooling:
        """Make a pooling; where clips are padded, one of fixed length takes a whole clip."""
        pooling = registry.build("poolings", spec)
        if self.settings.pad_to_s is not None and pooling.needs_length:
            n_samples = round(self.settings.pad_to_s * backbone.sample_rate)
            pooling = pooling.fixed(len(backbone.frames(np.zeros(n_samples, np.float32))[0]))
        return pooling

    def learner(self, name: str) -> str:
        """Our name, with arguments, of one of the paper's learners."""
        return names.learner(name, self.settings.exact, self.dataset.words)

    def _refusal(self, backbone: Backbone, pooling: Pooling, name: str) -> Result | None:
        """Refuse a state that is too large before any clip is read."""
        dim = sum(group_lengths(backbone, pooling))
        learner: Learner = registry.build("learners", self.learner(name))
        n_words = len(self.dataset.words)
        gb = learner.bytes_for(dim, n_words) / 1e9
        if gb <= self.settings.max_gb:
            return None
        message = (
            f"{learner.name} with {dim} numbers a vector and {n_words} words needs {gb:.1f} GB; "
            f"max_gb is {self.settings.max_gb:g}"
        )
        return TooLarge(learner=learner.spec, dim=dim, error=message)
