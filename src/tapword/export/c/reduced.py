"""Models with less to keep, for devices that cannot hold all of it."""

import functools

import numpy as np

from tapword.backbones.tapword_ear import TapwordEar
from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.learners.packed import PackedBlocks
from tapword.learners.statistics import SketchStatistics
from tapword.learners.statistics_learner import CovarianceLearner
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import Line
from tapword.spotter.whitening import Whitening, shipped
from tapword.support.threads import one_blas_thread

FORMS = ("block", "diagonal")
# In how many directions a device compares sounds with running speech, and the line of thresholds
# then, for each ear: training/directions.py and training/cohort.py print them, and docs/choices.md
# and docs/export.md have what other numbers give.
PROJECTED = {
    "ear_s": (64, Line(-0.006, 0.0373, 0.7, 0.0005, 0.002)),
    "tapword_ear": (24, Line(0.024, 0.044)),
}


def reduced(learner: Learner, form: str) -> Learner:
    """Give a learner of the same words that keeps blocks of the covariance or its diagonal alone.

    It is what would have come of teaching that form, "block" or "diagonal", from the start: the
    numbers it keeps are the same.
    """
    if form not in ("full", *FORMS):
        raise InputError(f"covariance must be one of full, {', '.join(FORMS)}, got {form!r}")
    if form == "full":
        if isinstance(learner, CovarianceLearner) and learner.covariance == "full":
            return learner
        raise InputError(f"learner {learner.spec} keeps less than a full covariance")
    if not isinstance(learner, CovarianceLearner) or learner.dim is None or learner.per_word:
        raise InputError(f"learner {learner.spec} has no covariance that could be reduced")
    statistics = learner.statistics
    if isinstance(statistics, SketchStatistics):
        raise InputError(f"learner {learner.spec} keeps a sketch, which cannot be reduced")
    arguments = learner.arguments() | {"covariance": form, "max_kb": None}
    made: CovarianceLearner = type(learner)(**arguments)
    kept, wanted = statistics.blocks, PackedBlocks(learner.dim, made.block_size(form, learner.dim))
    if kept.size % wanted.size and kept.size < kept.dim:
        raise InputError(
            f"blocks of {kept.size} numbers cannot be cut into blocks of {wanted.size}"
        )
    # Where the numbers of the smaller blocks lie: a column of a packed triangle begins at its
    # diagonal.
    diagonal = kept.diagonal()
    places = [
        diagonal[column] + np.arange(rows.stop - column)
        for rows, _ in wanted.parts()
        for column in range(rows.start, rows.stop)
    ]
    state = learner.state()
    state |= {"scatter": state["scatter"][np.concatenate(places)]}
    made.load_state(
        state, learner.words, learner.negatives, learner.rows, synthetic=learner.synthetic
    )
    return made


def for_device(spotter: Spotter, keep: bool = False) -> Spotter:
    """Give a spotter as a small device holds it, which knows the same.

    Where scores are measured against running speech, the diagonal of the covariance is enough,
    unless all of it is to be kept; our own ears compare sounds with running speech in few
    directions.
    """
    learner = spotter.learner
    if learner.supports_thresholds and not keep and learner.dim is not None:
        learner = reduced(learner, "diagonal")
    return project(spotter).copy(learner)


def in_eight_bits(spotter: Spotter) -> bool:
    """Whether the network of a spotter can be written in 8 bits."""
    return isinstance(spotter.encoder.backbones[0], TapwordEar)


def project(spotter: Spotter) -> Spotter:
    """Give a spotter on one of our ears that compares sounds with running speech in few directions.

    It knows the same, and its thresholds are its own. Others are given back as they are.
    """
    name, [*whitenings] = spotter.encoder.backbones[0].name, spotter.encoder.whitenings
    if not spotter.has_thresholds or name not in PROJECTED or whitenings != [shipped(name)]:
        return spotter
    made = Spotter(
        spotter.encoder.backbones,
        spotter.encoder.poolings,
        spotter.learner,
        **spotter.encoder.preparation._asdict(),
        whitening=[_few(name)],
    )
    made.vocabulary = spotter.vocabulary
    return made


@functools.cache
@one_blas_thread
def _few(name: str) -> Whitening:
    whitening = shipped(name)
    assert whitening is not None
    return whitening.project(*PROJECTED[name])
