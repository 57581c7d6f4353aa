"""Any folder of recordings, one folder a word."""

import os
from pathlib import Path

from tapword import audio
from tapword.datasets.base import SPLITS, Clip, Dataset, Found, lot, spelling, subfolders
from tapword.errors import InputError


class Folder(Dataset):
    """Your own recordings: `<word>/*`, or `train|validation|test/<word>/*`.

    Parameters
    ----------
    root
        Folder with a folder for each word, sound files below it (WAV, FLAC, OGG, Opus, MP3). Names
        that begin with "." or "_" are left out. Where it has a folder `train` of folders, it is
        taken as split already.
    test_share
        Share of each word's clips to test on, at least 0 and below 1. A word with two clips or
        more has at least one test clip (where the share is not 0), and always a training clip.
    seed
        Fixes which clips are test clips.

    Notes
    -----
    Speakers are not known, so unless you split the folder yourself, one voice may be in both the
    training and the test clips, and accuracy then says nothing about other people's voices.

    Examples
    --------
    >>> Folder(test_share=0.5).spec
    'folder:test_share=0.5'
    """

    def __init__(self, root: str | os.PathLike[str] = "", test_share: float = 0.2, seed: int = 0):
        self.root = root
        self.test_share = test_share
        self.seed = seed
        if not 0 <= test_share < 1:
            raise InputError(f"folder: test_share must be at least 0 and below 1, got {test_share}")

    def _find(self, folder: Path) -> Found:
        names = [sub.name for sub in subfolders(folder)]
        train = folder / "train"
        if "train" in names and subfolders(train) and not _sounds_in(train):
            return Found(self._split_already(folder, names), [], [])
        clips = []
        for sub in subfolders(folder):
            files = audio.find(sub)
            files.sort(key=lambda file: lot(self.seed, _relative(file, folder)))
            tests = self._tests(len(files))
            for position, file in enumerate(files):
                split = "test" if position < tests else "train"
                clips.append(Clip(file, spelling(sub.name), None, split))
        if not clips:
            raise InputError(f"{folder} has no sound files in folders named by their word")
        return Found(clips, [], [])

    def _tests(self, clips: int) -> int:
        if not self.test_share:
            return 0
        return min(max(1, round(self.test_share * clips)), clips - 1)

    def _split_already(self, folder: Path, names: list[str]) -> list[Clip]:
        others = sorted(set(names) - set(SPLITS))
        if others:
            raise InputError(
                f"{folder} has folders for the splits ({', '.join(SPLITS)}) and also "
                f"{others[0]!r}; move words into the splits, or begin the name with '_'"
            )
        return [
            Clip(file, spelling(sub.name), None, split)
            for split in names
            for sub in subfolders(folder / split)
            for file in audio.find(sub)
        ]


def _sounds_in(folder: Path) -> bool:
    return any(path.suffix.lower() in audio.SUFFIXES for path in folder.iterdir())


def _relative(file: Path, folder: Path) -> str:
    return spelling(file.relative_to(folder).as_posix())
