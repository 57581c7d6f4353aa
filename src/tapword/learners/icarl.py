"""Online iCaRL: fine-tuning with replay from a small buffer."""

import numpy as np

from tapword.errors import ModelFileError
from tapword.learners.base import StateReader
from tapword.learners.finetune import Finetune

# Choices: a thousand times the method's own buffer and step.
MAX_BUFFER, MAX_REPLAY = 1_000_000, 1_000


class Icarl(Finetune):
    """Softmax layer trained with replay; keeps up to 1,000 samples' vectors.

    Each step is that of finetune on the mean loss of the new sample and of `replay` others drawn
    from the buffer with replacement. The new sample then joins the buffer. If that is full, it
    replaces a random item of the word with the most items (its own, if no word has more).

    Parameters
    ----------
    buffer
        Largest number of vectors kept, over all words.
    replay
        Vectors replayed with each new one.
    unit_length
        Scale every vector to unit length first, as iCaRL's authors do; `lr=1` suits it.
    lr, momentum, weight_decay, vocabulary, seed
        As in finetune; `seed` also draws from the buffer.

    Notes
    -----
    Unlike every other learner this one keeps vectors of single samples, by design. Forgetting a
    word removes its output and all its vectors; their effect on other outputs stays.

    With the paper's learning rate, a backbone's unscaled vectors cause steps so large that rounding
    errors grow: accuracies on the same clips differ by some points between machines. With vectors
    of unit length they do not.

    Examples
    --------
    >>> learner = Icarl(buffer=2)
    >>> learner.learn_many(np.array([[9.0], [8.0], [1.0]]), ["off", "off", "on"])
    >>> learner.predict(np.array([[9.0]])), len(learner.state()["buffer"])
    (['off'], 2)
    """

    keeps_vectors = True

    buffer: int = 1000
    replay: int = 1
    unit_length: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_whole("buffer", 1, MAX_BUFFER)
        self._require_whole("replay", 1, MAX_REPLAY)

    def _size(self, dim: int) -> tuple[int, int]:
        fixed, per_word = super()._size(dim)
        return fixed + self.buffer * (4 * dim + 8), per_word

    def _start_empty(self, dim: int) -> None:
        super()._start_empty(dim)
        # Arrays grow up to `buffer` items.
        self._vectors = np.zeros((0, dim), dtype=np.float32)
        self._labels = np.zeros(0, dtype=np.int64)
        self._filled = 0

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights and biases as in finetune; None if vectors are scaled to unit length."""
        return None if self.unit_length else super().linear()

    def _ready(self, X: np.ndarray) -> np.ndarray:
        """Scale vectors (n, D) if `unit_length`."""
        if not self.unit_length:
            return X
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return super()._scores(self._ready(X))

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        [x] = self._ready(x[None])
        if k >= self._begun:
            self._begin_word(k)
        n = self.replay if self._filled else 0
        drawn = (self._generator.random(n) * self._filled).astype(np.int64)
        self._step(np.concatenate([x[None], self._vectors[drawn]]), [k, *self._labels[drawn]])
        self._keep(x, k)

    def _keep(self, x: np.ndarray, k: int) -> None:
        if self._filled < self.buffer:
            slot = self._filled
            if slot == len(self._vectors):
                more = min(max(slot, 16), self.buffer - slot)
                self._vectors = np.pad(self._vectors, ((0, more), (0, 0)))
                self._labels = np.pad(self._labels, (0, more))
            self._filled += 1
        else:
            held = np.bincount(self._labels, minlength=self._begun)
            largest = k if held[k] == held.max() else held.argmax()
            items = np.flatnonzero(self._labels == largest)
            slot = items[int(self._generator.random() * len(items))]
        self._vectors[slot] = x
        self._labels[slot] = k

    def _forget(self, k: int) -> None:
        super()._forget(k)
        stay = np.flatnonzero(self._labels[: self._filled] != k)
        self._fill(self._vectors[stay], self._labels[stay] - (self._labels[stay] > k))

    def _fill(self, vectors: np.ndarray, labels: np.ndarray) -> None:
        self._filled, self._vectors, self._labels = len(vectors), vectors, labels

    def _arrays(self) -> dict[str, np.ndarray]:
        vectors, labels = self._vectors[: self._filled], self._labels[: self._filled]
        return super()._arrays() | {"buffer": vectors, "buffer_words": labels}

    def _load(self, state: StateReader, n_rows: int) -> None:
        super()._load(state, n_rows)
        n = state.length("buffer_words")
        labels = state.take("buffer_words", (n,), np.int64)
        if n > self.buffer or ((labels < 0) | (labels >= n_rows)).any():
            raise ModelFileError("learner 'icarl': 'buffer_words' does not fit its words")
        self._fill(state.take("buffer", (n, self._vectors.shape[1])), labels)
