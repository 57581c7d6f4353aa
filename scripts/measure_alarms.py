"""Count how often running speech is taken for a word: where `rejection.SOUNDS_PER_HOUR` is from.

    python scripts/measure_alarms.py TEXT DIR

TEXT is a text file, read aloud sentence by sentence by espeak-ng and flite (Debian's packages). DIR
is a Speech Commands folder; spotters are taught five of its words that TEXT does not hold, five
training clips each. The last column is how many single words an hour would score as often.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile
import soxr

from tapword import Detector, Spotter, registry, rejection
from tapword.audio import SAMPLE_RATE

VOICES = [("flite", voice) for voice in ("slt", "rms", "awb", "kal16")]
VOICES += [("espeak-ng", voice) for voice in ("en-us", "en-gb", "en-us+f3", "en-gb+m4", "en-us+m7")]
SENTENCES, DRAWS, WORDS, SAMPLES = 420, 60, 5, 5
PAUSE = np.zeros(4_800, dtype=np.float32)


class Collector(Spotter):
    """Spotter that keeps the windows it is asked about."""

    def score_window(self, clip, thresholds):  # noqa: D102
        self.windows.append(clip)
        return dict.fromkeys(self.learner.words, -1.0)


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
    collector = Collector()
    collector.windows = []
    collector.learn(speech[:SAMPLE_RATE], "anything")
    detector = Detector(collector)
    for start in range(0, len(speech), SAMPLE_RATE):
        detector(speech[start : start + SAMPLE_RATE])
    heard = np.concatenate([collector.front.pool([clip]) for clip in collector.windows])
    clips: dict[str, list[Path]] = {}
    for clip in registry.build("datasets", "speech_commands", root=root).clips("train"):
        clips.setdefault(clip.word, []).append(clip.path)
    free = sorted(set(clips) - set(re.findall("[a-z]+", text.lower())))
    scores = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        spotter = Spotter()
        for word in rng.choice(free, WORDS, replace=False):
            chosen = rng.choice(len(clips[word]), SAMPLES, replace=False)
            spotter.learn_many([clips[word][i] for i in chosen], [word] * SAMPLES)
        scores.append(spotter.learner.scores(heard))
    print(f"{hours:.2f} hours, asked {len(heard) / hours / 3600:.1f} times a second")
    hashes = [prior.sha256 for prior in collector.priors]
    print("threshold, alarms an hour and word: mean, median; single words an hour")
    for limit in (0.4, 0.45, 0.5, 0.55, 0.6):
        rates = np.concatenate([(drawn >= limit).sum(axis=0) for drawn in scores]) / hours
        rarities = np.linspace(0, 12, 1000)
        single = [
            rejection.threshold(hashes, rejection.SOUNDS_PER_HOUR * share)
            for share in np.exp(-rarities)
        ]
        share = np.exp(-np.interp(limit, single, rarities))
        mean, median = np.mean(rates), np.median(rates)
        print(f"{limit:.2f}  {mean:.3f}  {median:.3f}  {mean / share:.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
