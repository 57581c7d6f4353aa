"""Multilingual Spoken Words Corpus: one language of it, or a micro-set of its most common words."""

import collections
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tapword.errors import InputError
from tapword.research.datasets.base import Clip, Dataset, Listing, random_rank, word_folders
from tapword.spotter.vocabulary import spelling

COLUMNS = ("SET", "LINK", "WORD", "VALID", "SPEAKER")
_SPLITS = {"TRAIN": "train", "DEV": "validation", "TEST": "test"}
_NOBODY = ("", "NA", "NAN")


class Mswc(Dataset):
    """Multilingual Spoken Words Corpus, one language, as its `<language>_splits.csv` splits it.

    Parameters
    ----------
    root
        Folder with `<language>/<language>_splits.csv` and `<language>/clips/<word>/*.opus`, or the
        language's own folder. A `.wav` file replaces a missing `.opus` file.
    language
        Code such as "de"; None: the only one.
    n_words
        Number of words, those with most training clips (ties in alphabetical order); None: all.
    n_clips
        Most training clips a word, drawn at random; None: all. A smaller draw is part of a larger.
    seed
        Fixes the draw.
    valid_only
        Leave out rows whose VALID is not true: volunteers did not confirm the recording, and its
        speaker may be unknown and in other splits too.

    Examples
    --------
    >>> Mswc(language="ar", n_words=25, n_clips=1000).spec
    'mswc:language=ar,n_words=25,n_clips=1000'
    """

    clip_s = 1.0

    language: str | None = None
    n_words: int | None = None
    n_clips: int | None = None
    seed: int = 0
    valid_only: bool = True

    def __post_init__(self) -> None:
        self._require("n_words", (self.n_words or 0) >= 0, "at least 0")
        self._require("n_clips", (self.n_clips or 0) >= 0, "at least 0")

    def _find(self, folder: Path) -> Listing:
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
            # Count a repeated link once, so no clip is in two splits.
            rows[row.word].setdefault(row.link, row)
        files = _files(table.parent, {link for by_link in rows.values() for link in by_link})
        clips: list[Clip] = []
        missing: list[str] = []
        for by_link in rows.values():
            room = self.n_clips or len(by_link)
            for row in sorted(by_link.values(), key=lambda row: random_rank(self.seed, row.link)):
                if row.split == "train" and not room:
                    continue
                path = files.get(row.link) or files.get(os.path.splitext(row.link)[0] + ".wav")
                if path is None:
                    missing.append(row.link)
                    continue
                room -= row.split == "train"
                clips.append(Clip(path, row.word, row.speaker, row.split))
        notes = [f"left out {invalid} rows not marked as valid (valid_only)"] if invalid else []
        return Listing(clips, sorted(missing), notes)

    def _table(self, folder: Path) -> Path:
        """Path of the splits file."""
        found = sorted([*folder.glob("*_splits.csv"), *folder.glob("*/*_splits.csv")])
        if not found:
            raise InputError(
                f"{folder} is not a folder of MSWC: there is no "
                f"{self.language or '<language>'}_splits.csv in it or in a language's folder"
            )
        by_language = {path.name.removesuffix("_splits.csv"): path for path in found}
        there = ", ".join(by_language)
        if self.language is None and len(by_language) > 1:
            raise InputError(f"mswc: {folder} has several languages; give one of {there}")
        language = self.language or there
        if language not in by_language:
            raise InputError(f"mswc: no language {language!r} in {folder}; found: {there}")
        return by_language[language]

    def _choose(self, table: Path) -> set[str] | None:
        """Words with most training clips; None: all."""
        if not self.n_words:
            return None
        counts = collections.Counter(
            row.word
            for row in _rows(table)
            if row.split == "train" and (row.valid or not self.valid_only)
        )
        if len(counts) < self.n_words:
            raise InputError(
                f"mswc: n_words={self.n_words}, but {table} has {len(counts)} words with training "
                "clips"
            )
        return set(sorted(counts, key=lambda word: (-counts[word], word))[: self.n_words])


class _Row(NamedTuple):
    split: str
    link: str
    word: str
    valid: bool
    speaker: str | None


def _rows(table: Path) -> Iterator[_Row]:
    """Yield the rows of a splits file: the largest has millions."""
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
                        f"{table}, line {reader.line_num}: needs {len(header)} fields with SET "
                        f"one of {', '.join(_SPLITS)}; got {','.join(fields)[:200]!r}"
                    )
                split, link, word, valid, speaker = (fields[index] for index in at)
                yield _Row(
                    _SPLITS[split],
                    spelling(link.replace("\\", "/")),
                    spelling(word),
                    valid.strip().lower() == "true",
                    None if speaker.strip().upper() in _NOBODY else speaker.strip(),
                )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table} cannot be read: {error}") from error


def _files(language: Path, links: set[str]) -> dict[str, Path]:
    """Files of the words of some links, by link in NFC, whatever form the disk has."""
    clips = language / "clips"
    if not clips.is_dir():
        raise InputError(f"{language} is not a folder of MSWC: there is no clips/ in it")
    words = {link.partition("/")[0] for link in links}
    # Listing a folder is much faster than checking each file.
    return {
        f"{word}/{spelling(entry.name)}": Path(entry.path)
        for word, folder in word_folders(clips, left_out=())
        if word in words
        for entry in os.scandir(folder)
    }
