"""Choose the voice that speaks a language on this machine."""

from tapword import registry
from tapword.voices.base import Unspeakable, Voice

# From the best on.
ORDER = ("kokoro", "piper", "espeak")


def choose(language: str, phonemes: str = "") -> Voice:
    """Choose the best voice that speaks a language here; refuse with what each of them lacks.

    A voice with native speakers is better than one without.
    """
    speaking, lacking = [], []
    for name in ORDER:
        voice: Voice = registry.build("voices", name)
        if phonemes and not voice.takes_phonemes:
            continue
        missing = voice.why_not(language, phonemes)
        if missing is None:
            speaking.append(voice)
        else:
            lacking.append(f"{name}: {missing}")
    if not speaking:
        raise Unspeakable(f"no voice here speaks {language!r}. {'; '.join(lacking)}")
    return next((voice for voice in speaking if voice.is_native(language)), speaking[0])
