"""Choose the voice that speaks a language on this machine."""

from tapword import registry
from tapword.voices.base import Unspeakable, Voice

# From the best on; a voice that needs a file of the user's is only used where it is named.
ORDER = ("kokoro", "espeak")


def choose(language: str, phonemes: str = "") -> Voice:
    """Choose the best voice that speaks a language here; refuse with what each of them lacks."""
    lacking = []
    for name in ORDER:
        voice: Voice = registry.build("voices", name)
        if phonemes and not voice.takes_phonemes:
            continue
        missing = voice.why_not(language, phonemes)
        if missing is None:
            return voice
        lacking.append(f"{name}: {missing}")
    raise Unspeakable(f"no voice here speaks {language!r}. {'; '.join(lacking)}")
