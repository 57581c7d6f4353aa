"""What the tables show of a result, and how numbers are written for people."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Records = dict[str, Any]
Result = dict[str, Any]

NONE = "—"
NESTED = ("orderings", "matrix", "confusion")


def human_bytes(count: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> human_bytes(999), human_bytes(36_864), human_bytes(12_300_000_000)
    ('999 B', '36.9 kB', '12.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{count:.{0 if unit == 'B' or count >= 99.95 else 1}f} {unit}"


def _digits(places: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{places}f}"


class Column(NamedTuple):
    """One column of the tables; `brief` ones are shown on the console and in LaTeX too."""

    key: str
    title: str
    show: Callable[[Any], str]
    brief: bool
    meaning: str


COLUMNS = (
    Column("backbone", "backbone", str, True, "turns sound into frames"),
    Column("pooling", "pooling", str, True, "turns the frames of a clip into one vector"),
    Column("learner", "learner", str, True, "learns words from vectors"),
    Column("size", "size", str, True, "size"),
    Column("shots", "shots", str, True, "samples learned of each word"),
    Column("acc", "acc %", _digits(2), True, "test clips named right after the last task"),
    Column("acc_std", "± std", _digits(2), False, "standard deviation of acc over orderings"),
    Column("acc_balanced", "balanced %", _digits(2), False, "acc with every word counted alike"),
    Column("bwt", "bwt", _digits(1), True, "mean accuracy on the tasks before, after each task"),
    Column("bwt_signed", "bwt signed", _digits(1), False, "what later tasks added to earlier ones"),
    Column("forg", "forg", _digits(1), True, "points lost on a task since it was known best"),
    Column("pla", "pla", _digits(1), True, "accuracy on each task just after learning it"),
    Column("state_bytes", "state", human_bytes, True, "memory the learner keeps"),
    Column("learn_ms", "learn ms", _digits(2), True, "time to learn one vector"),
    Column("predict_ms", "predict ms", _digits(2), True, "time to name one vector"),
    Column("dim", "dim", "{:,}".format, False, "numbers in a vector"),
    Column("params", "params", "{:,}".format, False, "numbers in the backbone"),
    Column("delta_p", "Δp %", "{:.3g}".format, False, "numbers stored, against the backbone's"),
    Column("delta_fs", "Δfs", "{:.3g}".format, False, "length of a vector against a frame's"),
)
# Of words known and unknown.
OPEN_SET = (
    Column("known", "known", str, True, "words taught; all others are unknown"),
    Column("auroc", "AUROC %", _digits(2), True, "known clips that score above unknown ones"),
    Column("auroc_std", "± std", _digits(2), False, "standard deviation of AUROC over draws"),
    Column("frr", "FRR %", _digits(2), True, "known clips rejected where 5% of others are not"),
    Column("frr_std", "± std", _digits(2), False, "standard deviation of FRR over draws"),
    Column("acc_open", "acc %", _digits(2), True, "known clips accepted there and named right"),
    Column("acc_open_std", "± std", _digits(2), False, "standard deviation of acc over draws"),
)
NAMES = ("backbone", "pooling", "learner", "size")


def prepare(records: Records, brief: bool) -> tuple[list[Result], list[Column], set[int]]:
    """Results without NaN, the columns that hold anything, and which results are best.

    Best among those that learned as many samples a word: more samples are no merit.
    """
    results = clean(records).get("results") or []
    for result in results:
        # One ordering has no spread; none over several is worth saying.
        if len(result.get("orderings") or []) == 1:
            for key in [key for key in result if key.endswith("_std")]:
                result[key] = None
    columns = [
        column
        for column in (*COLUMNS, *OPEN_SET)
        if (column.brief or not brief)
        and any(result.get(column.key) is not None for result in results)
    ]
    groups: dict[tuple, list[tuple[float, int]]] = {}
    for index, result in enumerate(results):
        if result.get("acc") is not None:
            group = result.get("size"), result.get("shots")
            groups.setdefault(group, []).append((round(result["acc"], 2), index))
    best = {index for group in groups.values() for acc, index in group if acc == max(group)[0]}
    return results, columns, best


def same(results: Sequence[Result]) -> list[Column]:
    """Names that are alike in every one of several results."""
    several = len(results) > 1
    named = [column for column in COLUMNS if column.key in NAMES]
    return [c for c in named if several and len({str(r.get(c.key)) for r in results}) == 1]


def cell(result: Result, column: Column, deviation: bool = True) -> str:
    """Write one number of a result, with its deviation over orderings."""
    value = result.get(column.key)
    if value is None:
        return NONE
    text = column.show(value)
    spread = result.get(f"{column.key}_std")
    if deviation and spread is not None:
        text += f" ± {spread:.2f}"
    return text


def name_of(result: Result) -> str:
    """Name a result by its parts."""
    name = " · ".join(str(result[key]) for key in NAMES if result.get(key) is not None)
    return name + (f" · {result['shots']}-shot" if result.get("shots") else "")


def dataset_name(config: dict[str, Any]) -> str:
    """Name of the data set without the folder it lies in, which concerns one machine."""
    return re.sub(r"\broot=[^,]*,?", "", str(config.get("dataset") or "")).rstrip(":,")


def refused(results: Sequence[Result]) -> list[str]:
    """Say which combinations were refused, and why."""
    return [f"{name_of(r)}: {r['error']}" for r in results if r.get("error")]


def clean(value: Any) -> Any:
    """Plain JSON values only, and text that any encoding of Unicode can write."""
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return clean(value.tolist())
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return str(value).encode("utf-8", "replace").decode()
