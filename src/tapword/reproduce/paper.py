"""The figures the paper gives, as data: facts for comparison, beside which ours are put.

Source: "Online Continual Learning in Keyword Spotting for Low-Resource Devices via Pooling
High-Order Temporal Statistics" (TAP-SLDA), tables 1 to 7, figure 3 and the text; Google Speech
Commands v2, mean of 5 class orderings, accuracies in percent. Rows hold one figure for each of
`COLUMNS`, in that order.
"""

from collections.abc import Mapping, Sequence

Rows = Mapping[str, Sequence[float]]

COLUMNS = ("W2V-B", "W2V-L", "Emf-B", "HB-B", "HB-L", "HB-XL")
# Speech Commands v2 as the paper used it: 35 words, the official split.
N_WORDS, N_TRAIN, N_TEST = 35, 84_843, 11_005

# Average pooling. The paper has no row of CBCL: "NCM and CBCL achieve the same results".
TABLE1: dict[str, Rows] = {
    "acc": {
        "FT": (2.5, 2.5, 2.7, 2.5, 2.5, 2.5),
        "PRCP": (2.5, 2.5, 2.9, 2.5, 2.5, 2.6),
        "SNB": (3.7, 9.4, 7.2, 77.4, 6.5, 57.9),
        "SOvR": (1.8, 1.8, 4.9, 19.1, 14.0, 15.7),
        "NCM": (67.5, 69.5, 8.8, 83.9, 46.7, 62.5),
        "SLDA": (82.4, 81.6, 23.2, 94.2, 85.5, 93.3),
        "SQDA": (80.6, 80.5, 24.3, 90.0, 67.4, 83.0),
        "TAP-SLDA": (89.9, 90.0, 50.8, 95.7, 90.8, 95.5),
        "iCaRL": (76.9, 73.6, 18.2, 93.7, 78.5, 92.9),
    },
    "bwt": {
        "FT": (1.2, 1.3, 1.5, 1.2, 1.2, 1.2),
        "PRCP": (1.2, 1.3, 2.2, 1.4, 1.2, 1.3),
        "SNB": (6.5, 9.2, 13.1, 80.9, 12.0, 60.3),
        "SOvR": (6.2, 6.2, 7.3, 29.8, 21.8, 22.6),
        "NCM": (74.0, 76.0, 14.1, 86.0, 55.4, 66.7),
        "SLDA": (84.2, 83.8, 32.9, 94.9, 88.2, 94.1),
        "SQDA": (78.2, 76.9, 21.9, 87.8, 59.4, 73.9),
        "TAP-SLDA": (91.8, 91.7, 58.8, 96.0, 91.8, 95.8),
        "iCaRL": (79.1, 78.0, 26.9, 94.6, 83.1, 93.8),
    },
    "forg": {
        "FT": (98.5, 98.5, 97.6, 98.5, 98.5, 98.5),
        "PRCP": (98.4, 98.4, 95.8, 98.4, 98.4, 98.4),
        "SNB": (38.6, 36.1, 24.8, 18.1, 37.1, 23.8),
        "SOvR": (39.6, 31.6, 24.4, 41.2, 34.8, 35.3),
        "NCM": (13.2, 12.1, 23.6, 8.2, 22.8, 17.3),
        "SLDA": (8.0, 8.3, 23.7, 3.8, 8.3, 5.1),
        "SQDA": (5.7, 5.1, 17.3, 2.8, 4.4, 0.0),
        "TAP-SLDA": (5.6, 5.4, 20.3, 3.0, 6.1, 3.4),
        "iCaRL": (14.7, 17.4, 28.8, 4.2, 12.8, 5.3),
    },
    "pla": {
        "FT": (100.0, 100.0, 99.8, 100.0, 100.0, 100.0),
        "PRCP": (100.0, 100.0, 97.5, 100.0, 100.0, 100.0),
        "SNB": (15.7, 16.6, 22.8, 84.2, 23.7, 65.2),
        "SOvR": (14.5, 15.8, 14.5, 42.5, 32.9, 33.8),
        "NCM": (77.3, 80.0, 22.0, 89.1, 62.4, 72.2),
        "SLDA": (87.0, 86.8, 41.9, 96.2, 90.8, 95.4),
        "SQDA": (81.2, 80.6, 31.5, 90.0, 64.8, 76.8),
        "TAP-SLDA": (93.7, 93.4, 65.8, 96.9, 93.6, 96.6),
        "iCaRL": (83.6, 83.5, 44.7, 96.7, 85.1, 95.5),
    },
    "acc_std": {
        "FT": (1.0, 1.0, 0.8, 1.0, 1.0, 1.0),
        "PRCP": (1.0, 1.0, 0.7, 1.0, 1.0, 1.0),
        "SNB": (0.0, 2.4, 0.0, 0.0, 0.0, 0.0),
        "SOvR": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "NCM": (6.0, 7.0, 0.0, 0.0, 0.0, 0.0),
        "SLDA": (0.1, 0.1, 0.0, 0.0, 0.0, 0.0),
        "SQDA": (2.5, 2.4, 0.7, 3.4, 4.4, 2.1),
        "TAP-SLDA": (0.0, 0.0, 0.3, 0.0, 0.0, 0.0),
        "iCaRL": (1.0, 1.8, 0.3, 0.1, 0.5, 0.3),
    },
}

# TAP on every learner; then the averages and gains printed beside the rows.
TABLE2: Rows = {
    "FT": (5.4, 6.1, 2.9, 2.7, 2.7, 2.7),
    "PRCP": (3.5, 4.6, 3.0, 2.8, 2.8, 2.9),
    "SNB": (3.9, 7.1, 9.3, 84.1, 6.9, 59.9),
    "SOvR": (51.3, 60.9, 5.8, 54.3, 14.9, 49.6),
    "NCM": (78.2, 79.8, 12.1, 87.2, 44.5, 84.9),
    "CBCL": (75.9, 77.3, 12.0, 88.7, 48.0, 86.1),
    "SLDA": (89.9, 90.0, 50.8, 95.7, 90.8, 95.5),
    "SQDA": (85.5, 84.0, 48.7, 88.8, 67.1, 82.7),
    "iCaRL": (82.9, 85.7, 31.0, 90.9, 76.9, 90.8),
}
TABLE2_AVERAGE = dict(
    zip(TABLE2, (3.8, 3.3, 28.5, 39.5, 64.5, 64.7, 85.5, 76.1, 76.4), strict=True)
)
TABLE2_GAIN = dict(zip(TABLE2, (1.2, 0.7, 2.3, 29.9, 8.0, 8.2, 8.8, 5.1, 4.1), strict=True))

# Poolings, learned by SLDA.
TABLE3: Rows = {
    "AVG": (82.4, 81.6, 23.2, 94.2, 85.5, 93.3),
    "MAX": (87.7, 88.3, 34.9, 94.8, 87.2, 94.1),
    "MIX (50%)": (87.8, 87.3, 31.1, 94.7, 87.3, 94.0),
    "STOCH": (80.9, 77.6, 24.6, 85.3, 64.5, 77.9),
    "L2": (79.0, 79.7, 17.4, 92.9, 74.4, 89.7),
    "L3": (79.3, 81.2, 15.9, 92.4, 70.4, 89.1),
    "RAP (10%)": (86.5, 86.9, 36.3, 94.8, 87.5, 93.8),
    "AVGMAX": (89.1, 89.6, 44.8, 95.2, 89.1, 94.7),
    "iSQRT-COV": (80.3, 80.3, 55.1, 92.4, 83.8, 90.3),
    "TSDP": (83.9, 83.6, 32.4, 94.4, 84.9, 93.9),
    "TSTP": (87.4, 87.6, 39.1, 95.1, 88.0, 94.5),
    "TAP": (90.0, 90.0, 50.8, 95.7, 90.8, 95.5),
}
TABLE3_AVERAGE = dict(
    zip(
        TABLE3,
        (76.7, 81.2, 80.4, 68.4, 72.2, 71.4, 81.0, 83.8, 80.4, 78.9, 82.0, 85.5),
        strict=True,
    )
)

# Highest moment R = 1 to 6, mean over the six backbones: accuracy, and numbers stored in percent
# of the backbone's.
TABLE4: dict[str, Rows] = {
    "acc": {
        "FT": (1.6, 1.5, 1.5, 1.5, 3.8, 2.6),
        "NCM": (52.1, 62.8, 63.5, 64.0, 64.5, 56.7),
        "SLDA": (76.7, 82.0, 84.4, 85.2, 85.5, 84.9),
    },
    "delta_p": {
        "FT": (0.01, 0.01, 0.02, 0.02, 0.03, 0.04),
        "NCM": (0.01, 0.01, 0.02, 0.02, 0.03, 0.04),
        "SLDA": (0.1, 0.1, 0.11, 0.12, 0.12, 0.13),
    },
}

# The first two of `COLUMNS` alone.
TABLE5: dict[str, Rows] = {
    "random": {
        "FT": (2.5, 2.5),
        "TAP-FT": (2.5, 2.5),
        "NCM": (13.0, 14.0),
        "TAP-NCM": (20.2, 21.7),
        "SLDA": (42.3, 43.2),
        "TAP-SLDA": (47.2, 48.1),
    },
    "pretrained": {
        "FT": (2.5, 2.5),
        "TAP-FT": (5.4, 6.1),
        "NCM": (67.5, 69.5),
        "TAP-NCM": (78.2, 79.8),
        "SLDA": (82.4, 81.6),
        "TAP-SLDA": (89.9, 90.0),
    },
}

# Samples in random order, no class ordering.
TABLE6: Rows = {
    "FT": (44.6, 51.7, 13.9, 86.2, 52.6, 86.8),
    "TAP-FT": (78.4, 81.1, 10.4, 88.1, 67.1, 88.1),
    "NCM": (67.5, 69.5, 8.8, 83.9, 46.7, 62.5),
    "TAP-NCM": (78.2, 79.8, 12.1, 87.2, 44.5, 84.9),
    "SLDA": (82.5, 81.6, 23.2, 94.2, 85.5, 93.3),
    "TAP-SLDA": (90.0, 90.0, 50.8, 95.7, 90.8, 95.5),
}
TABLE6_AVERAGE = dict(zip(TABLE6, (56.0, 68.9, 52.1, 64.5, 76.7, 85.5), strict=True))

# Longer vectors, learned by SLDA; then the averages and how many times a frame's length they are.
TABLE7: Rows = {
    "AVG": (82.4, 81.6, 23.2, 94.2, 85.5, 93.3),
    "MAX": (87.7, 88.3, 34.9, 94.8, 87.2, 94.1),
    "RAP 5%": (85.7, 85.8, 35.1, 94.5, 86.8, 93.8),
    "RAP 10%": (86.5, 86.9, 36.3, 94.8, 87.5, 93.8),
    "RAP 20%": (85.7, 85.9, 36.3, 94.5, 86.8, 93.8),
    "MAXW_2": (87.7, 88.3, 34.9, 94.8, 87.2, 94.1),
    "MAXW_5": (85.8, 86.5, 34.9, 94.7, 87.1, 93.9),
    "MAXW_10": (85.6, 86.1, 35.3, 94.7, 86.7, 93.7),
    "FLAT": (85.1, 86.2, 24.6, 94.3, 85.7, 93.5),
    "TAP (R=2)": (87.4, 87.6, 39.1, 95.1, 88.0, 94.5),
    "TAP (R=3)": (89.3, 89.2, 47.3, 95.5, 89.8, 95.4),
    "TAP (R=4)": (90.0, 90.0, 49.7, 95.6, 90.4, 95.5),
    "TAP (R=5)": (90.0, 90.0, 50.8, 95.7, 90.8, 95.5),
    "TAP (R=6)": (90.1, 90.2, 47.8, 95.7, 89.9, 95.5),
}
TABLE7_AVERAGE = dict(
    zip(
        TABLE7,
        (76.7, 81.2, 80.3, 81.0, 80.5, 81.2, 80.5, 80.3, 78.2, 82.0, 84.4, 85.2, 85.5, 84.9),
        strict=True,
    )
)
TABLE7_DELTA_FS = dict(
    zip(
        TABLE7,
        (1.0, 1.0, 26.8, 53.5, 107.0, 5.0, 11.0, 21.0, 535.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        strict=True,
    )
)

# MSWC, HuBERT base: fine-tuning, mean over 25, 50 and 100 words, a language each.
FIGURE3_FT = (1.6, 1.5, 1.6, 1.4, 1.7)
# What TAP adds to the time, in percent.
OVERHEAD = {"training": 2.1, "inference": 2.6}
# Mean and deviation over pairs of words.
WASSERSTEIN = {"1": (0.09, 0.02), "2 to 5": (0.22, 0.07)}
# Relative gains in percent that the text states.
CLAIMS = {
    "abstract": 11.3,
    "introduction": 9.9,
    "slda": 37.8,
    "emf-b over sqda": 35.0,
    "emf-b over slda": 25.9,
    "avg": 37.8,
    "avgmax": 10.5,
    "tstp": 19.4,
    "iid": 29.3,
    "mswc": 12.8,
    "mswc, 100 words": 12.6,
}
ICARL_AVERAGE = 72.3
# Of the 9 learners on 6 backbones, in how many TAP does not help.
EXCEPTIONS, CASES = 7, 54


def figure(
    rows: Rows, row: str, column: str | None, printed: Mapping[str, float] | None = None
) -> float | None:
    """One figure of a table.

    Parameters
    ----------
    rows, row
        The table and its row; None comes back where the paper has no such row.
    column
        One of `COLUMNS`; None: the average over the backbones.
    printed
        Averages as printed; without them the mean of the row, to one digit.

    Examples
    --------
    >>> figure(TABLE3, "TAP", "HB-B"), figure(TABLE3, "TAP", None, TABLE3_AVERAGE)
    (95.7, 85.5)
    """
    if row not in rows:
        return None
    values = rows[row]
    if column is None:
        return printed[row] if printed else round(sum(values) / len(values), 1)
    index = COLUMNS.index(column)
    return values[index] if index < len(values) else None
