"""The words that the typed network and the speller learn from, with their phonemes in IPA.

    python training/typed/word_list.py WORDS.json EVERY.json [SEED]

WORDS.json is a list of [text, language, phonemes, held]. The lists are those of
training/ear/words.py: Debian's wamerican-small, Faker's names and words, and the words of
speechocean762, pronounced by the program espeak-ng. What sounds like a word of a test is left out,
in any language: words of Speech Commands, wake phrases, and the Arabic words of benchmarks/typed.py
with their English names. EVERY.json has these too, as [text, language, phonemes], for the shipped
speller alone: people type such words, and it learns nothing about sound.

`held`: 1 in 20 of the words are held out, and 1 in 5 of those that eight people of speechocean762
say, to choose and to measure by.
"""

import collections
import hashlib
import importlib
import json
import random
import re
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parents[1] / "benchmarks"), str(_HERE.parent / "ear")]

import typed as benchmark  # noqa: E402
import words as ear  # noqa: E402

# Language of espeak-ng -> how many words of it, besides English.
SHARES = {"de": 3000, "fr-fr": 3000, "es": 3000, "it": 3000}
OTHERS = 300
# The rest of what Faker knows in these languages, which the speller needs most.
MORE = {
    "de": ("de_DE", "de_AT", "de_CH"),
    "fr-fr": ("fr_FR", "fr_CA", "fr_CH", "fr_BE"),
    "es": ("es_ES", "es_MX", "es_AR", "es_CO"),
    "it": ("it_IT",),
}
GLOSSES = (
    "backward cancel close digit direction disable down eight enable enter five forward four left "
    "move next nine no ok okay one open options previous receive record right rotate send seven "
    "six start stop three two undo up yes zero zoom in out"
)
HELD, HELD_REAL, OFTEN = 20, 5, 8


def main(target: str, every: str, seed: str = "0") -> None:
    """Write both lists."""
    rng = random.Random(int(seed))
    ear.ENGLISH = 60_000
    left_out = sorted({*ear.TESTS, *GLOSSES.split()})
    tests = {ear.sound(one) for one in ear.speak(left_out, "en-us")}
    tests |= {ear.sound(one) for one in ear.speak([*benchmark.ARABIC.values()], "ar")}
    ear.TESTS |= set(left_out)
    texts = {"en-us": ear.english(rng, set()) + ear.phrases(rng, set())}
    person = importlib.import_module("faker.providers.person.en_US").Provider
    names = {*person.first_names, *person.last_names}
    names = {name for name in names if re.fullmatch("[A-Z][a-z]+", name)}
    texts["en-us"] += sorted(names)
    for language, (locale, _) in ear.LANGUAGES.items():
        texts[language] = ear.words_of(locale, SHARES.get(language, OTHERS), rng, set())
    given = [("en-us", left_out), *texts.items()]
    for language, locales in MORE.items():
        given += [(language, ear.words_of(one, 100_000, rng, set())) for one in locales]
    rows: list[tuple[str, str, str]] = []
    everything: list[tuple[str, str, str]] = []
    known: set[tuple[str, str]] = set()
    held: set[str] = set()
    often = often_said()
    for language, some in given:
        for text, sounds in zip(some, ear.spell(some, language), strict=True):
            signs = ear.signs(sounds, language)
            if len(signs) < 2 or (text.lower(), language) in known:
                continue
            known.add((text.lower(), language))
            everything.append((text, language, sounds))
            if ear.like(signs, tests):
                continue
            rows.append((text, language, sounds))
            if is_held(text, ear.sound(signs), often):
                held.add(ear.sound(signs))
    marked = [(*row, int(ear.sound(ear.signs(row[2], row[1])) in held)) for row in rows]
    Path(target).write_text(json.dumps(marked, ensure_ascii=False), "utf-8")
    Path(every).write_text(json.dumps(everything, ensure_ascii=False), "utf-8")
    for language in texts:
        print(language, sum(row[1] == language for row in rows))
    print(len(rows), "rows,", sum(row[3] for row in marked), "held out")


def often_said() -> set[str]:
    """Words of four letters or more that are said often in speechocean762."""
    path = ear.SHARED / "data/training/speechocean762/words.jsonl"
    lines = path.read_text("utf-8").splitlines()
    said = collections.Counter(word for line in lines for word, *_ in json.loads(line)["words"])
    return {word for word, n in said.items() if n >= OFTEN and len(word) >= 4}


def is_held(text: str, sound: str, often: set[str]) -> bool:
    """Whether a word is held out, with all that sound the same."""
    digest = hashlib.sha256(sound.encode()).digest()
    share = HELD_REAL if text in often else HELD
    return int.from_bytes(digest[:4]) < 2**32 // share


if __name__ == "__main__":
    main(*sys.argv[1:])
