"""Vectors of a data set's clips: each clip decoded once, through a backbone once, kept on disk.

All poolings are taken from the same frames. Vectors are stored in shards of clips, so that an
interrupted run goes on where it stopped; what was not used for longest is dropped first.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.research.datasets.base import Clip, Dataset
from tapword.spotter.encoder import PLAIN, Preparation, block_poolings, pool_audio, prepare
from tapword.spotter.lengths import CLIP_S, MAX_S
from tapword.support.atomic_files import PathLike, atomic_write

# Clips of one file: an interrupted run loses the work of so many at most.
SHARD = 128
# Raise it whenever a backbone or augmented copies compute something else than before; a pooling has
# a `revision` of its own.
LAYOUT = 5
# What files of ours end in; the last two are left by a run that was killed while it wrote.
SUFFIXES = (".npz", ".new", ".tmp")

# Vectors (n, D) of a shard for each of some poolings, and which of its clips they are, (n,).
ShardVectors = tuple[list[np.ndarray], np.ndarray]
# Makes the vectors of a shard's clips for the poolings of these numbers.
Extract = Callable[[list[Clip], list[int]], ShardVectors]


class Features(NamedTuple):
    """Vectors (n, D) float32 of a split, and how many clips were unusable.

    Each has its word, and its speaker where that is known.
    """

    vectors: np.ndarray
    words: list[str]
    skipped: int
    speakers: list[str | None]


class Cache:
    """A folder of vectors that `trim` keeps from growing.

    Parameters
    ----------
    folder
        Where; None: `tapword/features` in the user's cache folder (XDG_CACHE_HOME or ~/.cache).
    max_gb
        The least recently used vectors are dropped beyond this.
    shard
        Clips of one file.
    """

    def __init__(self, folder: PathLike | None = None, max_gb: float = 4.0, shard: int = SHARD):
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(folder) if folder is not None else Path(home, "tapword", "features")
        self.max_gb = max_gb
        self.shard = shard

    def get(self, key: str, shard: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Vectors of a shard and which of its clips they are; None where it is not whole."""
        path = self._path(key, shard)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return stored["vectors"], stored["kept"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: str, shard: int, vectors: np.ndarray, kept: np.ndarray) -> None:
        """Store a shard, whole or not at all."""
        path = self._path(key, shard)
        content = io.BytesIO()
        np.savez(content, vectors=vectors, kept=kept)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, content.getvalue())
        except OSError as error:
            raise InputError(
                f"cannot keep vectors in {self.folder}: {error.strerror or error}; "
                "give another folder with --cache"
            ) from error

    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(self._folders().values())

    def trim(self, keep: Sequence[str] = ()) -> None:
        """Drop the least recently used keys beyond `max_gb`, except those in `keep`."""
        folders = self._folders()
        total = sum(folders.values())
        for path in sorted(folders, key=lambda path: path.stat().st_mtime):
            if total <= self.max_gb * 1e9:
                return
            if path.name not in keep:
                total -= folders[path]
                shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> int:
        """Drop all vectors; return the bytes freed."""
        folders = self._folders()
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)
        return sum(folders.values())

    def _folders(self) -> dict[Path, int]:
        """Folders that are ours, with their bytes: a key for a name, nothing but shards inside.

        Whatever else lies in a folder that somebody names as cache stays.
        """
        return {
            path: sum(map(_size, path.iterdir()))
            for path in self.folder.glob("*")
            if path.is_dir()
            and re.fullmatch("[0-9a-f]{32}", path.name)
            and all(file.suffix in SUFFIXES for file in path.iterdir())
        }

    def _path(self, key: str, shard: int) -> Path:
        return self.folder / key / f"{shard:06d}.npz"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        # Another run has finished or dropped it just now.
        return 0


class Stored(NamedTuple):
    """Vectors of a split that lie in a cache, or will."""

    cache: Cache
    key: str
    shards: list[list[Clip]]

    def has(self, number: int, strict: bool) -> bool:
        """Tell whether a shard is there; under `strict`, whether no clip of it was skipped."""
        found = self.cache.get(self.key, number)
        return found is not None and not (strict and len(found[1]) < len(self.shards[number]))

    def load(self) -> Features:
        """Read them into memory."""
        vectors: list[np.ndarray] = []
        used: list[Clip] = []
        for number, clips in enumerate(self.shards):
            stored = self.cache.get(self.key, number)
            if stored is None:
                raise InputError(
                    f"vectors in {self.cache.folder} vanished while they were read: another run "
                    "may have dropped them to stay below its --cache-gb; run again"
                )
            found, kept = stored
            if len(found):
                vectors.append(found)
            used.extend(clips[index] for index in kept)
        # The time of last use, by which the cache is trimmed.
        with contextlib.suppress(OSError):
            os.utime(self.cache.folder / self.key)
        if not vectors:
            raise InputError("none of the clips of a split could be read")
        return Features(
            np.concatenate(vectors),
            [clip.word for clip in used],
            sum(map(len, self.shards)) - len(used),
            [clip.speaker for clip in used],
        )


def store(
    dataset: Dataset,
    split: str,
    backbone: Backbone,
    poolings: Sequence[Pooling],
    cache: Cache,
    jobs: int = 1,
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
    preparation: Preparation = PLAIN,
    extract: Extract | None = None,
) -> list[Stored]:
    """Put a split's vectors for each pooling into the cache, which is not trimmed here.

    Parameters
    ----------
    split
        Clips of "train" are pooled as learned from.
    jobs
        Shards worked on at once.
    strict
        Raise on a clip that cannot be used, instead of skipping and counting it.
    progress
        Called with (clips done, clips in all).
    extract
        Makes the vectors of a shard elsewhere; None: this process does.
    """
    clips = dataset.clips(split)
    shards = [clips[start : start + cache.shard] for start in range(0, len(clips), cache.shard)]
    places = [
        Stored(cache, cache_key(dataset, split, backbone, one, preparation, cache.shard), shards)
        for one in poolings
    ]

    def extract_here(clips: list[Clip], wanted: list[int]) -> ShardVectors:
        chosen = [poolings[i] for i in wanted]
        learning = split == "train"
        return shard_vectors(dataset, clips, backbone, chosen, learning, strict, preparation)

    def work(number: int) -> int:
        missing = [i for i, place in enumerate(places) if not place.has(number, strict)]
        if missing:
            made, kept = (extract or extract_here)(shards[number], missing)
            for i, vectors in zip(missing, made, strict=True):
                cache.put(places[i].key, number, vectors, kept)
        return len(shards[number])

    done = 0
    # Shards are the parallelism; BLAS threads on top would fight for the same cores.
    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            for count in pool.map(work, range(len(shards))):
                done += count
                if progress:
                    progress(done, len(clips))
        finally:
            pool.shutdown(cancel_futures=True)
    return places


def shard_vectors(
    dataset: Dataset,
    clips: Sequence[Clip],
    backbone: Backbone,
    poolings: Sequence[Pooling],
    learning: bool,
    strict: bool,
    preparation: Preparation,
) -> ShardVectors:
    """Vectors (n, D) of clips for each of `poolings`, and which of the clips they are, (n,)."""
    prepared: list[np.ndarray] = []
    kept: list[int] = []
    for index, clip in enumerate(clips):
        try:
            prepared.append(prepare(dataset.read(clip), preparation.align))
            kept.append(index)
        except InputError:
            if strict:
                raise
    fixed = [block_poolings(pooling, backbone, preparation.align) for pooling in poolings]
    vectors = pool_audio(backbone, fixed, prepared, learning, learning and preparation.augment)
    return vectors, np.array(kept, dtype=np.int64)


def cache_key(
    dataset: Dataset,
    split: str,
    backbone: Backbone,
    pooling: Pooling,
    preparation: Preparation = PLAIN,
    shard: int = SHARD,
) -> str:
    """Hash of everything that a split's vectors depend on: the name of their folder."""
    revisions = [one.revision for one in pooling.each(len(backbone.dims))]
    parts = [
        LAYOUT,
        shard,
        CLIP_S,
        # Aligned clips are as long as their speech.
        MAX_S if preparation.align else False,
        split == "train" and preparation.augment,
        dataset.fingerprint(),
        split,
        registry.store(backbone, skip=backbone.machine_arguments),
        backbone.weights_sha256,
        backbone.precision,
        registry.store(pooling),
        *(revisions if any(revisions) else []),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
