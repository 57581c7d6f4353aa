"""Figure 3: micro-sets of the Multilingual Spoken Words Corpus, a language and a size each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tapword import metrics
from tapword.backbones.base import Backbone
from tapword.datasets.mswc import Mswc
from tapword.errors import InputError
from tapword.reproduce import charts, paper
from tapword.reproduce.bench import Bench, Need
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced
from tapword.reproduce.context import Context, Table, cell, mean

LANGUAGES = ("en", "de", "fr", "ca", "rw")
SIZES = (25, 50, 100)
CLIPS = 1000
METHODS = {"SLDA": ("avg", "SLDA"), "TAP-SLDA": ("tap", "SLDA"), "FT": ("avg", "FT")}
NEEDS = [Need(*parts) for parts in METHODS.values()]
TITLE = "Words of other languages: micro-sets of MSWC"


def languages(root: Path) -> list[str]:
    """Find the languages in a folder laid out as MSWC, the paper's first."""
    found = {
        path.name.removesuffix("_splits.csv")
        for pattern in ("*_splits.csv", "*/*_splits.csv")
        for path in root.glob(pattern)
    }
    return sorted(found, key=lambda name: (name not in LANGUAGES, name))


def micro_sets(
    root: Path, sizes: tuple[int, ...], make: Callable[[Any], Bench]
) -> tuple[dict[tuple[str, int], Bench], list[str]]:
    """Micro-sets that can be had, and sentences on those that cannot.

    Parameters
    ----------
    root
        Folder with languages.
    sizes
        Numbers of words.
    make
        Makes the bench of a data set.
    """
    made: dict[tuple[str, int], Bench] = {}
    absent = []
    for language in languages(root):
        for size in sizes:
            dataset = Mswc(str(root), language, n_words=size, n_clips=CLIPS)
            try:
                dataset.clips("test")
            except InputError as error:
                message = str(error).replace(str(root), root.name)
                absent.append(f"{language}, {size} words: {message}")
                continue
            made[language, size] = make(dataset)
    return made, absent


def banner(micro: dict[tuple[str, int], Bench]) -> str:
    """Say which languages and clips ours are from."""
    used = "; ".join(
        f"{language} with {size} words, {len(bench.dataset.clips('train')):,} clips to learn and "
        f"{len(bench.dataset.clips('test')):,} to ask"
        for (language, size), bench in micro.items()
    )
    whole = {language for language, _ in micro} >= set(LANGUAGES)
    loud = "" if whole else "NOT THE PAPER'S LANGUAGES. "
    return (
        f"{loud}MSWC, ours: {used}. The paper's: {', '.join(LANGUAGES)} with "
        f"{', '.join(map(str, SIZES))} words, {CLIPS} clips of each to learn."
    )


def run(context: Context, backbone: Backbone) -> None:
    """Run every micro-set."""
    for bench in context.micro_sets.values():
        bench.run(backbone, NEEDS)


def gain(bench: Bench, backbone: Backbone) -> float | None:
    """Relative gain of TAP-SLDA over SLDA on a micro-set, in percent."""
    one, two = (bench.get(backbone, *METHODS[name]).get("acc") for name in ("SLDA", "TAP-SLDA"))
    return None if one is None or two is None else metrics.relative_gain(one, two)


def figure3(context: Context, name: str, title: str) -> Reproduced:
    """SLDA, TAP-SLDA and fine-tuning, per language and number of words."""
    if not context.micro_sets:
        reasons = "; ".join(context.absent) or "there is no <language>_splits.csv"
        raise InputError(f"figure3 needs a folder laid out as MSWC: {reasons}")
    tables, drawings = [], []
    for backbone in context.usable:
        run(context, backbone)
        tables.append(_table(context, backbone))
        drawn = [
            (
                f"{language}, {size}",
                [bench.get(backbone, *parts).get("acc") for parts in METHODS.values()],
            )
            for (language, size), bench in context.micro_sets.items()
        ]
        drawings.append(
            charts.bars(f"{backbone.spec}: Acc per language and words", list(METHODS), drawn)
        )
    said = [
        f"The paper's languages are {', '.join(LANGUAGES)} (its text names four of the five), its "
        "backbone is HB-B alone.",
        "The paper prints its figure's bars without numbers; it states fine-tuning's accuracy per "
        "language (taken here in the order above) and two mean relative gains.",
        "A relative gain is a share of what SLDA leaves to gain: of little it says little.",
        *context.absent,
    ]
    return Reproduced(name, title, tables, said, drawings)


def _table(context: Context, backbone: Backbone) -> Comparison:
    shown = Comparison(
        f"{backbone.spec} beside the paper's HB-B",
        "language, words",
        [*(Group(key, "") for key in ("SLDA", "TAP-SLDA")), Group("FT"), Group("relative gain %")],
    )
    rows: dict[tuple[str, int], list[Cell]] = {}
    for key, bench in context.micro_sets.items():
        cells = [cell(bench.get(backbone, *parts)) for parts in METHODS.values()]
        rows[key] = [*cells, Cell(gain(bench, backbone))]
        shown.add(f"{key[0]}, {key[1]}", rows[key])

    def average(name: str, part: list[list[Cell]], ft: float | None, said: float | None) -> None:
        values = [mean(row[index].ours for row in part) for index in range(4)]
        theirs = [None, None, ft, said]
        shown.add(name, [Cell(*pair) for pair in zip(values, theirs, strict=True)])

    for language in dict.fromkeys(key[0] for key in rows):
        place = LANGUAGES.index(language) if language in LANGUAGES else None
        theirs = None if place is None else paper.FIGURE3_FT[place]
        average(
            f"{language}, mean",
            [row for key, row in rows.items() if key[0] == language],
            theirs,
            None,
        )
    average("mean of all", list(rows.values()), mean(paper.FIGURE3_FT), paper.CLAIMS["mswc"])
    largest = [row for key, row in rows.items() if key[1] == SIZES[-1]]
    if largest:
        average("mean, 100 words", largest, None, paper.CLAIMS["mswc, 100 words"])
    return shown


TABLE = Table(TITLE, [], figure3)
