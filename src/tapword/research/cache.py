"""A cache of encoded clips on disk: each clip is decoded and passes a backbone once.

All poolings share the frames. Clips are stored in shards, so an interrupted run continues where it
stopped. The least recently used vectors are dropped first.
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

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.research.datasets.base import Clip, Dataset
from tapword.spotter.encoder import (
    PLAIN,
    Encoded,
    Preparation,
    block_poolings,
    encode_each,
    prepare,
)
from tapword.spotter.vocabulary import CLIP_S, MAX_S
from tapword.support.atomic_files import PathLike, atomic_write
from tapword.support.threads import one_blas_thread, one_openmp_thread

# Clips in one file: an interrupted run loses at most their work.
SHARD = 128
# Raise it whenever a backbone or augmented copies change; a pooling has its own `revision`.
LAYOUT = 5
# Suffixes of our files; a run that is killed while writing leaves the last two.
SUFFIXES = (".npz", ".new", ".tmp")

# A shard's clips encoded by each of some poolings, and the indices of the usable clips, (n,).
EncodedShard = tuple[list[Encoded], np.ndarray]
# Encodes the clips of a shard by the poolings of these indices.
EncodeShard = Callable[[list[Clip], list[int]], EncodedShard]


class Features(NamedTuple):
    """A split's encoded clips with words and speakers (None: unknown), and unusable clips."""

    encoded: Encoded
    words: list[str]
    skipped: int
    speakers: list[str | None]


class Cache:
    """A folder of encoded clips.

    Parameters
    ----------
    folder
        None: `tapword/features` in the user's cache folder (XDG_CACHE_HOME or ~/.cache).
    max_gb
        `trim` drops the least recently used vectors beyond this.
    shard
        Clips in one file.
    """

    def __init__(self, folder: PathLike | None = None, max_gb: float = 4.0, shard: int = SHARD):
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(folder) if folder is not None else Path(home, "tapword", "features")
        self.max_gb = max_gb
        self.shard = shard

    def get(self, key: str, shard: int) -> tuple[Encoded, np.ndarray] | None:
        """Read a shard's encoded clips and their indices; None where it is missing or damaged."""
        path = self._path(key, shard)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                encoded = Encoded.one_second(stored["vectors"])
                # Older files are of clips that are not aligned, which count as one second.
                if "seconds" in stored:
                    encoded = Encoded(stored["vectors"], stored["seconds"])
                return encoded, stored["kept"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: str, shard: int, encoded: Encoded, kept: np.ndarray) -> None:
        """Write a shard atomically."""
        path = self._path(key, shard)
        content = io.BytesIO()
        np.savez(content, vectors=encoded.vectors, seconds=encoded.seconds, kept=kept)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, content.getvalue())
        except OSError as error:
            raise InputError(
                f"cannot write to {self.folder}: {error.strerror or error}; give another folder "
                "with --cache"
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
        """Our folders and their bytes: named by a key, with only shards inside.

        Nothing else in the folder is touched.
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
        # Another run has just renamed or deleted it.
        return 0


class Stored(NamedTuple):
    """Encoded clips of a split in a cache."""

    cache: Cache
    key: str
    shards: list[list[Clip]]

    def has(self, number: int, strict: bool) -> bool:
        """Whether a shard is there, and with `strict`, whether no clip of it was skipped."""
        found = self.cache.get(self.key, number)
        return found is not None and not (strict and len(found[1]) < len(self.shards[number]))

    def load(self) -> Features:
        """Read the whole split into memory."""
        parts: list[Encoded] = []
        used: list[Clip] = []
        for number, clips in enumerate(self.shards):
            stored = self.cache.get(self.key, number)
            if stored is None:
                raise InputError(
                    f"vectors in {self.cache.folder} were deleted while they were read; another "
                    "run may have dropped them to stay below its --cache-gb. Run again"
                )
            found, kept = stored
            if len(found):
                parts.append(found)
            used.extend(clips[index] for index in kept)
        # `trim` goes by this time.
        with contextlib.suppress(OSError):
            os.utime(self.cache.folder / self.key)
        if not parts:
            raise InputError("no clip of the split could be read")
        return Features(
            Encoded.concatenate(parts),
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
    encode: EncodeShard | None = None,
) -> list[Stored]:
    """Encode a split into the cache, for each pooling; the cache is not trimmed.

    Parameters
    ----------
    split
        Clips of "train" are encoded to learn from.
    jobs
        Shards encoded at the same time.
    strict
        Raise on an unusable clip, instead of skipping and counting it.
    progress
        Called with (clips done, clips in total).
    encode
        Encodes a shard elsewhere; None: in this process.
    """
    clips = dataset.clips(split)
    shards = [clips[start : start + cache.shard] for start in range(0, len(clips), cache.shard)]
    places = [
        Stored(cache, cache_key(dataset, split, backbone, one, preparation, cache.shard), shards)
        for one in poolings
    ]

    def encode_here(clips: list[Clip], wanted: list[int]) -> EncodedShard:
        chosen = [poolings[i] for i in wanted]
        learning = split == "train"
        return encode_shard(dataset, clips, backbone, chosen, learning, strict, preparation)

    def work(number: int) -> int:
        missing = [i for i, place in enumerate(places) if not place.has(number, strict)]
        if missing:
            made, kept = (encode or encode_here)(shards[number], missing)
            for i, encoded in zip(missing, made, strict=True):
                cache.put(places[i].key, number, encoded, kept)
        return len(shards[number])

    done = 0
    # Shards are the parallelism; threads of the libraries would compete for the same cores. Runs in
    # other threads of this program may overlap with this one, which `one_blas_thread` allows.
    with (
        one_blas_thread,
        ThreadPoolExecutor(max(1, jobs), initializer=one_openmp_thread) as pool,
    ):
        try:
            for count in pool.map(work, range(len(shards))):
                done += count
                if progress:
                    progress(done, len(clips))
        finally:
            pool.shutdown(cancel_futures=True)
    return places


def encode_shard(
    dataset: Dataset,
    clips: Sequence[Clip],
    backbone: Backbone,
    poolings: Sequence[Pooling],
    learning: bool,
    strict: bool,
    preparation: Preparation,
) -> EncodedShard:
    """Encode clips by each of `poolings`; also give the indices of the usable ones, (n,)."""
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
    encoded = encode_each(backbone, fixed, prepared, preparation, learning)
    return encoded, np.array(kept, dtype=np.int64)


def cache_key(
    dataset: Dataset,
    split: str,
    backbone: Backbone,
    pooling: Pooling,
    preparation: Preparation = PLAIN,
    shard: int = SHARD,
) -> str:
    """Hash of everything that a split's vectors depend on: the name of its folder."""
    revisions = [one.revision for one in pooling.per_block(len(backbone.dims))]
    parts = [
        LAYOUT,
        shard,
        CLIP_S,
        # Aligned clips are as long as their speech, and their files have the seconds.
        [MAX_S, "seconds"] if preparation.align else False,
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
