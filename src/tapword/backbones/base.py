"""What every backbone is: a clip in, blocks of frames out, nothing learned."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.registry import Part

# A choice: more than the cores of any machine this is meant for.
MOST_THREADS = 256


def first_line(error: Exception) -> str:
    """Say in one line what a library raised: later ones are tables and advice."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def other_weights(part: str, wanted: Any, found: str) -> ModelFileError:
    """Error of weights that a model was not taught with."""
    return ModelFileError(
        f"the model was taught with weights {str(wanted)[:12]}… of {part}, but those at hand are "
        f"{found[:12]}…; give the matching weights by Spotter.load(path, backbones=[...]) or "
        "--backbone, or teach anew"
    )


class Unavailable(InputError):
    """What a backbone needs is not on this machine: its weights, or a package that imports."""


class FrameStream(ABC):
    """A backbone that hears a stream from its beginning."""

    @abstractmethod
    def hear(self, audio: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Hear what follows, (n,) float32, whole hops of it.

        Returns
        -------
        tuple of list of np.ndarray
            Of each block, the next frames that no later sound will change; and those after them, as
            they are if silence follows.
        """


class Backbone(Part, ABC):
    """A frozen network that turns clips into frames. A subclass gives `dims`, `params`, `_extract`.

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
        weights lie, how many threads): never written to a model file, nor taken from one.
    located_by
        The machine argument without which there are no weights; a saved model needs it given.
    shortest
        Samples of the shortest clip that gives a frame.
    max_batch
        Clips of one length that pass the network together, at most.
    hop
        Of a backbone that can hear a stream in pieces (see `stream`): samples in which every block
        goes on by whole frames. None where a frame sees the whole clip.
    """

    sample_rate = 16_000
    dims: ClassVar[tuple[int, ...]]
    params: ClassVar[int]
    weights_sha256 = ""
    precision = "float32"
    machine_arguments: ClassVar[tuple[str, ...]] = ()
    located_by: ClassVar[str | None] = None
    shortest = 1
    max_batch = 32
    hop: ClassVar[int | None] = None

    def frames(self, audio: np.ndarray) -> list[np.ndarray]:
        """Frames of a clip (n,), float32 mono in [-1, 1]: a block (t_i, d_i) float32 per layer."""
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

    def stream(self) -> FrameStream:
        """Begin to hear a stream, where there is a `hop`."""
        raise InputError(f"{self.name} hears whole clips alone")

    def batches(self, audios: Sequence[np.ndarray]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Check clips and stack those of one length: their positions, and audio (b, n)."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for index, audio in enumerate(audios):
            if not isinstance(audio, np.ndarray) or audio.ndim != 1 or audio.dtype != np.float32:
                given = getattr(audio, "shape", type(audio).__name__)
                kind = getattr(audio, "dtype", "")
                raise InputError(f"audio must be float32 of shape (n,), got {given} {kind}".strip())
            if not np.isfinite(audio).all():
                raise InputError("audio contains NaN or infinite samples")
            if len(audio) < self.shortest:
                wanted = f"at least {self.shortest} are needed"
                raise InputError(f"{self.name}: audio has {len(audio)} samples; {wanted}")
            by_length[len(audio)].append(index)
        for indices in by_length.values():
            for start in range(0, len(indices), self.max_batch):
                part = indices[start : start + self.max_batch]
                yield part, np.stack([audios[index] for index in part])

    def claim_weights(self, sha256: str) -> None:
        """Take a model file's word for the hash of weights that are not open yet.

        Where a hash takes opening them they are opened on first use, and refused if they are
        others. Elsewhere nothing is taken on trust.
        """

    def _require_threads(self, none: bool = False) -> None:
        self._require_whole("threads", 1, MOST_THREADS, none)

    def tensors(self, audio: np.ndarray) -> list[Any] | None:
        """Turn audio (b, n) into torch blocks that stay on a GPU; None where there is no GPU."""
        return None

    @abstractmethod
    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        """(b, n) float32 -> one (b, t_i, d_i) float32 array per block."""
