"""A folder of recordings, one folder a word."""

from pathlib import Path

from tapword.audio import files as audio
from tapword.errors import InputError
from tapword.research.datasets.base import SPLITS, Clip, Dataset, Listing, random_rank, word_folders
from tapword.spotter.vocabulary import spelling


class Folder(Dataset):
    """Your own recordings: `<word>/*`, or `train|validation|test/<word>/*`.

    Parameters
    ----------
    root
        Folder with a folder of sound files for each word. Names that begin with "." or "_" are
        ignored. If it has a folder `train` of folders, it is already split.
    test_share
        Fraction of each word's clips to test on, at least 0 and below 1. A word has at least one
        training clip and, with two clips or more and a share above 0, a test clip.
    seed
        Fixes which clips are test clips.

    Notes
    -----
    Speakers are unknown. Unless you split the folder yourself, the same voice may be in training
    and test clips, and the accuracy tells nothing about other voices.

    Examples
    --------
    >>> Folder(test_share=0.5).spec
    'folder:test_share=0.5'
    """

    test_share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        self._require("test_share", 0 <= self.test_share < 1, "at least 0 and below 1")

    def _find(self, folder: Path) -> Listing:
        named = word_folders(folder)
        if _holds_words(folder / "train"):
            return Listing(_split_already(folder, [split for split, _ in named]))

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
            raise InputError(f"{folder} has no sound files in folders named by words")
        return Listing(clips)


def _holds_words(train: Path) -> bool:
    """Whether `train` has folders of words; with its own sound files it is itself a word."""
    if not train.is_dir() or not word_folders(train):
        return False
    return not any(path.suffix.lower() in audio.SUFFIXES for path in train.iterdir())


def _split_already(folder: Path, names: list[str]) -> list[Clip]:
    if others := sorted(set(names) - set(SPLITS)):
        raise InputError(
            f"{folder} has folders of splits ({', '.join(SPLITS)}) and also {others[0]!r}; move "
            "words into the splits, or begin the name with '_'"
        )
    return [
        Clip(file, word, None, split)
        for split in names
        for word, sub in word_folders(folder / split)
        for file in audio.find(sub)
    ]
