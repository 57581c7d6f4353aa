"""Turn a text into phonemes: by espeak-ng where it is installed, else by the built-in speller."""

from tapword.voices import espeak, speller


def why_not(language: str) -> str | None:
    """Say what is missing to spell a language; None: nothing."""
    missing, unknown = espeak.why_no_phonemes(language), speller.why_not(language)
    return None if missing is None or unknown is None else f"{missing}; {unknown}"


def phonemes(text: str, language: str) -> str:
    """Spell a text in IPA, with stress marks."""
    if espeak.why_no_phonemes(language) is None:
        return espeak.phonemes(text, language)
    return speller.phonemes(text, language)


def spelled_by(language: str) -> str:
    """Name what spells a language here, for people."""
    if espeak.why_no_phonemes(language) is None:
        return espeak.PROGRAM
    known = ", ".join(speller.languages())
    return f"the built-in speller ({known}); {espeak.PROGRAM} spells better and more languages"
