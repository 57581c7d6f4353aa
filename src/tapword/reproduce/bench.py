"""Runs what tables need on one data set: each clip through a backbone once, each result once."""

import functools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tapword import features, metrics, passes, registry, runs
from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.errors import InputError
from tapword.poolings.base import FixedLength, Pooling
from tapword.reproduce import names
from tapword.vectors import block_poolings

Result = dict[str, Any]


class Need(NamedTuple):
    """One result a table shows.

    Attributes
    ----------
    pooling
        Our name with arguments.
    learner
        The paper's name.
    order
        "class-iid" or "iid".
    matrix
        Whether BwT, Forg and Pla are wanted besides the final accuracy.
    """

    pooling: str
    learner: str
    order: str = "class-iid"
    matrix: bool = False


class Bench:
    """Results of backbones on a data set, kept for all tables of one run.

    Parameters
    ----------
    dataset
        Its `clip_s` is raised by `pad_to_s`.
    cache
        Where vectors are kept between runs.
    orderings
        Seeded orderings to average over.
    exact
        Learners by the right rules, instead of as the paper's code very likely had them.
    pad_to_s
        Fill clips with silence to this length; None leaves them at 1 s.
    jobs
        Processes.
    progress
        Called with (what, done, all).
    """

    def __init__(
        self,
        dataset: Dataset,
        cache: features.Cache,
        orderings: int = 5,
        exact: bool = False,
        pad_to_s: float | None = None,
        jobs: int = 1,
        progress: runs.Progress | None = None,
    ):
        if pad_to_s is not None:
            if pad_to_s < dataset.clip_s:
                raise InputError(f"--pad-to-s must be at least {dataset.clip_s:g}, got {pad_to_s}")
            # Fingerprints cover it, so padded vectors are cached apart.
            dataset.clip_s = pad_to_s
        self.dataset = dataset
        self.cache = cache
        self.orderings = orderings
        self.exact = exact
        self.pad_to_s = pad_to_s
        self.jobs = jobs
        self.progress = progress
        self.skipped = 0
        self._params: dict[str, int] = {}
        self._results: dict[tuple[str, str, str, str], Result] = {}

    @property
    def results(self) -> list[Result]:
        """Every result so far."""
        return list(self._results.values())

    def facts(self) -> dict[str, Any]:
        """Say what was used: data set, words and clips."""
        defaults = {key: p.default for key, p in self.dataset.parameters().items()}
        given = {k: v for k, v in self.dataset.arguments().items() if v != defaults[k]}
        given.pop("root", None)
        return {
            "dataset": registry.describe({"name": self.dataset.name, "arguments": given}),
            "notes": self.dataset.notes,
            "n_words": len(self.dataset.words),
            "n_train": len(self.dataset.clips("train")),
            "n_test": len(self.dataset.clips("test")),
            "skipped": self.skipped,
            "orderings": self.orderings,
            "clip_s": max(self.dataset.clip_s, 1.0),
        }

    def get(
        self, backbone: Backbone, pooling: str, learner: str, order: str = "class-iid"
    ) -> Result:
        """Give a result that `run` made; {} where nothing was run."""
        return self._results.get((backbone.spec, pooling, learner, order), {})

    def run(self, backbone: Backbone, needs: Iterable[Need]) -> None:
        """Run what is not there yet."""
        wanted: dict[tuple[str, str, str], bool] = defaultdict(bool)
        for pooling, learner, order, matrix in needs:
            known = self.get(backbone, pooling, learner, order)
            done = known and (not matrix or order == "iid" or known.get("matrix"))
            if not done and not known.get("error"):
                wanted[pooling, learner, order] |= matrix
        if not wanted:
            return
        poolings = {key[0]: self.pooling(key[0], backbone) for key in wanted}
        for key in list(wanted):
            error = self._refusal(backbone, poolings[key[0]], key[1])
            if error:
                del wanted[key]
                self._keep(backbone, key, error)
        left = {spec: part for spec, part in poolings.items() if any(spec == k[0] for k in wanted)}
        for spec, split in self.splits(backbone, left):
            groups: dict[tuple[str, bool], list[str]] = defaultdict(list)
            for (pooling, learner, order), matrix in wanted.items():
                if pooling == spec:
                    groups[order, matrix].append(learner)
            for (order, matrix), learners in groups.items():
                found = runs.run_all(
                    split,
                    [self.learner(name) for name in learners],
                    order=order,
                    orderings=self.orderings,
                    matrix=matrix,
                    jobs=self.jobs,
                    progress=self.progress,
                )
                for learner, result in zip(learners, found, strict=True):
                    self._keep(backbone, (spec, learner, order), result)
        self.cache.trim()

    def splits(
        self, backbone: Backbone, poolings: dict[str, Pooling]
    ) -> Iterable[tuple[str, passes.Split]]:
        """Vectors by pooling, one at a time in memory; the audio passes the backbone once."""
        stored = []
        for part in ("train", "test") if poolings else ():
            step = None
            if self.progress:
                step = functools.partial(self.progress, f"{backbone.spec}, {part} clips")
            arguments = self.dataset, part, backbone, list(poolings.values()), self.cache
            stored.append(features.store(*arguments, jobs=self.jobs, progress=step))
        for spec, *parts in zip(poolings, *stored, strict=True):
            train, test = (part.load() for part in parts)
            self.skipped = max(self.skipped, train.skipped + test.skipped)
            yield spec, passes.Split(train.vectors, train.words, test.vectors, test.words)

    def pooling(self, spec: str, backbone: Backbone) -> Pooling:
        """Make a pooling; with `pad_to_s`, those of fixed length take all of a padded clip."""
        pooling = registry.build("poolings", spec)
        if self.pad_to_s is not None and isinstance(pooling, FixedLength):
            audio = np.zeros(round(self.pad_to_s * backbone.sample_rate), dtype=np.float32)
            pooling = pooling.fixed(len(backbone.frames(audio)[0]))
        return pooling

    def learner(self, name: str) -> str:
        """Our name, with arguments, of one of the paper's learners."""
        return names.learner(name, self.exact, self.dataset.words)

    def _refusal(self, backbone: Backbone, pooling: Pooling, name: str) -> Result | None:
        """Refuse a state too large before any clip is heard."""
        fixed = block_poolings(pooling, backbone)
        dim = sum(part.dim(d) for part, d in zip(fixed, backbone.dims, strict=True))
        learner = registry.build("learners", self.learner(name))
        try:
            learner._check_size(dim, len(self.dataset.words))
        except InputError as error:
            return {"learner": learner.spec, "dim": dim, "acc": None, "error": str(error)}
        return None

    def _keep(self, backbone: Backbone, key: tuple[str, str, str], result: Result) -> None:
        pooling, learner, order = key
        size = result.get("state_bytes")
        # Torch networks are built anew to be counted.
        if backbone.spec not in self._params:
            self._params[backbone.spec] = backbone.params
        params = self._params[backbone.spec]
        self._results[backbone.spec, *key] = {
            "backbone": backbone.spec,
            "pooling": pooling,
            "order": order,
            "paper_name": learner,
            "params": params,
            "delta_p": metrics.delta_p(size / 4, params) if size is not None and params else None,
            "delta_fs": metrics.delta_fs(result["dim"], sum(backbone.dims)),
            **result,
        }
