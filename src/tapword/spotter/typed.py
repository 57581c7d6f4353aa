"""Clips of a typed word: a voice says it, and the encoder hears it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tapword import registry
from tapword.errors import InputError
from tapword.spotter.encoder import Encoded, Encoder
from tapword.voices.base import Said, SpokenBy, Unspeakable, Voice, check_text
from tapword.voices.choice import choose

# Of three wake phrases, 4, 8, 16, 24 and 40 clips miss 4.8, 4.6, 4.3, 4.2 and 4.1%.
CLIPS = 16
LANGUAGE = "en-us"
# A clip is silent below this peak: speech at 1% of full scale is 40 dB below it.
SILENT = 0.01


@dataclass(frozen=True)
class Request:
    """What a voice is to say.

    Attributes
    ----------
    text
        A word or a short phrase.
    language
        As espeak-ng names it.
    n
        Number of clips.
    phonemes
        How it is pronounced, in IPA; "": as it is spelled.
    """

    text: str
    language: str = LANGUAGE
    n: int = CLIPS
    phonemes: str = ""

    def voice(self, voice: str | Voice | None) -> Voice:
        """Make the voice that was named, or choose the best one that speaks here."""
        check_text(self.text)
        if voice is None:
            return choose(self.language, self.phonemes)
        made: Voice = registry.make("voices", voice)
        return made


class Spoken(NamedTuple):
    """Clips of a text: by whom, as it spoke them, and as they are learned, one row each."""

    by: SpokenBy
    said: list[Said]
    encoded: Encoded


def speak(
    encoder: Encoder,
    request: Request,
    voice: str | Voice | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int = 0,
) -> Spoken:
    """Let a voice say a text, and encode the clips to learn from them."""
    speaker = request.voice(voice)
    said: list[Said] = []
    prepared: list[np.ndarray] = []
    for one in speaker.speak(
        request.text, request.language, request.n, seed=seed, phonemes=request.phonemes
    ):
        if np.abs(one.audio).max(initial=0) < SILENT:
            raise Unspeakable(f"voice {speaker.name!r} says nothing for {request.text!r}")
        try:
            prepared.append(encoder.prepare(one.audio))
        except InputError as error:
            raise Unspeakable(f"{request.text!r} cannot be taught: {error}") from error
        said.append(one)
        if progress is not None:
            progress(len(said))
    by = SpokenBy(speaker.name, speaker.is_native(request.language))
    return Spoken(by, said, encoder.encode(prepared, learning=True))
