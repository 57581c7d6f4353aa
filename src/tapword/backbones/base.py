"""What every backbone is: audio in, blocks of frames out, frozen."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tapword.errors import InputError
from tapword.registry import Part


class Unavailable(InputError):
    """What a backbone needs is not on this machine: its weights, or a package that imports."""


class Backbone(Part, ABC):
    """Frozen feature extractor. A subclass gives `dims`, `params` and `_extract`.

    Attributes
    ----------
    sample_rate
        Samples per second of the audio it takes.
    dims
        Numbers per frame of each block.
    params
        How many trained parameters it holds.
    weights_sha256
        Hash of the weights, so that a model file is never used with others; "" for none.
    precision
        What it computes in, on this machine: vectors of different precisions are kept apart.
    machine_arguments
        Constructor arguments that belong to a machine rather than to a taught model (where the
        weights lie, how many threads): never written to a model file.
    """

    sample_rate: int = 16_000
    dims: tuple[int, ...]
    params: int
    weights_sha256: str = ""
    precision: str = "float32"
    machine_arguments: tuple[str, ...] = ()
    max_batch: int = 32

    def frames(self, audio: np.ndarray) -> list[np.ndarray]:
        """Frames of one clip.

        Parameters
        ----------
        audio
            Shape (n,), float32 mono in [-1, 1].

        Returns
        -------
        list of np.ndarray
            One block per layer, each (t_i, d_i) float32.
        """
        return self.frames_many([audio])[0]

    def frames_many(self, audios: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Frames of many clips, equal to `frames` one by one.

        Clips of one length share a batch; no clip is padded to another's length, so no clip's
        frames depend on its neighbours.
        """
        result: list[list[np.ndarray]] = [[] for _ in audios]
        for indices, batch in self.batches(audios):
            blocks = self._extract(batch)
            for row, index in enumerate(indices):
                # Copies, so that keeping one clip's frames does not keep the whole batch.
                result[index] = [block[row].copy() for block in blocks]
        return result

    def batches(self, audios: Sequence[np.ndarray]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Stack clips of one length, at most `max_batch`: their positions, and audio (b, n)."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for index, audio in enumerate(audios):
            if not isinstance(audio, np.ndarray) or audio.ndim != 1 or audio.dtype != np.float32:
                given = getattr(audio, "shape", type(audio).__name__)
                kind = getattr(audio, "dtype", "")
                raise InputError(f"audio must be float32 of shape (n,), got {given} {kind}".strip())
            if not np.isfinite(audio).all():
                raise InputError("audio contains NaN or infinite samples")
            by_length[len(audio)].append(index)
        for indices in by_length.values():
            for start in range(0, len(indices), self.max_batch):
                part = indices[start : start + self.max_batch]
                yield part, np.stack([audios[index] for index in part])

    def tensors(self, audio: np.ndarray) -> list[Any] | None:
        """(b, n) audio of one length -> torch blocks left on a GPU; None where there is none."""
        return None

    @abstractmethod
    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        """(b, n) float32 -> one (b, t_i, d_i) float32 array per block."""
