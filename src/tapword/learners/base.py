"""Base class of learners: vectors and words in, one at a time, scores out; no sample is kept."""

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.registry import Part
from tapword.support.text import counted

# Larger numbers are refused: the squares of 1e8 of them must sum to less than float32's 3e38.
LARGEST = 1e15


class StateBytes(NamedTuple):
    """Memory of a learner's state: `total` = `fixed` + rows * `per_word`."""

    total: int
    fixed: int
    per_word: int


class Row(NamedTuple):
    """What one row of a learner's state describes: a word, or its negatives."""

    word: str
    negative: bool = False


class Learner(Part, ABC):
    """Learn words from vectors, one at a time, in one pass.

    A subclass defines the methods under "For subclasses"; it works with row numbers and need not
    know which rows are negatives. This class checks the input.

    Attributes
    ----------
    dim
        Numbers per vector; None until the first sample or state.
    max_gb
        Largest size of a state; more is refused before memory is allocated.
    sharpness
        Factor of the scores before `probabilities` takes their softmax.
    mergeable
        Whether two learners can be added up exactly, and a sample be unlearned.
    keeps_vectors
        Whether vectors of single samples are kept, as replay needs; audio never is.
    keeps_trace
        Whether a forgotten word may leave a trace while others are taught. If not, a learner that
        forgets a word equals, byte for byte, one that was never taught it.
    needs_whitening
        Whether it is made for whitened vectors; a spotter then whitens them by default.
    supports_thresholds
        Whether its scores can be normalised by a cohort, which gives each word a threshold. It then
        has `directions`, and the cosine to a row's direction says how well that row fits.
    supports_phrases
        Whether phrases, words of more than a second, can be found in a stream. This needs
        thresholds.
    supports_rejection
        Whether it can learn that a sound is not a word.
    supports_synthetic
        Whether it keeps clips that a voice spoke apart from samples: see `learn_synthetic`.
    """

    max_gb = 4.0
    sharpness = 1.0
    mergeable = False
    keeps_vectors = False
    keeps_trace = True
    needs_whitening = False
    supports_thresholds = False
    supports_phrases = False
    supports_rejection = True
    supports_synthetic = False
    # Array of the state that has one column for each number of a vector.
    _columns = "means"

    def __post_init__(self) -> None:
        self.dim: int | None = None
        # Row -> its index in the state; samples and synthetic clips of each row; which rows are
        # negatives.
        self._index: dict[Row, int] = {}
        self._counts: list[int] = []
        self._synthetic: list[int] = []
        self._negative = np.zeros(0, dtype=bool)

    @property
    def rows(self) -> list[Row]:
        """What each row of the state describes, in order."""
        return list(self._index)

    @property
    def words(self) -> dict[str, int]:
        """Word -> number of its samples, in the order of the columns of `scores`.

        0 for a word of which only synthetic clips are known.
        """
        return self._table(negative=False)

    @property
    def synthetic(self) -> dict[str, int]:
        """Word -> number of its synthetic clips, where there are any."""
        clips = zip(self._index, self._synthetic, strict=True)
        return {row.word: count for row, count in clips if count}

    @property
    def negatives(self) -> dict[str, int]:
        """Word -> number of sounds that were taught as not this word."""
        return self._table(negative=True)

    def learn_one(self, x: np.ndarray, word: str, negative: bool = False) -> None:
        """Learn that the vector `x` (D,) is `word`, which may be new; or that it is not `word`."""
        x = self._check(np.asarray(x), ndim=1)
        self._check_word(word)
        if negative and not self.supports_rejection:
            raise InputError(f"learner {self.name!r} cannot learn that a sound is not a word")
        row = Row(word, negative)
        if row not in self._index:
            if negative:
                self.require_taught(word)
            self._make_rows([row], len(x))
        index = self._index[row]
        self._learn_one(x, index)
        self._counts[index] += 1
        self._changed()

    def learn_many(self, X: np.ndarray, words: Sequence[str]) -> None:
        """Learn the rows of `X` (n, D); equal to `learn_one` in order, and faster."""
        X = self._check(np.asarray(X), ndim=2)
        if len(X) != len(words):
            raise InputError(f"got {counted(len(X), 'vector')} for {counted(len(words), 'word')}")
        for word in words:
            self._check_word(word)
        if not len(X):
            return
        counts = Counter(words)
        self._make_rows(map(Row, counts), X.shape[1])
        indices = {word: self._index[Row(word)] for word in counts}
        self._learn_many(X, np.array([indices[word] for word in words]))
        for word, count in counts.items():
            self._counts[indices[word]] += count
        self._changed()

    def learn_synthetic(self, X: np.ndarray, word: str, native: bool = True) -> None:
        """Learn clips of `word` that a voice spoke, as the rows of `X` (n, D).

        They are kept apart from its samples, and count as one of them, or for nothing where the
        samples are too different. `native` says whether its speakers are native speakers; of
        others, less is too different. They leave no trace once they are forgotten.
        """
        self.require_synthetic()
        X = self._check(np.asarray(X), ndim=2)
        self._check_word(word)
        if not len(X):
            return
        more = 0 if word in self.synthetic else 1
        self._check_size(X.shape[1], len({*self._index, Row(word)}) + len(self.synthetic) + more)
        self._make_rows([Row(word)], X.shape[1])
        index = self._index[Row(word)]
        self._learn_synthetic(X, index, native)
        self._synthetic[index] += len(X)
        self._changed()

    def unlearn_synthetic(self, x: np.ndarray, word: str, native: bool = True) -> None:
        """Unlearn a synthetic clip `x` (D,) of a word, as if it had never been learned.

        The last one of a word without samples removes the word and its negatives.
        """
        x = self._check(np.asarray(x), ndim=1)
        self.require_taught(word)
        index = self._index[Row(word)]
        if not self._synthetic[index]:
            raise InputError(f"no synthetic clip of {word!r} is taught")
        self._unlearn_synthetic(x, index, native)
        self._synthetic[index] -= 1
        if not self._counts[index] and not self._synthetic[index]:
            self._remove([Row(word), Row(word, negative=True)])
        self._changed()

    @property
    def forgotten(self) -> int:
        """Samples of forgotten words in the shared scatter; the next samples replace them."""
        return 0

    def unlearn_one(
        self, x: np.ndarray, word: str, negative: bool = False, scattered: bool = True
    ) -> None:
        """Unlearn a vector `x` (D,), as if it had never been learned; in any order.

        The last sample of a word removes the word and its negatives, unless it has synthetic clips.
        `scattered` says whether `forgotten` was 0 when it was learned. A vector that cannot have
        been learned is refused.
        """
        x = self._check(np.asarray(x), ndim=1)
        self.require_taught(word)
        self._require_additive("unlearn")
        row = Row(word, negative)
        if row not in self._index:
            raise InputError(f"no negative of {word!r} is taught")
        index = self._index[row]
        if not self._counts[index]:
            raise InputError(f"no sample of {word!r} is taught, only synthetic clips")
        self._unlearn_one(x, index, scattered)
        self._counts[index] -= 1
        if not self._counts[index] and not self._synthetic[index]:
            self._remove([row] if negative else [row, Row(word, negative=True)])
        self._changed()

    def extract_word(self, word: str) -> Self:
        """Copy with only one word and its negatives; `merge` restores them after `forget`.

        What words share, such as a scatter, is not copied: `forget` does not remove it either.
        """
        self.require_taught(word)
        self._require_additive("extract a word")
        assert self.dim is not None
        rows = [row for row in self.rows if row.word == word]
        indices = [self._index[row] for row in rows]
        made = copy.copy(self)
        made._keep_rows(indices)
        made._index_rows(rows)
        made._counts = [self._counts[index] for index in indices]
        made._synthetic = [self._synthetic[index] for index in indices]
        made._changed()
        return made

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Score the rows of `X` (n, D) for each taught word: (n, len(words)), higher is better."""
        return self.all_scores(X)[0]

    def all_scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores for words and for negatives: (n, len(words)) and (n, len(negatives))."""
        X = self._check(np.asarray(X), ndim=2)
        none = np.empty((len(X), 0))
        if not self._index:
            return none, none
        scores = self._scores(X)
        if not self._negative.any():
            return scores, none
        return scores[:, ~self._negative], scores[:, self._negative]

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights (rows, D) and biases (rows,) if scores are X @ weights.T + biases, or None."""
        return None

    def directions(self) -> np.ndarray:
        """Return unit vectors (rows, D) float32, if the learner `supports_thresholds`.

        Each change of the learner gives a new array.
        """
        raise InputError(f"learner {self.name!r} does not support thresholds")

    def predict(self, X: np.ndarray) -> list[str | None]:
        """Best word for each row of `X` (n, D); None if nothing is taught."""
        scores = self.scores(X)
        names = [row.word for row in self._index if not row.negative]
        return [names[best] for best in scores.argmax(axis=1)] if names else [None] * len(scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores (n, K) into probabilities (n, K)."""
        if not scores.shape[-1]:
            return scores
        e = np.exp(self.sharpness * (scores - scores.max(axis=-1, keepdims=True)))
        return e / e.sum(axis=-1, keepdims=True)

    def merge(self, other: "Learner") -> None:
        """Add what `other` learned, as if its samples had been taught here."""
        if type(other) is not type(self) or other.arguments() != self.arguments():
            raise InputError(f"cannot merge {other!r} into {self!r}: arguments differ")
        self._require_additive("merge")
        if other.dim is None:
            return
        if self.dim not in (None, other.dim):
            raise InputError(f"cannot merge vectors of {other.dim} numbers into {self.dim}")
        self._make_rows(other._index, other.dim)
        indices = [self._index[row] for row in other._index]
        self._merge(other, np.array(indices, dtype=int))
        for index, count, clips in zip(indices, other._counts, other._synthetic, strict=True):
            self._counts[index] += count
            self._synthetic[index] += clips
        self._changed()

    def forget(self, word: str) -> None:
        """Remove a word and its negatives.

        If the learner `keeps_trace`, what words share, such as the scatter, keeps a trace of it
        until all words are forgotten.
        """
        self.require_taught(word)
        self._remove([Row(word), Row(word, negative=True)])
        self._changed()

    def rename(self, old: str, new: str) -> None:
        """Rename a word; nothing else changes."""
        self.require_taught(old)
        self._check_word(new)
        if new != old and Row(new) in self._index:
            raise InputError(
                f"cannot rename {old!r} to {new!r}: there is already a word {new!r}",
                code="name_taken",
                params={"word": old, "new": new},
            )
        self._index_rows(
            Row(new if row.word == old else row.word, row.negative) for row in self.rows
        )

    def state(self) -> dict[str, np.ndarray]:
        """Everything learned except rows and counts, as arrays; {} before the first sample."""
        return {} if self.dim is None else self._arrays()

    def load_state(
        self,
        state: dict[str, np.ndarray],
        words: dict[str, int],
        negatives: dict[str, int] | None = None,
        rows: Sequence[Row] | None = None,
        take_over: bool = False,
        synthetic: dict[str, int] | None = None,
    ) -> None:
        """Load the state of a learner with the same arguments.

        Without `rows`, the rows of the state are the words, then the negatives. With `take_over`
        the learner uses the arrays themselves; otherwise it copies them. `synthetic` are the
        synthetic clips of words.
        """
        synthetic = synthetic or {}
        if not synthetic.keys() <= words.keys() or (synthetic and not self.supports_synthetic):
            raise ModelFileError("its synthetic clips are not of its words, or of its learner")
        counts = {Row(word): n for word, n in words.items()}
        counts |= {Row(word, negative=True): n for word, n in (negatives or {}).items()}
        rows = list(counts) if rows is None else rows
        if sorted(rows) != sorted(counts):
            raise ModelFileError("the rows of the state are not those of its words and negatives")
        self.dim, self._counts, self._synthetic = None, [], []
        self._index_rows([])
        if not state:
            if rows:
                named = counted(len(words), "word")
                raise ModelFileError(f"the model file names {named} but holds no state")
            return
        dim = self._dim_of(state)
        self._check_size(dim, len(rows))
        held = sum(array.nbytes for array in state.values())
        # In memory a state may be twice as large as in a file.
        if self.min_bytes(dim, len(rows)) // 2 > held:
            raise ModelFileError(
                f"{held} bytes hold no state of learner {self.name!r} for {len(rows)} rows and "
                f"vectors of {dim} numbers"
            )
        clips = [0 if row.negative else synthetic.get(row.word, 0) for row in rows]
        if any(not counts[row] and not n for row, n in zip(rows, clips, strict=True)):
            raise ModelFileError("it has a word without samples")
        self._start_empty(dim)
        reader = StateReader(state, self.name, take_over)
        self._load(reader, len(rows))
        if any(clips):
            self._load_synthetic(reader, clips)
        self._index_rows(rows)
        self.dim, self._counts, self._synthetic = dim, [counts[row] for row in rows], clips
        self._changed()

    @property
    def state_bytes(self) -> StateBytes:
        """Bytes of the state now: in total, fixed, and for each word."""
        fixed, per_word = (0, 0) if self.dim is None else self._size(self.dim)
        return StateBytes(fixed + per_word * len(self._index), fixed, per_word)

    def bytes_for(self, dim: int, n_rows: int) -> int:
        """Largest number of bytes of a state for vectors of `dim` numbers and `n_rows` rows."""
        fixed, per_word = self._size(dim)
        return fixed + per_word * n_rows

    def min_bytes(self, dim: int, n_rows: int) -> int:
        """Smallest number of bytes; less than `bytes_for` if it may be partly empty."""
        return self.bytes_for(dim, n_rows)

    # For subclasses.

    @abstractmethod
    def _size(self, dim: int) -> tuple[int, int]:
        """Upper bound of the state's bytes for vectors of `dim` numbers: (fixed, per row)."""

    @abstractmethod
    def _start(self, dim: int) -> None:
        """Make the empty state for vectors of `dim` numbers."""

    def _start_empty(self, dim: int) -> None:
        """Prepare for `_load`: as `_start`, but without what `_load` replaces."""
        self._start(dim)

    @abstractmethod
    def _grow(self) -> None:
        """Append an empty row."""

    @abstractmethod
    def _learn_one(self, x: np.ndarray, k: int) -> None:
        """Learn x (D,) float32 into row k, which exists."""

    def _learn_many(self, X: np.ndarray, indices: np.ndarray) -> None:
        """Learn the rows of X (n, D) float32 into the state's rows `indices` (n,)."""
        for x, k in zip(X, indices, strict=True):
            self._learn_one(x, k)

    @abstractmethod
    def _scores(self, X: np.ndarray) -> np.ndarray:
        """(n, D) float32 -> (n, rows); there is at least one row."""

    def _unlearn_one(self, x: np.ndarray, k: int, scattered: bool) -> None:
        """Unlearn x (D,) float32 from row k, or refuse (if `mergeable`)."""

    def _learn_synthetic(self, X: np.ndarray, k: int, native: bool) -> None:
        """Learn the rows of X (n, D) float32 as synthetic clips of row k (if supported)."""

    def _unlearn_synthetic(self, x: np.ndarray, k: int, native: bool) -> None:
        """Unlearn a synthetic clip x (D,) of row k (if supported)."""

    def _load_synthetic(self, state: "StateReader", clips: list[int]) -> None:
        """Load the synthetic clips of each row from its state (if supported)."""

    def _keep_rows(self, indices: list[int]) -> None:
        """Replace the state by a copy of its rows `indices` (if `mergeable`)."""

    def _merge(self, other: Any, indices: np.ndarray) -> None:
        """Add another's state; its row i is row `indices[i]` here (if `mergeable`)."""

    @abstractmethod
    def _forget(self, k: int) -> None:
        """Remove row k."""

    def _changed(self) -> None:
        """Drop cached results: the state has changed."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the whole state by name, without copies."""

    @abstractmethod
    def _load(self, state: "StateReader", n_rows: int) -> None:
        """Fill the empty state that `_start_empty` made."""

    # Rows.

    def _table(self, negative: bool) -> dict[str, int]:
        counted = zip(self._index, self._counts, strict=True)
        return {row.word: count for row, count in counted if row.negative == negative}

    def _index_rows(self, rows: Iterable[Row]) -> None:
        self._index = {row: index for index, row in enumerate(rows)}
        self._negative = np.array([row.negative for row in self._index], dtype=bool)

    def _remove(self, rows: Iterable[Row]) -> None:
        """Remove rows that exist; after the last row, start again."""
        for row in rows:
            if row in self._index:
                index = self._index.pop(row)
                self._forget(index)
                del self._counts[index], self._synthetic[index]
                self._index_rows(self._index)
        if not self._index and self.dim is not None:
            self._start(self.dim)
            self.dim = None

    def _make_rows(self, rows: Iterable[Row], dim: int) -> None:
        """Make rows that do not exist yet, or refuse before anything changes."""
        new = [row for row in rows if row not in self._index]
        if new:
            self._check_size(dim, len(self._index) + len(new))
        if self.dim is None:
            self._start(dim)
            self.dim = dim
        for _ in new:
            self._grow()
        self._counts += [0] * len(new)
        self._synthetic += [0] * len(new)
        self._index_rows([*self._index, *new])

    # Checks.

    def _check(self, X: np.ndarray, ndim: int) -> np.ndarray:
        if X.ndim != ndim or not X.shape[-1] or X.dtype.kind not in "fiu":
            wanted = f"{self.name} needs numbers of shape {'(D,)' if ndim == 1 else '(n, D)'}"
            raise InputError(f"{wanted}, got {X.dtype} of shape {X.shape}")
        if self.dim not in (None, X.shape[-1]):
            taught = f"{self.name} was taught vectors of {self.dim} numbers"
            raise InputError(f"{taught}, got {X.shape[-1]}")
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(X, dtype=np.float32)
        # One sum of squares reveals NaN, infinity and numbers too large to square; only if it is
        # huge is a second pass needed.
        flat = X.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not flat @ flat <= LARGEST**2
        largest = float(np.abs(X).max()) if suspicious else 0.0
        if not np.isfinite(largest):
            raise InputError(f"{self.name}: the vector contains NaN or infinite numbers")
        if largest > LARGEST:
            raise InputError(
                f"{self.name}: the vector has numbers up to {largest:.2g}, which cannot be squared "
                f"and summed; they may be at most {LARGEST:.0e}"
            )
        return X

    def _check_word(self, word: str) -> None:
        if not isinstance(word, str) or not word:
            raise InputError(f"a word must be a non-empty string, got {word!r}")

    def _check_size(self, dim: int, n_rows: int) -> None:
        gigabytes = self.bytes_for(dim, n_rows) / 1e9
        if gigabytes > self.max_gb:
            raise InputError(
                f"{self.name} with {dim} numbers per vector and {counted(n_rows, 'word')} needs "
                f"{gigabytes:.1f} GB; max_gb is {self.max_gb:g}"
            )

    def _require_additive(self, to_do: str) -> None:
        if not self.mergeable:
            reason = "what it knows depends on the order of samples"
            raise InputError(f"learner {self.name!r} cannot {to_do}: {reason}")

    def require_taught(self, word: str) -> None:
        """Raise an error if a word is not taught."""
        if Row(word) not in self._index:
            known = ", ".join(self.words) or "none"
            raise InputError(
                f"{word!r} is not in this model. It knows: {known}",
                code="unknown_word",
                params={"word": word, "known": known},
            )

    def require_synthetic(self) -> None:
        """Raise an error if synthetic clips cannot be kept apart."""
        if not self.supports_synthetic:
            raise InputError(
                f"learner {self.name!r} cannot learn typed words; those of the sizes can"
            )

    def _dim_of(self, state: dict[str, np.ndarray]) -> int:
        """Length of the vectors that a state was made for."""
        array = state.get(self._columns)
        if array is None or array.ndim != 2 or not array.shape[1]:
            raise ModelFileError(f"the model file holds no state of learner {self.name!r}")
        return array.shape[1]


class StateReader(dict[str, np.ndarray]):
    """Arrays of a state, checked for shape and type when they are taken."""

    def __init__(self, state: dict[str, np.ndarray], name: str, take_over: bool = False):
        super().__init__(state)
        self.name = name
        self.take_over = take_over

    def length(self, key: str) -> int:
        """Length of array `key`; 0 if there is none."""
        array = self.get(key)
        return len(array) if array is not None and array.ndim else 0

    def take(self, key: str, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
        """Return array `key` or a copy; refuse another shape or type, or a NaN."""
        array = self.get(key)
        if array is None:
            raise ModelFileError(f"learner {self.name!r}: the model file lacks {key!r}")
        if array.shape != shape or array.dtype != dtype:
            raise ModelFileError(
                f"learner {self.name!r}: {key!r} should be {np.dtype(dtype)} of shape {shape}, "
                f"the model file has {array.dtype} of shape {array.shape}"
            )
        # The extremes reveal NaN and infinity without a second large array.
        with np.errstate(invalid="ignore"):
            extremes = [array.min(), array.max()] if array.size else []
        if not np.isfinite(extremes).all():
            raise ModelFileError(f"learner {self.name!r}: {key!r} contains NaN or infinity")
        return array if self.take_over else array.copy()
