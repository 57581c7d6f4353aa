"""What the tests of research share."""

import numpy as np
import pytest

from tapword.research.runner import Split


@pytest.fixture
def split(rng):
    """Vectors of five words, 20 to learn and 10 to ask of each."""
    centres = rng.normal(scale=2, size=(5, 8))

    def part(n):
        words = [f"word{k}" for k in range(5) for _ in range(n)]
        vectors = np.repeat(centres, n, axis=0) + rng.normal(size=(5 * n, 8))
        return vectors.astype(np.float32), words

    return Split(*part(20), *part(10))


def cell_of(comparison, row, group=0):
    """Find a cell of a comparison by its row's name and its group's number or title."""
    titles = [one.title for one in comparison.groups]
    index = titles.index(group) if isinstance(group, str) else group
    return dict(comparison.rows)[row][index]
