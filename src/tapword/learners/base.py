"""What every learner is: vectors and words in one at a time, scores out, nothing else kept."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.registry import Part

# Squares of larger numbers cannot be summed in float32 over the samples of a lifetime.
_LARGEST = 1e15


class StateBytes(NamedTuple):
    """Memory of a learner's state: `total` = `fixed` + words taught * `per_word`."""

    total: int
    fixed: int
    per_word: int


class Learner(Part, ABC):
    """Learns words from vectors, one at a time, in one pass.

    A subclass gives `_size`, `_grow`, `_learn_one`, `_scores`, `_arrays`, `_load` and, where its
    mathematics allows, `_learn_many`, `_merge` and `_forget`. Checks of what comes in live here.

    Attributes
    ----------
    words
        Word -> how many samples it was taught; in the order of the columns of `scores`.
    dim
        Numbers per vector; None until the first sample or state.
    max_gb
        A state larger than this is refused before memory is taken.
    mergeable
        Whether two learners can be added up exactly.
    keeps_vectors
        Whether single samples' vectors are kept, as replay needs; audio never is.
    """

    max_gb: float = 4.0
    mergeable: bool = False
    keeps_vectors: bool = False
    # The array of a state that has one column for each number of a vector.
    _columns: str = "means"

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self.dim: int | None = None

    def learn_one(self, x: np.ndarray, word: str) -> None:
        """Learn that the vector `x` (D,) is `word`, which may be a new one."""
        x = self._check(np.asarray(x), ndim=1)
        self._learn_one(x, self._index(word, x.shape[0]))
        self.words[word] += 1

    def learn_many(self, X: np.ndarray, words: Sequence[str]) -> None:
        """Learn the rows of `X` (n, D); equal to `learn_one` in order, and faster."""
        X = self._check(np.asarray(X), ndim=2)
        if len(X) != len(words):
            raise InputError(f"got {len(X)} vectors for {len(words)} words")
        for word in words:
            if not isinstance(word, str) or not word:
                self._check_word(word)
        if not len(X):
            return
        self._check_size(X.shape[1], len(self.words.keys() | set(words)))
        rows = {word: self._index(word, X.shape[1]) for word in dict.fromkeys(words)}
        self._learn_many(X, np.array([rows[word] for word in words]))
        for word, count in Counter(words).items():
            self.words[word] += count

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Score the rows of `X` (n, D) for each taught word: (n, len(words)), higher is better."""
        X = self._check(np.asarray(X), ndim=2)
        if not self.words:
            return np.empty((len(X), 0))
        return self._scores(X)

    def predict(self, X: np.ndarray) -> list[str | None]:
        """Best word of each row of `X` (n, D); None where nothing is taught."""
        scores = self.scores(X)
        if not self.words:
            return [None] * len(scores)
        names = list(self.words)
        return [names[index] for index in scores.argmax(axis=1)]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores (n, K) into numbers that sum to 1 over the words."""
        if not scores.shape[-1]:
            return scores
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def merge(self, other: "Learner") -> None:
        """Add what `other` learned, as if its samples had been taught here."""
        if type(other) is not type(self) or other.arguments() != self.arguments():
            raise InputError(f"cannot merge {other!r} into {self!r}: they must be alike")
        if not self.mergeable:
            raise InputError(
                f"learner {self.name!r} cannot merge: what it knows depends on the order of samples"
            )
        if other.dim is None:
            return
        if self.dim is not None and self.dim != other.dim:
            raise InputError(f"cannot merge vectors of {other.dim} numbers into {self.dim}")
        self._check_size(other.dim, len(self.words | other.words))
        indices = np.array([self._index(word, other.dim) for word in other.words], dtype=int)
        self._merge(other, indices)
        for word, count in other.words.items():
            self.words[word] += count

    def forget(self, word: str) -> None:
        """Remove a word; it can never win again."""
        self._forget(self._position(word))
        del self.words[word]

    def rename(self, old: str, new: str) -> None:
        """Give a word another name; nothing else changes."""
        self._position(old)
        self._check_word(new)
        if new in self.words and new != old:
            raise InputError(f"cannot rename {old!r} to {new!r}: {new!r} is already taught")
        self.words = {new if word == old else word: n for word, n in self.words.items()}

    def state(self) -> dict[str, np.ndarray]:
        """Everything learned besides `words`, as arrays; {} before the first sample."""
        return {} if self.dim is None else self._arrays()

    def load_state(self, state: dict[str, np.ndarray], words: dict[str, int]) -> None:
        """Take over what `state` and `words` of a learner of the same arguments gave."""
        self.words, self.dim = {}, None
        if not state:
            if words:
                raise ModelFileError(f"the model file names {len(words)} words but holds no state")
            return
        dim = self._dim_of(state)
        self._check_size(dim, len(words))
        self._begin(dim)
        self._load(StateReader(state, self.name), len(words))
        self.words = dict(words)

    @property
    def state_bytes(self) -> StateBytes:
        """Bytes the state takes now, split into what is fixed and what each word adds."""
        fixed, per_word = self._size(self.dim) if self.dim is not None else (0, 0)
        return StateBytes(fixed + per_word * len(self.words), fixed, per_word)

    # What a subclass gives.

    @abstractmethod
    def _size(self, dim: int) -> tuple[int, int]:
        """Bytes of the state for vectors of `dim` numbers: (fixed, per word); never exceeded."""

    @abstractmethod
    def _start(self, dim: int) -> None:
        """Make the empty state for vectors of `dim` numbers."""

    @abstractmethod
    def _grow(self) -> None:
        """Make room for one more word, whose row is the last."""

    @abstractmethod
    def _learn_one(self, x: np.ndarray, k: int) -> None:
        """Learn x (D,) float32 as word number k, which has a row."""

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        for x, k in zip(X, indices, strict=True):
            self._learn_one(x, k)

    @abstractmethod
    def _scores(self, X: np.ndarray) -> np.ndarray:
        """(n, D) float32 -> (n, K), with K at least 1."""

    def _merge(self, other: Any, indices: np.ndarray) -> None:
        """Add another's state; `indices` are the rows here of its words (if `mergeable`)."""

    @abstractmethod
    def _forget(self, k: int) -> None:
        """Remove row k."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Give the whole state by name, without copies."""

    @abstractmethod
    def _load(self, state: "StateReader", n_words: int) -> None:
        """Fill the empty state that `_start` made."""

    def _dim_of(self, state: dict[str, np.ndarray]) -> int:
        """Vector length that a state was made for."""
        array = state.get(self._columns)
        if array is None or array.ndim != 2 or not array.shape[1]:
            raise ModelFileError(f"the model file holds no state of learner {self.name!r}")
        return array.shape[1]

    # Checks.

    def _check(self, X: np.ndarray, ndim: int) -> np.ndarray:
        shape = "(D,)" if ndim == 1 else "(n, D)"
        if X.ndim != ndim or not X.shape[-1] or X.dtype.kind not in "fiu":
            raise InputError(
                f"{self.name} wants numbers of shape {shape}, got {X.dtype} of shape {X.shape}"
            )
        if self.dim is not None and X.shape[-1] != self.dim:
            raise InputError(
                f"{self.name} was taught vectors of {self.dim} numbers, got {X.shape[-1]}"
            )
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(X, dtype=np.float32)
        # The sum of squares tells of NaN, infinity and numbers too large to be squared in a single
        # pass; only a huge one needs a second look.
        flat = X.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not flat @ flat <= _LARGEST**2
        if suspicious:
            self._refuse_extremes(X)
        return X

    def _refuse_extremes(self, X: np.ndarray) -> None:
        if not np.isfinite(X).all():
            raise InputError(f"{self.name}: the vector contains NaN or infinite numbers")
        largest = float(np.abs(X).max())
        if largest > _LARGEST:
            raise InputError(
                f"{self.name}: the vector has numbers up to {largest:.2g}, which cannot be squared "
                f"and summed; the limit is {_LARGEST:.0e}"
            )

    def _check_word(self, word: str) -> None:
        if not isinstance(word, str) or not word:
            raise InputError(f"a word must be a non-empty string, got {word!r}")

    def _check_size(self, dim: int, n_words: int) -> None:
        fixed, per_word = self._size(dim)
        gigabytes = (fixed + per_word * n_words) / 1e9
        if gigabytes > self.max_gb:
            raise InputError(
                f"{self.name} with {dim} numbers a vector and {n_words} words needs "
                f"{gigabytes:.1f} GB; max_gb is {self.max_gb:g}"
            )

    def _begin(self, dim: int) -> None:
        self._start(dim)
        self.dim = dim

    def _position(self, word: str) -> int:
        if word not in self.words:
            known = ", ".join(self.words) or "none"
            raise InputError(f"no word {word!r} is taught; known: {known}")
        return list(self.words).index(word)

    def _index(self, word: str, dim: int) -> int:
        """Row of a word, made on its first sample."""
        self._check_word(word)
        if word in self.words:
            return list(self.words).index(word)
        self._check_size(dim, len(self.words) + 1)
        if self.dim is None:
            self._begin(dim)
        self._grow()
        self.words[word] = 0
        return len(self.words) - 1


class StateReader(dict[str, np.ndarray]):
    """Arrays of a state, taken out with the shape and type they must have."""

    def __init__(self, state: dict[str, np.ndarray], name: str):
        super().__init__(state)
        self.name = name

    def length(self, key: str) -> int:
        """Entries of array `key` along its first axis; 0 where there is none."""
        array = self.get(key)
        return len(array) if array is not None and array.ndim else 0

    def take(self, key: str, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
        """Return a copy of array `key`, refusing any other shape, type or a NaN."""
        array = self.get(key)
        if array is None:
            raise ModelFileError(f"learner {self.name!r}: the model file lacks {key!r}")
        if array.shape != shape or array.dtype != dtype:
            raise ModelFileError(
                f"learner {self.name!r}: {key!r} should be {np.dtype(dtype)} of shape {shape}, "
                f"the model file has {array.dtype} of shape {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"learner {self.name!r}: {key!r} contains NaN or infinity")
        return array.copy()
