# ruff: noqa: RUF001 (phonetic signs look like letters)
"""The words and phrases that are synthesised for training, and their phonemes.

    python training/ear/words.py VOCABULARY.json WORDS.json SEED [BEFORE.json]

VOCABULARY.json is Kokoro's own (sign -> number). Written is a list of [text, language, numbers],
one row for each thing to say. Words come from permissive lists alone: Debian's wamerican-small
(SCOWL), Faker's words, names and towns in many languages (MIT), the words of speechocean762 (CC
BY 4.0), and mixtures of their sounds that are no word at all. espeak-ng turns them into sounds.

BEFORE.json is the list of an earlier run: its rows stay where they are, since they are the labels
of its checkpoint, and new ones follow.

Left out, so that they stay a test: what sounds like a word of Speech Commands or like a phrase that
the project is measured by, in any language, alone or within a phrase. Rows of an earlier list that
do are kept with no sounds, and so never spoken.
"""

import importlib
import json
import random
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

from tapword.voices.kokoro import ENGLISH_SIGNS, OTHER_SIGNS

_ABOVE = Path(__file__).resolve().parents
SHARED = next((p / "shared" for p in _ABOVE if (p / "shared/data").is_dir()), Path("shared"))
DICTIONARY = Path("/usr/share/dict/american-english-small")
# Language of espeak-ng -> Faker's locale, and how many words of it.
LANGUAGES = {
    "de": ("de_DE", 900),
    "fr-fr": ("fr_FR", 900),
    "es": ("es_ES", 900),
    "it": ("it_IT", 800),
    "pt-br": ("pt_BR", 400),
    "hi": ("hi_IN", 400),
    "cmn": ("zh_CN", 400),
    "pl": ("pl_PL", 500),
    "nl": ("nl_NL", 500),
    "ru": ("ru_RU", 400),
    "tr": ("tr_TR", 400),
    "cs": ("cs_CZ", 500),
    "sv": ("sv_SE", 400),
    "da": ("da_DK", 300),
    "nb": ("no_NO", 300),
    "fi": ("fi_FI", 300),
    "hu": ("hu_HU", 300),
    "ro": ("ro_RO", 300),
    "hr": ("hr_HR", 300),
    "uk": ("uk_UA", 300),
    "bg": ("bg_BG", 200),
    "el": ("el_GR", 300),
    "id": ("id_ID", 300),
    "sk": ("sk_SK", 200),
    "lt": ("lt_LT", 200),
    "lv": ("lv_LV", 200),
    "et": ("et_EE", 200),
    "vi": ("vi_VN", 200),
    "sw": ("sw", 200),
}
ENGLISH, MIXED, PHRASES = 6_000, 1_500, 2_200
# Words of Speech Commands, and those of the phrases that the project is measured by.
_LEFT_OUT = (
    "yes no up down left right on off stop go zero one two three four five six seven eight nine "
    "bed bird cat dog happy house marvin sheila tree wow backward forward follow learn visual "
    "alexa jarvis computer snowboy smart mirror view glass porcupine bumblebee americano"
)
TESTS = set(_LEFT_OUT.split())
# Signs that count as one where words are compared by sound; nothing: the sign is passed over.
_ALIKE = {
    "I": "ai", "W": "au", "A": "ei", "O": "ou", "Q": "ou", "Y": "oi", "ʤ": "dʒ", "ʧ": "tʃ",
    "ʦ": "ts", "ʣ": "dz", "T": "t", "ʔ": "t", "ɾ": "r", "ɹ": "r", "ʁ": "r", "ɡ": "g", "ɫ": "l",
    "ɪ": "i", "ᵻ": "i", "y": "i", "ʊ": "u", "ɛ": "e", "æ": "e", "ɑ": "a", "ɒ": "a", "ɔ": "o",
    "ɐ": "ə", "ʌ": "ə", "ɜ": "ə", "ˈ": "", "ˌ": "", "ː": "", "ʲ": "", "ʰ": "",
}  # fmt: skip
WISHES = [
    "switch to", "bring", "put away", "open", "close", "start", "play", "pause", "show me",
    "dim", "call", "find", "lock", "unlock", "raise", "lower",
]  # fmt: skip
THINGS = [
    "the kitchen lights", "the bedroom lamp", "the garage door", "the coffee machine",
    "the television", "the radio", "my alarm", "the heating", "the curtains", "the window",
    "the fan", "some music", "the news", "the weather", "my sister", "the front door",
    "the oven", "the garden hose", "the vacuum cleaner", "the camera", "the washing machine",
    "a timer", "the shopping list", "the next song",
]  # fmt: skip
GREETINGS = [
    "hey", "hello", "okay", "hi", "good morning", "dear", "listen",
]  # fmt: skip
# Text, language, and the numbers of its sounds.
Row = tuple[str, str, list[int]]


def main(vocabulary: str, target: str, seed: str = "0", before: str = "") -> None:
    """Write the list."""
    known = json.loads(Path(vocabulary).read_text("utf-8"))
    known = known.get("vocab", known)
    rng = random.Random(int(seed))
    tests = {sound(one) for one in speak(sorted(TESTS), "en-us")}
    sign = {number: name for name, number in known.items()}
    rows: list[Row] = []
    heard: set[str] = set()
    if before:
        rows = [(*row,) for row in json.loads(Path(before).read_text("utf-8"))]
        for row in rows:
            sounds = "".join(sign[number] for number in row[2])
            heard.add(sound(sounds))
            if like(sounds, tests):
                print("left out:", *row[:2])
                row[2].clear()
    old = {row[0] for row in rows}
    texts = {"en-us": english(rng, old) + phrases(rng, old)}
    for language, (locale, count) in LANGUAGES.items():
        texts[language] = words_of(locale, count, rng, old)
    first = len(rows)
    for language, words in texts.items():
        for text, sounds in zip(words, speak(words, language), strict=True):
            numbers = [known[one] for one in sounds if one in known]
            # Words with the same phonemes count once.
            key = sound(sounds)
            if len(key) >= 3 and key not in heard and not like(sounds, tests):
                heard.add(key)
                rows.append((text, language, numbers))
    for row in mixtures(rows[first:], rng):
        sounds = "".join(sign[number] for number in row[2])
        if not like(sounds, tests):
            rows.append(row)
    Path(target).write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    for language in sorted({row[1] for row in rows}):
        some = [row[0] for row in rows[first:] if row[1] == language]
        print(language, len(some), some[:6])
    print(len(rows), "rows")


def sound(sounds: str) -> str:
    """Phonemes of a text in the form for comparison."""
    return "".join(_ALIKE.get(sign, sign) for sign in sounds)


def like(sounds: str, tests: set[str]) -> bool:
    """Whether the text, or a word of it, sounds like one of the test set."""
    return any(sound(word) in tests for word in [sounds, *sounds.split()])


def english(rng: random.Random, old: set[str]) -> list[str]:
    """Words of the dictionary and of speechocean762."""
    lines = DICTIONARY.read_text("utf-8").split()
    words = [w for w in lines if re.fullmatch("[a-z]{3,12}", w) and w not in TESTS | old]
    said = (SHARED / "data/training/speechocean762/words.jsonl").read_text("utf-8").splitlines()
    real = {word for line in said for word, _, _ in json.loads(line)["words"]}
    real = {word for word in real if len(word) > 1 and word not in TESTS}
    return sorted((real - old) | set(rng.sample(words, min(ENGLISH, len(words)))))


def phrases(rng: random.Random, old: set[str]) -> list[str]:
    """Commands, greetings and plain sequences of two to five words."""
    names = list(importlib.import_module("faker.providers.person.en_US").Provider.first_names)
    words = [
        w
        for w in DICTIONARY.read_text("utf-8").split()
        if re.fullmatch("[a-z]{3,9}", w) and w not in TESTS
    ]
    made = {f"{wish} {thing}" for wish in WISHES for thing in THINGS if rng.random() < 0.6}
    made |= {f"{rng.choice(GREETINGS)} {rng.choice(names)}" for _ in range(400)}
    while len(made) < PHRASES:
        made.add(" ".join(rng.choices(words, k=rng.choice((2, 2, 3, 3, 4)))))
    return sorted(made - old)


def words_of(locale: str, count: int, rng: random.Random, old: set[str]) -> list[str]:
    """Words, names and towns of a language."""
    found: set[str] = set()
    for room, names in (
        ("lorem", ("word_list",)),
        ("person", ("first_names", "last_names")),
        ("address", ("cities", "countries")),
    ):
        try:
            provider = importlib.import_module(f"faker.providers.{room}.{locale}").Provider
        except ModuleNotFoundError:
            continue
        for name in names:
            found |= {str(word) for word in getattr(provider, name, None) or ()}
    found = {
        unicodedata.normalize("NFC", word)
        for word in found
        if re.fullmatch(r"[^\W\d_](?:[^\W\d_]|\s|[\u0900-\u0963])*", word)
    }
    words = sorted(word for word in found - old if len(word) <= 14)
    return rng.sample(words, min(count, len(words)))


def speak(texts: list[str], language: str) -> list[str]:
    """Phonemes of each text with the voice's symbols, by espeak-ng."""
    return [signs(sounds, language) for sounds in spell(texts, language)]


def spell(texts: list[str], language: str) -> list[str]:
    """Phonemes of each text in IPA, by espeak-ng."""
    result = []
    for start in range(0, len(texts), 500):
        some = texts[start : start + 500]
        # A full stop and an empty line separate texts.
        given = ".\n\n".join(some) + "."
        command = ["espeak-ng", "-q", "--ipa", "--sep=", "-v", language]
        said = subprocess.run(
            command, input=given, capture_output=True, text=True, check=True
        ).stdout
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        if len(lines) != len(some):
            lines = [
                subprocess.run([*command, text], capture_output=True, text=True, check=True)
                .stdout.strip()
                .replace("\n", " ")
                for text in some
            ]
        result += [re.sub(r"\([a-z-]+\)|[\d_\u200d\u0361]", "", line) for line in lines]
    return result


def signs(sounds: str, language: str) -> str:
    """Write espeak-ng's phonemes with the voice's symbols."""
    for old, new in ENGLISH_SIGNS if language.startswith("en") else OTHER_SIGNS:
        sounds = sounds.replace(old, new)
    return sounds


def mixtures(rows: list[Row], rng: random.Random) -> list[Row]:
    """Invented words: the beginning of one and the end of another."""
    single = [row for row in rows if " " not in row[0]]
    made: list[Row] = []
    while len(made) < MIXED:
        (a, _, x), (b, _, y) = rng.sample(single, 2)
        numbers = x[: len(x) // 2] + y[len(y) // 2 :]
        if 4 <= len(numbers) <= 14:
            made.append((f"{a}+{b}", "mixed", numbers))
    return made


if __name__ == "__main__":
    main(*sys.argv[1:])
