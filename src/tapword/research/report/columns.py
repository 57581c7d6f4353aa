"""Columns of the result tables, and how numbers are formatted."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapword.research.records import AnyResult, Result

# Shown where there is no value.
NONE = "—"
# Columns that name a result: by its preset, or by its parts.
PARTS = ("backbone", "pooling", "learner")
NAMES = ("size", *PARTS)


def human_bytes(count: float) -> str:
    """Format a number of bytes.

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


class Column(NamedTuple):
    """A column: a field of results, its title, how to format it, and its meaning.

    Console and LaTeX show only `brief` columns, the HTML page shows all.
    """

    key: str
    title: str
    show: Callable[[Any], str]
    brief: bool
    meaning: str


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.1f} to {ends[1]:.1f}"


ONE_DIGIT, TWO_DIGITS, THREE_DIGITS = "{:.1f}".format, "{:.2f}".format, "{:.3f}".format
COLUMNS = (
    Column("size", "size", str, True, "preset of the parts"),
    Column("backbone", "backbone", str, True, "turns audio into frames"),
    Column("pooling", "pooling", str, True, "turns the frames of a clip into one vector"),
    Column("learner", "learner", str, True, "learns words from vectors"),
    Column("shots", "shots", str, True, "samples a word"),
    Column("acc", "acc %", TWO_DIGITS, True, "test clips right after the last task"),
    Column("acc_std", "± std", TWO_DIGITS, False, "standard deviation of acc over orderings"),
    Column("acc_speakers_ci", "95% of acc", _interval, False, "interval over speakers"),
    Column("acc_balanced", "balanced %", TWO_DIGITS, False, "mean of acc over words"),
    Column("bwt", "bwt", ONE_DIGIT, True, "mean accuracy on earlier tasks, after each task"),
    Column("bwt_signed", "bwt signed", ONE_DIGIT, False, "what later tasks added to earlier ones"),
    Column("forg", "forg", ONE_DIGIT, True, "points lost on a task since its best accuracy"),
    Column("pla", "pla", ONE_DIGIT, True, "accuracy on each task right after learning it"),
    Column("state_bytes", "state", human_bytes, True, "memory the learner keeps"),
    Column("learn_ms", "learn ms", TWO_DIGITS, True, "time to learn one vector"),
    Column("predict_ms", "predict ms", TWO_DIGITS, True, "time to predict one vector"),
    Column("dim", "dim", "{:,}".format, False, "numbers in a vector"),
    Column("params", "params", "{:,}".format, False, "parameters of the backbone"),
    Column("delta_p", "Δp %", "{:.3g}".format, False, "stored numbers relative to the backbone's"),
    Column("delta_fs", "Δfs", "{:.3g}".format, False, "length of a vector relative to a frame's"),
)
# Open set: known and unknown words.
OPEN_SET = (
    Column("known", "known", str, True, "words taught; all others are unknown"),
    Column(
        "auroc", "AUROC %", TWO_DIGITS, True, "how often a known clip scores above an unknown one"
    ),
    Column("auroc_std", "± std", TWO_DIGITS, False, "standard deviation of AUROC over draws"),
    Column("frr", "FRR %", TWO_DIGITS, True, "known clips rejected where 5% of others pass"),
    Column("frr_std", "± std", TWO_DIGITS, False, "standard deviation of FRR over draws"),
    Column("acc_open", "acc %", TWO_DIGITS, True, "known clips accepted there and right"),
    Column("acc_open_std", "± std", TWO_DIGITS, False, "standard deviation of acc over draws"),
)
# Own and others' voices: rates at a threshold that 5% or 1% of other people's other words pass.
VOICES = (
    Column("voice", "voice", str, True, "who teaches: the person who is tested, or others"),
    Column("people", "people", str, True, "people who are tested"),
    Column("frr_5", "FRR at 5%", ONE_DIGIT, True, "% of known rejected where 5% of others pass"),
    Column("frr_5_ci", "95% of it", _interval, False, "interval over draws"),
    Column("frr_5_draws", "by draw", ONE_DIGIT, False, "mean over draws with own thresholds"),
    Column("frr_5_draws_std", "± std", ONE_DIGIT, False, "standard deviation of that over draws"),
    Column("frr_1", "FRR at 1%", ONE_DIGIT, True, "% of known rejected where 1% of others pass"),
    Column("frr_1_ci", "95% of it", _interval, False, "interval over draws"),
    Column("frr_1_draws", "by draw", ONE_DIGIT, False, "mean over draws with own thresholds"),
    Column("frr_1_draws_std", "± std", ONE_DIGIT, False, "standard deviation of that over draws"),
    Column("owner_5", "owner at 5%", ONE_DIGIT, True, "% of one's own other words accepted there"),
    Column("owner_5_ci", "95% of it", _interval, False, "interval over draws"),
    Column("owner_1", "owner at 1%", ONE_DIGIT, True, "% of one's own other words accepted there"),
    Column("owner_1_ci", "95% of it", _interval, False, "interval over draws"),
    Column("median_known", "score", THREE_DIGITS, True, "median of taught words"),
    Column("median_owner", "owner's score", THREE_DIGITS, False, "median of one's other words"),
    Column("median_others", "others' score", THREE_DIGITS, False, "median of others' other words"),
)


def value_of(result: AnyResult, key: str) -> Any:
    """Value of a column, or None; deviations need several orderings, and presets have no parts."""
    if key.endswith("_std") and len(result.orderings) == 1:
        return None
    if key in PARTS and result.size is not None:
        return None
    return getattr(result, key, None)


def columns_of(results: Sequence[AnyResult], brief: bool) -> list[Column]:
    """Columns with any value."""
    return [
        column
        for column in (*COLUMNS, *OPEN_SET, *VOICES)
        if (column.brief or not brief)
        and any(value_of(result, column.key) is not None for result in results)
    ]


def best_of(results: Sequence[AnyResult]) -> list[Result]:
    """Results of the highest accuracy, by preset and samples a word."""
    streams = [one for one in results if isinstance(one, Result) and one.acc is not None]
    highest: dict[tuple[str | None, int | None], float] = {}
    for one in streams:
        group = one.size, one.shots
        highest[group] = max(highest.get(group, 0.0), _shown(one))
    return [one for one in streams if _shown(one) == highest[one.size, one.shots]]


def _shown(result: Result) -> float:
    """Accuracy as shown: results that look equal count as equal."""
    return round(result.acc or 0.0, 2)


def same(results: Sequence[AnyResult]) -> list[Column]:
    """Name columns with the same value in all of several results."""
    if len(results) < 2:
        return []
    named = [column for column in COLUMNS if column.key in NAMES]
    return [c for c in named if len({value_of(result, c.key) for result in results}) == 1]


def cell(result: AnyResult, column: Column, deviation: bool = True) -> str:
    """Format a value of a result, with its deviation over orderings or its 95% interval."""
    value = value_of(result, column.key)
    if value is None:
        return NONE
    text = column.show(value)
    if not deviation:
        return text
    spread, interval = (value_of(result, f"{column.key}_{kind}") for kind in ("std", "ci"))
    if interval is not None:
        text += f" ({_interval(interval)})"
    return text if spread is None else f"{text} ± {spread:.2f}"


def name_of(result: AnyResult) -> str:
    """Name a result by its preset, or by its parts."""
    parts = [value_of(result, key) for key in NAMES if value_of(result, key) is not None]
    if result.shots:
        parts.append(f"{result.shots}-shot")
    return " · ".join(parts)


def no_deviation(results: Sequence[AnyResult]) -> list[str]:
    """Explain a deviation of zero, in one sentence, where a result has one."""
    deviations = (value_of(result, "acc_std") for result in results)
    if not any(one is not None and TWO_DIGITS(one) == "0.00" for one in deviations):
        return []
    return [
        "± 0.00: every ordering or draw gave the same accuracy, as it must where the learner does "
        "not depend on the order of the samples."
    ]


def refused(results: Sequence[AnyResult]) -> list[str]:
    """List the refused combinations with the reasons."""
    reasons = ((name_of(result), getattr(result, "error", None)) for result in results)
    return [f"{name}: {reason}" for name, reason in reasons if reason]
