import csv
import os
import shutil
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword import registry
from tapword.errors import InputError
from tapword.research.datasets.base import Clip, Dataset
from tapword.research.datasets.folder import Folder
from tapword.research.datasets.mswc import Mswc
from tapword.research.datasets.speech_commands import WORDS, SpeechCommands
from tests.conftest import shared, tone

HEADER = ["SET", "LINK", "WORD", "VALID", "SPEAKER", "GENDER"]
NFC, NFD = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def commands(root: Path, words=("go", "up"), clips: int = 4) -> Path:
    """Speech Commands in little: clip 0 of each word validates, clip 1 tests."""
    for word in words:
        touch(*(root / word / f"{i:08x}_nohash_0.wav" for i in range(clips)))
    for name, i in [("validation_list.txt", 0), ("testing_list.txt", 1)]:
        lines = [f"{word}/{i:08x}_nohash_0.wav\n" for word in words]
        (root / name).write_text("".join(lines))
    touch(root / "_background_noise_" / "tap.wav", root / "go" / "._junk.wav", root / "README.md")
    return root


def corpus(root: Path, rows: list[list[str]], language: str = "xx", make: bool = True) -> Path:
    """One language laid out as MSWC, with an empty file for each row."""
    folder = root / language
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{language}_splits.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    (folder / "clips").mkdir(exist_ok=True)
    if make:
        touch(*(folder / "clips" / row[1] for row in rows))
    return root


def row(split: str, word: str, number: int, valid: str = "True", speaker: str = "s") -> list[str]:
    return [split, f"{word}/common_voice_xx_{number}.opus", word, valid, speaker, "NAN"]


def counts(dataset: Dataset, split: str = "train") -> dict[str, int]:
    return dict(Counter(clip.word for clip in dataset.clips(split)))


# All of them.


def test_the_registry_builds_them_by_name():
    assert {"folder", "mswc", "speech_commands"} <= set(registry.classes("datasets"))
    made = registry.build("datasets", "mswc:language=ar,n_words=25,n_clips=1000,seed=3", root="x")
    assert made.arguments() == {
        "root": "x",
        "language": "ar",
        "n_words": 25,
        "n_clips": 1000,
        "seed": 3,
        "valid_only": True,
    }
    assert made.spec == "mswc:root=x,language=ar,n_words=25,n_clips=1000,seed=3"
    assert registry.build("datasets", made.spec).arguments() == made.arguments()
    assert repr(made).startswith("Mswc(root='x', language='ar', n_words=25")
    commands = registry.build("datasets", "speech_commands:version=v0.02,strict=true")
    assert (commands.version, commands.strict) == ("v0.02", True)


@pytest.mark.parametrize("name", ["folder", "mswc", "speech_commands"])
def test_a_root_that_cannot_be_used(tmp_path, name):
    with pytest.raises(InputError, match=f"{name}: give its folder, .*{name}:root=FOLDER"):
        registry.build("datasets", name).clips("train")
    with pytest.raises(InputError, match="absent does not exist"):
        _ = registry.build("datasets", name, root=tmp_path / "absent").words
    touch(tmp_path / "file")
    with pytest.raises(InputError, match="file is not a folder"):
        registry.build("datasets", name, root=tmp_path / "file").clips("test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        registry.build("datasets", name, root=tmp_path / "empty").clips("test")


def test_an_unknown_split(tmp_path):
    with pytest.raises(InputError, match="no split named 'dev'; known: train, validation, test"):
        SpeechCommands(commands(tmp_path)).clips("dev")


def test_the_fingerprint_follows_the_clips_and_not_the_place(tmp_path):
    root = commands(tmp_path / "a")
    first = SpeechCommands(root).fingerprint()
    assert first == SpeechCommands(root, version="v0.01").fingerprint() and len(first) == 64
    moved = shutil.move(root, tmp_path / "b")
    assert SpeechCommands(moved).fingerprint() == first
    os.utime(moved / "go" / "00000002_nohash_0.wav", ns=(1, 1))
    second = SpeechCommands(moved).fingerprint()
    assert second != first
    (moved / "testing_list.txt").write_text("")
    assert SpeechCommands(moved).fingerprint() not in (first, second)


def test_a_broken_clip_is_found_on_reading(tmp_path):
    dataset = SpeechCommands(commands(tmp_path))
    with pytest.raises(InputError, match="not audio that can be read"):
        dataset.read(dataset.clips("train")[0])
    os.remove(dataset.clips("train")[1].path)
    with pytest.raises(InputError, match="does not exist"):
        dataset.read(dataset.clips("train")[1])
    with pytest.raises(InputError, match="cannot be read"):
        dataset.fingerprint()


# Speech Commands.


def test_the_real_subset_of_speech_commands(speech_commands):
    dataset = SpeechCommands(speech_commands, version="v0.01", strict=True)
    assert dataset.words == sorted(WORDS["v0.01"]) and not dataset.missing and not dataset.notes
    for split, each in [("train", 100), ("validation", 10), ("test", 40)]:
        clips = dataset.clips(split)
        assert set(counts(dataset, split).values()) == {each}
        assert clips == sorted(clips, key=lambda clip: (clip.word, clip.path))
    official = (speech_commands / "testing_list.txt").read_text().split()
    assert [f"{clip.word}/{clip.path.name}" for clip in dataset.clips("test")] == sorted(official)
    clip = dataset.clips("train")[0]
    assert clip.path.name == f"{clip.speaker}_nohash_0.wav" and clip.split == "train"
    for clip in dataset.clips("validation")[::10]:
        samples = dataset.read(clip)
        assert samples.shape == (16_000,) and samples.dtype == np.float32


def test_short_clips_are_filled_to_a_second(tmp_path):
    dataset = SpeechCommands(commands(tmp_path))
    clip = dataset.clips("train")[0]
    soundfile.write(clip.path, tone(440, seconds=0.6), 16_000)
    samples = dataset.read(clip)
    assert samples.shape == (16_000,) and samples[:9_600].any() and not samples[9_600:].any()


def test_files_in_the_lists_but_not_on_disk(tmp_path):
    commands(tmp_path)
    os.remove(tmp_path / "up" / "00000001_nohash_0.wav")
    dataset = SpeechCommands(tmp_path)
    assert dataset.missing == ["up/00000001_nohash_0.wav"]
    assert dataset.notes == ["1 file of the lists missing on disk: up/00000001_nohash_0.wav"]
    assert counts(dataset, "test") == {"go": 1}
    with pytest.raises(InputError, match=r"lacks 1 of the 4 files .* up/00000001_nohash_0.wav"):
        SpeechCommands(tmp_path, strict=True).clips("train")


def test_lists_with_odd_lines(tmp_path):
    commands(tmp_path)
    (tmp_path / "testing_list.txt").write_bytes(
        b"./go/00000001_nohash_0.wav\r\n\r\nup\\00000001_nohash_0.wav"
    )
    assert counts(SpeechCommands(tmp_path), "test") == {"go": 1, "up": 1}
    shutil.copy(tmp_path / "testing_list.txt", tmp_path / "validation_list.txt")
    with pytest.raises(InputError, match=r"go/00000001_nohash_0.wav is in both lists"):
        SpeechCommands(tmp_path).clips("train")


@pytest.mark.parametrize("name", ["validation_list.txt", "testing_list.txt"])
def test_without_a_list_it_is_not_speech_commands(tmp_path, name):
    os.remove(commands(tmp_path) / name)
    with pytest.raises(InputError, match=f"not a folder of Speech Commands: there is no {name}"):
        _ = SpeechCommands(tmp_path).words


def test_the_version_is_checked(tmp_path):
    with pytest.raises(InputError, match=r"no version '2'; known: v0.01, v0.02"):
        SpeechCommands(version="2")
    assert (len(WORDS["v0.01"]), len(WORDS["v0.02"])) == (30, 35)
    few = commands(tmp_path / "few")
    assert SpeechCommands(few, version="v0.01").words == SpeechCommands(few, "v0.02").words
    new = commands(tmp_path / "new", words=["go", "visual"])
    assert SpeechCommands(new, version="v0.02").words == ["go", "visual"]
    with pytest.raises(InputError, match=r"has the word 'visual', which is not in v0.01"):
        SpeechCommands(new, version="v0.01").clips("train")
    old = commands(tmp_path / "old", words=WORDS["v0.01"])
    with pytest.raises(InputError, match=r"exactly the 30 words of v0.01"):
        SpeechCommands(old, version="v0.02").clips("train")


def test_words_only_tested_are_left_out_and_told(tmp_path):
    commands(tmp_path)
    for i in (2, 3):
        os.remove(tmp_path / "up" / f"{i:08x}_nohash_0.wav")
    dataset = SpeechCommands(tmp_path)
    assert dataset.words == ["go"] and counts(dataset, "test") == {"go": 1}
    assert dataset.notes == ["left out 2 clips of up: no training clips of these words"]


def test_no_test_clips_is_an_error_and_no_validation_clips_is_not(tmp_path):
    commands(tmp_path)
    for name in ("validation_list.txt", "testing_list.txt"):
        (tmp_path / name).write_text("")
    dataset = SpeechCommands(tmp_path)
    assert dataset.clips("validation") == [] and counts(dataset) == {"go": 4, "up": 4}
    with pytest.raises(InputError, match=r"no test clips of its 2 words \(go, up\)"):
        dataset.clips("test")


# MSWC.


def test_the_real_arabic_set():
    root = shared("data", "mswc_layout")
    dataset = Mswc(root, language="ar")
    assert len(dataset.words) == 40 and "zoom in" in dataset.words
    assert [len(dataset.clips(s)) for s in ("train", "validation", "test")] == [1200, 240, 480]
    speakers = [{clip.speaker for clip in dataset.clips(s)} for s in ("train", "test")]
    assert not speakers[0] & speakers[1]
    samples = dataset.read(dataset.clips("test")[0])
    assert samples.shape == (16_000,) and samples.dtype == np.float32
    alone = Mswc(root / "ar")
    assert alone.clips("train") == dataset.clips("train")

    small = Mswc(root, language="ar", n_words=25, n_clips=20)
    # Every word has 30 training clips here, so the alphabet decides.
    assert small.words == dataset.words[:25]
    assert set(counts(small).values()) == {20} and set(counts(small, "test").values()) == {12}
    assert set(small.clips("test")) <= set(dataset.clips("test"))
    assert small.clips("train") == Mswc(root, "ar", n_words=25, n_clips=20).clips("train")
    other = Mswc(root, "ar", n_words=25, n_clips=20, seed=1)
    assert other.clips("train") != small.clips("train")
    assert other.clips("test") == small.clips("test")
    larger = Mswc(root, "ar", n_words=30, n_clips=21)
    assert set(small.clips("train")) <= set(larger.clips("train"))
    assert len(Mswc(root, "ar", n_words=0, n_clips=0).clips("train")) == 1200


def test_the_draw_is_the_same_everywhere_and_for_ever(tmp_path):
    corpus(tmp_path, [row("TRAIN", "go", i) for i in range(10)])
    drawn = [clip.path.stem[-1] for clip in Mswc(tmp_path, n_clips=4, seed=1).clips("train")]
    assert drawn == ["0", "2", "5", "7"]


def test_the_most_common_words(tmp_path):
    rows = [row("TRAIN", "rare", 0)]
    rows += [row("TRAIN", word, i) for word in ("b", "a", "null") for i in range(2)]
    rows += [row("TEST", word, 9) for word in ("rare", "b", "a", "null")]
    # Neither test clips nor clips that are not valid make a word frequent.
    rows += [row("TEST", "rare", i) for i in range(10, 20)]
    rows += [row("TRAIN", "rare", i, valid="False") for i in range(20, 30)]
    corpus(tmp_path, rows)
    assert Mswc(tmp_path, n_words=2).words == ["a", "b"]
    dataset = Mswc(tmp_path, n_words=3, n_clips=5)
    assert counts(dataset) == {"a": 2, "b": 2, "null": 2}
    assert counts(dataset, "test") == {"a": 1, "b": 1, "null": 1}
    assert counts(Mswc(tmp_path, n_words=1, valid_only=False)) == {"rare": 11}
    assert Mswc(tmp_path).notes == ["left out 10 rows not marked as valid (valid_only)"]
    with pytest.raises(InputError, match=r"n_words=5, but .* has 4 words with training clips"):
        _ = Mswc(tmp_path, n_words=5).words
    with pytest.raises(InputError, match="clips must be at least 0, got -1"):
        Mswc(n_clips=-1)


def test_words_that_look_like_nothing_and_speakers_that_are_nobody(tmp_path):
    words = ["NA", "nan", "null", "None", "zoom in", 'say "x"', "да"]
    rows = [row("TRAIN", word, i) for word in words for i in range(2)]
    rows[0][4], rows[1][4] = "NA", "9f3"
    dataset = Mswc(corpus(tmp_path, rows), language="xx")
    assert dataset.words == sorted(words)
    assert [clip.speaker for clip in dataset.clips("train")[:2]] == [None, "9f3"]


@pytest.mark.parametrize(("listed", "on_disk"), [(NFC, NFD), (NFD, NFC), (NFD, NFD)])
def test_the_forms_of_unicode(tmp_path, listed, on_disk):
    corpus(tmp_path, [row("TRAIN", listed, 0), row("TEST", listed, 1)], make=False)
    for i in (0, 1):
        touch(tmp_path / "xx" / "clips" / on_disk / f"common_voice_xx_{i}.opus")
    dataset = Mswc(tmp_path)
    assert dataset.words == [NFC] and not dataset.missing
    assert dataset.clips("test")[0].path.is_file()


def test_wav_copies_and_clips_that_are_missing(tmp_path):
    rows = [row("TRAIN", "go", i) for i in range(5)] + [row("TEST", "go", 5)]
    corpus(tmp_path, rows)
    clips = tmp_path / "xx" / "clips" / "go"
    (clips / "common_voice_xx_0.opus").rename(clips / "common_voice_xx_0.wav")
    touch(clips / "common_voice_xx_1.wav")
    os.remove(clips / "common_voice_xx_2.opus")
    dataset = Mswc(tmp_path)
    assert dataset.missing == ["go/common_voice_xx_2.opus"]
    assert [clip.path.suffix for clip in dataset.clips("train")] == [".wav"] + [".opus"] * 3
    # What the disk lacks is made up for in the draw.
    assert len(Mswc(tmp_path, n_clips=4).clips("train")) == 4


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    rows = [row("TRAIN", "go", 0), ["TRAIN", "../secret.wav", "go", "True", "s", "NAN"]]
    corpus(tmp_path, rows)
    assert (tmp_path / "xx" / "secret.wav").is_file()
    assert Mswc(tmp_path).missing == ["../secret.wav"]


def test_a_link_given_twice_counts_once(tmp_path):
    dataset = Mswc(corpus(tmp_path, [row("TRAIN", "go", 0), row("TEST", "go", 0)]))
    assert len(dataset.clips("train")) == 1
    with pytest.raises(InputError, match="no test clips"):
        dataset.clips("test")


def test_languages(tmp_path):
    for language in ("de", "fr"):
        corpus(tmp_path, [row("TRAIN", "go", 0)], language)
    assert Mswc(tmp_path, language="fr").clips("train")[0].path.parts[-4] == "fr"
    with pytest.raises(InputError, match="several languages; give one of de, fr"):
        _ = Mswc(tmp_path).words
    with pytest.raises(InputError, match=r"no language 'rw' in .*; found: de, fr"):
        _ = Mswc(tmp_path, language="rw").words
    with pytest.raises(
        InputError, match=r"not a folder of MSWC: there is no <language>_splits.csv"
    ):
        _ = Mswc(tmp_path / "de" / "clips").words
    shutil.rmtree(tmp_path / "de" / "clips")
    with pytest.raises(InputError, match="there is no clips/ in it"):
        _ = Mswc(tmp_path, language="de").words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "must have the columns SET, LINK, WORD, VALID, SPEAKER; its first line is ''"),
        (b"LINK,WORD\na,b\n", "its first line is 'LINK,WORD'"),
        (b"SET,LINK,WORD,VALID,SPEAKER\nDEV,a/b.opus,a\n", "line 2: needs 5 fields"),
        (b"SET,LINK,WORD,VALID,SPEAKER\nEVAL,a/b.opus,a,True,s\n", "one of TRAIN, DEV, TEST; got"),
        (b"SET,LINK,WORD,VALID,SPEAKER\nDEV,\xff,a,True,s\n", "cannot be read: 'utf-8'"),
        (b"SET,LINK,WORD,VALID,SPEAKER\n", "no training clips"),
        (b"SET,LINK,WORD,VALID,SPEAKER\nTRAIN,a/b,a,False,s\n", "1 rows not marked as valid"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    corpus(tmp_path, [])
    (tmp_path / "xx" / "xx_splits.csv").write_bytes(text)
    with pytest.raises(InputError, match=message):
        _ = Mswc(tmp_path).words


def test_a_table_with_a_mark_of_byte_order_and_other_columns(tmp_path):
    corpus(tmp_path, [row("TRAIN", "go", 0)])
    table = tmp_path / "xx" / "xx_splits.csv"
    link = "go/common_voice_xx_0.opus"
    table.write_bytes(f"\ufeffWORD,SET,LINK,SPEAKER,VALID\r\ngo,TRAIN,{link},s,true\r\n".encode())
    assert Mswc(tmp_path).words == ["go"]


# Folders.


def test_a_folder_is_split_word_by_word(tmp_path):
    for word, clips in [("one", 1), ("two", 2), ("five", 5), ("ten", 10)]:
        touch(*(tmp_path / word / f"{i}.{'wav' if i % 2 else 'flac'}" for i in range(clips)))
    touch(tmp_path / "_noise" / "0.wav", tmp_path / ".git" / "0.wav", tmp_path / "ten" / "a.txt")
    dataset = Folder(tmp_path)
    assert counts(dataset) == {"one": 1, "two": 1, "five": 4, "ten": 8}
    assert counts(dataset, "test") == {"two": 1, "five": 1, "ten": 2}
    assert dataset.clips("validation") == []
    assert dataset.clips("train") == Folder(str(tmp_path)).clips("train")
    seeds = {tuple(Folder(tmp_path, seed=seed).clips("test")) for seed in range(5)}
    assert len(seeds) > 1
    assert counts(Folder(tmp_path, test_share=0.99)) == dict.fromkeys(
        ["one", "two", "five", "ten"], 1
    )
    with pytest.raises(InputError, match="no test clips of its 4 words"):
        Folder(tmp_path, test_share=0).clips("test")
    with pytest.raises(InputError, match="test_share must be at least 0 and below 1, got 1"):
        Folder(test_share=1.0)


def test_another_clip_does_not_move_the_rest_to_other_splits(tmp_path):
    touch(*(tmp_path / "go" / f"{i}.wav" for i in range(10)))
    before = Folder(tmp_path, test_share=0.5).clips("test")
    touch(tmp_path / "go" / "10.wav", tmp_path / "up" / "0.wav")
    after = Folder(tmp_path, test_share=0.5).clips("test")
    assert len(set(before) & set(after)) >= 4


def test_a_folder_that_is_split_already(tmp_path):
    touch(
        tmp_path / "train" / "go" / "a.wav",
        tmp_path / "train" / "up" / "b.mp3",
        tmp_path / "validation" / "go" / "c.opus",
        tmp_path / "test" / "go" / "deep" / "d.ogg",
        tmp_path / "test" / "down" / "e.wav",
    )
    dataset = Folder(tmp_path)
    assert dataset.words == ["go", "up"]
    assert dataset.clips("test") == [
        Clip(tmp_path / "test" / "go" / "deep" / "d.ogg", "go", None, "test")
    ]
    assert counts(dataset, "validation") == {"go": 1}
    assert dataset.notes == ["left out 1 clip of down: no training clips of these words"]
    touch(tmp_path / "noise" / "f.wav")
    with pytest.raises(InputError, match=r"folders of splits .* and also 'noise'"):
        Folder(tmp_path).clips("train")


def test_train_and_test_may_be_words(tmp_path):
    touch(*(tmp_path / word / f"{i}.wav" for word in ("train", "test") for i in range(3)))
    assert counts(Folder(tmp_path)) == {"train": 2, "test": 2}


def test_words_of_a_folder_are_composed_and_clips_keep_their_length(tmp_path):
    touch(tmp_path / NFD / "0.wav")
    dataset = Folder(tmp_path)
    assert dataset.words == [NFC]
    soundfile.write(tmp_path / NFD / "0.wav", tone(300, seconds=0.5), 16_000)
    assert dataset.read(dataset.clips("train")[0]).shape == (8_000,)


def test_a_folder_without_words(tmp_path):
    touch(tmp_path / "a.wav")
    with pytest.raises(InputError, match="no sound files in folders named by words"):
        Folder(tmp_path).clips("train")
