# ruff: noqa: RUF001 (phonetic signs look like letters)
"""The built-in speller: what it spells, what it refuses, and when it is used."""

from pathlib import Path

import numpy as np
import pytest

from tapword.voices import espeak, speller, spelling
from tapword.voices.base import Unspeakable
from tapword.voices.kokoro import SIGNS, Kokoro, signs


@pytest.fixture
def without_espeak(monkeypatch):
    monkeypatch.setattr(espeak.shutil, "which", lambda name: None)


@pytest.mark.parametrize(
    ("text", "language", "spelled"),
    [
        ("kitchen lights", "en-us", "kˈɪtʃən lˈaɪts"),
        ("Guten Morgen", "de", "ɡˈuːtən mˈɔɾɡən"),
        ("lumière", "fr-fr", "lymjˈɛʁ"),
        ("buenos días", "es", "bwˈenos dˈias"),
        ("finestra", "it", "finˈɛstra"),
    ],
)
def test_five_languages_are_spelled(text, language, spelled):
    assert speller.phonemes(text, language) == spelled


def test_capitals_accents_and_signs_do_not_matter():
    assert speller.phonemes("KITCHEN!", "en-us") == speller.phonemes("kitchen", "en-us")
    assert speller.phonemes("cafe\u0301", "fr") == speller.phonemes("café", "fr")
    # A letter that the language does not have is read without its mark.
    assert speller.phonemes("kïtchen", "en-us") == speller.phonemes("kitchen", "en-us")


def test_other_countries_names_of_a_language_are_known():
    assert speller.phonemes("window", "en-gb") == speller.phonemes("window", "en")
    assert speller.why_not("es-419") is None
    for language in ("pl", "", "en us", "en/../x", "eng", "EN"):
        assert "the built-in speller knows de, en-us, es, fr-fr, it" in speller.why_not(language)
        with pytest.raises(Unspeakable, match="the built-in speller knows"):
            speller.phonemes("lamp", language)


@pytest.mark.parametrize(("text", "sign"), [("route 66", "6"), ("лампа", "л"), ("灯", "灯")])
def test_what_is_no_letter_of_the_language_gets_one_clear_line(text, sign):
    with pytest.raises(Unspeakable) as error:
        speller.phonemes(text, "en-us")
    assert repr(sign) in str(error.value) and "--phonemes" in str(error.value)


@pytest.mark.parametrize("language", speller.languages())
def test_every_node_leads_to_an_answer_and_every_answer_has_known_signs(language):
    tree = speller._tree(language)
    n = len(tree.feature)
    assert len(tree.value) == len(tree.skip) == n
    for node, (feature, value, skip) in enumerate(
        zip(tree.feature, tree.value, tree.skip, strict=True)
    ):
        if feature == speller.OUTSIDE:
            assert value < len(tree.answers)
        else:
            assert feature < speller.N_FEATURES and 1 < skip < n - node
    spelled = signs("".join(tree.answers), language)
    assert sum(sign in SIGNS for sign in spelled) > 0.95 * len(spelled)


def test_espeak_is_used_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(espeak, "why_no_phonemes", lambda language: None)
    monkeypatch.setattr(espeak, "phonemes", lambda text, language: f"{text} by espeak")
    assert spelling.phonemes("lamp", "en-us") == "lamp by espeak"
    assert spelling.spelled_by("en-us") == "espeak-ng"


def test_the_speller_is_used_where_espeak_is_not(without_espeak):
    assert spelling.why_not("de") is None and "built-in" in spelling.spelled_by("de")
    assert spelling.phonemes("Lampe", "de") == speller.phonemes("Lampe", "de")
    missing = spelling.why_not("pl")
    assert "espeak-ng is not installed" in missing and "not 'pl'" in missing
    with pytest.raises(Unspeakable, match="not 'pl'"):
        spelling.phonemes("lampa", "pl")


def test_kokoro_needs_no_espeak_for_what_the_speller_knows(without_espeak, monkeypatch):
    voice = Kokoro()
    monkeypatch.setattr(voice._files, "why_not", lambda: None)
    assert voice.why_not("fr-fr") is None
    assert "espeak-ng is not installed" in voice.why_not("pl")


def test_the_trees_learn_a_rule_and_its_exception(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "training" / "typed"))
    import speller as training

    words = ["mad", "made", "pan", "pane", "cap", "cape", "fat", "fate", "hat", "hate", "have"]
    long = {"made", "pane", "cape", "fate", "hate"}
    pairs = []
    for word in words:
        vowel = "eɪ" if word in long else "æ"
        pairs.append((word, [*word[0], f"ˈ{vowel}", word[2]]))
    header, nodes = training.learn(pairs)
    columns = [nodes[name].tolist() for name in speller.NODES]
    tree = speller.Tree(header["letters"], header["answers"], *columns)
    for word, sounds in pairs:
        assert speller._spell(word, tree) == "".join(sounds)
    # Words that it never saw.
    assert speller._spell("mat", tree) == "mˈæt"
    assert speller._spell("mate", tree) == "mˈeɪt"
    assert np.uint8 == nodes["feature"].dtype
