"""BLOCKS: a separate pooling for each block of a backbone."""

from collections.abc import Sequence

import numpy as np

from tapword import registry
from tapword.errors import InputError
from tapword.poolings.base import Pooling

# A choice: more blocks than any backbone gives.
MAX_BLOCKS = 16


class Blocks(Pooling):
    """One pooling for each of the backbone's blocks, in order.

    Parameters
    ----------
    poolings
        Names with arguments, as in `blocks:poolings=tap:R=2+middle`: moments of the first block and
        middle frames of the second. A backbone may return a block twice
        (`speech_embedding:layers=emb+emb`). A single name is used for all blocks.

    Examples
    --------
    >>> frames = np.array([[1.0, 3.0], [3.0, 5.0]])
    >>> [part.pool(frames) for part in Blocks(("avg", "max")).per_block(2)]
    [array([2., 4.], dtype=float32), array([3., 5.], dtype=float32)]
    """

    poolings: tuple[str, ...] = ("tap",)

    def __post_init__(self) -> None:
        self.poolings = tuple(self.poolings)
        fits = 1 <= len(self.poolings) <= MAX_BLOCKS
        self._require("poolings", fits, f"1 to {MAX_BLOCKS} names of poolings")
        if any(str(name).partition(":")[0] == self.name for name in self.poolings):
            raise InputError("blocks: a block's pooling cannot be blocks again")
        self._parts: list[Pooling] = [registry.build("poolings", name) for name in self.poolings]

    def per_block(self, n: int) -> Sequence[Pooling]:
        """Pooling for each of `n` blocks."""
        if len(self._parts) == 1:
            return self._parts * n
        if len(self._parts) != n:
            raise InputError(
                f"got {len(self._parts)} poolings for {n} blocks: give one for all, or one for each"
            )
        return self._parts

    def _reduce(self, frames: np.ndarray) -> np.ndarray:
        return self.per_block(1)[0]._reduce(frames)

    def _reduce_for_learning(self, frames: np.ndarray) -> np.ndarray:
        return self.per_block(1)[0]._reduce_for_learning(frames)
