"""Google Speech Commands, in the official layout with the official lists."""

import os
from pathlib import Path

from tapword.errors import InputError
from tapword.research.datasets.base import Clip, Dataset, Listing, word_folders
from tapword.spotter.vocabulary import spelling

LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}
_FIRST = (
    "bed bird cat dog down eight five four go happy house left marvin nine no off on one right "
    "seven sheila six stop three tree two up wow yes zero"
)
WORDS = {
    "v0.01": frozenset(_FIRST.split()),
    "v0.02": frozenset(f"{_FIRST} backward follow forward learn visual".split()),
}


class SpeechCommands(Dataset):
    """Google Speech Commands: 30 (v0.01) or 35 (v0.02) English words.

    Parameters
    ----------
    root
        Folder with `<word>/<speaker>_nohash_<i>.wav`, `validation_list.txt` and
        `testing_list.txt`. It may have only some words or clips.
    version
        "v0.01" or "v0.02": refuse the other version. None: do not check.
    strict
        Refuse a folder that lacks files of its lists; otherwise they are in `missing`.

    Notes
    -----
    Training clips are those in neither list. Clips shorter than 1 s are padded with silence.

    Examples
    --------
    >>> SpeechCommands(version="v0.02").spec
    'speech_commands:version=v0.02'
    """

    clip_s = 1.0

    version: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.version is not None and self.version not in WORDS:
            raise InputError(
                f"speech_commands: no version {self.version!r}; known: {', '.join(WORDS)}, none"
            )

    def _find(self, folder: Path) -> Listing:
        listed = {split: _read_list(folder / name) for split, name in LISTS.items()}
        if both := sorted(listed["validation"] & listed["test"]):
            raise InputError(f"speech_commands: {both[0]} is in both lists of {folder}")
        split_of = {name: split for split, names in listed.items() for name in names}
        clips, seen = [], set()
        for word, sub in word_folders(folder):
            for entry in os.scandir(sub):
                if entry.name.startswith(".") or not entry.name.lower().endswith(".wav"):
                    continue
                name = f"{word}/{spelling(entry.name)}"
                seen.add(name)
                before, mark, _ = entry.name.partition("_nohash_")
                speaker, split = before if mark else None, split_of.get(name, "train")
                clips.append(Clip(Path(entry.path), word, speaker, split))
        missing = sorted(split_of.keys() - seen)
        if missing and self.strict:
            raise InputError(
                f"speech_commands: {folder} lacks {len(missing)} of the {len(split_of)} files of "
                f"its lists, such as {missing[0]}"
            )
        words = {clip.word for clip in clips}
        if self.version and (strange := sorted(words - WORDS[self.version])):
            raise InputError(
                f"speech_commands: {folder} has the word {strange[0]!r}, which is not in "
                f"{self.version}; give another version or none"
            )
        if self.version == "v0.02" and words == WORDS["v0.01"]:
            raise InputError(
                f"speech_commands: {folder} has exactly the 30 words of v0.01, not v0.02"
            )
        return Listing(clips, missing)


def _read_list(path: Path) -> set[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} is not a folder of Speech Commands: there is no {path.name} in it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    lines = (line.strip().replace("\\", "/").removeprefix("./") for line in text.splitlines())
    return {spelling(line) for line in lines if line}
