"""Tables and claims of made-up results: every number is recomputed, whichever backbone it is of."""

import zlib
from types import SimpleNamespace

import pytest

from tapword.research.datasets.mswc import Mswc
from tapword.research.paper import TABLES, claims, tables
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Group, Inputs
from tapword.research.paper.results import Run, TooLarge
from tapword.research.records import Result
from tests.research.conftest import cell_of

# One of the paper's backbones, and one that is not.
EMFORMER = SimpleNamespace(name="emformer_base", spec="emformer_base", params=1234, dims=(3,))
OTHER = SimpleNamespace(name="other", spec="other:x=1", params=0, dims=(3,))
BOTH = [EMFORMER, OTHER]


class Made:
    """A results whose results are numbers between 10 and 90, each another one."""

    def __init__(self, salt="", dataset=None):
        self.salt, self.dataset = salt, dataset
        self.refused = {}
        self.ran = []

    def number(self, *of):
        return 10 + 80 * zlib.crc32(repr((self.salt, *of)).encode()) / 2**32

    def get(self, backbone, run):
        if (backbone.spec, run) in self.refused:
            return self.refused[backbone.spec, run]
        keys = ("acc", "bwt", "forg", "pla", "acc_std", "delta_p", "delta_fs")
        values = {key: self.number(backbone.spec, run, key) for key in keys}
        return Result(learner=run.learner, dim=3, **values)

    def accuracy(self, backbone, run):
        return self.get(backbone, run).acc

    def run(self, backbone, runs):
        self.ran.append((backbone.spec, list(runs)))


def gain(before, after):
    return 100 * (after - before) / (100 - before)


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def close(cells):
    """Write cells so that they can be compared with those found."""
    return [(pytest.approx(one.ours) if one.ours is not None else None, one.paper) for one in cells]


def pairs(cells):
    return [(one.ours, one.paper) for one in cells]


def test_claims_are_recomputed_from_the_paper_and_from_ours():
    results = Made()
    micro = {
        (language, size): Made(f"{language}{size}", object.__new__(Mswc))
        for language in ("de", "ar")
        for size in (25, 100)
    }
    # A micro-set of other data is none of the claim's.
    micro["speech_commands", 100] = Made("other", SimpleNamespace())
    made = claims.claims(Inputs(results, BOTH, {}, micro, ["fr is not there"]))
    assert made.notes == ["fr is not there"]
    [shown] = made.comparisons
    titles = ["emformer_base", "other:x=1", "mean of ours"]
    assert shown.groups == [
        Group("paper's tables", "paper's text", ours="give"),
        *(Group(title, "paper's text") for title in titles),
    ]
    rows = dict(shown.rows)

    def acc(pooling, learner, order="class-iid"):
        """Accuracies of both backbones, and their mean."""
        each = [results.accuracy(one, Run(pooling, learner, order)) for one in BOTH]
        return [*each, mean(each)]

    def over(before, after=("tap", "SLDA")):
        return [gain(*both) for both in zip(acc(*before), acc(*after), strict=True)]

    learners = list(tables.AVG)
    others = [("avg", name) for name in learners]
    others += [(run.pooling, "SLDA") for run in tables.POOLINGS.values() if run.pooling != "tap"]
    best = [max(acc(*one)[k] for one in others) for k in range(3)]
    best = [gain(*both) for both in zip(best, acc("tap", "SLDA"), strict=True)]
    worse = [[acc("tap", name)[k] < acc("avg", name)[k] for name in learners] for k in range(2)]
    wanted = {
        "abstract: over competitors, average": (11.3, best),
        "introduction: over the best competitor": (9.9, best),
        "TAP-SLDA over SLDA": (37.8, over(("avg", "SLDA"))),
        "the same on Emf-B over SQDA": (35.0, [over(("avg", "SQDA"))[0], None, None]),
        "the same on Emf-B over SLDA": (25.9, [over(("avg", "SLDA"))[0], None, None]),
        "TAP over AVG pooling": (37.8, over(("avg", "SLDA"))),
        "TAP over AVGMAX": (10.5, over(("avgmax", "SLDA"))),
        "TAP over TSTP": (19.4, over(("tstp", "SLDA"))),
        "TAP-FT over FT, IID": (29.3, over(("avg", "FT", "iid"), ("tap", "FT", "iid"))),
        "cases that TAP makes worse, % of all": (
            100 * 7 / 54,
            [100 * mean(worse[0]), 100 * mean(worse[1]), 100 * mean(worse[0] + worse[1])],
        ),
        "iCaRL's average Acc": (72.3, acc("avg", "iCaRL")),
    }
    # The paper's own figures of that backbone alone.
    assert rows["the same on Emf-B over SQDA"][0].ours == pytest.approx(gain(24.3, 50.8))
    assert rows["iCaRL's average Acc"][0].ours == 72.3
    gains = {
        key: [
            gain(*(one.accuracy(backbone, Run(name, "SLDA")) for name in ("avg", "tap")))
            for backbone in BOTH
        ]
        for key, one in micro.items()
        if key[0] != "speech_commands"
    }
    for text, figure, sizes in (
        ("TAP-SLDA over SLDA on MSWC", 12.8, (25, 100)),
        ("the same, 100 words", 12.6, (100,)),
    ):
        some = [both for (_, size), both in gains.items() if size in sizes]
        each = [mean(both[k] for both in some) for k in range(2)]
        wanted[text] = figure, [*each, mean(each)]
        assert rows[text][0].ours is None
    assert list(rows) == list(wanted)
    for text, (figure, values) in wanted.items():
        assert pairs(rows[text][1:]) == close([Cell(value, figure) for value in values]), text
        assert rows[text][0].paper == figure
    for one in micro.values():
        assert [spec for spec, _ in one.ran] == [backbone.spec for backbone in BOTH]


def test_claims_of_one_backbone_have_no_mean_and_say_what_they_lack():
    made = claims.claims(Inputs(Made(), [OTHER], {}, {}, ["and this"]))
    assert made.notes == ["Claims on MSWC need its folder: --mswc DIR.", "and this"]
    [shown] = made.comparisons
    assert [group.title for group in shown.groups] == ["paper's tables", "other:x=1"]
    assert cell_of(shown, "TAP-SLDA over SLDA on MSWC", 1) == Cell(None, 12.8)


def test_claims_on_what_was_not_measured():
    nothing = claims.Accuracies([lambda run: None], lambda run: None)
    assert nothing.over_the_best() is None and nothing.exceptions() is None
    # As good is not worse, and a pair of which one is missing does not count.
    values = {Run("avg", "NCM"): 50.0, Run("tap", "NCM"): 50.0, Run("avg", "FT"): 1.0}
    values |= {Run("avg", "SLDA"): 80.0, Run("tap", "SLDA"): 70.0, Run("tap", "SNB"): 1.0}
    assert claims.Accuracies([values.get], values.get).exceptions() == 50
    source = claims.paper_accuracies("Emf-B")
    assert [one(Run("avg", "SLDA")) for one in source.each] == [23.2]


def test_table1_stands_beside_each_backbones_own():
    results = Made()
    made = tables.table1(Inputs(results, BOTH, {}, {}, []))
    shown, stranger = made.comparisons
    assert [note.partition(":")[0] for note in made.notes] == ["other"]
    assert shown.title == "emformer_base compared with the paper's Emf-B"
    assert stranger.title == "other:x=1 compared with the paper's mean of 6"
    assert [group.title for group in shown.groups] == ["Acc", "BwT", "Forg", "Pla", "± Acc"]
    keys = ("acc", "bwt", "forg", "pla", "acc_std")
    for backbone, one, column in ((EMFORMER, shown, "Emf-B"), (OTHER, stranger, None)):
        assert len(one.rows) == 10
        for row, cells in one.rows:
            run = Run("tap", "SLDA", matrix=True)
            if row != "TAP-SLDA":
                run = Run("avg", row, matrix=True)
            result = results.get(backbone, run)
            theirs = [paper.TABLE1[key].at(row, column) for key in keys]
            ours = [getattr(result, key) for key in keys]
            assert pairs(cells) == list(zip(ours, theirs, strict=True))
    assert cell_of(shown, "SLDA").paper == 23.2


def test_table4_is_a_mean_over_backbones_for_each_moment():
    results = Made()
    refused = TooLarge(learner="slda", dim=3, error="needs 9 GB")
    results.refused["other:x=1", Run("tap:R=6", "SLDA")] = refused
    made = tables.table4(Inputs(results, BOTH, {}, {}, []))
    [shown] = made.comparisons
    assert shown.title == "Mean over 2 backbone(s) of ours and the paper's 6"
    assert shown.groups == [Group("Acc"), Group("Δp %", digits=2)]
    moments = ("avg", "tap:R=2", "tap:R=3", "tap:R=4", "tap", "tap:R=6")
    names = [f"{learner} R={R}" for learner in ("FT", "NCM", "SLDA") for R in range(1, 7)]
    assert [name for name, _ in shown.rows] == names
    for learner in ("FT", "NCM", "SLDA"):
        for R, spec in enumerate(moments[:-1], start=1):
            found = [results.get(one, Run(spec, learner)) for one in BOTH]
            wanted = [
                Cell(mean(getattr(one, key) for one in found), paper.TABLE4[key][learner][R - 1])
                for key in ("acc", "delta_p")
            ]
            cells = dict(shown.rows)[f"{learner} R={R}"]
            assert pairs(cells) == close(wanted) and not any(one.text for one in cells)
    assert cell_of(shown, "SLDA R=6") == Cell(None, 84.9, "too large")
    first, other = made.notes
    assert first == "other:x=1 has no parameters, so it has no Δp."
    assert other.startswith("other:x=1: not one of the paper's six backbones")
    large = SimpleNamespace(name="large", spec="large", params=12345)
    note = tables.table4(Inputs(results, [large], {}, {}, [])).notes[0]
    assert note.startswith("large has 12,345 parameters, the paper's backbones 64 to 962 million")


def test_table5_runs_untrained_networks_beside_trained_ones():
    results = Made()

    class Network:
        """One that has random weights besides its own."""

        name, params, dims = "emformer_base", 1234, (3,)

        def __init__(self, weights="pretrained"):
            self.weights = weights
            self.spec = self.name + (":weights=random" if weights == "random" else "")

        @staticmethod
        def parameters():
            return {"weights": SimpleNamespace(default="pretrained")}

        def arguments(self):
            return {"weights": self.weights}

    class Stranger(Network):
        name = "stranger"

        @staticmethod
        def parameters():
            return {}

    trained, random, stranger = Network(), Network("random"), Stranger()
    untrained = {trained.spec: random}
    made = tables.table5(Inputs(results, [trained, stranger], untrained, {}, []))
    ours, theirs = made.comparisons
    assert ours.title == "emformer_base compared with the paper's Emf-B"
    assert theirs.title == "stranger compared with the paper's mean of 2"
    assert [(one.title, one.paper) for one in theirs.groups] == [
        ("random", "paper mean of 2"),
        ("trained", "paper mean of 2"),
    ]
    assert results.ran == [(random.spec, list(tables.METHODS.values()))]
    assert [name for name, _ in ours.rows] == list(tables.METHODS)
    for row, run in tables.METHODS.items():
        accuracies = [results.accuracy(one, run) for one in (random, trained)]
        figures = [paper.TABLE5[key].at(row, "Emf-B") for key in ("random", "pretrained")]
        assert pairs(dict(ours.rows)[row]) == list(zip(accuracies, figures, strict=True))
        figures = [paper.TABLE5[key].at(row, None) for key in ("random", "pretrained")]
        accuracies = [None, results.accuracy(stranger, run)]
        assert pairs(dict(theirs.rows)[row]) == list(zip(accuracies, figures, strict=True))
    assert made.notes == [
        "stranger: not one of the paper's two backbones, so compared with their mean. It has no "
        "untrained version."
    ]
    # Random weights that were asked for by name are run with the others.
    alone = tables.table5(Inputs(Made(), [random], {}, {}, []))
    assert [one.title for one in alone.comparisons] == [
        "emformer_base compared with the paper's Emf-B"
    ]
    assert cell_of(alone.comparisons[0], "SLDA", "trained").ours is None
    assert cell_of(alone.comparisons[0], "SLDA", "random").ours is not None
    assert alone.notes == ["Trained weights were not requested or are unavailable: emformer_base."]


def test_table7_shows_how_long_vectors_are():
    results = Made()
    made = tables.table7(Inputs(results, BOTH, {}, {}, []))
    [shown] = made.comparisons
    titles = [(one.title, one.paper) for one in shown.groups]
    assert titles[:2] == [("emformer_base", "paper Emf-B"), ("other:x=1", "paper mean of 6")]
    assert titles[2:] == [("mean of ours", "paper mean of 6"), ("Δfs", "paper")]
    for row, run in tables.LONG_POOLINGS.items():
        found = [results.get(one, run) for one in BOTH]
        wanted = [
            Cell(found[0].acc, paper.TABLE7.at(row, "Emf-B")),
            Cell(found[1].acc, paper.TABLE7.at(row, None)),
            Cell(mean(one.acc for one in found), paper.TABLE7.at(row, None)),
            Cell(mean(one.delta_fs for one in found), paper.TABLE7_DELTA_FS[row]),
        ]
        assert pairs(dict(shown.rows)[row]) == close(wanted)
    assert [note.partition(":")[0] for note in made.notes] == ["other"]


def test_grids_of_gains_subtract_ours_and_show_what_is_missing():
    results = Made()
    refused = TooLarge(learner="sqda", dim=3, error="needs 9 GB")
    results.refused["other:x=1", Run("avg", "SQDA")] = refused
    made = TABLES["table2"].reproduce("table2", Inputs(results, BOTH, {}, {}, []))
    accuracy, gains = made.comparisons
    assert not any(group.signed for group in accuracy.groups)
    assert all(group.signed for group in gains.groups)
    for row in tables.TAP:
        tap = [results.accuracy(one, Run("tap", row)) for one in BOTH]
        figures = [paper.TABLE2.at(row, name) for name in ("Emf-B", None, None)]
        wanted = [Cell(*pair) for pair in zip([*tap, mean(tap)], figures, strict=True)]
        assert pairs(dict(accuracy.rows)[row]) == close(wanted)
        if row == "SQDA":
            continue
        more = [
            own - results.accuracy(one, Run("avg", row)) for own, one in zip(tap, BOTH, strict=True)
        ]
        figures = [paper.TABLE2_GAIN.at(row, name) for name in ("Emf-B", None, None)]
        wanted = [Cell(*pair) for pair in zip([*more, mean(more)], figures, strict=True)]
        assert pairs(dict(gains.rows)[row]) == close(wanted)
    assert cell_of(gains, "SQDA", "other:x=1").text == "too large"
    assert all(
        cell_of(gains, "SQDA", title).ours is None for title in ("other:x=1", "mean of ours")
    )
    assert "other:x=1 · avg · SQDA: needs 9 GB" in made.notes
    assert (made.name, made.title) == ("table2", "TAP on every learner")
