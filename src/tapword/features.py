"""Vectors of a data set's clips: decoded once, through a backbone once, kept on disk.

All poolings are taken on the fly from the same frames. Vectors are stored in shards of clips, so
an interrupted run goes on where it stopped; the store is bounded and the oldest are dropped first.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.datasets.base import Clip, Dataset
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.vectors import CLIP_S, PLAIN, Hearing, block_poolings, pool_audio, prepare

SHARD = 128
# Raise it whenever a backbone, a pooling or copies compute something else than before.
LAYOUT = 5


class Features(NamedTuple):
    """Vectors (n, D) float32 of a split, the word of each, and how many clips were unusable."""

    vectors: np.ndarray
    words: list[str]
    skipped: int


class Cache:
    """A folder of vectors that never grows beyond a limit.

    Parameters
    ----------
    folder
        Where; None: `tapword/features` in the user's cache folder (XDG_CACHE_HOME or ~/.cache).
    max_gb
        The least recently used vectors are dropped beyond this.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, max_gb: float = 4.0):
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(folder) if folder is not None else Path(home, "tapword", "features")
        self.max_gb = max_gb

    def get(self, key: str, shard: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Vectors of a shard and which of its clips they are; None where it is not whole."""
        path = self._path(key, shard)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                return stored["vectors"], stored["kept"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def has(self, key: str, shard: int, clips: int | None = None) -> bool:
        """Tell whether a shard is there and whole; with `clips`, whether it holds them all."""
        if not self._path(key, shard).is_file():
            return False
        stored = self.get(key, shard)
        return stored is not None and (clips is None or len(stored[1]) == clips)

    def put(self, key: str, shard: int, vectors: np.ndarray, kept: np.ndarray) -> None:
        """Store a shard, whole or not at all."""
        path = self._path(key, shard)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
                np.savez(file, vectors=vectors, kept=kept)
                file.flush()
                os.fsync(file.fileno())
            os.replace(file.name, path)
        except OSError as error:
            raise InputError(
                f"cannot keep vectors in {self.folder}: {error.strerror or error}; "
                "give another folder with --cache"
            ) from error

    def used(self, key: str) -> None:
        """Note that a key was used now."""
        with contextlib.suppress(OSError):
            os.utime(self.folder / key)

    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(_size(folder) for folder in self._folders())

    def trim(self, keep: Sequence[str] = ()) -> None:
        """Drop the least recently used keys beyond the limit, except those in `keep`."""
        total = self.bytes()
        for path in sorted(self._folders(), key=lambda path: path.stat().st_mtime):
            if total <= self.max_gb * 1e9:
                return
            if path.name not in keep:
                total -= _size(path)
                shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> int:
        """Drop all vectors; return the bytes freed."""
        freed = self.bytes()
        for path in self._folders():
            shutil.rmtree(path, ignore_errors=True)
        return freed

    def _folders(self) -> list[Path]:
        """Folders that are ours: a key for a name and nothing but shards inside.

        Whatever else lies in a folder that somebody names as cache stays.
        """
        return [
            path
            for path in self.folder.glob("*")
            if path.is_dir()
            and re.fullmatch("[0-9a-f]{32}", path.name)
            and all(file.suffix in (".npz", ".tmp") for file in path.iterdir())
        ]

    def _path(self, key: str, shard: int) -> Path:
        return self.folder / key / f"{shard:06d}.npz"


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


class Stored(NamedTuple):
    """Vectors of a split that lie in a cache, or will."""

    cache: Cache
    key: str
    shards: list[list[Clip]]

    def has(self, number: int, strict: bool) -> bool:
        """Tell whether a shard is there; under `strict`, whether no clip of it was skipped."""
        return self.cache.has(self.key, number, len(self.shards[number]) if strict else None)

    def load(self) -> Features:
        """Read them into memory."""
        return _collect(*self)


def store(
    dataset: Dataset,
    split: str,
    backbone: Backbone,
    poolings: Sequence[Pooling],
    cache: Cache,
    jobs: int = 1,
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
    hearing: Hearing = PLAIN,
) -> list[Stored]:
    """Put a split's vectors for each pooling into the cache, which is not trimmed here.

    Parameters
    ----------
    dataset, split
        Whose clips; those of "train" are pooled as learned from.
    backbone, poolings
        How a clip becomes a vector.
    cache
        Where vectors are looked for and kept.
    jobs
        Shards worked on at once.
    strict
        Raise on a clip that cannot be used, instead of skipping and counting it.
    progress
        Called with (clips done, clips in all).
    hearing
        How clips are heard.
    """
    places = find(dataset, split, backbone, poolings, cache, hearing)
    shards = places[0].shards
    fixed = [block_poolings(pooling, backbone) for pooling in poolings]
    total, done = sum(map(len, shards)), 0

    def work(number: int) -> int:
        missing = [i for i, place in enumerate(places) if not place.has(number, strict)]
        if missing:
            chosen = [fixed[i] for i in missing]
            made, kept = shard_vectors(
                dataset, shards[number], backbone, chosen, split == "train", strict, hearing
            )
            for i, vectors in zip(missing, made, strict=True):
                cache.put(places[i].key, number, vectors, kept)
        return len(shards[number])

    # Shards are the parallelism; BLAS threads on top would fight for the same cores.
    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(max(1, jobs)) as pool:
        futures = [pool.submit(work, number) for number in range(len(shards))]
        try:
            for future in futures:
                done += future.result()
                if progress:
                    progress(done, total)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return places


def find(
    dataset: Dataset,
    split: str,
    backbone: Backbone,
    poolings: Sequence[Pooling],
    cache: Cache,
    hearing: Hearing = PLAIN,
) -> list[Stored]:
    """Say where a split's vectors for each pooling lie in a cache, or will."""
    clips = dataset.clips(split)
    shards = [clips[start : start + SHARD] for start in range(0, len(clips), SHARD)]
    return [
        Stored(cache, _key(dataset, split, backbone, pooling, hearing), shards)
        for pooling in poolings
    ]


def shard_vectors(
    dataset: Dataset,
    clips: Sequence[Clip],
    backbone: Backbone,
    poolings: Sequence[Sequence[Pooling]],
    learning: bool,
    strict: bool,
    hearing: Hearing = PLAIN,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Vectors (n, D) of clips for each of `poolings`, and which of the clips they are, (n,)."""
    sounds, kept = _read(dataset, clips, strict, hearing.align)
    vectors = pool_audio(backbone, poolings, sounds, learning, learning and hearing.copies)
    return vectors, np.array(kept, dtype=np.int64)


def _read(
    dataset: Dataset, clips: Sequence[Clip], strict: bool, align: bool
) -> tuple[list, list[int]]:
    sounds, kept = [], []
    for index, clip in enumerate(clips):
        try:
            sounds.append(prepare(dataset.read(clip), align))
            kept.append(index)
        except InputError:
            if strict:
                raise
    return sounds, kept


def _collect(cache: Cache, key: str, shards: list[list[Clip]]) -> Features:
    vectors: list[np.ndarray] = []
    words: list[str] = []
    skipped = 0
    for number, clips in enumerate(shards):
        stored = cache.get(key, number)
        if stored is None:
            raise InputError(
                f"vectors in {cache.folder} vanished while they were read: another run may have "
                "dropped them to stay below its --cache-gb; run again"
            )
        if len(stored[0]):
            vectors.append(stored[0])
        words.extend(clips[index].word for index in stored[1])
        skipped += len(clips) - len(stored[1])
    cache.used(key)
    if not vectors:
        raise InputError("none of the clips of a split could be read")
    return Features(np.concatenate(vectors), words, skipped)


def _key(
    dataset: Dataset, split: str, backbone: Backbone, pooling: Pooling, hearing: Hearing
) -> str:
    """Everything a vector depends on, hashed."""
    parts = [
        LAYOUT,
        SHARD,
        CLIP_S,
        hearing.align,
        split == "train" and hearing.copies,
        dataset.fingerprint(),
        split,
        registry.store(backbone, skip=backbone.machine_arguments),
        backbone.weights_sha256,
        backbone.precision,
        registry.store(pooling),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
