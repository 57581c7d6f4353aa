"""Wasserstein distances between pairs of words for each moment, and histograms."""

import itertools

import numpy as np

from tapword.backbones.base import Backbone
from tapword.research import metrics
from tapword.research.paper import charts
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Comparison, Group, Inputs, PaperTable, Reproduced

MOMENTS = 5
# Enough to separate distributions; all clips of a large data set would take hours.
CLIPS_A_WORD = 200


def wasserstein(inputs: Inputs) -> Reproduced:
    """Mean and standard deviation over pairs of words, by moment and for moments 2 to 5."""
    tables, drawings = [], []
    for backbone in inputs.backbones:
        moments, words = _moments(inputs, backbone)
        groups = [Group(title, digits=3) for title in ("raw", "± raw", "scaled", "± scaled")]
        shown = Comparison(f"{backbone.spec} compared with the paper's", "moment", groups)
        chosen = {str(r + 1): slice(r, r + 1) for r in range(MOMENTS)}
        for row, part in (chosen | {"2 to 5": slice(1, MOMENTS)}).items():
            found = metrics.wasserstein(moments[:, part].reshape(len(words), -1), words.tolist())
            theirs = [*paper.WASSERSTEIN.get(row, (None, None))] * 2
            shown.add(row, [Cell(*pair) for pair in zip(found, theirs, strict=True)])
        tables.append(shown)
        drawings.append(_histograms(backbone, moments, words))
    note = (
        f"{len(words):,} training clips, at most {CLIPS_A_WORD} a word. The distance of two words "
        "is averaged over features; shown are mean and standard deviation over pairs of words."
    )
    return Reproduced(tables, [note], drawings)


def _moments(inputs: Inputs, backbone: Backbone) -> tuple[np.ndarray, np.ndarray]:
    """Moments (n, 5, d) of training clips, blocks side by side, and the word of each clip (n,)."""
    pooling = inputs.results.pooling("tap", backbone)
    [(_, split)] = inputs.results.splits(backbone, {"tap": pooling})
    inputs.results.options.cache.trim()
    generator = np.random.default_rng(0)
    words = np.array(split.train_words)
    orders = (generator.permutation(np.flatnonzero(words == word)) for word in np.unique(words))
    rows = np.concatenate([np.sort(order[:CLIPS_A_WORD]) for order in orders])
    # A vector holds the five moments of each block in turn.
    blocks = np.split(split.train[rows], np.cumsum([MOMENTS * d for d in backbone.dims])[:-1], 1)
    moments = [block.reshape(len(rows), MOMENTS, -1) for block in blocks]
    return np.concatenate(moments, axis=2), words[rows]


def _histograms(backbone: Backbone, moments: np.ndarray, words: np.ndarray) -> str:
    """Draw two words at median distance, in the feature where they are at median distance."""
    names = np.unique(words)
    scale = moments.std(axis=0) + 1e-12
    means = np.stack([moments[words == name].mean(axis=0) / scale for name in names])
    pairs = list(itertools.combinations(range(len(names)), 2))
    distances = [float(np.abs(means[a] - means[b]).mean()) for a, b in pairs]
    one, two = pairs[int(np.argsort(distances)[len(distances) // 2])]
    first, second = (moments[words == names[k]] for k in (one, two))
    apart = sum(
        metrics.wasserstein_by_feature(first[:, r], second[:, r]) / scale[r]
        for r in range(1, MOMENTS)
    )
    feature = int(np.argsort(apart)[len(scale[0]) // 2])
    panels = [
        (f"moment {r + 1}", first[:, r, feature], second[:, r, feature]) for r in range(MOMENTS)
    ]
    title = f"{backbone.spec}, feature {feature}: two words of median distance, clips by value"
    return charts.histograms(title, [str(names[one]), str(names[two])], panels)


TABLE = PaperTable("Distances between words, by moment", wasserstein)
