"""Records of evaluations: configuration, results and environment.

Field names are the keys of the JSON and CSV files, which docs/protocols.md explains. Accuracies are
in percent; None means not measured.
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

# Bytes of a backbone's parameter, to compare a learner's state with.
BYTES_A_PARAMETER = 4


@dataclass(kw_only=True)
class Ordering:
    """One pass over the stream in one seeded order.

    `tasks` are the words of each task; `curve` is the accuracy over all words so far, after each
    task or only after the last, None without test clips.
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
    """The parts of a result.

    Parts are names with arguments, several backbones joined by " | ". `whitening` is its source,
    `size` the preset of the parts; `shots` None means that all samples were learned.
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
    and for a task without test clips. `acc_speakers_ci` is the 95% interval of `acc` over speakers,
    None where they are unknown. `confusion` holds (word, prediction, clips), most frequent first;
    clips are added up over orderings. `error` says why the learner refused; the numbers are then
    None.
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
        """Add costs relative to a backbone's parameters and the length of its frames."""
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
    """A learner on `known` taught words and on others: means over draws."""

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
    """One seeded choice of people, words and takes, with its own thresholds.

    `person` taught and was tested, None where these are different people; `clips` counts the test
    clips of taught words. Numbers as in `VoiceResult`.
    """

    seed: int
    person: str | None
    words: list[str]
    clips: int
    frr_5: float
    frr_1: float
    owner_5: float | None
    owner_1: float | None


@dataclass(kw_only=True)
class VoiceResult(Combination):
    """A learner taught by one's own voice, or by others': one threshold over all draws.

    `people` were tested. At a threshold that 5% (or 1%) of other people's other words pass, `frr_5`
    of the taught words' clips do not, and `owner_5` of the owner's other words do. `_ci` are 95%
    intervals over draws, None with a single one; `_draws` is the mean over draws with a threshold
    each. Medians are of scores.
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

    `skipped` counts unusable clips; `extract_s` is the time to encode; `known` words of an open set
    are taught by `voice`; `whitening_of_same_data` flatters results.
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
    """Where something was measured, and the total seconds."""

    tapword: str
    python: str
    numpy: str
    platform: str
    cpus: int | None
    seconds: float

    @classmethod
    def since(cls, start: float) -> Self:
        """Describe this machine; `start` is `time.perf_counter()` at the beginning."""
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
    """Turn dataclasses, arrays and their contents into plain values for strict JSON.

    NaN and infinity become None; characters that UTF-8 cannot encode become "?".

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
