"""How much accuracies change when vectors change in their seventh digit.

    python benchmarks/rounding.py DIR [--dataset KIND] [--learner SPEC ...] [--split validation]

Each learner learns every training clip once, word by word, in five seeded orders: first from the
original vectors, then with each number changed by about one part in ten million, as by another
machine or release of numpy. The results of a learner that changes by more than a few clips cannot
be reproduced.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tapword import registry
from tapword.research.cache import Cache, store
from tapword.research.runner import Split, Stream

CHANGE = 1e-7
LEARNERS = (
    *("slda:variant=reference", "sqda:variant=reference", "snb:variant=reference", "ncm"),
    *("cbcl:variant=reference", "icarl", "icarl:unit_length=true,lr=1"),
)


def changed(split: Split, seed: int) -> Split:
    """Change the vectors in the seventh digit."""
    rng = np.random.default_rng(seed)
    train, test = (
        (one * (1 + CHANGE * rng.standard_normal(one.shape))).astype(np.float32)
        for one in (split.train, split.test)
    )
    return Split(train, split.train_words, test, split.test_words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--dataset", default="speech_commands")
    parser.add_argument("--learner", action="append", help="repeat for several")
    parser.add_argument("--split", default="test", choices=("test", "validation"))
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    dataset = registry.build("datasets", options.dataset, root=str(options.data))
    backbone = registry.build("backbones", "speech_embedding")
    poolings = {name: registry.build("poolings", name) for name in ("avg", "tap")}
    learners = options.learner or list(LEARNERS)
    stored = [
        store(dataset, part, backbone, [*poolings.values()], Cache(options.cache), jobs=1)
        for part in ("train", options.split)
    ]
    table = Table("pooling", "learner", title="Acc in percent, mean over five orders")
    for column in ("original", "± orders", "changed", "changed again", "range"):
        table.add_column(column, justify="right")
    for pooling, *parts in zip(poolings, *stored, strict=True):
        train, test = (part.load() for part in parts)
        vectors = train.encoded.vectors, test.encoded.vectors
        split = Split(vectors[0], train.words, vectors[1], test.words)
        rounds = [split, changed(split, 1), changed(split, 2)]
        stream = Stream(orderings=5, matrix=False)
        for name, *results in zip(
            learners, *(stream.run(one, learners, 1, None) for one in rounds), strict=True
        ):
            accuracies = [result.acc for result in results]
            cells = (accuracies[0], results[0].acc_std, *accuracies[1:])
            spread = max(accuracies) - min(accuracies)
            table.add_row(pooling, name, *(f"{value:.1f}" for value in cells), f"{spread:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
