"""Whitening: remove how vectors of words vary in general, as learned from other words."""

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.spotter.cohort import NEAREST, WEIGHT
from tapword.spotter.thresholds import LINE, Line
from tapword.support.atomic_files import PathLike, write

# Names in files, from before these things had today's names.
KEY = "tapword_prior"
COHORT_KEY, PROJECTION_KEY, SQRT_KEY = "background", "sight", "roots"
LINE_KEY, WEIGHT_KEY, NEAREST_KEY = "reach", "share", "nearest"
# Numbers that are whitened together: a block on the diagonal of the covariance.
BLOCK = 96
# Factor of that covariance's diagonal: correlations within some words hold for others only in
# part. One training clip a word of Speech Commands: 88.1% right by 1, 89.2% by 2, 89.1% by 4;
# from five clips on no difference (training/constants.py).
DIAGONAL = 2.0
# Fewer windows have no tail.
MIN_WINDOWS = 100


@dataclass(eq=False, repr=False)
class Whitening:
    """Whitens a vector by how words of other people vary.

    Each group of a vector (one pooled block of the backbone, or a part of it) is centred, whitened
    in blocks on the diagonal of the within-word covariance, or scaled number by number, and scaled
    to unit length. A signed square root may come before that, so no few numbers dominate.

    Parameters
    ----------
    about
        What the vectors are of, and where the statistics come from: see `vector_kind`, `fit`.
    mean
        Shape (D,), float32.
    maps
        Upper triangles of the blocks' whitening matrices, packed by rows, float16.
    within
        Shape (G,): squared distance of a group's vectors from their word's mean, on average.
    cohort, phrases
        Whitened vectors (n, D) of windows of running speech, int8, of any scale: see
        `cohort.Cohort`. The first are of one second each, the others longer.
    projection
        Directions (r, D), int8, of any scale. The windows are then (n, r): see `project`.
    """

    about: dict[str, Any]
    mean: np.ndarray
    maps: np.ndarray
    within: np.ndarray
    cohort: np.ndarray | None = None
    phrases: np.ndarray | None = None
    projection: np.ndarray | None = None

    def __post_init__(self) -> None:
        groups, block = self.about["groups"], self.about["block"]
        line = self.line
        if not (-100 < line.offset < 100 and 0 < line.slope < 100):
            raise InputError("a whitening's offset and slope must be numbers, slope above 0")
        if not (0 <= line.share <= 1 and 0 <= line.first < line.last <= 1):
            raise InputError("a whitening's share and quantiles must be numbers from 0 to 1")
        if not 0 <= self.cohort_weight <= 1:
            raise InputError("a whitening's cohort weight must be a number from 0 to 1")
        if self.cohort_nearest not in range(1, MIN_WINDOWS):
            raise InputError(f"a whitening's nearest must be a number from 1 to {MIN_WINDOWS - 1}")
        sizes = [n.stop - n.start for group in _groups(groups, block) for n in group]
        wanted = sum(groups), sum(n * (n + 1) // 2 for n in sizes), len(groups)
        if not groups or (len(self.mean), len(self.maps), len(self.within)) != wanted:
            raise InputError("a whitening's arrays do not fit its groups")
        width = self.mean.shape
        if self.projection is not None:
            if self.projection.shape[1:] != width:
                raise InputError("a whitening's projection does not fit its groups")
            width = self.projection.shape[:1]
        for windows in (self.cohort, self.phrases):
            if windows is not None and (windows.shape[1:] != width or len(windows) < MIN_WINDOWS):
                raise InputError("a whitening's windows do not fit its groups, or are too few")
        self._spans = [slice(group[0].start, group[-1].stop) for group in _groups(groups, block)]
        self._scale = self.maps.astype(np.float32) if block == 1 else None

    @functools.cached_property
    def blocks(self) -> list[list[tuple[slice, np.ndarray]]]:
        """Blocks of each group: which numbers, and the matrix (n, n) that whitens them."""
        result, start = [], 0
        for group in _groups(self.about["groups"], self.about["block"]):
            found = []
            for rows in group:
                n = rows.stop - rows.start
                matrix = np.zeros((n, n), dtype=np.float32)
                matrix[np.triu_indices(n)] = self.maps[start : start + n * (n + 1) // 2]
                start += n * (n + 1) // 2
                found.append((rows, matrix))
            result.append(found)
        return result

    @functools.cached_property
    def sha256(self) -> str:
        """Hash of the numbers: equal hashes whiten the same way."""
        content = b"".join(array.tobytes() for array in (self.mean, self.maps, self.within))
        content += SQRT_KEY.encode() if self.signed_sqrt else b""
        return hashlib.sha256(content).hexdigest()

    @property
    def line(self) -> Line:
        """Of the thresholds of scores that are normalised by its cohort alone."""
        return Line(*self.about.get(LINE_KEY, LINE))

    @property
    def cohort_weight(self) -> float:
        """How much of the cohort's cosine is subtracted: see `cohort.Windows`."""
        return self.about.get(WEIGHT_KEY, WEIGHT)

    @property
    def cohort_nearest(self) -> int:
        """How many windows of the cohort count as the nearest."""
        return self.about.get(NEAREST_KEY, NEAREST)

    @property
    def signed_sqrt(self) -> bool:
        """Whether a signed square root follows the whitening (power normalisation)."""
        return self.about.get(SQRT_KEY, False)

    @property
    def source(self) -> str:
        """Where the statistics come from, in plain text."""
        return self.about["source"]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Whiten vectors (n, D); every group then has length 1."""
        result = X - self.mean
        if self._scale is not None:
            result *= self._scale
        else:
            for rows, matrix in itertools.chain.from_iterable(self.blocks):
                result[:, rows] = result[:, rows] @ matrix
        for group in self._spans:
            whole = result[:, group]
            if self.signed_sqrt:
                np.copysign(np.sqrt(np.abs(whole)), whole, out=whole)
            whole /= np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-6)
        return result

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        words: Sequence[str],
        groups: Sequence[int],
        about: dict[str, Any],
        diagonal: float = DIAGONAL,
    ) -> "Whitening":
        """Compute a whitening from vectors (n, D) of words that will not be taught.

        Parameters
        ----------
        X, words
            The vectors, and the word of each.
        groups
            Length of each group; they sum to D.
        about
            As for the class, without "groups" and "block".
        diagonal
            Factor of the covariance's diagonal.
        """
        X, index = _words(X, words)
        degrees_of_freedom = len(X) - index.max() - 1
        residuals = X - _means(X, index)[index]
        spread = X.std(axis=0) + 1e-6
        maps = []
        for group in _groups(groups, BLOCK):
            for rows in group:
                part = residuals[:, rows] / spread[rows]
                covariance = part.T @ part / degrees_of_freedom
                covariance[np.diag_indices_from(covariance)] *= diagonal
                # What never varies within these words says nothing about others.
                constant = np.diag(covariance) < 1e-12
                covariance[constant, constant] = 1.0
                inverse = np.linalg.inv(np.linalg.cholesky(covariance)).T / spread[rows, None]
                inverse[constant] = 0.0
                maps.append(inverse[np.triu_indices(len(inverse))])
        return cls._made(X, index, groups, about | {"block": BLOCK}, np.concatenate(maps))

    @classmethod
    def scale(
        cls, X: np.ndarray, words: Sequence[str], groups: Sequence[int], about: dict[str, Any]
    ) -> "Whitening":
        """Compute one that scales each number by its spread over all words, with a signed sqrt.

        For vectors that were trained to be compared directly: removing how these words vary would
        remove part of what separates others. Parameters are those of `fit`.
        """
        X, index = _words(X, words)
        about = about | {"block": 1, SQRT_KEY: True}
        return cls._made(X, index, groups, about, 1 / (X.std(axis=0) + 1e-6))

    @classmethod
    def _made(
        cls,
        X: np.ndarray,
        index: np.ndarray,
        groups: Sequence[int],
        about: dict[str, Any],
        maps: np.ndarray,
    ) -> "Whitening":
        """Make a whitening from its maps; measure how far vectors (n, D) are from their means."""
        about = about | {"groups": list(groups)}
        with np.errstate(over="ignore"):
            packed = maps.astype(np.float16)
        if not np.isfinite(packed).all():
            raise InputError("a whitening needs vectors whose numbers vary by at least about 1e-4")
        mean = X.mean(axis=0).astype(np.float32)
        made = cls(about, mean, packed, np.ones(len(groups), dtype=np.float32))
        Z = made(X.astype(np.float32))
        squares = np.square(Z - _means(Z, index)[index])
        correction = len(X) / (len(X) - index.max() - 1)
        starts = np.cumsum([0, *groups[:-1]])
        made.within = np.add.reduceat(squares.mean(axis=0) * correction, starts).astype(np.float32)
        return made

    def set_cohort(self, X: np.ndarray, phrases: np.ndarray | None = None) -> None:
        """Keep vectors (n, D) of windows of running speech, of one second and longer."""
        self.cohort = _packed(self(X))
        self.phrases = None if phrases is None else _packed(self(phrases))

    def project(self, dim: int, line: Line) -> "Whitening":
        """Return the same with less to keep: windows projected to `dim` directions.

        These are the directions in which the windows differ most. `line` belongs to scores
        normalised this way.
        """
        found = [one for one in (self.cohort, self.phrases) if one is not None]
        if not found or self.projection is not None:
            raise InputError("this whitening has no windows of running speech to project")
        units = [one / np.linalg.norm(one.astype(np.float32), axis=1)[:, None] for one in found]
        axes = np.linalg.svd(np.concatenate(units), full_matrices=False)[2]
        projection = _packed(axes[:dim])
        windows = [_packed(one @ projection.T) for one in units]
        phrases = None if self.phrases is None else windows[-1]
        about = self.about | {LINE_KEY: list(line)}
        return replace(self, about=about, cohort=windows[0], phrases=phrases, projection=projection)

    def save(self, path: PathLike) -> None:
        """Write the whitening; `load` reads it."""
        arrays = {"mean": self.mean, "maps": self.maps, "within": self.within}
        kept = {COHORT_KEY: self.cohort, "phrases": self.phrases, PROJECTION_KEY: self.projection}
        arrays |= {name: array for name, array in kept.items() if array is not None}
        about = json.dumps(self.about, ensure_ascii=False)
        write(path, safetensors.numpy.save(arrays, {KEY: about}))

    @classmethod
    def load(cls, path: PathLike) -> "Whitening":
        """Read what `save` wrote."""
        try:
            with safetensors.safe_open(path, "numpy") as file:
                about = json.loads((file.metadata() or {})[KEY])
                arrays = {name: file.get_tensor(name) for name in list(file.keys())}
            names = {COHORT_KEY: "cohort", PROJECTION_KEY: "projection"}
            return cls(about, **{names.get(name, name): array for name, array in arrays.items()})
        except FileNotFoundError:
            raise InputError(f"{path} does not exist") from None
        except (OSError, KeyError, ValueError, TypeError, safetensors.SafetensorError) as error:
            raise InputError(f"{path} is not a whitening that can be read: {error}") from error


def vector_kind(backbone: Backbone, pooling: Pooling, align: bool) -> dict[str, Any]:
    """Describe which vectors a whitening is for."""
    return {
        "backbone": registry.store(backbone, skip=backbone.machine_arguments),
        "weights_sha256": backbone.weights_sha256,
        "pooling": registry.store(pooling),
        "align": align,
    }


def choose(
    whitenings: Sequence[Whitening], backbone: Backbone, pooling: Pooling, align: bool
) -> Whitening | None:
    """Find the whitening for these vectors, if there is one."""
    wanted = json.loads(json.dumps(vector_kind(backbone, pooling, align)))
    for one in whitenings:
        if {key: one.about.get(key) for key in wanted} == wanted:
            return one
    return None


@functools.cache
def shipped(name: str) -> Whitening | None:
    """Whitening shipped for a backbone, by the backbone's name."""
    file = resources.files("tapword.assets").joinpath("whitening", f"{name}.safetensors")
    with resources.as_file(file) as path:
        return Whitening.load(path) if Path(path).is_file() else None


def join(blocks: Sequence[np.ndarray], whitenings: Sequence[Whitening]) -> np.ndarray:
    """Put vectors (n, D_i) of several backbones side by side, whitened if there are whitenings.

    Whitened backbones count equally, scaled so a word's vectors vary by 1 in each number on
    average.
    """
    if not whitenings:
        return np.hstack(blocks)
    weighed = zip(whitenings, blocks, weights(whitenings), strict=True)
    return np.hstack([one(block) * np.float32(weight) for one, block, weight in weighed])


def join_windows(
    whitenings: Sequence[Whitening], windows: Sequence[np.ndarray | None]
) -> np.ndarray | None:
    """Put windows of running speech of several backbones side by side, as `join` puts vectors.

    Parameters
    ----------
    whitenings
        Of the backbones.
    windows
        Of each, its `cohort` or its `phrases`: rows are of the same windows in each.

    Returns
    -------
    np.ndarray or None
        Shape (n, D). None if one backbone has none, or other windows.
    """
    parts: list[np.ndarray] = []
    for one, rows, weight in zip(whitenings, windows, weights(whitenings), strict=True):
        if rows is None or (parts and len(rows) != len(parts[0])):
            return None
        rows = rows.astype(np.float32)
        # A float of Python: one of numpy would make the windows float64, which take twice as much.
        length = weight * math.sqrt(len(one.within))
        rows *= length / np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
        parts.append(rows)
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def weights(whitenings: Sequence[Whitening]) -> list[float]:
    """Factor of each backbone's whitened vectors when they are side by side."""
    dim = sum(len(one.mean) for one in whitenings)
    within = sum(float(one.within.mean()) for one in whitenings)
    return [float(np.sqrt(dim / within / len(one.within))) for one in whitenings]


def _packed(Z: np.ndarray) -> np.ndarray:
    """Scale numbers to 8 bits."""
    return np.rint(Z * (127 / np.abs(Z).max())).astype(np.int8)


def _words(X: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors in double precision, and the index of each one's word."""
    names, index = np.unique(np.asarray(words), return_inverse=True)
    if len(X) < 2 * len(names):
        raise InputError(
            f"a whitening needs several clips a word, got {len(X)} of {len(names)} words"
        )
    return X.astype(np.float64), index


def _means(X: np.ndarray, index: np.ndarray) -> np.ndarray:
    sums = np.zeros((index.max() + 1, X.shape[1]))
    np.add.at(sums, index, X)
    return sums / np.bincount(index)[:, None]


def _groups(lengths: Sequence[int], block: int) -> list[list[slice]]:
    """Blocks of each group, as rows of the vector."""
    result, start = [], 0
    for length in lengths:
        end = start + length
        result.append([slice(row, min(row + block, end)) for row in range(start, end, block)])
        start = end
    return result
