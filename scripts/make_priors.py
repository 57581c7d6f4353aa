"""Compute the priors that the package ships, from 40 Arabic words' training clips.

How the vectors of a word vary, and how words score that were not taught:

    python scripts/make_priors.py DIR

DIR holds the Arabic Speech Commands (A. Ghandoura, CC BY 4.0), laid out as MSWC lays out a
language: DIR/ar/clips and DIR/ar/ar_splits.csv. Statistics alone are written, one file a backbone.
"""

import json
import sys
from pathlib import Path

import numpy as np

from tapword import features, registry, sizes
from tapword.datasets.base import Dataset
from tapword.plans import fit_priors
from tapword.priors.prior import Prior, join
from tapword.spotter import Spotter
from tapword.vectors import Hearing

SOURCE = "Arabic Speech Commands (A. Ghandoura, CC BY 4.0), 40 words, training clips"
PRIORS = Path(__file__).parent.parent / "src" / "tapword" / "priors"


SHARES = (0.05, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
DRAWS, WORDS, SAMPLES = 200, 5, 5


def main(root: str) -> None:
    """Write a file for each backbone of the sizes, and how other words score."""
    dataset = registry.build("datasets", "mswc:language=ar", root=root)
    done = set()
    impostors = {}
    for size in sizes.SIZES.values():
        for name, pooling in zip(size.backbones, size.poolings, strict=True):
            if name in done:
                continue
            done.add(name)
            spotter = Spotter(name, pooling, "ncm", align=size.align)
            [prior] = fit_priors(dataset, spotter, SOURCE)
            path = PRIORS / f"{spotter.backbones[0].name}.safetensors"
            prior.save(path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, within {prior.within}")
        made = [Prior.load(PRIORS / f"{name.partition(':')[0]}.safetensors") for name in size[0]]
        spotter = Spotter(*size[:3], align=size.align, copies=size.copies, prior=made)
        key = " ".join(prior.sha256 for prior in made)
        impostors[key] = {"shares": SHARES, "scores": impostor_scores(dataset, spotter)}
        print(impostors[key])
    (PRIORS / "impostors.json").write_text(json.dumps(impostors, indent=1) + "\n", "utf-8")


def impostor_scores(dataset: Dataset, spotter: Spotter) -> list[float]:
    """Scores that `SHARES` of other words' clips exceed for a word of a few samples."""
    T, words = vectors(dataset, spotter, spotter.front.hearing)
    X, _ = vectors(dataset, spotter, Hearing(spotter.align))
    scores = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        # With so few samples the prior rules, and the forms of the covariance score alike.
        learner = registry.build("learners", "cosine:prior=shipped,covariance=diagonal")
        taught = rng.choice(np.unique(words), WORDS, replace=False)
        for word in taught:
            rows = rng.choice(np.flatnonzero(words == word), SAMPLES, replace=False)
            learner.learn_many(T[rows], [word] * SAMPLES)
        scores.append(learner.scores(X[~np.isin(words, taught)]).ravel())
    return [float(np.quantile(np.concatenate(scores), 1 - share)) for share in SHARES]


def vectors(dataset: Dataset, spotter: Spotter, hearing: Hearing) -> tuple[np.ndarray, np.ndarray]:
    """Whitened vectors of the training clips, and their words."""
    sides = []
    for backbone, pooling in spotter.front.sides:
        cache = features.Cache()
        [stored] = features.store(dataset, "train", backbone, [pooling], cache, 2, hearing=hearing)
        sides.append(stored.load())
    return join([side.vectors for side in sides], spotter.priors), np.array(sides[0].words)


if __name__ == "__main__":
    main(sys.argv[1])
