# ruff: noqa: RUF001 (phonetic signs look like letters)
"""Grow the trees of the built-in speller, and count the phonemes it gets wrong.

    python training/typed/speller.py WORDS.json EVERY.json TARGET.safetensors

word_list.py makes both lists. Errors are counted on the words of WORDS.json that are held out,
by trees of the others; the file has the trees of every word. Each letter of a word is aligned with
none to three phonemes, as many words agree best. A tree for each language then asks whatever
separates the answers best, until one is left.
"""

import collections
import json
import math
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from tapword.voices import speller

LANGUAGES = ("de", "en-us", "es", "fr-fr", "it")
# Marks that belong to the sign before them; signs that are no sound.
MARKS, NONE = "ː\u0303ʲ\u0329\u032f\u031d\u030a\u032aʰ", ' -.?^"'
# Pairs of signs that are one sound, everywhere and in a language; the others do better without.
PAIRS, PAIRS_OF = ("dʒ", "tʃ"), {"en-us": ("aɪ", "aʊ", "eɪ", "oʊ", "ɔɪ")}
VOWELS = frozenset("aeiouyæɑɐɒɔəɚɛɜɪᵻʊʌøœɨɯʉɵε")
MOST_PHONEMES, ROUNDS, ALIGNED_FIRST = 3, 4, 6_000
# Letters by which forms of one word are known.
BEGINNING = 4
# Costs of a pair of letter and phonemes that was not seen yet.
UNSEEN, UNSEEN_EACH = 9.0, 2.0
VALUES = speller.OUTSIDE + 1
# A word and its phonemes.
Pair = tuple[str, list[str]]
# An answer; or a question: feature, value, and the trees for yes and no.
Node = int | tuple[int, int, Any, Any]
Cost = Callable[[str, tuple[str, ...]], float]


def units(sounds: str, language: str) -> list[str]:
    """Split phonemes; marks and stress go with their sound."""
    pairs = (*PAIRS, *PAIRS_OF.get(language, ()))
    result: list[str] = []
    stress = ""
    for sign in sounds:
        if sign in "ˈˌ":
            stress += sign
        elif result and (sign in MARKS or (not stress and result[-1][-1] + sign in pairs)):
            result[-1] += sign
        elif sign not in NONE:
            result.append(stress + sign)
            stress = ""
    return result


def bare(unit: str) -> str:
    """Return a phoneme without stress."""
    return unit.strip("ˈˌ")


def align(word: str, sounds: Sequence[str], cost: Cost) -> list[int] | None:
    """Count the phonemes of each letter, as they cost least; None: there are too many."""
    n, m = len(word), len(sounds)
    best = np.full((n + 1, m + 1), np.inf)
    taken = np.zeros((n + 1, m + 1), dtype=int)
    best[0, 0] = 0
    for i, letter in enumerate(word):
        for j in range(m + 1):
            if best[i, j] == np.inf:
                continue
            for k in range(min(MOST_PHONEMES, m - j) + 1):
                total = best[i, j] + cost(letter, tuple(sounds[j : j + k]))
                if total < best[i + 1, j + k]:
                    best[i + 1, j + k], taken[i + 1, j + k] = total, k
    if best[n, m] == np.inf:
        return None
    counts = []
    for i in range(n, 0, -1):
        counts.append(int(taken[i, m]))
        m -= counts[-1]
    return counts[::-1]


def aligned(pairs: Sequence[Pair]) -> list[Pair]:
    """Give each letter of words its phonemes, by rounds of aligning and counting."""
    cost: Cost = _first_cost
    first = pairs[:: max(1, len(pairs) // ALIGNED_FIRST)]
    for _ in range(ROUNDS):
        counts: dict[str, collections.Counter[tuple[str, ...]]]
        counts = collections.defaultdict(collections.Counter)
        for word, sounds in first:
            plain = tuple(map(bare, sounds))
            at = 0
            for letter, n in zip(word, align(word, plain, cost) or (), strict=False):
                counts[letter][plain[at : at + n]] += 1
                at += n
        cost = _cost(counts)
    result = []
    for word, sounds in pairs:
        spans, at = [], 0
        for n in align(word, [*map(bare, sounds)], cost) or ():
            spans.append("".join(sounds[at : at + n]))
            at += n
        if spans:
            result.append((word, spans))
    return result


def _first_cost(letter: str, some: tuple[str, ...]) -> float:
    """Prefer one phoneme to a letter, and a vowel to a vowel."""
    vowel = unicodedata.normalize("NFD", letter)[0] in speller.VOWELS
    others = sum((one[0] in VOWELS) != vowel for one in some)
    return abs(len(some) - 1) + (len(some) > 1) + (others if letter != "y" else 0)


def _cost(counts: dict[str, collections.Counter[tuple[str, ...]]]) -> Cost:
    costs = {
        letter: {some: -math.log(n / (found.total() + 1)) for some, n in found.items()}
        for letter, found in counts.items()
    }
    return lambda letter, some: costs.get(letter, {}).get(some, UNSEEN + UNSEEN_EACH * len(some))


def grow(X: np.ndarray, y: np.ndarray) -> Node:
    """Grow a tree from features (n, F) and answers (n,), until nothing more can be asked."""
    n = len(y)
    codes, kinds = np.unique(y, return_inverse=True)
    counts = np.bincount(kinds)
    likeliest = int(codes[counts.argmax()])
    if len(codes) == 1:
        return likeliest
    # How often each answer goes with each value of each feature.
    asked, which = np.unique(X + VALUES * np.arange(speller.N_FEATURES), return_inverse=True)
    pairs = which.reshape(X.shape) * len(codes) + kinds[:, None]
    table = np.bincount(pairs.ravel(), minlength=len(asked) * len(codes)).reshape(len(asked), -1)
    yes = table.sum(axis=1)
    gain = _bits(table) - _bits(yes[:, None]) + _bits(counts - table) - _bits(n - yes[:, None])
    best = int(gain.argmax())
    if gain[best] <= _bits(counts[None])[0] - _bits(np.array([[n]]))[0] + 1e-9:
        return likeliest
    feature, value = divmod(int(asked[best]), VALUES)
    chosen = X[:, feature] == value
    return feature, value, grow(X[chosen], y[chosen]), grow(X[~chosen], y[~chosen])


def _bits(counts: np.ndarray) -> np.ndarray:
    """Sum n log n over the columns of counts (rows, columns)."""
    return (counts * np.log2(np.maximum(counts, 1))).sum(axis=1)


def packed(root: Node) -> dict[str, np.ndarray]:
    """Nodes from the root on, each followed by what "yes" leads to, then "no"."""
    feature: list[int] = []
    value: list[int] = []
    skip: list[int] = []

    def write(node: Node) -> None:
        at = len(feature)
        question = (speller.OUTSIDE, node) if isinstance(node, int) else node[:2]
        feature.append(question[0])
        value.append(question[1])
        skip.append(0)
        if not isinstance(node, int):
            write(node[2])
            skip[at] = len(feature) - at
            write(node[3])

    write(root)
    bytes_of_skip = np.uint16 if max(skip) < 2**16 else np.uint32
    kinds = (np.uint8, np.uint8, bytes_of_skip)
    columns = zip(speller.NODES, (feature, value, skip), kinds, strict=True)
    return {name: np.array(column, dtype=kind) for name, column, kind in columns}


def learn(pairs: Sequence[Pair]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Learn a language from words and their phonemes: its letters and answers, and its tree."""
    found = aligned(pairs)
    letters = "".join(sorted({letter for word, _ in found for letter in word}))
    answers = [*collections.Counter(one for _, spans in found for one in spans)]
    assert len(answers) < speller.OUTSIDE and len(letters) + 1 < speller.OUTSIDE
    code = {one: k for k, one in enumerate(answers)}
    X, y = [], []
    for word, spans in found:
        numbers, given = [letters.index(one) + 1 for one in word], [code[one] for one in spans]
        for at in range(len(word)):
            stressed = any(speller.STRESS in one for one in spans[:at])
            X.append(speller.features(word, numbers, at, given[:at], stressed))
            y.append(given[at])
    return {"letters": letters, "answers": answers}, packed(grow(np.array(X), np.array(y)))


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Edits that turn one into the other."""
    row = [*range(len(b) + 1)]
    for i, one in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


def report(name: str, pairs: Sequence[Pair]) -> None:
    """Print the share of wrong phonemes and words; a name begins with the language."""
    language = name.partition(",")[0]
    wrong = wrong_stressed = total = words = 0
    for word, sounds in pairs:
        said = units(speller.phonemes(word, language), language)
        edits = distance([*map(bare, said)], [*map(bare, sounds)])
        wrong, words, total = wrong + edits, words + (edits > 0), total + len(sounds)
        wrong_stressed += distance(said, sounds)
    print(
        f"{name}: {len(pairs)} words, phonemes wrong {100 * wrong / total:.1f}%, with stress "
        f"{100 * wrong_stressed / total:.1f}%, words wrong {100 * words / len(pairs):.1f}%"
    )


def words_of(rows: Sequence[Sequence[Any]], language: str) -> list[Pair]:
    """Single words of a language, and their phonemes."""
    return [
        (unicodedata.normalize("NFC", text.lower()), units(sounds, language))
        for text, of, sounds, *_ in rows
        if of == language and " " not in text.strip() + sounds.strip()
    ]


def write(pairs: Mapping[str, Sequence[Pair]], target: str) -> None:
    """Learn each language and write the file."""
    header: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for language, some in pairs.items():
        header[language], nodes = learn(some)
        arrays |= {f"{language}.{name}": column for name, column in nodes.items()}
        print(f"{language}: {len(some)} words, {len(nodes['skip'])} nodes", flush=True)
    metadata = {"languages": json.dumps(header, ensure_ascii=False)}
    safetensors.numpy.save_file(arrays, target, metadata)
    print(f"{Path(target).stat().st_size / 1000:.0f} kB", flush=True)


def main(words: str, every: str, target: str) -> None:
    """Measure what is learned without the words that are held out; then learn every word."""
    rows = json.loads(Path(words).read_text("utf-8"))
    learned = {one: words_of([row for row in rows if not row[3]], one) for one in LANGUAGES}
    with tempfile.TemporaryDirectory() as folder:
        trial = str(Path(folder, "speller.safetensors"))
        write(learned, trial)
        speller._path = lambda: trial
        for language, pairs in learned.items():
            held = words_of([row for row in rows if row[3]], language)
            known = {word[:BEGINNING] for word, _ in pairs}
            new = [(word, sounds) for word, sounds in held if word[:BEGINNING] not in known]
            report(language, held)
            report(f"{language}, beginnings that no other word has", new)
    rows = json.loads(Path(every).read_text("utf-8"))
    write({language: words_of(rows, language) for language in LANGUAGES}, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
