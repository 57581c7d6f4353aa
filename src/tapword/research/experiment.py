"""Which parts are evaluated together, and whitenings learned from a data set."""

import functools
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapword import registry
from tapword.research.cache import Cache, store
from tapword.research.datasets.base import Dataset
from tapword.research.records import AnyResult, Result
from tapword.spotter import presets
from tapword.spotter.encoder import Encoder, Preparation, group_lengths
from tapword.spotter.spotter import Spotter
from tapword.spotter.whitening import Whitening, choose, shipped, vector_kind

# Takes a part from the preset.
UNNAMED: tuple[None] = (None,)


@dataclass
class Experiment:
    """An encoder, and the learners (names with arguments) that run on its vectors.

    `size` is the preset of the parts; None where they were named.
    """

    encoder: Encoder
    learners: list[str]
    size: str | None = None

    def described(self, result: AnyResult) -> AnyResult:
        """Add the parts and their costs to a result."""
        backbones, preparation = self.encoder.backbones, self.encoder.preparation
        sources = dict.fromkeys(one.source for one in self.encoder.whitenings)
        if isinstance(result, Result):
            params = sum(backbone.params for backbone in backbones)
            result = result.with_costs(params, sum(sum(backbone.dims) for backbone in backbones))
        return replace(
            result,
            backbone=" | ".join(backbone.spec for backbone in backbones),
            pooling=" | ".join(pooling.spec for pooling in self.encoder.poolings),
            align=preparation.align,
            augment=preparation.augment,
            whitening="; ".join(sources) or None,
            size=self.size,
        )


def make(
    backbones: Sequence[str] = (),
    poolings: Sequence[str] = (),
    learners: Sequence[str] = (),
    sizes: Sequence[str] = (),
    align: bool | None = None,
    augment: bool | None = None,
    whitening: str | Sequence[Whitening] | None = None,
) -> list[Experiment]:
    """Make every part, to report a wrong name before hours of audio are read.

    Arguments are as for `evaluate.evaluate`.
    """
    named = bool(backbones or poolings or learners)
    experiments = []
    for size in sizes if named or sizes else [presets.DEFAULT]:
        spotter = Spotter(size=size, align=align, augment=augment, whitening=whitening)
        experiments.append(Experiment(spotter.encoder, [spotter.learner.spec], size))
    if not named:
        return experiments
    build = functools.cache(functools.partial(registry.build, "backbones"))
    for backbone, pooling in itertools.product(backbones or UNNAMED, poolings or UNNAMED):
        parts = presets.fill_in(backbone and [backbone], pooling and [pooling], None)
        # Unless a whitening is given, only learners that ask for one get whitened vectors.
        by_whitened: dict[bool, Experiment] = {}
        unnamed = [parts.learner] if whitening is None else UNNAMED
        for learner in learners or unnamed:
            spotter = Spotter(
                [build(name) for name in parts.backbones],
                parts.poolings,
                learner,
                align=parts.align if align is None else align,
                augment=parts.augment if augment is None else augment,
                whitening=whitening,
            )
            whitened = bool(spotter.encoder.whitenings)
            one = by_whitened.setdefault(whitened, Experiment(spotter.encoder, []))
            one.learners.append(learner if learner and learners else spotter.learner.spec)
        experiments += by_whitened.values()
    return experiments


def describe(dataset: Dataset) -> str:
    """Spec of a data set without its folder, which tells other readers nothing."""
    return type(dataset)(**(dataset.arguments() | {"root": ""})).spec


def fit_whitenings(
    dataset: Dataset,
    spotter: Spotter,
    source: str,
    cache: Cache | None = None,
    jobs: int | None = None,
) -> list[Whitening]:
    """Learn a whitening for each backbone of a spotter from a data set's training clips.

    It has the form of the shipped one for the same vectors; for others it whitens in blocks.

    Parameters
    ----------
    dataset
        Words that will not be taught, ideally of another language.
    spotter
        Gives backbones, poolings and alignment.
    source
        Description of the data, shown with results.
    cache, jobs
        As for `evaluate.evaluate`.
    """
    cache, jobs = cache or Cache(), jobs or os.cpu_count() or 1
    preparation = Preparation(spotter.encoder.preparation.align)
    whitenings = []
    for backbone, pooling in spotter.encoder.parts:
        parts = "train", backbone, [pooling]
        [stored] = store(dataset, *parts, cache, jobs=jobs, preparation=preparation)
        found = stored.load()
        about = vector_kind(backbone, pooling, preparation.align)
        about |= {"source": source, "dataset": describe(dataset)}
        groups = group_lengths(backbone, pooling)
        known = shipped(backbone.name)
        like = choose([known], backbone, pooling, preparation.align) if known else None
        make = Whitening.scale if like and like.signed_sqrt else Whitening.fit
        whitenings.append(make(found.encoded.vectors, found.words, groups, about))
    return whitenings
