"""Find the takes of a word in one recording, by their vectors."""

import itertools
from typing import NamedTuple

import numpy as np

from tapword.audio.endpoint import SETTINGS, sounds
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.cohort import unit
from tapword.spotter.encoder import Encoder
from tapword.spotter.vocabulary import CLIP_S, MAX_S

# A recording has several takes if for most of its sounds, the median cosine to the others is at
# least the first. Then sounds below the second are left out. benchmarks/split.py: of 707 read
# phrases 1 is split, of single words none; of 98 pairs of takes in Speech Commands 89, of 100
# Arabic pairs 96. Of Arabic pairs by one speaker, 99% of takes and 10% of other words reach UNLIKE.
SIMILAR, UNLIKE = 0.5, 0.3


class Sound(NamedTuple):
    """A sound in a recording.

    Attributes
    ----------
    audio
        The sound with up to 0.2 s on each side, (m,).
    first
        Where that begins in the recording, in samples.
    start_s
        Where the sound itself starts in it.
    is_take
        Whether it is a take of the word; False where it is unlike the other sounds.
    """

    audio: np.ndarray
    first: int
    start_s: float
    is_take: bool = True


def find_takes(encoder: Encoder, audio: np.ndarray, force: bool = False) -> list[Sound]:
    """Find several takes of one word or phrase in a recording.

    Most of the sounds must be similar to most of the others: the parts of a phrase are not. Sounds
    are separated by pauses of 0.25 s first. If these are not similar, each may be part of a phrase,
    and pauses of 0.5 s separate them.

    Parameters
    ----------
    encoder
        Its vectors decide; without a whitening, they cannot.
    audio
        The recording, (n,) float32 at 16 kHz.
    force
        If the sounds are not similar, take each sound all the same.

    Returns
    -------
    list of Sound
        At least two takes, and the sounds that are unlike them; empty where there are none.
    """
    if len(audio) <= CLIP_S * SAMPLE_RATE:
        return []
    for pause_ms in (SETTINGS.gap_ms, SETTINGS.pause_ms):
        spans = sounds(audio, pause_ms)
        found = _cut(audio, spans)
        short = all(len(one.audio) <= MAX_S * SAMPLE_RATE for one in found)
        if len(found) < 2 or not short or not encoder.whitenings:
            continue
        vectors = unit(encoder.encode([encoder.prepare(one.audio) for one in found]).vectors)
        cosines = vectors @ vectors.T
        others = cosines[~np.eye(len(found), dtype=bool)].reshape(len(found), -1)
        medians = np.median(others, axis=1)
        if 2 * np.sum(medians >= SIMILAR) > len(found):
            like = (medians >= UNLIKE).tolist()
            return [one._replace(is_take=is_take) for one, is_take in zip(found, like, strict=True)]
    return found if force and len(found) > 1 else []


def _cut(audio: np.ndarray, spans: list[tuple[int, int]]) -> list[Sound]:
    """Cut out each span with a margin, which ends in the middle between two."""
    margin = round(SETTINGS.margin_ms / 1000 * SAMPLE_RATE)
    middles = [(one[1] + other[0]) // 2 for one, other in itertools.pairwise(spans)]
    found = []
    for low, high, (start, end) in zip([0, *middles], [*middles, len(audio)], spans, strict=False):
        first, last = max(low, start - margin), min(high, end + margin)
        found.append(Sound(audio[first:last], first, start / SAMPLE_RATE))
    return found
