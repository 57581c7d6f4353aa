"""Words of speechocean762, each as cut out and as the second around it in its sentence.

The corpus (J. Zhang et al., CC BY 4.0) is a folder of `clips/` and `words.jsonl`: clip, speaker,
and each word with its start and length in seconds by forced alignment.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword.audio import files
from tapword.audio.align import cut
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.encoder import prepare

# Words of Speech Commands, on which the project is tested: nothing is learned from them.
TESTED = """\
backward bed bird cat dog down eight five follow forward four go happy house learn left marvin nine
no off on one right seven sheila six stop three tree two up visual wow yes zero"""
# Sound that is kept on either side of a word that is cut out.
BESIDE_S = 0.03
# Seconds that a word may last, and how often one is taken at most.
SHORTEST_S, LONGEST_S, MOST = 0.15, 1.0, 24


class Token(NamedTuple):
    """A word that somebody said: alone in silence, and among its neighbours, (16000,) each."""

    word: str
    speaker: str
    alone: np.ndarray
    among: np.ndarray


def tokens(folder: Path) -> Iterator[Token]:
    """Words of all sentences, in the corpus' order."""
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
            alone = prepare(sound[max(first, 0) : last], aligned=True)
            middle = round((start_s + length_s / 2) * SAMPLE_RATE)
            yield Token(word, sentence["speaker"], alone, cut(sound, middle, SAMPLE_RATE))
