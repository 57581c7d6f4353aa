"""Which parts the C code knows, and their settings in it."""

from typing import Any

from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.learners.cosine import Cosine
from tapword.learners.covariance import CovarianceLearner
from tapword.learners.ncm import Ncm
from tapword.learners.packed import packed_size
from tapword.learners.ridge import OAS_TIMES, Ridge
from tapword.learners.sketch import SketchStatistics
from tapword.learners.slda import Slda
from tapword.poolings.avg import Avg
from tapword.poolings.base import Pooling
from tapword.poolings.max import Max
from tapword.poolings.middle import Middle
from tapword.poolings.tap import Tap
from tapword.poolings.tsdp import Tsdp
from tapword.poolings.tstp import Tstp

MOMENT, DEVIATION, LARGEST, MIDDLE = range(4)
_LARGEST_COUNT = 2**32 - 1


def rule_of(learner: Learner) -> dict[str, Any]:
    """Give settings of a learner's rule; refuse one that is not written in C."""
    if not isinstance(learner, Cosine | Slda | Ridge | Ncm):
        raise InputError(
            f"learner {learner.name} cannot be exported to C; cosine, slda, ridge and ncm can"
        )
    statistics = learner._statistics
    if isinstance(statistics, SketchStatistics) or learner.per_word:
        raise InputError(
            f"learner {learner.spec} cannot be exported to C: a covariance that is lowrank or "
            "kept per word is not written there"
        )
    if statistics.n_scatter > _LARGEST_COUNT:
        raise InputError("a model of more than 4,294,967,295 samples cannot be exported to C")
    size = statistics.blocks.size
    settings: dict[str, Any] = {"BLOCK": size, "FACTOR": packed_size(size), "REFERENCE": 0}
    prior = getattr(learner, "prior", None)
    settings["VARIANCES"] = int(isinstance(learner, CovarianceLearner) and prior == "diagonal")
    if isinstance(learner, Slda):
        strength = 0.0 if prior == "none" else statistics.dim / 2
        settings |= {"EPS": repr(float(learner.eps)), "STRENGTH": strength}
        settings["REFERENCE"] = int(learner.variant == "reference")
    if isinstance(learner, Ridge):
        settings |= {"BALANCED": int(learner.balanced), "OAS_TIMES": OAS_TIMES}
        settings["LAM"] = repr(float(learner.lam or 0.0))
    return settings


def pooling_of(pooling: Pooling) -> tuple[int, int]:
    """Kind and number of a pooling as the C code knows it."""
    if isinstance(pooling, Tap):
        return MOMENT, pooling.R
    if isinstance(pooling, Middle):
        return MIDDLE, pooling.n
    for known, pair in (
        (Avg, (MOMENT, 1)),
        (Tstp, (MOMENT, 2)),
        (Tsdp, (DEVIATION, 2)),
        (Max, (LARGEST, 1)),
    ):
        if isinstance(pooling, known):
            return pair
    raise InputError(
        f"pooling {pooling.name} cannot be exported to C; avg, blocks, max, middle, tap, tsdp and "
        "tstp can"
    )
