"""Distances between words and the time that TAP adds, on made-up numbers and by a made-up clock."""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from tapword.research import metrics
from tapword.research.datasets.base import Clip
from tapword.research.paper import overhead, wasserstein
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Group, Inputs
from tapword.research.runner import Split
from tests.research.conftest import cell_of

# Two blocks of frames, as some backbones give.
DIMS = (2, 3)


def moments_of(words, rng):
    """Moments (n, 5, 5) of clips: features of both blocks side by side, words apart."""
    far = {word: index for index, word in enumerate(sorted(set(words)))}
    shift = np.array([far[word] for word in words])[:, None, None]
    scale = np.arange(1, 26).reshape(5, 5)
    return (scale * (shift + rng.normal(size=(len(words), 5, 5)))).astype(np.float32)


class Vectors:
    """A results that has vectors of `tap` at hand: block after block, in each moment by moment."""

    def __init__(self, moments, words, dims):
        blocks = np.split(moments, list(itertools.accumulate(dims))[:-1], axis=2)
        vectors = np.hstack([block.reshape(len(words), -1) for block in blocks])
        self.split = Split(vectors, list(words), vectors[:0], [])
        self.trimmed = 0
        self.options = SimpleNamespace(cache=SimpleNamespace(trim=self.trim))

    def trim(self):
        self.trimmed += 1

    def pooling(self, spec, backbone):
        return spec if backbone else None

    def splits(self, backbone, poolings):
        assert poolings == {"tap": "tap"}
        yield "tap", self.split


def reproduced(moments, words, dims=DIMS):
    results = Vectors(moments, words, dims)
    backbone = SimpleNamespace(spec="two blocks", dims=dims)
    made = wasserstein.wasserstein(Inputs(results, [backbone], {}, {}, []))
    assert results.trimmed == 1
    return made


@pytest.mark.parametrize("dims", [DIMS, (5,), (1, 2, 2)])
def test_distances_of_each_moment_and_of_the_higher_ones(rng, dims):
    words = ["a", "b", "c"] * 6
    moments = moments_of(words, rng)
    made = reproduced(moments, words, dims)
    [shown] = made.comparisons
    assert all(group.digits == 3 for group in shown.groups)
    assert [name for name, _ in shown.rows] == ["1", "2", "3", "4", "5", "2 to 5"]
    parts = {str(r + 1): moments[:, r] for r in range(5)} | {"2 to 5": moments[:, 1:]}
    for row, part in parts.items():
        wanted = metrics.wasserstein(part.reshape(len(words), -1), words)
        for title, value in zip(("raw", "± raw", "scaled", "± scaled"), wanted, strict=True):
            assert cell_of(shown, row, title).ours == pytest.approx(value)
    for row in ("1", "2 to 5"):
        theirs = paper.WASSERSTEIN[row]
        figures = [cell_of(shown, row, index).paper for index in range(4)]
        assert figures == [*theirs, *theirs]
    assert cell_of(shown, "2") == Cell(cell_of(shown, "2").ours, None)


def test_distances_take_some_clips_of_each_word(rng, monkeypatch):
    monkeypatch.setattr(wasserstein, "CLIPS_A_WORD", 3)
    words = ["a"] * 9 + ["b"] * 2 + ["c"] * 4
    moments = moments_of(words, rng)
    made = reproduced(moments, words)
    assert made.notes[0].startswith("8 training clips, at most 3 a word")
    # Which clips is the draw's choice; the same is drawn again, and all of a word that has few.
    again = reproduced(moments, words)
    assert made.comparisons[0].rows == again.comparisons[0].rows
    moments[9:11] += 1000
    moved = reproduced(moments, words).comparisons[0]
    assert cell_of(moved, "1").ours == pytest.approx(
        cell_of(made.comparisons[0], "1").ours, abs=700
    )
    assert cell_of(moved, "1").ours > cell_of(made.comparisons[0], "1").ours + 600


def test_histograms_show_words_and_a_feature_of_median_distance():
    # Words lie 1, 2 and 3 apart, so 2 is the median; features 3, 1, 5, 2, 4 times that far.
    words = np.repeat(["a", "b", "c"], 40)
    place = np.repeat([0.0, 1.0, 3.0], 40)
    ramp = np.tile(np.linspace(-0.5, 0.5, 40), 3)
    far = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
    noise = np.tile(np.linspace(-40, 40, 40), 3)
    moments = np.zeros((120, 5, 5))
    moments[:, 1:] = (place[:, None] * far + ramp[:, None] + noise[:, None])[:, None]
    # The first moment is not asked which feature it is: there words are far apart, and another
    # feature is the median one. One of large numbers counts no more than the others.
    moments[:, 0] = place[:, None] * far[[1, 2, 3, 4, 0]] + noise[:, None] / 40
    moments[:, 0, 0] = 1e4 * (np.repeat([0.0, 5.0, 6.0], 40) + noise)
    [drawing] = reproduced(moments.astype(np.float32), words.tolist()).drawings
    assert "two blocks, feature 0: two words of median distance" in drawing
    assert "</i>b<" in drawing and "</i>c<" in drawing and "</i>a<" not in drawing
    assert [f"moment {r}" in drawing for r in range(7)] == [False, *[True] * 5, False]


@pytest.mark.parametrize("seed", range(6))
def test_histograms_are_of_the_median_pair_and_feature(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    words = np.repeat(["a", "b", "c", "d"], [5, 9, 7, 12])
    units = 10 ** rng.uniform(-3, 3, (5, 6))
    places = np.repeat(rng.normal(size=(4, 5, 6)), [5, 9, 7, 12], axis=0)
    moments = units * (places + rng.normal(size=(33, 5, 6)))
    drawn = []
    monkeypatch.setattr(wasserstein.charts, "histograms", lambda *given: drawn.append(given))
    wasserstein._histograms(SimpleNamespace(spec="b"), moments, words)
    scaled = moments / moments.std(axis=0)
    parts = {word: scaled[words == word] for word in "abcd"}
    pairs = sorted(
        itertools.combinations("abcd", 2),
        key=lambda pair: np.abs(np.subtract(*(parts[w].mean(axis=0) for w in pair))).mean(),
    )
    one, two = pairs[3]

    def apart(feature):
        """Sum over all moments but the mean."""
        both = [(parts[one][:, r, feature], parts[two][:, r, feature]) for r in range(1, 5)]
        return sum(scipy.stats.wasserstein_distance(*columns) for columns in both)

    feature = sorted(range(6), key=apart)[3]
    [(title, names, panels)] = drawn
    assert title.startswith(f"b, feature {feature}: ") and names == [one, two]
    for r, (caption, *columns) in enumerate(panels):
        assert caption == f"moment {r + 1}"
        for word, column in zip(names, columns, strict=True):
            np.testing.assert_array_equal(column, moments[words == word][:, r, feature])


class Clock:
    """Time that passes only where it is told to, in milliseconds."""

    def __init__(self):
        self.ms = 0.0

    def perf_counter(self):
        return self.ms / 1000


@pytest.fixture
def timed(monkeypatch):
    """A results, a backbone and clips, each step of which takes a known time."""
    clock = Clock()
    calls: list[tuple] = []

    def takes(*times, first=()):
        """Take these milliseconds in turn, again and again, after the `first` ones."""
        left = itertools.chain(first, itertools.cycle(times))

        def pass_by():
            clock.ms += next(left)

        return pass_by

    class Backbone:
        spec = "clockwork"
        pass_by = staticmethod(takes(40, 20, 30, first=[500]))

        def frames(self, sound):
            self.pass_by()
            return [sound]

    steps = {"avg": takes(9, 2, 4), "tap": takes(9, 9, 5)}

    def pool_clips(pooling, clips, learning):
        assert learning and len(clips) == 1
        steps[pooling]()
        return [pooling]

    class Learner:
        def __init__(self):
            self.solved = False
            self.learning = takes(3, first=[100])

        def learn_one(self, vector, word):
            calls.append((vector, word))
            self.learning()

        def predict(self, vector):
            clock.ms += 1 if self.solved else 700
            self.solved = True

    monkeypatch.setattr(overhead.time, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(overhead, "pool_clips", pool_clips)
    monkeypatch.setattr(overhead, "block_poolings", lambda pooling, backbone: pooling)
    monkeypatch.setattr(overhead.registry, "build", lambda room, spec: Learner())
    clips = [Clip(index, f"word{index % 3}", None, "train") for index in range(10)]
    results = SimpleNamespace(
        dataset=SimpleNamespace(
            read=lambda clip: np.full(4, clip.path, dtype=np.float32), clips=lambda split: clips
        ),
        pooling=lambda spec, backbone: spec if backbone else None,
        learner=lambda name: {"SLDA": "slda"}[name],
        options=SimpleNamespace(timed_clips=4),
    )
    return SimpleNamespace(results=results, backbone=Backbone(), clips=clips, calls=calls)


def test_steps_are_timed_one_by_one(timed):
    ms = overhead.measure(timed.results, timed.backbone, timed.clips[:3])
    # The best of some repeats, and the median over clips; a first pass and the solve are not timed.
    expected = {"backbone": (20, 20), "pooling": (2, 5), "learning": (3, 3), "predicting": (1, 1)}
    for step, both in expected.items():
        assert [ms[name, step] for name in ("avg", "tap")] == pytest.approx(both)
    # A clip is learned once, though other steps are repeated.
    assert timed.calls == [(name, f"word{i}") for i in range(3) for name in ("avg", "tap")]


def test_what_happens_once_is_not_timed(timed, monkeypatch):
    """The first pass of a network, and the solve before the first prediction."""
    monkeypatch.setattr(overhead, "REPEATS", 1)
    ms = overhead.measure(timed.results, timed.backbone, timed.clips[:3])
    assert ms["avg", "backbone"] == pytest.approx(30)
    assert ms["avg", "predicting"] == pytest.approx(1)
    ms = overhead.measure(timed.results, timed.backbone, timed.clips[:1])
    assert ms["tap", "predicting"] == pytest.approx(1)


def test_overhead_counts_backbone_pooling_and_the_last_step(timed):
    other = type(timed.backbone)()
    other.spec, other.pass_by = "slower", lambda: None
    inputs = Inputs(timed.results, [timed.backbone, other], {}, {}, [])
    shares, steps = overhead.overhead(inputs).comparisons
    # 20 + 5 + 3 over 20 + 2 + 3, and 20 + 5 + 1 over 20 + 2 + 1; without a backbone 8 over 5 and
    # 6 over 3.
    first = {"training +%": 100 * 3 / 25, "inference +%": 100 * 3 / 23}
    second = {"training +%": 60.0, "inference +%": 100.0}
    for title, figure in zip(first, (2.1, 2.6), strict=True):
        assert cell_of(shares, "clockwork", title).ours == pytest.approx(first[title])
        assert cell_of(shares, "slower", title).ours == pytest.approx(second[title])
        mean = (first[title] + second[title]) / 2
        assert cell_of(shares, "mean of ours", title).ours == pytest.approx(mean)
        rows = ("clockwork", "slower", "mean of ours")
        assert [cell_of(shares, row, title).paper for row in rows] == [figure] * 3
    assert cell_of(steps, "clockwork, tap", "pooling").ours == pytest.approx(5)
    assert cell_of(steps, "clockwork, avg", "learning").ours == pytest.approx(3)
    # Every other clip of ten: four that come from all over the data set, for each backbone.
    words = [word for vector, word in timed.calls if vector == "tap"]
    assert words == [f"word{index % 3}" for index in range(0, 8, 2)] * 2


def test_one_core_is_timed_as_on_a_device(timed, monkeypatch):
    limits = []

    def one_thread():
        limits.append(1)
        return contextlib.nullcontext()

    monkeypatch.setattr(overhead, "one_thread", one_thread)
    overhead.measure(timed.results, timed.backbone, timed.clips[:1])
    assert limits == [1]


def test_all_clips_are_timed_where_there_are_few(timed):
    for count, wanted in ((8, range(8)), (96, range(10))):
        timed.calls.clear()
        timed.results.options.timed_clips = count
        shares, steps = overhead.overhead(
            Inputs(timed.results, [timed.backbone], {}, {}, [])
        ).comparisons
        words = [word for vector, word in timed.calls if vector == "tap"]
        assert words == [f"word{index % 3}" for index in wanted]
    assert shares.groups == [Group(f"{kind} +%", digits=2) for kind in ("training", "inference")]
    titles = ("backbone", "pooling", "learning", "predicting")
    assert steps.groups == [Group(title, "", digits=3) for title in titles]


def test_one_backbone_has_no_mean(timed):
    made = overhead.overhead(Inputs(timed.results, [timed.backbone], {}, {}, []))
    assert [name for name, _ in made.comparisons[0].rows] == ["clockwork"]
    assert made.notes[0].startswith("Median over 4 clips")
