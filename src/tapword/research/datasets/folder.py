"""Any folder of recordings, one folder a word."""

from pathlib import Path

from tapword.audio import files as audio
from tapword.errors import InputError
from tapword.research.datasets.base import SPLITS, Clip, Dataset, Found, random_rank, word_folders
from tapword.spotter.words import spelling


class Folder(Dataset):
    """Your own recordings: `<word>/*`, or `train|validation|test/<word>/*`.

    Parameters
    ----------
    root
        Folder with a folder for each word, sound files below it (WAV, FLAC, OGG, Opus, MP3,
        AIFF). Names that begin with "." or "_" are left out. Where it has a folder `train` of
        folders, it is taken as split already.
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

    test_share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        self._require("test_share", 0 <= self.test_share < 1, "at least 0 and below 1")

    def _find(self, folder: Path) -> Found:
        named = word_folders(folder)
        if _holds_words(folder / "train"):
            return Found(_split_already(folder, [split for split, _ in named]))

        def rank(file: Path) -> bytes:
            return random_rank(self.seed, spelling(file.relative_to(folder).as_posix()))

        clips = []
        for word, sub in named:
            files = sorted(audio.find(sub), key=rank)
            tests = min(max(1, round(self.test_share * len(files))), len(files) - 1)
            for position, file in enumerate(files):
                split = "test" if self.test_share and position < tests else "train"
                clips.append(Clip(file, word, None, split))
        if not clips:
            raise InputError(f"{folder} has no sound files in folders named by their word")
        return Found(clips)


def _holds_words(train: Path) -> bool:
    """Whether `train` has folders of words; with sound files of its own it is a word itself."""
    if not train.is_dir() or not word_folders(train):
        return False
    return not any(path.suffix.lower() in audio.SUFFIXES for path in train.iterdir())


def _split_already(folder: Path, names: list[str]) -> list[Clip]:
    if others := sorted(set(names) - set(SPLITS)):
        raise InputError(
            f"{folder} has folders for the splits ({', '.join(SPLITS)}) and also "
            f"{others[0]!r}; move words into the splits, or begin the name with '_'"
        )
    return [
        Clip(file, word, None, split)
        for split in names
        for word, sub in word_folders(folder / split)
        for file in audio.find(sub)
    ]
