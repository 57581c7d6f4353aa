"""Count how often running speech is taken for a word: where `thresholds.SOUNDS_PER_HOUR` is from.

    python training/alarm_rate.py TEXT DIR

TEXT is a text file, read aloud sentence by sentence by espeak-ng and flite (Debian's packages). DIR
is a Speech Commands folder; spotters are taught five of its words that TEXT does not hold, five
training clips each. The last column is how many single words an hour would score as often.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import soundfile
import soxr

from tapword import Detector, Spotter, registry
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.thresholds import SOUNDS_PER_HOUR, shipped_threshold

VOICES = [("flite", voice) for voice in ("slt", "rms", "awb", "kal16")]
VOICES += [("espeak-ng", voice) for voice in ("en-us", "en-gb", "en-us+f3", "en-gb+m4", "en-us+m7")]
SENTENCES, DRAWS, WORDS, SAMPLES = 420, 20, 5, 5
LIMITS = 0.5, 0.55, 0.6
# How voices read figures.
DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
PAUSE = np.zeros(4_800, dtype=np.float32)


class Remembering(Spotter):
    """Spotter that passes a window through the network only once, whatever it was taught."""

    known: ClassVar[dict[bytes, np.ndarray]] = {}

    def score_window(self, clip, thresholds=None):  # noqa: D102
        key = hashlib.sha256(clip.tobytes()).digest()
        if key not in self.known:
            self.known[key] = self.encoder.encode([clip])
        vectors = self.known[key]
        return None if self.encoder.is_noise(vectors)[0] else self.score_vectors(vectors)[0]


def read_aloud(text: str) -> np.ndarray:
    """Sentences of a text by voices in turn, at several levels, in a little noise."""
    sentences = [" ".join(part.split()) for part in re.split(r"(?<=[.;:])\s", text)]
    sentences = [part for part in sentences if 20 < len(part) < 300][:SENTENCES]
    pieces = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/said.wav"
        for index, sentence in enumerate(sentences):
            program, voice = VOICES[index % len(VOICES)]
            if program == "flite":
                command = ["flite", "-voice", voice, "-t", sentence, "-o", path]
            else:
                command = ["espeak-ng", "-v", voice, "-w", path, sentence]
            subprocess.run(command, check=True)
            audio, rate = soundfile.read(path, dtype="float32")
            pieces += [soxr.resample(audio, rate, SAMPLE_RATE) * 10 ** (-0.15 * (index % 5)), PAUSE]
    speech = np.concatenate(pieces)
    noise = np.random.default_rng(0).standard_normal(len(speech), dtype=np.float32)
    return np.clip(speech + 3e-4 * noise, -1, 1)


def main(text: str, root: str) -> None:
    """Print alarms an hour and word for several thresholds."""
    text = Path(text).read_text("utf-8")
    speech = read_aloud(text)
    hours = len(speech) / SAMPLE_RATE / 3600
    clips: dict[str, list[Path]] = {}
    for clip in registry.build("datasets", "speech_commands", root=root).clips("train"):
        clips.setdefault(clip.word, []).append(clip.path)
    said = set(re.findall("[a-z]+", text.lower()))
    free = sorted(set(clips) - said - (DIGITS if re.search("[0-9]", text) else set()))
    print(f"{hours:.2f} hours; words: {', '.join(free)}")
    alarms = {limit: [] for limit in LIMITS}
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        spotter = Remembering()
        for word in rng.choice(free, WORDS, replace=False):
            chosen = rng.choice(len(clips[word]), SAMPLES, replace=False)
            spotter.learn_many([clips[word][i] for i in chosen], [word] * SAMPLES)
        for limit, found in alarms.items():
            detector = Detector(spotter, thresholds=dict.fromkeys(spotter.words, limit))
            events = [
                event
                for start in range(0, len(speech), SAMPLE_RATE)
                for event in detector(speech[start : start + SAMPLE_RATE])
            ]
            found.append(len(events) / hours / WORDS)
    hashes = [one.sha256 for one in spotter.encoder.whitenings]
    rarities = np.linspace(0, 12, 1000)
    single = [shipped_threshold(hashes, SOUNDS_PER_HOUR * share) for share in np.exp(-rarities)]
    print("threshold, alarms an hour and word: mean, median; single words an hour")
    for limit, found in alarms.items():
        share = np.exp(-np.interp(limit, single, rarities))
        mean = np.mean(found)
        print(f"{limit:.2f}  {mean:.3f}  {np.median(found):.3f}  {mean / share:.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
