"""Base class of backbones: a clip in, blocks of frames out, nothing learned."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.registry import Part

# A choice: more than the cores of the machines this is meant for.
MAX_THREADS = 256


def first_line(error: Exception) -> str:
    """First line of a library's error message; later ones are tables and advice."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def other_weights(part: str, wanted: Any, found: str) -> ModelFileError:
    """Error for weights other than those a model was taught with."""
    return ModelFileError(
        f"the model was taught with weights {str(wanted)[:12]}… of {part}, but the weights here "
        f"are {found[:12]}…; give the matching weights by Spotter.load(path, backbones=[...]) or "
        "--backbone, or teach again"
    )


class Unavailable(InputError):
    """Weights or a working package that a backbone needs are not on this machine."""


class FrameStream(ABC):
    """Frames of a stream, from its beginning."""

    @abstractmethod
    def advance(self, audio: np.ndarray) -> list[np.ndarray]:
        """Take the next samples (n,) float32, a whole number of hops.

        Returns the final frames of each block that follow: later samples do not change them.
        """

    @abstractmethod
    def provisional(self) -> list[np.ndarray]:
        """Compute the frames of each block after the final ones: they hold if silence follows."""

    def push(self, audio: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Take the next samples (n,); return final and provisional frames of each block."""
        return self.advance(audio), self.provisional()


class Backbone(Part, ABC):
    """A frozen network that turns clips into frames.

    A subclass defines `dims`, `params` and `_extract`; a property may also be a class attribute.

    Attributes
    ----------
    sample_rate
        Samples per second of the audio it takes.
    located_by
        The machine argument that says where the weights are; None if it needs none.
    min_samples
        Length of the shortest clip that gives a frame.
    max_batch
        Largest number of clips that pass the network together.
    hop
        Samples after which every block has whole frames, for a backbone that takes a stream in
        pieces (see `stream`). None if a frame depends on the whole clip.
    streams
        Whether the frames of a word in a stream compare with those of the word alone, because the
        network was trained on both. A detector then uses the stream's own frames; otherwise it
        passes each candidate through the network again, as a clip.
    """

    sample_rate = 16_000
    located_by: ClassVar[str | None] = None
    min_samples = 1
    max_batch = 32
    hop: ClassVar[int | None] = None
    streams: ClassVar[bool] = False

    @property
    @abstractmethod
    def dims(self) -> tuple[int, ...]:
        """Numbers per frame of each block."""

    @property
    @abstractmethod
    def params(self) -> int:
        """Number of trained parameters."""

    @property
    def latency(self) -> int:
        """Hops by which final frames lag behind the sound, for a backbone with a `hop`."""
        return 0

    @property
    def weights_sha256(self) -> str:
        """Hash of the weights, so that a model file is not used with others; "" without weights."""
        return ""

    @property
    def precision(self) -> str:
        """Number format it computes in on this machine; vectors of others are cached separately."""
        return "float32"

    @property
    def machine_arguments(self) -> tuple[str, ...]:
        """Arguments that belong to a machine, not to a model: where weights are, how many threads.

        They are never written to a model file, nor taken from one.
        """
        return ()

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
        """Start a stream, for a backbone with a `hop`."""
        raise InputError(f"{self.name} takes whole clips only")

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
            if len(audio) < self.min_samples:
                wanted = f"at least {self.min_samples} are needed"
                raise InputError(f"{self.name}: audio has {len(audio)} samples; {wanted}")
            by_length[len(audio)].append(index)
        for indices in by_length.values():
            for start in range(0, len(indices), self.max_batch):
                part = indices[start : start + self.max_batch]
                yield part, np.stack([audios[index] for index in part])

    def claim_weights(self, sha256: str) -> None:
        """Expect weights with this hash, which a model file names.

        A backbone that opens its weights on first use checks the hash then. Others know it already
        and ignore this.
        """

    def _require_threads(self, none: bool = False) -> None:
        self._require_whole("threads", 1, MAX_THREADS, none)

    def tensors(self, audio: np.ndarray) -> list[Any] | None:
        """Turn audio (b, n) into torch blocks that stay on a GPU; None without a GPU."""
        return None

    @abstractmethod
    def _extract(self, audio: np.ndarray) -> list[np.ndarray]:
        """(b, n) float32 -> one (b, t_i, d_i) float32 array per block."""
