"""A learner with less of its covariance, for devices that cannot hold all of it."""

import numpy as np

from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.learners.covariance import CovarianceLearner
from tapword.learners.packed import Blocks
from tapword.learners.sketch import SketchStatistics

FORMS = ("block", "diagonal")


def reduced(learner: Learner, form: str) -> Learner:
    """Give a learner of the same words that keeps blocks of the covariance or its diagonal alone.

    It is what would have come of teaching that form from the start: the numbers it keeps are the
    same.

    Parameters
    ----------
    learner
        A taught cosine or slda.
    form
        "block" or "diagonal".
    """
    if form not in FORMS:
        raise InputError(f"covariance must be one of {', '.join(FORMS)}, got {form!r}")
    if not isinstance(learner, CovarianceLearner) or learner.dim is None or learner.per_word:
        raise InputError(f"learner {learner.spec} has no covariance that could be reduced")
    statistics = learner._statistics
    if isinstance(statistics, SketchStatistics):
        raise InputError(f"learner {learner.spec} keeps a sketch, which cannot be reduced")
    made: CovarianceLearner = type(learner)(**learner.arguments() | {"covariance": form})
    made.max_kb = None
    kept, wanted = statistics.blocks, Blocks(learner.dim, made._rows(form, learner.dim))
    if kept.size % wanted.size and kept.size < kept.dim:
        raise InputError(
            f"blocks of {kept.size} numbers cannot be cut into blocks of {wanted.size}"
        )
    scatter = learner.state()["scatter"][_positions(kept, wanted)]
    made.load_state(learner.state() | {"scatter": scatter}, learner.words)
    return made


def _positions(kept: Blocks, wanted: Blocks) -> np.ndarray:
    """Where the numbers of smaller blocks lie among those of larger ones."""
    # A column of a packed triangle begins at its diagonal.
    diagonal = kept.diagonal()
    return np.concatenate(
        [
            diagonal[column] + np.arange(rows.stop - column)
            for rows, _ in wanted.parts()
            for column in range(rows.start, rows.stop)
        ]
    )
