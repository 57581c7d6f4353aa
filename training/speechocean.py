"""Words of speechocean762, cut out and with their neighbours, and phrases.

The corpus (J. Zhang et al., CC BY 4.0) is a folder of `clips/` and `words.jsonl`: clip, speaker,
and each word with its start and length in seconds from forced alignment.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from places import Place, place

from tapword.audio import files
from tapword.audio.align import align
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.vocabulary import CLIP_S, MAX_S

# Words of Speech Commands, the test set: nothing is learned from them.
TESTED = """\
backward bed bird cat dog down eight five follow forward four go happy house learn left marvin nine
no off on one right seven sheila six stop three tree two up visual wow yes zero"""
# Audio kept on either side of a cut-out word.
BESIDE_S = 0.03
# Shortest and longest word in seconds, and most clips of one word.
SHORTEST_S, LONGEST_S, MOST = 0.15, 1.0, 24
# Fewest and most words of a phrase.
FEWEST_WORDS, MOST_WORDS = 2, 7
# Shortest phrase in seconds: a little less than what counts as a phrase.
SHORTEST_PHRASE_S = 0.8


class Token(NamedTuple):
    """A spoken word: alone in silence (16000,), and with its neighbours in its sentence."""

    word: str
    speaker: str
    alone: np.ndarray
    among: Place


def phrases(folder: Path, rng: np.random.Generator) -> Iterator[Place]:
    """Two to seven neighbouring words of each sentence that has them, with the margin of clips.

    Its edges have the words before and after.
    """
    for line in (folder / "words.jsonl").read_text("utf-8").splitlines():
        sentence = json.loads(line)
        words = sentence["words"]
        if len(words) < FEWEST_WORDS:
            continue
        n = int(rng.integers(FEWEST_WORDS, min(MOST_WORDS, len(words)) + 1))
        first = int(rng.integers(0, len(words) - n + 1))
        start_s = words[first][1]
        end_s = sum(words[first + n - 1][1:])
        if SHORTEST_PHRASE_S <= end_s - start_s <= MAX_S:
            sound = files.load(folder / "clips" / sentence["clip"])
            yield place(sound, start_s, end_s)


def repeated(folder: Path, least: int) -> Iterator[list[np.ndarray]]:
    """Phrases that at least `least` people say, each as clips for the encoder, one per person."""
    places: dict[str, dict[str, tuple[str, float, float]]] = {}
    for line in (folder / "words.jsonl").read_text("utf-8").splitlines():
        sentence = json.loads(line)
        words = sentence["words"]
        for n in range(FEWEST_WORDS, MOST_WORDS + 1):
            for first in range(len(words) - n + 1):
                start_s, end_s = words[first][1], sum(words[first + n - 1][1:])
                if SHORTEST_PHRASE_S <= end_s - start_s <= MAX_S:
                    phrase = " ".join(word for word, *_ in words[first : first + n])
                    said = places.setdefault(phrase, {})
                    said.setdefault(sentence["speaker"], (sentence["clip"], start_s, end_s))
    for said in places.values():
        if len(said) >= least:
            yield [
                place(alone(files.load(folder / "clips" / clip), *span), *span).clip
                for clip, *span in said.values()
            ]


def alone(sound: np.ndarray, start_s: float, end_s: float) -> np.ndarray:
    """Silence a sound before and after a segment."""
    first = max(round((start_s - BESIDE_S) * SAMPLE_RATE), 0)
    last = round((end_s + BESIDE_S) * SAMPLE_RATE)
    result = np.zeros_like(sound)
    result[first:last] = sound[first:last]
    return result


def tokens(folder: Path) -> Iterator[Token]:
    """Words of all sentences, in the order of the corpus."""
    tested, seen = set(TESTED.split()), dict[str, int]()
    for line in (folder / "words.jsonl").read_text("utf-8").splitlines():
        sentence = json.loads(line)
        sound: np.ndarray | None = None
        for word, start_s, length_s in sentence["words"]:
            taken = seen.get(word, 0)
            if word in tested or taken >= MOST or not SHORTEST_S <= length_s <= LONGEST_S:
                continue
            seen[word] = taken + 1
            if sound is None:
                sound = files.load(folder / "clips" / sentence["clip"])
            first = round((start_s - BESIDE_S) * SAMPLE_RATE)
            last = round((start_s + length_s + BESIDE_S) * SAMPLE_RATE)
            cut_out = align(sound[max(first, 0) : last], CLIP_S)
            middle = round((start_s + length_s / 2) * SAMPLE_RATE)
            among = Place(sound, middle - SAMPLE_RATE // 2, SAMPLE_RATE)
            yield Token(word, sentence["speaker"], cut_out, among)
