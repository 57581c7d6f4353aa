"""Measure what a voice misses if the built-in speller spells for it, beside espeak-ng.

    python training/typed/measure.py PHRASES ENGLISH

The words are the phrases and the English words of benchmarks/typed.py; the shipped speller knows
them. Each is taught by its text alone, by 16 clips of Kokoro, and tested on recordings of other
people, clean and in noise, as there. Words that both spell alike are spoken once.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import typed as benchmark
from wake_words import noise_under

from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.spotter.typed import CLIPS
from tapword.voices import espeak, speller
from tapword.voices.base import SpokenBy
from tapword.voices.kokoro import Kokoro, signs

# Taught as clips of native speakers.
SPOKEN = SpokenBy("kokoro", native=True)


def main() -> None:
    """Print the share missed of each word, and the means of both sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("phrases", type=Path)
    parser.add_argument("english", type=Path)
    parser.add_argument("--words", type=int, default=10, help="of English")
    parser.add_argument("--different", action="store_true", help="only words spelled differently")
    options = parser.parse_args()
    spotter, voice = Spotter(), Kokoro(threads=1)
    found: dict[str, list[np.ndarray]] = {"phrases": [], "english": []}
    for word, *asked in tested(spotter, options.phrases, options.english, options.words):
        shares: dict[str, np.ndarray] = {}
        spelled = [make.phonemes(word.text, word.language) for make in (espeak, speller)]
        if options.different and spelled[0] == spelled[1]:
            continue
        for phonemes in spelled:
            written = signs(phonemes, word.language)
            if written not in shares:
                said = voice.speak(word.text, word.language, CLIPS, phonemes=phonemes)
                spoken = spotter.encode([one.audio for one in said], learning=True)
                shares[written] = np.array([missed(spotter, spoken, one) for one in asked])
        row = np.array([shares[signs(phonemes, word.language)] for phonemes in spelled])
        found[word.set].append(row)
        show(word.name, row, *spelled)
    for name, rows in found.items() if not options.different else ():
        show(name, np.mean(rows, axis=0))


def tested(
    spotter: Spotter, phrases: Path, english: Path, n_words: int
) -> Iterator[tuple[benchmark.Word, Encoded, Encoded]]:
    """Yield the phrases and English words, with their recordings clean and in noise."""
    options = argparse.Namespace(phrases=phrases, english=english, arabic=Path(), words=n_words)
    noises = [
        np.concatenate(list(files.blocks(english / f"_background_noise_/{name}.wav")))
        for name in benchmark.NOISES
    ]
    noise = noise_under(60 * SAMPLE_RATE, noises, np.random.default_rng(0))
    for word in benchmark.words_of(options):
        if word.set != "arabic":
            clips, rng = benchmark.recordings(word), np.random.default_rng(1)
            noisy = [benchmark.in_noise(clip, noise, rng)[0] for clip in clips]
            yield word, spotter.encode(clips), spotter.encode(noisy)


def missed(empty: Spotter, taught: Encoded, asked: Encoded, synthetic: bool = True) -> float:
    """Percent of clips below the threshold of a word that is taught alone."""
    spotter = empty.copy()
    spotter.learn_encoded(taught, ["word"] * len(taught), SPOKEN if synthetic else None)
    scores = [one.words["word"] for one in spotter.score_encoded(asked)]
    return 100 * float(np.mean(np.array(scores) < spotter.thresholds()["word"]))


def show(name: str, row: np.ndarray, *spelled: str) -> None:
    """Print percents missed (2, 2): by espeak-ng and by the speller, clean and in noise."""
    (one, one_noisy), (other, other_noisy) = row
    print(
        f"{name}: espeak-ng {one:.1f} / {one_noisy:.1f}, built-in {other:.1f} / {other_noisy:.1f}",
        *spelled,
        flush=True,
    )


if __name__ == "__main__":
    main()
