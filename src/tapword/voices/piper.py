"""Piper: voice files that the user has, one network each, for about forty languages.

Such a voice is a VITS network, NAME.onnx, with its settings in NAME.onnx.json. The file is run here
with onnxruntime. No package of Piper is imported, and espeak-ng runs as a separate program.
"""

import importlib.util
import json
import math
import os
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapword.audio import files
from tapword.errors import InputError, MissingExtra
from tapword.support import onnx_sessions
from tapword.voices import espeak
from tapword.voices.base import Said, Unspeakable, Voice, voices_folder

# Signs of the begin, the end, and the gap that follows every sign; a sequence has at most so many.
BEGIN, END, GAP = "^", "$", "_"
MAX_SIGNS = 400
# Unicode's kinds of letters that stand for a sound.
SOUNDS = ("Ll", "Lu", "Lo")
# Settings of the files that name none: noise, length of a sound, noise of these lengths.
SCALES = (0.667, 1.0, 0.8)
# Range of the speeds around a voice's own. A choice.
SPEEDS = (0.8, 1.25)
MAX_SETTINGS_BYTES, MAX_MODEL_BYTES = 1_000_000, 500_000_000
MAX_SPEAKERS = 10_000
RATES = (8000, 48_000)


class Settings(NamedTuple):
    """What NAME.onnx.json says of a voice.

    `spelled` says whether it speaks espeak-ng's phonemes; otherwise it speaks letters.
    """

    language: str
    spelled: bool
    rate: int
    numbers: dict[str, list[int]]
    scales: tuple[float, float, float]
    speakers: list[str]


class Piper(Voice):
    """A Piper voice that you downloaded: speakers of its language, from espeak-ng's phonemes.

    Parameters
    ----------
    path
        NAME.onnx with NAME.onnx.json beside it, or a folder of such files, all of which speak if
        they know the language; "": `tapword/voices/piper` in the user's data folder.
    """

    licence = "that of the voice file, in its MODEL_CARD"
    takes_phonemes = True

    path: str = ""

    @property
    def _place(self) -> Path:
        return Path(self.path) if self.path else voices_folder() / "piper"

    @cached_property
    def _settings(self) -> dict[Path, Settings]:
        place = self._place
        found = sorted(place.glob("*.onnx")) if place.is_dir() else [place]
        return {path: read_settings(path) for path in found if path.is_file()}

    def _speaking(self, language: str) -> dict[Path, Settings]:
        """Find the files that speak a language: those of its region, or else of any."""
        base = _base(language)
        fitting = {p: one for p, one in self._settings.items() if _base(one.language) == base}
        regional = {p: one for p, one in fitting.items() if one.language == language}
        return regional or fitting

    def is_native(self, language: str) -> bool:
        """Whether its speakers are native speakers of a language."""
        return bool(self._speaking(language))

    def why_not(self, language: str, phonemes: str = "") -> str | None:
        """Say what is missing on this machine to speak a language; None: nothing."""
        if importlib.util.find_spec("onnxruntime") is None:
            return str(MissingExtra("voice piper", "onnxruntime", "voices"))
        try:
            known = self._settings
        except InputError as error:
            return str(error)
        if not known:
            return (
                f"no voice file is at {self._place}; download NAME.onnx and NAME.onnx.json of a "
                "Piper voice, and put both there"
            )
        speaking = self._speaking(language)
        if not speaking:
            spoken = ", ".join(sorted({one.language for one in known.values()}))
            return f"the voice files at {self._place} speak {spoken}, not {language!r}"
        if phonemes or not any(one.spelled for one in speaking.values()):
            return None
        return espeak.why_no_phonemes(language)

    def pronunciation(self, text: str, language: str) -> str:
        """Spell a text in IPA as it would be said."""
        return espeak.phonemes(text, language)

    def _speak(self, text: str, language: str, n: int, seed: int, phonemes: str) -> Iterator[Said]:
        rng = np.random.default_rng(seed)
        speaking = self._speaking(language)
        parts = [(path, k) for path, one in speaking.items() for k in range(len(one.speakers))]
        order = rng.permutation(len(parts))
        spelled = phonemes
        if not spelled and any(one.spelled for one in speaking.values()):
            spelled = espeak.phonemes(text, language)
        numbers = {
            path: sign_numbers(spelled if one.spelled else text, one)
            for path, one in speaking.items()
        }
        sessions: dict[Path, Any] = {}
        for k in range(n):
            path, speaker = parts[order[k % len(parts)]]
            if path not in sessions:
                sessions[path] = _open(path)
            noise, length, noise_of_lengths = speaking[path].scales
            speed = math.exp(rng.uniform(math.log(SPEEDS[0]), math.log(SPEEDS[1])))
            scales = (noise, length / speed, noise_of_lengths)
            audio = _run(sessions[path], path, numbers[path], scales, speaker)
            name = speaking[path].speakers[speaker]
            yield Said(files.load(audio, speaking[path].rate), f"{path.stem} {name}".strip())


def read_settings(model: Path) -> Settings:
    """Read and check the settings beside a voice file."""
    path = model.with_name(f"{model.name}.json")
    try:
        if path.stat().st_size > MAX_SETTINGS_BYTES:
            raise InputError(f"{path} is larger than {MAX_SETTINGS_BYTES:,} bytes")
        value = json.loads(path.read_text(encoding="utf-8"))
        numbers = {
            str(sign): [int(number) for number in own]
            for sign, own in value["phoneme_id_map"].items()
        }
        own = value.get("inference", {})
        names = ("noise_scale", "length_scale", "noise_w")
        noise, length, noise_of_lengths = (
            float(own.get(name, usual)) for name, usual in zip(names, SCALES, strict=True)
        )
        n_speakers, rate = int(value["num_speakers"]), int(value["audio"]["sample_rate"])
        named = {int(k): str(name) for name, k in (value.get("speaker_id_map") or {}).items()}
        language = str(value["espeak"]["voice"]).lower()
        spelled = value.get("phoneme_type", "espeak") == "espeak"
    except OSError as error:
        raise InputError(f"{model} needs {path.name} beside it: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not the settings of a Piper voice: {error!r}") from error
    scales = (noise, length, noise_of_lengths)
    if (
        not {BEGIN, END, GAP} <= numbers.keys()
        or not 0 < n_speakers <= MAX_SPEAKERS
        or not RATES[0] <= rate <= RATES[1]
        or not all(0 <= scale <= 10 for scale in scales)
        or not length
    ):
        raise InputError(f"{path} is not the settings of a Piper voice")
    speakers = [named.get(k, "" if n_speakers == 1 else str(k)) for k in range(n_speakers)]
    return Settings(language, spelled, rate, numbers, scales, speakers)


def sign_numbers(spelled: str, settings: Settings) -> list[int]:
    """Turn the signs of a text into numbers, each with a gap after it; leave unknown ones out."""
    signs = unicodedata.normalize("NFD", spelled if settings.spelled else spelled.lower())
    known = [settings.numbers[sign] for sign in signs if sign in settings.numbers]
    # Stress marks are letters of their own kind.
    sounds = any(s in settings.numbers and unicodedata.category(s) in SOUNDS for s in signs)
    if not sounds or len(known) > MAX_SIGNS:
        found = len(known) if sounds else "none"
        wanted = f"1 to {MAX_SIGNS} sounds that the voice knows"
        raise Unspeakable(f"{spelled!r} must have {wanted}, got {found}")
    gap = settings.numbers[GAP]
    numbers = [*settings.numbers[BEGIN], *gap]
    for own in known:
        numbers += [*own, *gap]
    return [*numbers, *settings.numbers[END]]


def _base(language: str) -> str:
    return language.partition("-")[0]


def _open(path: Path) -> Any:
    if path.stat().st_size > MAX_MODEL_BYTES:
        raise InputError(f"{path} is larger than {MAX_MODEL_BYTES:,} bytes")
    threads = min(os.cpu_count() or 1, 4)
    try:
        # By content: such a network cannot refer to other files.
        return onnx_sessions.open_session(path.read_bytes(), threads, "voice piper", "voices")
    except MissingExtra:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a Piper voice: {_line(error)}") from error


def _run(
    session: Any, path: Path, numbers: list[int], scales: tuple[float, float, float], speaker: int
) -> np.ndarray:
    inputs = {
        "input": np.array([numbers], dtype=np.int64),
        "input_lengths": np.array([len(numbers)], dtype=np.int64),
        "scales": np.array(scales, dtype=np.float32),
    }
    if any(one.name == "sid" for one in session.get_inputs()):
        inputs["sid"] = np.array([speaker], dtype=np.int64)
    try:
        audio = session.run(None, inputs)[0]
    except Exception as error:
        raise InputError(f"{path} is not a Piper voice: {_line(error)}") from error
    samples = np.ascontiguousarray(np.ravel(audio), dtype=np.float32)
    if not len(samples) or not np.isfinite(samples).all():
        raise InputError(f"{path} is not a Piper voice: it gives no sound")
    return np.clip(samples, -1, 1)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
