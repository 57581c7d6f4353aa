"""How evenly listening spreads its CPU time over the chunks of a stream.

    python benchmarks/even.py [--seconds S] [--rounds N] [--speech FILE]

Detectors of five words, and of five words and two phrases, process silence, room noise and
continuous speech in chunks of 40 and 80 ms, on one thread. A chunk's time is the least of all
rounds, as other programs only add to it. The first two seconds are left out: they open the network.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import threadpoolctl
from streaming import RATE, SPEECH, WORDS, scenes

from tapword import Detector, Spotter
from tapword.assets import CLIPS
from tapword.audio.files import read

CHUNKS_MS = (40, 80)
PHRASES = (("coffee", "music"), ("stop", "window"))
VOICES, START_S = 5, 2.0
# Of the mean, and the share of chunks that should stay within it.
LIMIT, SHARE = 3, 0.999


def spotters() -> dict[str, Spotter]:
    """Teach a spotter of words, and one of words and phrases."""
    words, both = Spotter(), Spotter()
    voices = {word: [read(path) for path in _files(word)] for word in WORDS}
    for word, clips in voices.items():
        for spotter in (words, both):
            spotter.learn_many(clips, [word] * VOICES)
    for phrase in PHRASES:
        clips = [np.concatenate(parts) for parts in zip(*map(voices.get, phrase), strict=True)]
        both.learn_many(clips, [" ".join(phrase)] * VOICES)
    return {"five words": words, "and two phrases": both}


def _files(word: str) -> list[Path]:
    return sorted((CLIPS / word).glob("*_0.ogg"))[:VOICES]


def chunk_ms(spotter: Spotter, sound: np.ndarray, chunk: int, rounds: int) -> np.ndarray:
    """Milliseconds of CPU time for each chunk."""
    times = np.full(len(sound) // chunk, np.inf)
    detector = Detector(spotter)
    for _ in range(rounds):
        detector.reset()
        for index in range(len(times)):
            before = time.process_time()
            detector(sound[index * chunk : (index + 1) * chunk])
            times[index] = min(times[index], 1000 * (time.process_time() - before))
    return times[round(START_S * RATE / chunk) :]


def measure(seconds: float, rounds: int, speech: Path) -> list[dict]:
    """Measure each detector, sound and size of chunks."""
    records = []
    with threadpoolctl.threadpool_limits(1):
        for who, spotter in spotters().items():
            for scene, sound in scenes(seconds, speech).items():
                for ms in CHUNKS_MS:
                    times = chunk_ms(spotter, sound, ms * RATE // 1000, rounds)
                    mean = float(times.mean())
                    records.append(
                        {
                            "words": who,
                            "sound": scene,
                            "chunk_ms": ms,
                            "mean_ms": mean,
                            "largest": float(times.max()) / mean,
                            "at_share": float(np.quantile(times, SHARE)) / mean,
                            "over_percent": 100 * float((times > LIMIT * mean).mean()),
                            "largest_percent": 100 * float(times.max()) / ms,
                        }
                    )
    return records


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="length of each sound")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--speech", type=Path, default=SPEECH, help="continuous speech")
    options = parser.parse_args()
    print(
        f"| knows | sound | chunk ms | mean ms | {100 * SHARE:g}% of chunks, x mean | "
        f"largest, x mean | over {LIMIT} x mean | largest, % of the chunk |"
    )
    print("|---" * 8 + "|")
    for one in measure(options.seconds, options.rounds, options.speech):
        print(
            f"| {one['words']} | {one['sound']} | {one['chunk_ms']} | {one['mean_ms']:.3f} | "
            f"{one['at_share']:.1f} | {one['largest']:.1f} | {one['over_percent']:.2f}% | "
            f"{one['largest_percent']:.1f} |"
        )


if __name__ == "__main__":
    main()
