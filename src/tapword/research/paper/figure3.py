"""Figure 3: micro-sets of the Multilingual Spoken Words Corpus, a language and a size each."""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.research.datasets.base import Dataset
from tapword.research.datasets.mswc import Mswc
from tapword.research.metrics import mean, relative_gain
from tapword.research.paper import charts
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Comparison, Group, Inputs, PaperTable, Reproduced
from tapword.research.paper.results import PaperResults, ReproduceOptions, Run

METHODS = {"SLDA": Run("avg", "SLDA"), "TAP-SLDA": Run("tap", "SLDA"), "FT": Run("avg", "FT")}


def languages(root: Path) -> list[str]:
    """Find the languages in a folder laid out as MSWC, the paper's first."""
    found = {
        path.name.removesuffix("_splits.csv")
        for pattern in ("*_splits.csv", "*/*_splits.csv")
        for path in root.glob(pattern)
    }
    return sorted(found, key=lambda name: (name not in paper.FIGURE3_FT, name))


def micro_sets(
    root: Path, options: ReproduceOptions, also: Dataset | None = None
) -> tuple[dict[tuple[str, int], PaperResults], list[str]]:
    """Micro-sets by language and size, and a note on each that cannot be made.

    `also` is a data set whose most common words are added under its own name.
    """
    sources: dict[str, Callable[..., Dataset]] = {
        language: partial(Mswc, str(root), language) for language in languages(root)
    }
    if sources and also is not None:
        sources[also.name] = also.most_common
    made: dict[tuple[str, int], PaperResults] = {}
    missing = []
    for (name, make), size in itertools.product(sources.items(), options.n_words):
        try:
            dataset = make(n_words=size, n_clips=paper.FIGURE3_CLIPS)
            dataset.clips("test")
        except InputError as error:
            message = str(error).replace(str(root), root.name)
            missing.append(f"{name}, {size} words: {message}")
        else:
            made[name, size] = PaperResults(dataset, options)
    return made, missing


def banner(micro: dict[tuple[str, int], PaperResults]) -> str:
    """Describe our languages and clips beside the paper's."""
    used = [
        f"{language} with {size} words, {len(results.dataset.clips('train')):,} training and "
        f"{len(results.dataset.clips('test')):,} test clips"
        for (language, size), results in micro.items()
    ]
    whole = {language for language, _ in micro} >= set(paper.FIGURE3_FT)
    loud = "" if whole else "NOT THE PAPER'S LANGUAGES. "
    return (
        f"{loud}Micro-sets, ours: {'; '.join(used)}. The paper's, of MSWC: "
        f"{', '.join(paper.FIGURE3_FT)} with {', '.join(map(str, paper.FIGURE3_WORDS))} words, "
        f"{paper.FIGURE3_CLIPS} training clips of each."
    )


def run(inputs: Inputs) -> None:
    """Run every micro-set with every backbone."""
    for backbone in inputs.backbones:
        for results in inputs.micro_sets.values():
            results.run(backbone, METHODS.values())


def gain(results: PaperResults, backbone: Backbone) -> float | None:
    """Relative gain of TAP-SLDA over SLDA on a micro-set, in percent."""
    before, after = (results.accuracy(backbone, METHODS[name]) for name in ("SLDA", "TAP-SLDA"))
    return relative_gain(before, after)


def figure3(inputs: Inputs) -> Reproduced:
    """SLDA, TAP-SLDA and fine-tuning, per language and number of words."""
    run(inputs)
    tables, drawings = [], []
    for backbone in inputs.backbones:
        shown = _table(inputs, backbone)
        tables.append(shown)
        # The first rows are the micro-sets, the last cell of a row is the gain.
        sets = shown.rows[: len(inputs.micro_sets)]
        groups = [(name, [one.ours for one in row[: len(METHODS)]]) for name, row in sets]
        title = f"{backbone.spec}: Acc per language and words"
        drawings.append(charts.bars(title, list(METHODS), groups))
    left_out = [
        f"{language}, {size} words: {note}"
        for (language, size), results in inputs.micro_sets.items()
        for note in results.dataset.notes
    ]
    return Reproduced(tables, left_out + inputs.missing, drawings)


def _table(inputs: Inputs, backbone: Backbone) -> Comparison:
    """Every micro-set, then means of each language, of all, and of the largest."""
    shown = Comparison(
        f"{backbone.spec} compared with the paper's HB-B",
        "language, words",
        [Group("SLDA", ""), Group("TAP-SLDA", ""), Group("FT"), Group("relative gain %")],
    )
    rows: dict[tuple[str, int], list[Cell]] = {}
    for (language, size), results in inputs.micro_sets.items():
        cells = [Cell.of(results.get(backbone, run)) for run in METHODS.values()]
        rows[language, size] = [*cells, Cell(gain(results, backbone))]
        shown.add(f"{language}, {size}", rows[language, size])

    def add_mean(
        name: str, part: list[list[Cell]], ft: float | None = None, gain: float | None = None
    ) -> None:
        ours = [mean(one.ours for one in column) for column in zip(*part, strict=True)]
        pairs = zip(ours, (None, None, ft, gain), strict=True)
        shown.add(name, [Cell(*pair) for pair in pairs])

    for language in dict.fromkeys(language for language, _ in rows):
        part = [row for key, row in rows.items() if key[0] == language]
        add_mean(f"{language}, mean", part, paper.FIGURE3_FT.get(language))
    ft = mean(paper.FIGURE3_FT.values())
    add_mean("mean of all", list(rows.values()), ft, paper.CLAIMS["mswc"])
    largest = [row for (_, size), row in rows.items() if size == max(paper.FIGURE3_WORDS)]
    if largest:
        add_mean("mean, 100 words", largest, gain=paper.CLAIMS["mswc, 100 words"])
    return shown


TABLE = PaperTable("Words of other languages: micro-sets of MSWC", figure3)
