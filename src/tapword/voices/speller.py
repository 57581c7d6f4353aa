# ruff: noqa: RUF001, RUF002 (phonetic signs look like letters)
"""A small speller: texts of five languages -> phonemes, where espeak-ng is not installed.

A tree for each language asks about a letter's neighbours and the phonemes before it, until one
answer is left: the phonemes that the letter stands for, with their stress.
training/typed/speller.py grew the trees from pronunciations that the program espeak-ng printed.
"""

import functools
import itertools
import json
import unicodedata
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

import safetensors

from tapword.voices import espeak
from tapword.voices.base import Unspeakable

ASSET = "speller.safetensors"
# Offsets of the letters that a tree may ask about.
NEIGHBOURS = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5)
# Offsets, the two answers before, whether the stress was said, vowels that follow.
N_FEATURES = len(NEIGHBOURS) + 4
NODES = ("feature", "value", "skip")
# Beyond the word; no letter and no answer has this code.
OUTSIDE = 255
VOWELS = frozenset("aeiouy")
# A tree counts at most this many groups of vowels after a letter.
MAX_VOWELS = 4
STRESS = "ˈ"


class Tree(NamedTuple):
    """A language's tree of questions, each node before those below it.

    Attributes
    ----------
    letters, answers
        What codes stand for; the code of a letter is its index and 1.
    feature, value
        Of each node: the feature it asks about and the value it asks for. An answer has the feature
        `OUTSIDE`, and its code as value.
    skip
        Nodes from a question to where "no" leads; "yes" leads to the next node.
    """

    letters: str
    answers: Sequence[str]
    feature: Sequence[int]
    value: Sequence[int]
    skip: Sequence[int]

    def decide(self, features: Sequence[int]) -> int:
        """Walk from the root to an answer."""
        node = 0
        while self.feature[node] != OUTSIDE:
            yes = features[self.feature[node]] == self.value[node]
            node += 1 if yes else self.skip[node]
        return self.value[node]


def why_not(language: str) -> str | None:
    """Say why a language cannot be spelled; None: it can."""
    if _named(language) is not None:
        return None
    return f"the built-in speller knows {', '.join(languages())}, not {language!r}"


def languages() -> list[str]:
    """Languages that it spells, as espeak-ng names them."""
    return sorted(_header())


def phonemes(text: str, language: str) -> str:
    """Spell a text in IPA, with stress marks, nearly as espeak-ng pronounces it.

    Examples
    --------
    >>> phonemes("hello kitchen", "en-us")
    'həlˈoʊ kˈɪtʃən'
    """
    named = _named(language)
    if named is None:
        raise Unspeakable(str(why_not(language)))
    tree = _tree(named)
    words = [_letters(word, tree.letters, text) for word in text.split()]
    spelled = [_spell(word, tree) for word in words if word]
    return " ".join(word for word in spelled if word)


def features(
    word: str, letters: Sequence[int], at: int, before: Sequence[int], stressed: bool
) -> list[int]:
    """List what a tree may ask about the letter `at` of a word.

    Parameters
    ----------
    word, letters
        The word, and the codes of its letters.
    before
        Answers for the letters before, from the first on.
    stressed
        Whether one of them has the word's stress.
    """
    n = len(letters)
    near = [letters[at + k] if 0 <= at + k < n else OUTSIDE for k in NEIGHBOURS]
    last = [before[k] if len(before) >= -k else OUTSIDE for k in (-1, -2)]
    return [*near, *last, int(stressed), _vowels_after(word, at)]


def _vowels_after(word: str, at: int) -> int:
    """Count groups of vowels after a letter."""
    plain = [unicodedata.normalize("NFD", letter)[0] in VOWELS for letter in word[at:]]
    groups = sum(now and not before for before, now in itertools.pairwise(plain))
    return min(groups, MAX_VOWELS)


def _spell(word: str, tree: Tree) -> str:
    letters = [tree.letters.index(letter) + 1 for letter in word]
    before: list[int] = []
    stressed = False
    for at in range(len(word)):
        before.append(tree.decide(features(word, letters, at, before, stressed)))
        stressed |= STRESS in tree.answers[before[-1]]
    return "".join(tree.answers[answer] for answer in before)


def _letters(word: str, known: str, text: str) -> str:
    """Write a word with the letters of a language; others lose their marks."""
    result = ""
    for letter in unicodedata.normalize("NFC", word.lower()):
        if letter in known:
            result += letter
            continue
        plain = unicodedata.normalize("NFD", letter)[0]
        if plain in known:
            result += plain
        elif unicodedata.category(letter)[0] in "LN":
            raise Unspeakable(
                f"the built-in speller cannot read {letter!r} in {text!r}: write it in letters of "
                "the language, or give --phonemes",
                code="text_not_spelled",
                params={"sign": letter},
            )
    return result


def _named(language: str) -> str | None:
    """Find the language that is meant: its own name, or another country's."""
    if not espeak.is_named(language):
        return None
    base = language.partition("-")[0]
    return next((name for name in languages() if name.partition("-")[0] == base), None)


@functools.cache
def _header() -> dict[str, dict[str, Any]]:
    with safetensors.safe_open(_path(), "numpy") as file:
        held: dict[str, dict[str, Any]] = json.loads(file.metadata()["languages"])
    return held


@functools.lru_cache(maxsize=2)
def _tree(language: str) -> Tree:
    header = _header()[language]
    with safetensors.safe_open(_path(), "numpy") as file:
        nodes = [file.get_tensor(f"{language}.{name}").tolist() for name in NODES]
    return Tree(header["letters"], header["answers"], *nodes)


def _path() -> str:
    return str(resources.files("tapword.assets").joinpath(ASSET))
