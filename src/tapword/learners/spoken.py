"""What is known of synthetic clips: counts and means, and how much they count beside samples."""

from typing import Self

import numpy as np

from tapword.learners.statistics import Statistics

# A typed word's synthetic clips count as this many samples, at their mean.
SYNTHETIC_SAMPLES = 1
# They count for nothing beside samples whose mean is farther from theirs than this cosine: then the
# voice says the word differently from the person. A voice without native speakers has to agree
# better. Chosen on words of speechocean762, said by their own rules and by those of two other
# languages, as docs/results/typed.md says.
AGREEMENT, FOREIGN_AGREEMENT = 0.3, 0.6


class SpokenStatistics(Statistics):
    """Counts and means of synthetic clips.

    Attributes
    ----------
    foreign
        How many clips of each row are by voices without native speakers, (K,).
    """

    def __init__(self, dim: int, n_rows: int):
        super().__init__(dim, scatter=False)
        self.foreign = np.zeros(0, dtype=np.int64)
        for _ in range(n_rows):
            self.add_word()

    def add_word(self) -> None:
        """Add a word without clips as the last row."""
        super().add_word()
        self.foreign = np.append(self.foreign, 0)

    def extract(self, rows: list[int]) -> Self:
        """Copy with only these rows."""
        made = super().extract(rows)
        made.foreign = self.foreign[rows]
        return made

    def merge(self, other: Self, words: np.ndarray) -> None:
        """Add another's clips; its word i is row `words[i]` here."""
        super().merge(other, words)
        self.foreign[words] += other.foreign

    def remove(self, k: int) -> None:
        """Remove everything that word `k` added."""
        super().remove(k)
        self.foreign = np.delete(self.foreign, k)

    def weight(self, own: Statistics) -> np.ndarray:
        """Count the samples (K,) that the clips stand for beside those of `own`."""
        means, others = self.means.astype(np.float64), own.means.astype(np.float64)
        lengths = np.linalg.norm(means, axis=1) * np.linalg.norm(others, axis=1)
        cosines = np.einsum("kd,kd->k", means, others) / np.maximum(lengths, 1e-12)
        wanted = np.where(self.foreign > 0, FOREIGN_AGREEMENT, AGREEMENT)
        counts = (own.counts == 0) | (cosines >= wanted)
        return np.where(counts, np.minimum(self.counts, SYNTHETIC_SAMPLES), 0)
