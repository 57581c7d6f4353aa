# ruff: noqa: RUF001, RUF002 (phonetic signs look like letters)
"""Kokoro-82M: a network that says phonemes, by 54 speakers and blends of them."""

import importlib.util
import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from tapword.audio import files
from tapword.errors import MissingExtra
from tapword.support import onnx_sessions
from tapword.voices import kokoro_files, spelling
from tapword.voices.base import Said, Unspeakable, Voice

RATE = 24_000
# Numbers of the network's signs: each text begins at the number before it.
_NUMBERED = {
    1: ";:,.!?", 9: '—…"()“”', 16: " \u0303ʣʥʦʨᵝꭧAI",
    31: "O", 33: "Q", 35: "ST", 39: "W", 41: "Yᵊabcdef",
    50: "hijklmnopqrstuvwxyzɑɐɒæ",
    75: "βɔɕç", 80: "ɖðʤə", 85: "ɚɛɜ", 90: "ɟ", 92: "ɡ", 99: "ɥ", 101: "ɨɪʝ", 110: "ɯɰŋɳɲɴø",
    118: "ɸθœ", 123: "ɹ", 125: "ɾɻ", 128: "ʁɽʂʃʈʧ", 135: "ʊʋ", 138: "ʌɣɤ", 142: "χʎ", 147: "ʒʔ",
    156: "ˈˌː", 162: "ʰ", 164: "ʲ", 169: "↓", 171: "→↗↘", 177: "ᵻ",
}  # fmt: skip
SIGNS = {sign: start + k for start, signs in _NUMBERED.items() for k, sign in enumerate(signs)}
# espeak-ng's signs -> those that the network learned for English, and for other languages.
ENGLISH_SIGNS = [
    ("aɪ", "I"), ("aʊ", "W"), ("dʒ", "ʤ"), ("eɪ", "A"), ("tʃ", "ʧ"), ("ɔɪ", "Y"),
    ("oʊ", "O"), ("əʊ", "Q"), ("ɜː", "ɜɹ"), ("ɚ", "əɹ"), ("r", "ɹ"), ("x", "k"),
    ("ç", "k"), ("ɐ", "ə"), ("ʔ", "t"), ("ɾ", "T"), ("ː", ""), ("e", "A"),
]  # fmt: skip
OTHER_SIGNS = [("dʒ", "ʤ"), ("tʃ", "ʧ"), ("ts", "ʦ"), ("dz", "ʣ"), ("g", "ɡ")]
# Sounds that the network has no sign for -> the nearest that it has. Others are left out.
NEAREST = {"ħ": "h", "ʕ": "ʔ", "ˤ": "", "ʉ": "u", "ɵ": "ø", "ɫ": "l", "ʀ": "ʁ", "ʏ": "y", "ɓ": "b"}
# First letter of a speaker's name -> its language.
NATIVE = {
    "a": "en", "b": "en", "e": "es", "f": "fr", "h": "hi", "i": "it", "j": "ja", "p": "pt",
    "z": "cmn",
}  # fmt: skip
# Range of speeds, of the native speaker's weight in a blend, and the share of clips that speakers
# of the language say unblended where there are enough of them. Choices.
SPEEDS, BLEND, PURE = (0.8, 1.25), (0.5, 0.8), 0.7
# More phonemes than a text of three seconds has.
MAX_SIGNS = 200


class Kokoro(Voice):
    """Kokoro-82M with 8 bits a weight, on the CPU: 54 speakers, any language that espeak-ng spells.

    Where espeak-ng is not installed, the built-in speller spells five languages.

    Its speakers are of nine languages; to other languages they bring an accent. One second of a
    core gives one clip. The network draws noise, so two clips of one speaker differ a little.

    Parameters
    ----------
    folder
        Where `tapword voices get` put its files; "": the default folder.
    threads
        Clips that are spoken at the same time; none: as many as there are cores, at most 4.
    """

    licence = "Apache-2.0 (its ONNX export: MIT)"
    takes_phonemes = True

    folder: str = ""
    threads: int | None = None

    def __post_init__(self) -> None:
        self._require_whole("threads", 1, 64, none=True)
        self._files = kokoro_files.Files(self.folder)

    def why_not(self, language: str, phonemes: str = "") -> str | None:
        """Say what is missing on this machine to speak a language; None: nothing."""
        if importlib.util.find_spec("onnxruntime") is None:
            return str(MissingExtra("voice kokoro", "onnxruntime", "voices"))
        spelled = None if phonemes else spelling.why_not(language)
        return self._files.why_not() or spelled

    def is_native(self, language: str) -> bool:
        """Whether its speakers are native speakers of a language."""
        return language.partition("-")[0] in NATIVE.values()

    def pronunciation(self, text: str, language: str) -> str:
        """Spell a text in IPA as it would be said."""
        return spelling.phonemes(text, language)

    def _speak(self, text: str, language: str, n: int, seed: int, phonemes: str) -> Iterator[Said]:
        spelled = phonemes or self.pronunciation(text, language)
        numbers = [SIGNS[sign] for sign in signs(spelled, language) if sign in SIGNS]
        if not numbers or len(numbers) > MAX_SIGNS:
            wanted = f"1 to {MAX_SIGNS} sounds that Kokoro knows"
            raise Unspeakable(f"{text!r} ({spelled}) must have {wanted}, got {len(numbers)}")
        rng = np.random.default_rng(seed)
        parts = cast(self._files.speakers, language, n, rng)
        speeds = np.exp(rng.uniform(np.log(SPEEDS[0]), np.log(SPEEDS[1]), size=n))

        def say(part: dict[str, float], speed: float) -> Said:
            return self._say(numbers, part, float(speed))

        workers = self.threads or min(os.cpu_count() or 1, 4)
        with ThreadPoolExecutor(workers) as pool:
            # A few clips ahead of the caller, who may stop.
            waiting = []
            for part, speed in zip(parts, speeds, strict=True):
                waiting.append(pool.submit(say, part, speed))
                if len(waiting) > 2 * workers:
                    yield waiting.pop(0).result()
            for one in waiting:
                yield one.result()

    @cached_property
    def _session(self) -> Any:
        return onnx_sessions.open_session(self._files.model(), 1, "voice kokoro", "voices")

    def _say(self, numbers: Sequence[int], part: dict[str, float], speed: float) -> Said:
        row = len(numbers) - 1
        style = sum(weight * self._files.style(name)[row][None] for name, weight in part.items())
        inputs = {
            "tokens": np.array([[0, *numbers, 0]], dtype=np.int64),
            "style": np.asarray(style, dtype=np.float32),
            "speed": np.array([speed], dtype=np.float32),
        }
        [audio] = self._session.run(None, inputs)
        audio = np.clip(np.ascontiguousarray(audio, dtype=np.float32), -1, 1)
        named = "+".join(
            name if weight == 1 else f"{name}*{weight:.2f}" for name, weight in part.items()
        )
        return Said(files.load(audio, RATE), named)


def signs(spelled: str, language: str) -> str:
    """Write espeak-ng's phonemes with the network's signs.

    Examples
    --------
    >>> signs("həlˈoʊ", "en-us")
    'həlˈO'
    """
    for old, new in ENGLISH_SIGNS if language.startswith("en") else OTHER_SIGNS:
        spelled = spelled.replace(old, new)
    return "".join(NEAREST.get(sign, sign) for sign in spelled)


def cast(
    speakers: Sequence[str], language: str, n: int, rng: np.random.Generator
) -> list[dict[str, float]]:
    """Choose who says each of `n` clips: speakers with their weights, which sum to 1.

    Native speakers alone come first, each once; then blends of a native speaker with any other. A
    language without native speakers is spoken by all.
    """
    base = language.partition("-")[0]
    native = [name for name in speakers if NATIVE.get(name[0]) == base] or list(speakers)
    native = [str(name) for name in rng.permutation(native)]
    others = [str(name) for name in rng.permutation(speakers)]
    alone = min(len(native), n if n < len(native) * PURE else max(round(PURE * n), 1))
    chosen = [{name: 1.0} for name in native[:alone]]
    blends = zip(itertools.cycle(native), itertools.cycle(others))
    while len(chosen) < n:
        one, other = next(blends)
        if one != other:
            weight = round(float(rng.uniform(*BLEND)), 2)
            chosen.append({one: weight, other: round(1 - weight, 2)})
    return chosen
