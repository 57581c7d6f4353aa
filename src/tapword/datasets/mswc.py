"""Multilingual Spoken Words Corpus: one language of it, or a micro-set of its commonest words."""

import collections
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tapword.datasets.base import Clip, Dataset, Found, lot, spelling
from tapword.errors import InputError

COLUMNS = ("SET", "LINK", "WORD", "VALID", "SPEAKER")
_SPLITS = {"TRAIN": "train", "DEV": "validation", "TEST": "test"}
_NOBODY = ("", "NA", "NAN")


class Mswc(Dataset):
    """Multilingual Spoken Words Corpus, one language, as its `<language>_splits.csv` splits it.

    Parameters
    ----------
    root
        Folder with `<language>/<language>_splits.csv` and `<language>/clips/<word>/*.opus`, or the
        language's own folder. A `.wav` copy serves where the `.opus` file is absent.
    language
        Code such as "de"; None: the only one there is.
    n_words
        How many words, those with most training clips (ties by the alphabet); None or 0: all.
    n_clips
        How many training clips of each word, drawn at random; a word with fewer gives all it has.
        None or 0: all. A smaller draw is part of a larger one.
    seed
        Fixes the draw.
    valid_only
        Leave out rows whose VALID is not true: volunteers did not confirm that such a recording
        says its sentence, and its speaker may be unknown, so it may be in other splits too.

    Examples
    --------
    >>> Mswc(language="ar", n_words=25, n_clips=1000).spec
    'mswc:language=ar,n_words=25,n_clips=1000'
    """

    clip_s = 1.0

    def __init__(
        self,
        root: str | os.PathLike[str] = "",
        language: str | None = None,
        n_words: int | None = None,
        n_clips: int | None = None,
        seed: int = 0,
        valid_only: bool = True,
    ):
        self.root = root
        self.language = language
        self.seed = seed
        self.valid_only = valid_only
        self.n_words = n_words
        self.n_clips = n_clips
        for key, number in (("n_words", n_words), ("n_clips", n_clips)):
            if number is not None and number < 0:
                raise InputError(f"mswc: {key} must be at least 0, got {number}")

    def _find(self, folder: Path) -> Found:
        table = self._table(folder)
        chosen = self._choose(table)
        rows: dict[str, dict[str, _Row]] = collections.defaultdict(dict)
        invalid = 0
        for row in _rows(table):
            if chosen is not None and row.word not in chosen:
                continue
            if self.valid_only and not row.valid:
                invalid += 1
                continue
            # A link that comes twice counts once, so that no clip is in two splits.
            rows[row.word].setdefault(row.link, row)
        disk = _Disk(table.parent / "clips")
        clips: list[Clip] = []
        missing: list[str] = []
        for by_link in rows.values():
            room = self.n_clips or len(by_link)
            for row in sorted(by_link.values(), key=lambda row: lot(self.seed, row.link)):
                if row.split == "train" and not room:
                    continue
                path = disk.find(row.link)
                if path is None:
                    missing.append(row.link)
                    continue
                room -= row.split == "train"
                clips.append(Clip(path, row.word, row.speaker, row.split))
        notes = [f"{invalid} rows not marked valid left out (valid_only)"] if invalid else []
        return Found(clips, sorted(missing), notes)

    def _table(self, folder: Path) -> Path:
        """Path of the splits file."""
        found = sorted([*folder.glob("*_splits.csv"), *folder.glob("*/*_splits.csv")])
        by_language = {path.name.removesuffix("_splits.csv"): path for path in found}
        if not found:
            raise InputError(
                f"{folder} is not laid out as MSWC: there is no "
                f"{self.language or '<language>'}_splits.csv in it or in a language's folder"
            )
        if self.language is None and len(by_language) > 1:
            raise InputError(
                f"mswc: {folder} has several languages, give one: {', '.join(by_language)}"
            )
        language = self.language or next(iter(by_language))
        if language not in by_language:
            raise InputError(
                f"mswc: no language {language!r} in {folder}; there: {', '.join(by_language)}"
            )
        return by_language[language]

    def _choose(self, table: Path) -> set[str] | None:
        """Words with most training clips; None: all."""
        wanted = self.n_words
        if not wanted:
            return None
        counts = collections.Counter(
            row.word
            for row in _rows(table)
            if row.split == "train" and (row.valid or not self.valid_only)
        )
        if len(counts) < wanted:
            raise InputError(
                f"mswc: n_words={wanted}, but {table} has {len(counts)} words with training clips"
            )
        return set(sorted(counts, key=lambda word: (-counts[word], word))[:wanted])


class _Row(NamedTuple):
    split: str
    link: str
    word: str
    valid: bool
    speaker: str | None


def _rows(table: Path) -> Iterator[_Row]:
    """Rows of a splits file, one at a time: the largest has millions."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if not set(COLUMNS) <= set(header):
                raise InputError(
                    f"{table} must have the columns {', '.join(COLUMNS)}; "
                    f"its first line is {','.join(header)[:200]!r}"
                )
            at = [header.index(column) for column in COLUMNS]
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(header) or fields[at[0]] not in _SPLITS:
                    raise InputError(
                        f"{table}, line {reader.line_num}: wanted {len(header)} fields with SET "
                        f"one of {', '.join(_SPLITS)}; got {','.join(fields)[:200]!r}"
                    )
                split, link, word, valid, speaker = (fields[index] for index in at)
                yield _Row(
                    _SPLITS[split],
                    spelling(link),
                    spelling(word),
                    valid.strip().lower() == "true",
                    None if speaker.strip().upper() in _NOBODY else speaker.strip(),
                )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table} cannot be read: {error}") from error


class _Disk:
    """Files below `clips/` by the spelling of the splits file, whatever form the disk keeps."""

    def __init__(self, folder: Path):
        if not folder.is_dir():
            raise InputError(f"{folder.parent} is not laid out as MSWC: there is no clips/ in it")
        self._folders: dict[str, list[str]] = collections.defaultdict(list)
        for entry in os.scandir(folder):
            self._folders[spelling(entry.name)].append(entry.path)
        self._files: dict[str, dict[str, Path]] = {}

    def find(self, link: str) -> Path | None:
        """Path of `<word>/<file>.opus`, or of the `.wav` copy."""
        word, _, name = link.replace("\\", "/").partition("/")
        if word not in self._files:
            # One listing of a folder is far faster than asking for each of its files.
            self._files[word] = {
                spelling(entry.name): Path(entry.path)
                for folder in self._folders.get(word, [])
                if os.path.isdir(folder)
                for entry in os.scandir(folder)
            }
        files = self._files[word]
        return files.get(name) or files.get(os.path.splitext(name)[0] + ".wav")
