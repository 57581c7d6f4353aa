"""Compute what the package ships to whiten vectors and to set thresholds, from other words.

    python training/whitening.py DIR

DIR holds the Arabic Speech Commands (A. Ghandoura, CC BY 4.0), laid out as MSWC lays out a
language: DIR/ar/clips and DIR/ar/ar_splits.csv. Written are assets/whitening/, how the vectors of a
word vary, one file a backbone, and assets/impostors.json, how words score that were not taught.
Statistics alone are written.
"""

import json
import sys
from pathlib import Path

import numpy as np

from tapword import registry
from tapword.research.cache import Cache, store
from tapword.research.datasets.base import Dataset
from tapword.research.experiment import fit_whitenings
from tapword.spotter import presets
from tapword.spotter.encoder import Preparation
from tapword.spotter.spotter import Spotter
from tapword.spotter.whitening import Whitening, join

SOURCE = "Arabic Speech Commands (A. Ghandoura, CC BY 4.0), 40 words, training clips"
ASSETS = Path(__file__).parent.parent / "src" / "tapword" / "assets"

SHARES = (0.05, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
DRAWS, WORDS, SAMPLES = 200, 5, 5


def main(root: str) -> None:
    """Write a file for each backbone of the presets, and how other words score."""
    dataset = registry.build("datasets", "mswc:language=ar", root=root)
    made: dict[str, Whitening] = {}
    impostors = {}
    for preset in presets.PRESETS.values():
        for name, pooling in zip(preset.backbones, preset.poolings, strict=True):
            if name not in made:
                spotter = Spotter(name, pooling, "ncm", align=preset.align)
                [made[name]] = fit_whitenings(dataset, spotter, SOURCE)
                path = ASSETS / "whitening" / f"{spotter.backbones[0].name}.safetensors"
                made[name].save(path)
                print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {made[name].within}")
        whitening = [made[name] for name in preset.backbones]
        spotter = Spotter(
            preset.backbones,
            preset.poolings,
            preset.learner,
            align=preset.align,
            augment=preset.augment,
            whitening=whitening,
        )
        key = " ".join(one.sha256 for one in whitening)
        impostors[key] = {"shares": SHARES, "scores": impostor_scores(dataset, spotter)}
        print(impostors[key])
    (ASSETS / "impostors.json").write_text(json.dumps(impostors, indent=1) + "\n", "utf-8")


def impostor_scores(dataset: Dataset, spotter: Spotter) -> list[float]:
    """Scores that `SHARES` of other words' clips exceed for a word of a few samples."""
    preparation = spotter.encoder.preparation
    T, words = vectors(dataset, spotter, preparation)
    X, _ = vectors(dataset, spotter, Preparation(preparation.align))
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


def vectors(
    dataset: Dataset, spotter: Spotter, preparation: Preparation
) -> tuple[np.ndarray, np.ndarray]:
    """Whitened vectors of the training clips, and their words."""
    blocks = []
    for backbone, pooling in spotter.encoder.parts:
        [stored] = store(dataset, "train", backbone, [pooling], Cache(), 2, preparation=preparation)
        blocks.append(stored.load())
    joined = join([block.vectors for block in blocks], spotter.encoder.whitenings)
    return joined, np.array(blocks[0].words)


if __name__ == "__main__":
    main(sys.argv[1])
