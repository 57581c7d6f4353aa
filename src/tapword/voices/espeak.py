"""espeak-ng as a program: phonemes of a text, and a synthetic voice of many languages.

espeak-ng is GPL-3. It runs as a separate process where it is installed; nothing of it is linked.
"""

import functools
import io
import re
import shutil
import subprocess
from collections.abc import Iterator

import numpy as np

from tapword.audio import files
from tapword.errors import InputError
from tapword.voices.base import Said, Unspeakable, Voice

PROGRAM = "espeak-ng"
INSTALL = "install espeak-ng (Debian: apt install espeak-ng; macOS: brew install espeak-ng)"
TIMEOUT_S = 20
# Variants of its speaker that come with it, and the range of speeds in words a minute and of pitch
# (0 to 99) around the defaults 175 and 50.
VARIANTS = ("", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4", "f5")
WORDS_PER_MINUTE, PITCH = (130, 210), (25, 75)


class Espeak(Voice):
    """The program espeak-ng where it is installed: over a hundred languages, a robot's voice.

    Examples
    --------
    >>> Espeak().name
    'espeak'
    """

    licence = "GPL-3.0 (a separate program)"

    def why_not(self, language: str, phonemes: str = "") -> str | None:
        """Say what is missing on this machine to speak a language; None: nothing."""
        return why_no_phonemes(language)

    def is_native(self, language: str) -> bool:
        """Whether its speakers are native speakers: a program has none."""
        return False

    def _speak(self, text: str, language: str, n: int, seed: int, phonemes: str) -> Iterator[Said]:
        rng = np.random.default_rng(seed)
        for k in range(n):
            variant = VARIANTS[k % len(VARIANTS)]
            name = f"{language}+{variant}" if variant else language
            speed, pitch = int(rng.integers(*WORDS_PER_MINUTE)), int(rng.integers(*PITCH))
            options = ["-v", name, "-s", str(speed), "-p", str(pitch), "--stdout"]
            content = _run([*options, "--", text])
            yield Said(_decoded(content), name)


def is_installed() -> bool:
    """Whether the program is on this machine."""
    return shutil.which(PROGRAM) is not None


def why_no_phonemes(language: str) -> str | None:
    """Say what is missing to turn a text of a language into phonemes; None: nothing."""
    if not is_installed():
        return f"the program {PROGRAM} is not installed; {INSTALL}"
    if not is_named(language):
        return f"no language is named {language!r}; {PROGRAM} --voices lists them"
    if language not in languages():
        return f"{PROGRAM} does not speak {language!r}; {PROGRAM} --voices lists its languages"
    return None


def is_named(language: str) -> bool:
    """Whether a language is written as names of languages are."""
    return re.fullmatch(r"[a-z]{2,4}(-[a-z0-9]{2,8})*", language) is not None


@functools.cache
def languages() -> frozenset[str]:
    """Languages of the installed program, with the short names it takes for some of them."""
    rows = [line.split() for line in _run(["--voices"]).decode("utf-8", "replace").splitlines()[1:]]
    found = {row[1] for row in rows if len(row) > 1}
    return frozenset(found | {name.partition("-")[0] for name in found})


def phonemes(text: str, language: str) -> str:
    """Spell a text in IPA, with stress marks, as the program pronounces it."""
    missing = why_no_phonemes(language)
    if missing is not None:
        raise Unspeakable(missing)
    found = _run(["-q", "--ipa", "--sep=", "-v", language, "--", text]).decode("utf-8", "replace")
    # Marks such as "(en)" say that a word is taken from another language; digits are tones.
    spelled = re.sub(r"\([a-z-]+\)|[\d_\u200d\u0361]", "", " ".join(found.split()))
    if not spelled:
        raise Unspeakable(f"{PROGRAM} finds no sounds in {text!r} ({language})")
    return spelled


def _decoded(content: bytes) -> np.ndarray:
    import soundfile

    # The program cannot know the length of a stream that it writes, so its header may lie.
    samples, rate = soundfile.read(io.BytesIO(content), dtype="float32")
    return files.load(np.ascontiguousarray(samples), rate)


def _run(arguments: list[str]) -> bytes:
    try:
        done = subprocess.run(
            [PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{PROGRAM} did not answer: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"{PROGRAM} failed: {said[0] if said else done.returncode}")
    return done.stdout
