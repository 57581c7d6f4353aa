"""Voices: which texts they take, who speaks, and what they say where they cannot."""

import subprocess

import numpy as np
import pytest

from tapword.errors import InputError
from tapword.voices import choice, espeak, kokoro
from tapword.voices.base import MAX_CLIPS, Said, Unspeakable, Voice, check_text
from tapword.voices.espeak import Espeak
from tapword.voices.kokoro import SIGNS, Kokoro, cast, signs
from tapword.voices.piper import Piper

needs_espeak = pytest.mark.skipif(
    espeak.why_no_phonemes("en-us") is not None, reason="needs espeak-ng"
)


class Silent(Voice):
    """A voice of zeros, for what every voice shares."""

    def why_not(self, language, phonemes=""):
        return None if language == "en-us" else f"no {language!r} here"

    def _speak(self, text, language, n, seed, phonemes):
        for _ in range(n):
            yield Said(np.zeros(10, dtype=np.float32), text)


@pytest.mark.parametrize(
    "text", ["hey computer", "  spaces   inside ", "3", "don't", "ca\u0301fe", "مرحبا", "你好"]
)
def test_words_and_phrases_can_be_said(text):
    assert check_text(check_text(text)) == check_text(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no letters"),
        ("...", "no letters"),
        ("hey 😀", "'😀', which cannot be said"),
        ("a\x1b[2J", "cannot be said"),
        ("[[hello]]", "cannot be said"),
        ("<speak>", "cannot be said"),
        ("x" * 300, "at most 80 characters, got 300"),
    ],
)
def test_other_texts_get_one_clear_line(text, message):
    with pytest.raises(Unspeakable) as error:
        Silent().speak(text)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("n", [0, -1, MAX_CLIPS + 1])
def test_the_number_of_clips_is_bounded(n):
    with pytest.raises(InputError, match="1 to 500 times"):
        Silent().speak("hey", n=n)


def test_a_voice_says_at_once_what_it_lacks():
    with pytest.raises(Unspeakable, match="no 'tlh' here"):
        Silent().speak("hey", "tlh")
    with pytest.raises(Unspeakable, match="takes no phonemes"):
        Silent().speak("hey", phonemes="hˈA")  # noqa: RUF001


# espeak-ng.


@pytest.mark.parametrize("language", ["-v", "en us", "../x", "EN", "", "x" * 50])
def test_a_language_is_never_an_option_or_a_path(language, monkeypatch):
    monkeypatch.setattr(espeak.shutil, "which", lambda name: "/usr/bin/espeak-ng")
    monkeypatch.setattr(espeak, "_run", lambda arguments: pytest.fail(f"ran {arguments}"))
    assert "no language is named" in espeak.why_no_phonemes(language)


def test_without_the_program_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(espeak.shutil, "which", lambda name: None)
    with pytest.raises(Unspeakable, match="espeak-ng is not installed; install espeak-ng"):
        Espeak().speak("hey")


@needs_espeak
def test_phonemes_are_those_of_the_program():
    assert espeak.phonemes("hey computer", "en-us") == "hˈeɪ kəmpjˈuːɾɚ"  # noqa: RUF001
    assert espeak.phonemes("-x", "de").startswith("ˈ")  # noqa: RUF001
    assert "does not speak 'tlh'" in espeak.why_no_phonemes("tlh")


@needs_espeak
def test_espeak_says_a_word_in_many_ways():
    said = list(Espeak().speak("lamp", n=4))
    assert [one.speaker for one in said] == ["en-us", "en-us+m1", "en-us+m2", "en-us+m3"]
    for one in said:
        assert one.audio.dtype == np.float32 and 0.2 < len(one.audio) / 16_000 < 2
        assert 0.05 < np.abs(one.audio).max() <= 1
    again = list(Espeak().speak("lamp", n=4))
    assert all(np.array_equal(a.audio, b.audio) for a, b in zip(said, again, strict=True))
    assert not np.array_equal(next(Espeak().speak("lamp", n=1, seed=1)).audio, said[0].audio)


def test_a_program_that_fails_or_hangs_is_told_in_one_line(monkeypatch):
    def hang(*_, **options):
        raise subprocess.TimeoutExpired("espeak-ng", options["timeout"])

    monkeypatch.setattr(espeak.subprocess, "run", hang)
    with pytest.raises(InputError, match="espeak-ng did not answer"):
        espeak._run(["--voices"])
    failed = subprocess.CompletedProcess([], 1, b"", b"bad voice\nmore")
    monkeypatch.setattr(espeak.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(InputError, match=r"espeak-ng failed: bad voice$"):
        espeak._run(["--voices"])


# Kokoro's speakers and signs; its network is tested in test_kokoro.py.


def test_every_sign_has_one_number():
    assert len(set(SIGNS.values())) == len(SIGNS) == 114
    assert (SIGNS[";"], SIGNS["ə"], SIGNS["ᵻ"]) == (1, 83, 177)


@needs_espeak
@pytest.mark.parametrize("language", ["en-us", "en-gb", "de", "fr-fr", "es", "it", "ar", "hi"])
def test_the_network_has_signs_for_what_espeak_spells(language):
    text = {"ar": "مَرْحَبًا", "hi": "नमस्ते"}.get(language, "computer")
    spelled = signs(espeak.phonemes(text, language), language)
    assert len(spelled) >= 4 and sum(sign in SIGNS for sign in spelled) >= 0.9 * len(spelled)


SPEAKERS = ["af_one", "am_two", "bf_three", "ff_four", "zm_five"]


@pytest.mark.parametrize(("language", "native"), [("en-us", 3), ("en-gb", 3), ("fr-fr", 1)])
def test_native_speakers_come_first_and_lead_every_blend(language, native):
    parts = cast(SPEAKERS, language, 12, np.random.default_rng(0))
    letters = {"en-us": "ab", "en-gb": "ab", "fr-fr": "f"}[language]
    assert len(parts) == 12 and all(abs(sum(part.values()) - 1) < 1e-9 for part in parts)
    assert all(len(part) == 1 for part in parts[:native])
    assert len({next(iter(part)) for part in parts[:native]}) == native
    for part in parts[native:]:
        assert len(part) == 2
        assert next(iter(part))[0] in letters and next(iter(part.values())) >= 0.5


def test_a_language_without_native_speakers_is_spoken_by_all():
    parts = cast(SPEAKERS, "de", 5, np.random.default_rng(0))
    assert {name for part in parts for name in part} <= set(SPEAKERS)
    assert len(cast(SPEAKERS, "de", 1, np.random.default_rng(0))) == 1
    assert cast(SPEAKERS, "de", 9, np.random.default_rng(1)) != cast(
        SPEAKERS, "de", 9, np.random.default_rng(2)
    )


def test_kokoro_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setattr(kokoro.importlib.util, "find_spec", lambda name: None)
    missing = Kokoro().why_not("en-us")
    assert "needs the package 'onnxruntime'" in missing and "[voices]" in missing


# The choice.


@pytest.fixture
def here(monkeypatch):
    """Say what is missing for each voice."""

    def put(**missing):
        monkeypatch.setattr(Kokoro, "why_not", lambda self, *_: missing.get("kokoro"))
        monkeypatch.setattr(Piper, "why_not", lambda self, *_: missing.get("piper"))
        monkeypatch.setattr(Espeak, "why_not", lambda self, *_: missing.get("espeak"))

    return put


def test_the_best_voice_that_speaks_here_is_chosen(here):
    here()
    assert choice.choose("en-us").name == "kokoro"
    here(kokoro="no files", piper="no file")
    assert choice.choose("en-us").name == "espeak"


def test_where_none_speaks_the_message_says_what_each_lacks(here):
    here(kokoro="no files", piper="no file", espeak="no program")
    wanted = r"'de'\. kokoro: no files; piper: no file; espeak: no program"
    with pytest.raises(Unspeakable, match=wanted):
        choice.choose("de")
    with pytest.raises(Unspeakable, match=r"kokoro: no files; piper: no file$"):
        choice.choose("de", phonemes="a")


def test_kokoro_names_the_command_that_fetches_it(tmp_path):
    missing = Kokoro(folder=str(tmp_path)).why_not("en-us")
    assert str(tmp_path) in missing and "tapword voices get" in missing
    assert kokoro.RATE == 24_000
