"""How far words lie apart in each moment: pair-wise Wasserstein distances, and histograms."""

import itertools

import numpy as np

from tapword import metrics
from tapword.backbones.base import Backbone
from tapword.reproduce import charts, paper
from tapword.reproduce.compare import Cell, Comparison, Group, Reproduced
from tapword.reproduce.context import Context, Table

MOMENTS = 5
# Enough to tell distributions apart; all of a large data set would take hours.
CLIPS_A_WORD = 200
TITLE = "Distances between words, by moment"


def wasserstein(context: Context, name: str, title: str) -> Reproduced:
    """Mean and deviation over pairs of words, for each moment and for moments 2 to 5."""
    tables, drawings = [], []
    used = 0
    for backbone in context.usable:
        vectors, words = _vectors(context, backbone)
        used = len(words)
        moments = vectors.reshape(len(vectors), MOMENTS, -1)
        shown = Comparison(
            f"{backbone.spec} beside the paper's",
            "moment",
            [
                Group("raw", digits=3),
                Group("± raw", digits=3),
                Group("scaled", digits=3),
                Group("± scaled", digits=3),
            ],
        )
        chosen = {str(r + 1): slice(r, r + 1) for r in range(MOMENTS)}
        for row, part in (chosen | {"2 to 5": slice(1, MOMENTS)}).items():
            found = metrics.wasserstein(moments[:, part].reshape(len(vectors), -1), words)
            theirs = [*paper.WASSERSTEIN.get(row, (None, None))] * 2
            shown.add(row, [Cell(*pair) for pair in zip(found, theirs, strict=True)])
        tables.append(shown)
        drawings.append(_histograms(backbone, moments, np.array(words)))
    said = [
        f"{used:,} training clips, at most {CLIPS_A_WORD} a word; per feature the distance of two "
        "words' values, mean over features, then mean and deviation over pairs of words.",
        "Scaled: each feature divided by its standard deviation over all clips. The paper does not "
        "say whether it did that: its figures stand beside both.",
    ]
    return Reproduced(name, title, tables, said, drawings)


def _vectors(context: Context, backbone: Backbone) -> tuple[np.ndarray, list[str]]:
    """Moments (n, 5 * d), all features of a moment together, and the word of each clip."""
    pooling = context.bench.pooling("tap", backbone)
    [(_, split)] = context.bench.splits(backbone, {"tap": pooling})
    context.bench.cache.trim()
    generator = np.random.default_rng(0)
    words = np.array(split.train_words)
    rows = np.concatenate(
        [
            np.sort(generator.permutation(np.flatnonzero(words == word))[:CLIPS_A_WORD])
            for word in np.unique(words)
        ]
    )
    # Blocks stand one after the other, each with its five moments.
    blocks = np.split(split.train[rows], np.cumsum([MOMENTS * d for d in backbone.dims])[:-1], 1)
    moments = [block.reshape(len(rows), MOMENTS, -1) for block in blocks]
    return np.concatenate(moments, axis=2).reshape(len(rows), -1), words[rows].tolist()


def _histograms(backbone: Backbone, moments: np.ndarray, words: np.ndarray) -> str:
    """Two words of middling distance, in the feature that is middling for them."""
    from scipy import stats

    names = np.unique(words)
    scale = moments.std(axis=0) + 1e-12
    means = np.stack([moments[words == name].mean(axis=0) / scale for name in names])
    pairs = list(itertools.combinations(range(len(names)), 2))
    distances = [float(np.abs(means[a] - means[b]).mean()) for a, b in pairs]
    one, two = pairs[int(np.argsort(distances)[len(distances) // 2])]
    first, second = (moments[words == names[k]] for k in (one, two))
    apart = [
        np.mean(
            [
                stats.wasserstein_distance(first[:, r, j], second[:, r, j]) / scale[r, j]
                for r in range(1, MOMENTS)
            ]
        )
        for j in range(moments.shape[2])
    ]
    feature = int(np.argsort(apart)[len(apart) // 2])
    panels = [
        (f"moment {r + 1}", first[:, r, feature], second[:, r, feature]) for r in range(MOMENTS)
    ]
    return charts.histograms(
        f"{backbone.spec}, feature {feature}: two words of median distance, clips by value",
        [str(names[one]), str(names[two])],
        panels,
    )


TABLE = Table(TITLE, [], wasserstein)
