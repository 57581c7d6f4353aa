"""The base of data sets: clips of words in three splits, read one at a time."""

import collections
import copy
import functools
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from tapword import registry
from tapword.audio import files as audio
from tapword.audio.align import fill
from tapword.errors import InputError
from tapword.spotter.vocabulary import spelling
from tapword.support.atomic_files import PathLike, why_not_file

SPLITS = ("train", "validation", "test")


class Clip(NamedTuple):
    """A recording of a word, which is in Unicode NFC; the speaker may be unknown."""

    path: Path
    word: str
    speaker: str | None
    split: str


class Listing(NamedTuple):
    """The contents of a data set's folder; `missing` and `notes` are those of `Dataset`."""

    clips: list[Clip]
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()


class Dataset(registry.Part, ABC):
    """Clips of words in a folder, which is read on first use.

    A subclass implements `_find`. Clips shorter than its `clip_s` are padded with silence.
    """

    clip_s = 0.0

    root: PathLike = ""

    @abstractmethod
    def _find(self, folder: Path) -> Listing:
        """List the clips below a folder that exists, in any order."""

    @functools.cached_property
    def _found(self) -> Listing:
        if not os.fspath(self.root):
            name = self.name
            raise InputError(f"{name}: give its folder, as in {name}:root=FOLDER")
        folder = Path(self.root).expanduser()
        if not folder.is_dir():
            raise InputError(f"{self.name}: {folder} {why_not_file(folder) or 'is not a folder'}")
        found = self._find(folder)
        taught = {clip.word for clip in found.clips if clip.split == "train"}
        if not taught:
            why = "".join(f"; {note}" for note in found.notes)
            raise InputError(f"{self.name}: no training clips in {folder}{why}")
        clips = [clip for clip in found.clips if clip.word in taught]
        clips.sort(key=lambda clip: (clip.word, clip.path.as_posix()))
        notes = list(found.notes)
        if untaught := sorted({clip.word for clip in found.clips} - taught):
            notes.append(
                f"left out {_count(len(found.clips) - len(clips), 'clip')} of {_some(untaught)}: "
                "no training clips of these words"
            )
        if found.missing:
            notes.append(
                f"{_count(len(found.missing), 'file')} of the lists missing on disk: "
                f"{_some(found.missing)}"
            )
        return Listing(clips, found.missing, notes)

    @property
    def words(self) -> list[str]:
        """Words with training clips, sorted; other splits have no other words."""
        return sorted({clip.word for clip in self._found.clips if clip.split == "train"})

    @property
    def missing(self) -> list[str]:
        """Files in the data set's own lists that are missing on disk."""
        return list(self._found.missing)

    @property
    def notes(self) -> list[str]:
        """Notes on what was left out and why; usually none."""
        return list(self._found.notes)

    def clips(self, split: str) -> list[Clip]:
        """Clips of one of `SPLITS`, sorted by word and path; only "validation" may be empty."""
        if split not in SPLITS:
            raise InputError(f"no split named {split!r}; known: {', '.join(SPLITS)}")
        chosen = [clip for clip in self._found.clips if clip.split == split]
        if split == "test" and not chosen:
            raise InputError(
                f"{self.name}: {os.fspath(self.root)} has no test clips of its "
                f"{_count(len(self.words), 'word')} ({_some(self.words)})"
            )
        return chosen

    def in_both_splits(self) -> Self:
        """Copy with every clip of a known speaker in both "train" and "test", in one order."""
        other = copy.copy(self)
        named = [clip for clip in self._found.clips if clip.speaker is not None]
        if not named:
            raise InputError(
                f"{self.name}: the speakers of its clips are unknown; data sets speech_commands "
                "and mswc have them"
            )
        twice = [clip._replace(split=split) for clip in named for split in ("train", "test")]
        other._found = self._found._replace(clips=twice)
        return other

    def most_common(self, n_words: int, n_clips: int) -> Self:
        """Copy with the `n_words` words of most training clips, ties in alphabetical order.

        At most `n_clips` training clips of each are drawn.
        """
        counts = collections.Counter(clip.word for clip in self.clips("train"))
        if len(counts) < n_words:
            raise InputError(f"{self.name}: needs {n_words} words, has {len(counts)}")
        chosen = set(sorted(counts, key=lambda word: (-counts[word], word))[:n_words])
        room = dict.fromkeys(chosen, n_clips)
        kept = []
        for clip in sorted(self._found.clips, key=lambda clip: random_rank(0, clip.path.name)):
            if clip.word in chosen and (clip.split != "train" or room[clip.word]):
                room[clip.word] -= clip.split == "train"
                kept.append(clip)
        other = copy.copy(self)
        kept.sort(key=lambda clip: (clip.word, clip.path.as_posix()))
        other._found = self._found._replace(clips=kept)
        return other

    def read(self, clip: Clip) -> np.ndarray:
        """Read a clip: (n,) float32 at 16 kHz; a broken file raises InputError."""
        return fill(audio.read(clip.path), self.clip_s)

    def fingerprint(self) -> str:
        """SHA-256 that changes when the clips do, for the key of a cache.

        It covers each clip's split, word, path below `root`, size and time of change, and `clip_s`.
        A moved folder keeps its fingerprint.
        """
        digest = hashlib.sha256(f"{self.name} {self.clip_s}\n".encode())
        folder = Path(self.root).expanduser()
        for clip in self._found.clips:
            try:
                facts = clip.path.stat()
            except OSError as error:
                raise InputError(f"{clip.path} cannot be read: {error.strerror}") from error
            path = spelling(clip.path.relative_to(folder).as_posix())
            line = (clip.split, clip.word, path, str(facts.st_size), str(facts.st_mtime_ns))
            digest.update(("\0".join(line) + "\n").encode())
        return digest.hexdigest()


def word_folders(folder: Path, left_out: tuple[str, ...] = (".", "_")) -> list[tuple[str, Path]]:
    """Words and their folders, sorted, except names with the prefixes `left_out`."""
    return sorted(
        (spelling(entry.name), Path(entry.path))
        for entry in os.scandir(folder)
        if entry.is_dir() and not entry.name.startswith(left_out)
    )


def random_rank(seed: int, key: str) -> bytes:
    """Sort key of a clip in a seeded random order.

    It depends only on the clip's own key, so the order is the same on every system, and adding a
    clip does not change the order of the others.
    """
    return hashlib.sha256(f"{seed}/{key}".encode()).digest()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
