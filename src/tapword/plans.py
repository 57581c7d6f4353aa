"""What is run on a data set: parts side by side, their vectors in the cache, priors from them."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapword import features, registry
from tapword import sizes as sizes_room
from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.front import BACKBONE, POOLING
from tapword.passes import Split
from tapword.poolings.base import Pooling
from tapword.priors.prior import Prior, group_lengths, join, side
from tapword.runs import Progress
from tapword.spotter import LEARNER, Spotter
from tapword.vectors import Hearing

# Where vectors lie, by backbone, pooling, how clips are heard, and split.
Stores = dict[tuple[str, str, Hearing, str], features.Stored]


class Plan(NamedTuple):
    """What is run: backbones, each with its pooling, side by side, and learners on top."""

    size: str | None
    sides: list[tuple[Backbone, Pooling]]
    learners: Sequence[str]
    hearing: Hearing
    priors: list[Prior]

    def names(self) -> dict[str, Any]:
        """Describe the vectors."""
        return {
            "backbone": " | ".join(backbone.spec for backbone, _ in self.sides),
            "pooling": " | ".join(pooling.spec for _, pooling in self.sides),
            **self.hearing._asdict(),
            "prior": "; ".join(dict.fromkeys(prior.source for prior in self.priors)) or None,
        }

    def split(self, stored: Stores) -> tuple[Split, int]:
        """Vectors to learn from and to ask, and how many clips were unusable."""
        train, test = (
            [
                stored[backbone.spec, pooling.spec, self.hearing, name].load()
                for backbone, pooling in self.sides
            ]
            for name in ("train", "test")
        )
        split = Split(
            join([found.vectors for found in train], self.priors),
            train[0].words,
            join([found.vectors for found in test], self.priors),
            test[0].words,
        )
        return split, train[0].skipped + test[0].skipped


def make(
    backbones: Sequence[str],
    poolings: Sequence[str],
    learners: Sequence[str],
    names: Sequence[str],
    hearing: Hearing,
    prior: str | Sequence[Prior] | None,
) -> list[Plan]:
    """Make every part once, so that a wrong name is said before hours of audio are read."""
    if not (backbones or poolings or learners or names):
        names = [sizes_room.DEFAULT]
    plans = []
    for name in names:
        spotter = Spotter(size=name, prior=prior)
        plans.append(Plan(name, *_parts(spotter, [sizes_room.size(name).learner])))
    made = [registry.build("poolings", name) for name in poolings or [POOLING]]
    if not (backbones or poolings or learners):
        return plans
    heard = hearing._asdict()
    for backbone in [registry.build("backbones", name) for name in backbones or [BACKBONE]]:
        for pooling in made:
            # Unless a prior is given, only learners that ask for one see whitened vectors.
            by_priors: dict[bool, list[str]] = {}
            for learner in learners or [LEARNER]:
                spotter = Spotter(backbone, pooling, learner, **heard, prior=prior)
                by_priors.setdefault(bool(spotter.priors), []).append(learner)
            for group in by_priors.values():
                spotter = Spotter(backbone, pooling, group[0], **heard, prior=prior)
                plans.append(Plan(None, *_parts(spotter, group)))
    return plans


def _parts(spotter: Spotter, learners: Sequence[str]) -> tuple:
    return spotter.front.sides, learners, spotter.front.hearing, spotter.priors


def extract(
    dataset: Dataset,
    plans: list[Plan],
    cache: features.Cache,
    jobs: int,
    strict: bool,
    progress: Progress | None,
    store: Callable[..., list[features.Stored]],
) -> Stores:
    """Pass the audio through each backbone once, for all poolings that any plan takes from it."""
    wanted: dict[tuple[str, Hearing], tuple[Backbone, dict[str, Pooling]]] = {}
    for plan in plans:
        for backbone, pooling in plan.sides:
            _, known = wanted.setdefault((backbone.spec, plan.hearing), (backbone, {}))
            known[pooling.spec] = pooling
    stored = {}
    for (_, hearing), (backbone, known) in wanted.items():
        for name in ("train", "test"):
            what = f"{backbone.spec}, {name} clips"
            step = functools.partial(progress, what) if progress else None
            poolings = list(known.values())
            made = store(dataset, name, backbone, poolings, cache, jobs, strict, step, hearing)
            for spec, one in zip(known, made, strict=True):
                stored[backbone.spec, spec, hearing, name] = one
    return stored


def data_config(dataset: Dataset, plans: Sequence[Plan], skipped: int) -> dict[str, Any]:
    """Say in records what was run on."""
    return {
        "dataset": describe(dataset),
        "notes": dataset.notes,
        "skipped": skipped,
        # The words' accuracies are flattered where the prior was computed from the same words.
        "prior_of_same_data": any(
            prior.about.get("dataset") == describe(dataset)
            for plan in plans
            for prior in plan.priors
        ),
    }


def describe(dataset: Dataset) -> str:
    """Name a data set; where it lies on this machine says nothing to a reader elsewhere."""
    return type(dataset)(**(dataset.arguments() | {"root": ""})).spec


def fit_priors(
    dataset: Dataset,
    spotter: Spotter,
    source: str,
    cache: features.Cache | None = None,
    jobs: int | None = None,
) -> list[Prior]:
    """Compute a prior for each backbone of a spotter from a data set's training clips.

    Parameters
    ----------
    dataset
        Words that will not be taught: other words, best of another language.
    spotter
        Whose backbones, poolings and alignment.
    source
        What readers of results are told about the data.
    cache
        Where vectors are kept between runs.
    jobs
        Processes; None: one per core.
    """
    cache = cache or features.Cache()
    priors = []
    for backbone, pooling in spotter.front.sides:
        [stored] = features.store(
            dataset,
            "train",
            backbone,
            [pooling],
            cache,
            jobs or os.cpu_count() or 1,
            hearing=Hearing(spotter.align),
        )
        found = stored.load()
        about = side(backbone, pooling, spotter.align)
        about |= {"source": source, "dataset": describe(dataset)}
        groups = group_lengths(backbone, pooling)
        priors.append(Prior.fit(found.vectors, found.words, groups, about))
    return priors
