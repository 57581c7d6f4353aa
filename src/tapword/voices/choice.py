"""Choose the voice that speaks a language on this machine."""

from typing import Any

from tapword import registry
from tapword.voices import espeak, speller
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


def offer(language: str) -> dict[str, Any]:
    """List the voices that speak a language here, ready for JSON.

    Returns
    -------
    dict
        voices: each with name, whether it is native and takes phonemes, and what is missing (None:
        nothing); best: the one that is used unless another is named, or None; missing: what the
        first of `ORDER` needs if none speaks, or None; languages: those that a voice may speak.
    """
    voices = []
    for name in registry.classes("voices"):
        voice: Voice = registry.build("voices", name)
        about = {"name": name, "native": voice.is_native(language)}
        about |= {"phonemes": voice.takes_phonemes, "missing": voice.why_not(language)}
        voices.append(about)
    best, missing = None, None
    try:
        best = choose(language).name
    except Unspeakable:
        # One thing to do, not one for each voice.
        missing = registry.build("voices", ORDER[0]).why_not(language)
    found = espeak.languages() if espeak.is_installed() else {language, *speller.languages()}
    return {"voices": voices, "best": best, "missing": missing, "languages": sorted(found)}
