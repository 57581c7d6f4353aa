"""Base class of voices: a text in, clips of several speakers out, nothing learned."""

import os
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.registry import Part

# A longer text than this is no word and no phrase of three seconds.
MAX_CHARACTERS = 80
# A choice: more speakers than this say nothing new.
MAX_CLIPS = 500
# What a text may contain beside letters, their marks and digits.
_BETWEEN = " '\u2019-.,!?"


class Said(NamedTuple):
    """A clip that a voice spoke.

    Attributes
    ----------
    audio
        Shape (n,), float32 at 16 kHz.
    speaker
        Who says it: the voice's own name of the speaker.
    """

    audio: np.ndarray
    speaker: str


class SpokenBy(NamedTuple):
    """Who spoke clips: a voice, and whether its speakers are native speakers of the language."""

    voice: str
    native: bool = True


class Unspeakable(InputError):
    """A text that no voice can say, or a language that a voice does not speak."""


class Voice(Part, ABC):
    """A voice says a text in many ways: by several speakers, faster and slower.

    Attributes
    ----------
    licence
        Of the program or the weights, for people.
    takes_phonemes
        Whether it says phonemes in IPA as they are given.
    """

    licence: ClassVar[str] = ""
    takes_phonemes: ClassVar[bool] = False

    @abstractmethod
    def why_not(self, language: str, phonemes: str = "") -> str | None:
        """Say what is missing on this machine to speak a language; None: nothing.

        With given `phonemes`, a program that spells the language may not be needed.
        """

    def is_native(self, language: str) -> bool:
        """Whether its speakers are native speakers of a language, as far as is known."""
        return True

    def pronunciation(self, text: str, language: str) -> str:
        """Spell a text in IPA as it would be said; "" where the voice takes no phonemes."""
        return ""

    @abstractmethod
    def _speak(self, text: str, language: str, n: int, seed: int, phonemes: str) -> Iterator[Said]:
        """Say a text that was checked; `phonemes` may be empty."""

    def speak(
        self, text: str, language: str = "en-us", n: int = 40, seed: int = 0, phonemes: str = ""
    ) -> Iterator[Said]:
        """Say a text `n` times, each time by another speaker or at another speed.

        Parameters
        ----------
        text
            A word or a short phrase.
        language
            As espeak-ng names it: en-us, de, fr, pt-br, ...
        n
            Number of clips, 1 to 500.
        seed
            Chooses speakers and speeds.
        phonemes
            How the text is pronounced, in IPA, in place of what a speller makes of it.
        """
        text = check_text(text)
        if not 1 <= n <= MAX_CLIPS:
            raise InputError(f"a text is said 1 to {MAX_CLIPS} times, got {n}")
        if phonemes and not self.takes_phonemes:
            raise Unspeakable(f"voice {self.name!r} takes no phonemes; it spells the text itself")
        missing = self.why_not(language, phonemes)
        if missing is not None:
            raise Unspeakable(missing)
        return self._speak(text, language, n, seed, phonemes)


def voices_folder() -> Path:
    """Folder of the voices' files: `tapword/voices` in the user's data folder."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home, "tapword", "voices")


def check_text(text: str) -> str:
    """Refuse a text that is no word or short phrase.

    Examples
    --------
    >>> check_text(" hey computer ")
    'hey computer'
    >>> check_text("...")
    Traceback (most recent call last):
    tapword.voices.base.Unspeakable: '...' has no letters, so there is nothing to say
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if len(text) > MAX_CHARACTERS:
        raise Unspeakable(
            f"a text must be at most {MAX_CHARACTERS} characters, got {len(text)}",
            code="text_too_long",
            params={"most": MAX_CHARACTERS},
        )
    for character in text:
        if character not in _BETWEEN and unicodedata.category(character)[0] not in "LMN":
            raise Unspeakable(
                f"{text!r} contains {character!r}, which cannot be said: write it in letters",
                code="text_with_signs",
                params={"sign": character},
            )
    if not any(unicodedata.category(character)[0] in "LN" for character in text):
        raise Unspeakable(
            f"{text!r} has no letters, so there is nothing to say", code="text_without_letters"
        )
    return text
