"""Figures that the paper gives; the tables are in `published.json`.

Source: "Online Continual Learning in Keyword Spotting for Low-Resource Devices via Pooling
High-Order Temporal Statistics" (TAP-SLDA), tables 1 to 7, figure 3 and the text; Google Speech
Commands v2, mean of 5 class orderings, accuracies in percent.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

_GIVEN = json.loads(
    resources.files("tapword.research.paper").joinpath("published.json").read_text("utf-8")
)
COLUMNS: tuple[str, ...] = tuple(_GIVEN["backbones"])


@dataclass(frozen=True)
class Figures:
    """Rows with a figure for each of `COLUMNS` or the first of them, and averages if printed.

    Examples
    --------
    >>> TABLE3.at("TAP", "HB-B"), TABLE3.at("TAP", None)
    (95.7, 85.5)
    """

    rows: Mapping[str, Sequence[float]]
    averages: Sequence[float] = ()

    def at(self, row: str, column: str | None) -> float | None:
        """Figure of a row for one of `COLUMNS`, or its average for None; None if there is none."""
        if row not in self.rows:
            return None
        values = self.rows[row]
        if column is not None:
            index = COLUMNS.index(column)
            return values[index] if index < len(values) else None
        if self.averages:
            return self.averages[list(self.rows).index(row)]
        return round(sum(values) / len(values), 1)

    def less(self, other: "Figures", averages: Sequence[float] = ()) -> "Figures":
        """Subtract the rows of the same names in another table."""
        pairs = {name: zip(row, other.rows[name], strict=True) for name, row in self.rows.items()}
        return Figures({name: [a - b for a, b in both] for name, both in pairs.items()}, averages)


def notes_on(table: str) -> list[str]:
    """Explain how to read a table, and where the paper contradicts itself."""
    return [note["text"] for note in _GIVEN["notes"] if table in note["on"]]


def _figures(table: str) -> Figures:
    return Figures(_GIVEN[table]["rows"], _GIVEN[table]["averages"])


# Average pooling, by measure. The paper has no row for CBCL ("NCM and CBCL achieve the same
# results"): NCM's is used.
TABLE1 = {
    measure: Figures(rows | {"CBCL": rows["NCM"]}) for measure, rows in _GIVEN["table1"].items()
}
# TAP on every learner, and the gain over average pooling.
TABLE2 = _figures("table2")
TABLE2_GAIN = TABLE2.less(TABLE1["acc"], _GIVEN["table2"]["average_gains"])
# Poolings, learned by SLDA.
TABLE3 = _figures("table3")
# Highest moment R = 1 to 6, mean over the six backbones: accuracy, and stored numbers in percent of
# the backbone's parameters; measure -> learner -> figures.
TABLE4: dict[str, dict[str, list[float]]] = _GIVEN["table4"]
# Random and pre-trained weights, for the first two of `COLUMNS` only.
TABLE5 = {weights: Figures(rows) for weights, rows in _GIVEN["table5"].items()}
# Samples in random order, and the difference from class by class.
TABLE6 = _figures("table6")
CLASS_BY_CLASS = Figures(
    {**TABLE1["acc"].rows, **{f"TAP-{name}": row for name, row in TABLE2.rows.items()}}
)
TABLE6_CHANGE = TABLE6.less(CLASS_BY_CLASS)
# Longer vectors, learned by SLDA, and their length relative to a frame's.
TABLE7 = _figures("table7")
TABLE7_DELTA_FS = dict(zip(TABLE7.rows, _GIVEN["table7"]["delta_fs"], strict=True))
# Figure 3, HuBERT base alone: accuracy of fine-tuning for each language of MSWC, mean over
# micro-sets of these numbers of words, with at most this many training clips a word.
FIGURE3_FT: dict[str, float] = _GIVEN["figure3_ft"]
FIGURE3_WORDS = (25, 50, 100)
FIGURE3_CLIPS = 1000
# Relative gains in percent that the text states.
CLAIMS: dict[str, float] = _GIVEN["claims"]

# Speech Commands v2 as the paper used it: 35 words, the official split.
N_WORDS, N_TRAIN, N_TEST = 35, 84_843, 11_005
# Time that TAP adds, in percent.
OVERHEAD = {"training": 2.1, "inference": 2.6}
# Mean and standard deviation over pairs of words, by moment.
WASSERSTEIN = {"1": (0.09, 0.02), "2 to 5": (0.22, 0.07)}
ICARL_AVERAGE = 72.3
# "7 exceptions out of 54": learners and backbones that TAP does not help, in percent.
EXCEPTIONS = 100 * 7 / 54
