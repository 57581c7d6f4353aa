"""Fine-tuning: a softmax layer trained by stochastic gradient descent."""

from collections.abc import Sequence

import numpy as np
from numpy.random import default_rng

from tapword.errors import ModelFileError
from tapword.learners.base import Learner, StateBytes, StateReader

_HALF = (1 << 64) - 1
# A choice: far more words than any data set has.
MAX_VOCABULARY = 10_000


class Finetune(Learner):
    """Softmax layer trained by gradient descent, one sample a step; forgets earlier words.

    score_k = w_k.x + b_k; a step on -ln softmax(scores)_y with gradient g over all (w, b):
    m = momentum * m + g + weight_decay * (w, b); (w, b) -= lr * m

    Parameters
    ----------
    lr
        Learning rate.
    momentum, weight_decay
        As in torch's SGD.
    vocabulary
        Words to come. Each has an output that is trained from the first sample on, as in the
        method's public code, and scored once it is taught. Other words get outputs as they come.
    seed
        Seed of the initial weights, N(0, 0.01); b starts at 0.

    Notes
    -----
    Kept: (w, b) and m, and the state of the random generator. Forgetting a word removes its
    output; its effect on other outputs stays.

    Examples
    --------
    >>> learner = Finetune(seed=1)
    >>> learner.learn_many(np.array([[1.0, 0.0], [0.0, 1.0]]), ["off", "on"])
    >>> learner.predict(np.array([[0.1, 0.9]]))
    ['on']
    """

    _columns = "weights"

    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-5
    vocabulary: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("lr", 0 < self.lr < np.inf, "above 0")
        self._require("momentum", 0 <= self.momentum < 1, "from 0 to below 1")
        self._require("weight_decay", 0 <= self.weight_decay < np.inf, "at least 0")
        words = self.vocabulary
        different = not isinstance(words, str) and len(set(words)) == len(words)
        fits = different and len(words) <= MAX_VOCABULARY
        self._require("vocabulary", fits, f"different words, {MAX_VOCABULARY} at most")
        for word in words:
            self._check_word(word)
        self._require_whole("seed", 0)

    def _size(self, dim: int) -> tuple[int, int]:
        row = 2 * 4 * (dim + 1)
        return len(self.vocabulary) * (row + 8) + 6 * 8, row

    def min_bytes(self, dim: int, n_rows: int) -> int:
        """Fewest bytes of a state's arrays: words of `vocabulary` may have been forgotten."""
        return n_rows * Finetune._size(self, dim)[1]

    @property
    def state_bytes(self) -> StateBytes:
        """Bytes of the state now; a word of `vocabulary` has its row from the start."""
        size = super().state_bytes
        known = sum(word in self.vocabulary for word in self.words)
        return size._replace(total=size.total - known * size.per_word)

    def _start(self, dim: int) -> None:
        self._start_empty(dim)
        # Rows of the layer (w, b): the rows of the state that had a sample, then words of
        # `vocabulary` (by index) that wait for theirs. A batch makes all its rows before it learns.
        self._waiting = list(range(len(self.vocabulary)))
        layer = np.zeros((len(self._waiting), dim + 1), dtype=np.float32)
        layer[:, :-1] = self._generator.normal(0, 0.01, (len(layer), dim))
        self._set_rows(layer, np.zeros_like(layer))

    def _start_empty(self, dim: int) -> None:
        # Imported by name: numpy loads its generators on first use, and loading a model must open
        # no other file.
        self._generator = default_rng(self.seed)
        self._begun, self._waiting = 0, []
        self._set_rows(*np.zeros((2, 0, dim + 1), dtype=np.float32))

    def _set_rows(self, layer: np.ndarray, velocity: np.ndarray) -> None:
        self._layer, self._velocity, self._scratch = layer, velocity, np.empty_like(layer)

    def _grow(self) -> None:
        """Do nothing yet: an output starts with its word's first sample."""

    def _begin_word(self, k: int) -> None:
        word, negative = self.rows[k]
        known = word in self.vocabulary and not negative
        position = self.vocabulary.index(word) if known else -1
        if position in self._waiting:
            old = k + self._waiting.index(position)
            self._waiting.remove(position)
            order = np.insert(np.delete(np.arange(len(self._layer)), old), k, old)
            self._set_rows(self._layer[order], self._velocity[order])
        else:
            row = np.append(self._generator.normal(0, 0.01, self._layer.shape[1] - 1), 0)
            layer = np.insert(self._layer, k, row, axis=0)
            self._set_rows(layer, np.insert(self._velocity, k, 0, axis=0))
        self._begun += 1

    def _learn_one(self, x: np.ndarray, k: int) -> None:
        if k >= self._begun:
            self._begin_word(k)
        self._step(x[None], [k])

    def _step(self, X: np.ndarray, labels: Sequence[int]) -> None:
        """Descend along the mean loss of X (b, D)."""
        # The last column is b's input.
        inputs = np.ones((len(X), X.shape[1] + 1), dtype=np.float32)
        inputs[:, :-1] = X
        errors = inputs @ self._layer.T
        errors -= errors.max(axis=1, keepdims=True)
        np.exp(errors, out=errors)
        errors /= errors.sum(axis=1, keepdims=True)
        for row, label in enumerate(labels):
            errors[row, label] -= 1
        errors /= len(inputs)
        self._velocity *= self.momentum
        # Unlike `matmul`, `dot` multiplies one row by one column as fast as BLAS does.
        self._velocity += np.dot(errors.T, inputs, out=self._scratch)
        self._velocity += np.multiply(self._layer, self.weight_decay, out=self._scratch)
        self._layer -= np.multiply(self._velocity, self.lr, out=self._scratch)

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights (rows, D) and biases (rows,) of the outputs that had a sample."""
        return self._outputs()

    def _outputs(self) -> tuple[np.ndarray, np.ndarray]:
        layer = self._layer[: self._begun].astype(np.float64)
        return layer[:, :-1], layer[:, -1]

    def _scores(self, X: np.ndarray) -> np.ndarray:
        weights, biases = self._outputs()
        return X @ weights.T + biases

    def _forget(self, k: int) -> None:
        self._set_rows(np.delete(self._layer, k, axis=0), np.delete(self._velocity, k, axis=0))
        self._begun -= 1

    def _arrays(self) -> dict[str, np.ndarray]:
        state = self._generator.bit_generator.state
        numbers = state["state"]["state"], state["state"]["inc"]
        halves = [half for number in numbers for half in (number >> 64, number & _HALF)]
        return {
            "weights": self._layer[:, :-1],
            "biases": self._layer[:, -1],
            "velocity": self._velocity,
            "waiting": np.array(self._waiting, dtype=np.int64),
            "generator": np.array([*halves, state["has_uint32"], state["uinteger"]], np.uint64),
        }

    def _load(self, state: StateReader, n_rows: int) -> None:
        waiting = state.take("waiting", (state.length("waiting"),), np.int64)
        self._waiting = waiting.tolist()
        known = set(range(len(self.vocabulary)))
        if len(set(self._waiting) & known) < len(self._waiting):
            raise ModelFileError(f"learner {self.name!r}: 'waiting' does not fit the vocabulary")
        shape = n_rows + len(waiting), self._layer.shape[1]
        weights = state.take("weights", (shape[0], shape[1] - 1))
        biases = state.take("biases", shape[:1])
        self._set_rows(np.column_stack([weights, biases]), state.take("velocity", shape))
        self._begun = n_rows
        numbers = [int(number) for number in state.take("generator", (6,), np.uint64)]
        whole, increment = numbers[0] << 64 | numbers[1], numbers[2] << 64 | numbers[3]
        self._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": whole, "inc": increment},
            "has_uint32": numbers[4] & 1,
            "uinteger": numbers[5] & 0xFFFFFFFF,
        }
