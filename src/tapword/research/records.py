"""What evaluations give: a configuration, results and where they were measured.

Field names are the keys of the JSON and CSV files, which docs/protocols.md explains. Accuracies are
in percent; None stands for what was not measured.
"""

import dataclasses
import math
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tapword.research import metrics
from tapword.version import __version__

# Bytes of a number in a backbone, against which a learner's state is compared.
BYTES_A_PARAMETER = 4


@dataclass(kw_only=True)
class Ordering:
    """One pass over the stream in one seeded order.

    `tasks` are the words of each task in the order they were taught; `curve` is the accuracy over
    all words taught so far, after each task or after the last alone, None without test clips.
    """

    seed: int
    acc: float
    acc_balanced: float
    bwt: float | None = None
    bwt_signed: float | None = None
    forg: float | None = None
    pla: float | None = None
    tasks: list[list[str]]
    curve: list[float | None]


@dataclass(kw_only=True)
class Combination:
    """Which parts a result is of.

    Parts are names with arguments, those of several backbones separated by " | "; `whitening` says
    where it was learned, `size` is the preset that chose the parts, and `shots` None means that all
    samples were taught.
    """

    backbone: str = "vectors"
    pooling: str = "none"
    align: bool | None = None
    augment: bool | None = None
    whitening: str | None = None
    size: str | None = None
    learner: str
    shots: int | None = None
    dim: int


@dataclass(kw_only=True)
class Result(Combination):
    """A learner on a stream: means over orderings.

    `matrix` is the accuracy on each task (column) after each task (row), None above the diagonal
    and for a task without test clips; `acc_speakers_ci` is the 95% interval of `acc` had other
    people like those of the test clips spoken, None where nobody knows who did; `confusion` holds
    (word, what it was taken for, clips), most frequent first; `error` says why the learner refused,
    and the numbers are None then.
    """

    acc: float | None = None
    acc_std: float | None = None
    acc_speakers_ci: tuple[float, float] | None = None
    acc_balanced: float | None = None
    bwt: float | None = None
    bwt_signed: float | None = None
    forg: float | None = None
    pla: float | None = None
    state_bytes: int | None = None
    learn_ms: float | None = None
    predict_ms: float | None = None
    params: int | None = None
    delta_p: float | None = None
    delta_fs: float | None = None
    orderings: list[Ordering] = field(default_factory=list)
    matrix: list[list[float | None]] | None = None
    confusion: list[tuple[str, str | None, int]] = field(default_factory=list)
    error: str | None = None

    def with_costs(self, params: int, frame_dim: int) -> Self:
        """Compare with a backbone of so many parameters whose frames are `frame_dim` long."""
        delta_p = None
        if self.state_bytes is not None and params:
            delta_p = metrics.delta_p(self.state_bytes / BYTES_A_PARAMETER, params)
        delta_fs = metrics.delta_fs(self.dim, frame_dim)
        return dataclasses.replace(self, params=params, delta_p=delta_p, delta_fs=delta_fs)


@dataclass(kw_only=True)
class Draw:
    """One seeded choice of words and samples; numbers as in `OpenSetResult`."""

    seed: int
    words: list[str]
    auroc: float
    frr: float
    acc_open: float


@dataclass(kw_only=True)
class OpenSetResult(Combination):
    """A learner on `known` words it was taught and on others: means over draws."""

    known: int
    auroc: float
    auroc_std: float
    frr: float
    frr_std: float
    acc_open: float
    acc_open_std: float
    orderings: list[Draw]


@dataclass(kw_only=True)
class VoiceDraw:
    """One seeded choice of people, words and takes, judged by thresholds of its own.

    `person` is who was taught and asked, None where they are different people; `asked` counts the
    clips of taught words. Numbers as in `VoiceResult`.
    """

    seed: int
    person: str | None
    words: list[str]
    asked: int
    frr_5: float
    frr_1: float
    owner_5: float | None
    owner_1: float | None


@dataclass(kw_only=True)
class VoiceResult(Combination):
    """A learner taught by one's own voice, or by others': one threshold over all draws.

    `people` counts those who were asked. At a threshold that 5% (or 1%) of other people's other
    words pass, `frr_5` are clips of taught words that do not, and `owner_5` other words of the
    person who was taught that do. `_ci` are 95% intervals over draws, None with a single one;
    `_draws` is the mean over draws that each have a threshold of their own. Medians are of scores.
    """

    voice: str
    known: int
    people: int
    frr_5: float
    frr_5_ci: tuple[float, float] | None
    frr_5_draws: float
    frr_5_draws_std: float
    frr_1: float
    frr_1_ci: tuple[float, float] | None
    frr_1_draws: float
    frr_1_draws_std: float
    owner_5: float | None
    owner_5_ci: tuple[float, float] | None
    owner_1: float | None
    owner_1_ci: tuple[float, float] | None
    median_known: float
    median_owner: float | None
    median_others: float
    orderings: list[VoiceDraw]


@dataclass(kw_only=True)
class Config:
    """What was run, and on what.

    `skipped` counts clips that could not be used; `extract_s` went into turning clips to vectors;
    `known` are the words taught of an open set, and `voice` is who teaches them; a whitening of the
    same data flatters results.
    """

    dataset: str = "vectors"
    notes: list[str] = field(default_factory=list)
    skipped: int = 0
    whitening_of_same_data: bool | None = None
    extract_s: float | None = None
    order: str
    orderings: int | None = None
    known: int | None = None
    voice: str | None = None
    shots: list[int] | None = None
    draws: int | None = None
    classes_per_task: int | None = None
    n_words: int = 0
    n_train: int = 0
    n_test: int = 0
    command: str | None = None


@dataclass(kw_only=True)
class Environment:
    """Where something was measured, and how many seconds that took in all."""

    tapword: str
    python: str
    numpy: str
    platform: str
    cpus: int | None
    seconds: float

    @classmethod
    def since(cls, start: float) -> Self:
        """Describe this machine; `start` is what `time.perf_counter` said at the beginning."""
        return cls(
            tapword=__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            platform=f"{platform.system()} {platform.machine()}",
            cpus=os.cpu_count(),
            seconds=round(time.perf_counter() - start, 3),
        )


AnyResult = Result | OpenSetResult | VoiceResult


@dataclass
class Records:
    """Everything an evaluation gives."""

    config: Config
    results: Sequence[AnyResult]
    environment: Environment


def as_json(value: Any) -> Any:
    """Turn dataclasses, arrays and what they hold into plain values that strict JSON can write.

    A number that is not finite becomes None; text is left with letters that UTF-8 can write.

    Examples
    --------
    >>> as_json({"acc": np.float32(0.5), "forg": float("nan"), "words": ("up", "go")})
    {'acc': 0.5, 'forg': None, 'words': ['up', 'go']}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {as_json(str(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return str(value).encode("utf-8", "replace").decode()
