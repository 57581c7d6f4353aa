"""What every data set is: clips of words in three splits, read one at a time."""

import functools
import hashlib
import os
import unicodedata
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword import audio, registry
from tapword.errors import InputError

SPLITS = ("train", "validation", "test")


class Clip(NamedTuple):
    """One recording of one word.

    Attributes
    ----------
    path
        The sound file.
    word
        What is said in it, in Unicode's composed form (NFC).
    speaker
        Who says it; None where that is not known.
    split
        "train", "validation" or "test".
    """

    path: Path
    word: str
    speaker: str | None
    split: str


class Found(NamedTuple):
    """What a data set's folder holds, as a subclass lists it.

    Attributes
    ----------
    clips
        Clips of all splits, in any order.
    missing
        Files that the data set's own lists name and the disk lacks.
    notes
        Sentences about what was left out.
    """

    clips: list[Clip]
    missing: list[str]
    notes: list[str]


class Dataset(registry.Part, ABC):
    """A subclass takes `root` among its arguments and gives `_find`.

    The folder is looked at when clips are first asked for, not before.
    """

    root: str | os.PathLike[str]
    # Clips shorter than this are filled with silence.
    clip_s = 0.0

    @abstractmethod
    def _find(self, folder: Path) -> Found:
        """List the clips below a folder that exists."""

    @functools.cached_property
    def _found(self) -> Found:
        if not os.fspath(self.root):
            raise InputError(
                f"{self.name}: root is empty; give the data set's folder, "
                f"as in {self.name}:root=FOLDER"
            )
        folder = Path(self.root).expanduser()
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise InputError(f"{self.name}: {folder} {what}")
        found = self._find(folder)
        taught = {clip.word for clip in found.clips if clip.split == "train"}
        if not taught:
            notes = "".join(f"; {note}" for note in found.notes)
            raise InputError(f"{self.name}: no training clips in {folder}{notes}")
        clips = [clip for clip in found.clips if clip.word in taught]
        untaught = sorted({clip.word for clip in found.clips} - taught)
        if untaught:
            found.notes.append(
                f"{_count(len(found.clips) - len(clips), 'clip')} of {_some(untaught)} left out: "
                "no training clips of such words"
            )
        if found.missing:
            found.notes.append(
                f"{_count(len(found.missing), 'file')} named in the lists but not on disk: "
                f"{_some(found.missing)}"
            )
        clips.sort(key=lambda clip: (clip.word, clip.path.as_posix()))
        return found._replace(clips=clips)

    @property
    def words(self) -> list[str]:
        """Words with training clips, sorted; the other splits are restricted to them."""
        return sorted({clip.word for clip in self._found.clips if clip.split == "train"})

    @property
    def missing(self) -> list[str]:
        """Files that the data set's own lists name and the disk lacks."""
        return list(self._found.missing)

    @property
    def notes(self) -> list[str]:
        """What was left out and why, in sentences for a report; mostly empty."""
        return list(self._found.notes)

    def clips(self, split: str) -> list[Clip]:
        """Clips of one split, sorted by word and path.

        Parameters
        ----------
        split
            "train", "validation" or "test". Only "validation" may be empty.
        """
        if split not in SPLITS:
            raise InputError(f"no split named {split!r}; known: {', '.join(SPLITS)}")
        chosen = [clip for clip in self._found.clips if clip.split == split]
        if split == "test" and not chosen:
            raise InputError(
                f"{self.name}: {os.fspath(self.root)} has no test clips of its "
                f"{_count(len(self.words), 'word')} ({_some(self.words)})"
            )
        return chosen

    def read(self, clip: Clip) -> np.ndarray:
        """Read a clip: (n,) float32 at 16 kHz; a broken file raises InputError."""
        return audio.fill(audio.read(clip.path), self.clip_s)

    def fingerprint(self) -> str:
        """SHA-256 that changes when the clips do: what a cache of features can be keyed on.

        It covers each clip's split, word, path below `root`, size and time of change, and the
        length clips are filled to. Arguments count by the clips they choose, and the place of
        `root` does not: a moved folder keeps its fingerprint.
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


def spelling(text: str) -> str:
    """One spelling for names that look the same: disks and lists differ in Unicode's forms.

    Examples
    --------
    >>> spelling("cafe" + chr(0x301)) == "caf" + chr(0xE9)
    True
    """
    return text.strip() if text.isascii() else unicodedata.normalize("NFC", text).strip()


def subfolders(folder: Path) -> list[Path]:
    """Folders that can be words, sorted: names in "." and "_" are something else."""
    return sorted(
        Path(entry.path)
        for entry in os.scandir(folder)
        if entry.is_dir() and not entry.name.startswith((".", "_"))
    )


def lot(seed: int, key: str) -> bytes:
    """Give what to sort by for a random order that a seed fixes.

    A clip's lot hangs on its own key alone, so the order is the same on every system and version,
    and a clip more or less does not disturb the others.
    """
    return hashlib.sha256(f"{seed}/{key}".encode()).digest()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _some(names: list[str], limit: int = 3) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")
