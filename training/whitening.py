"""Compute the whitening and the cohort that the package ships.

    python training/whitening.py SPEECHOCEAN CALL... [--campaigns FILE --apart CALL...]
        [--speech FILE ...] [--only BACKBONE]

SPEECHOCEAN is the folder of speechocean762 (see speechocean.py), each CALL a recording of phone
calls, without the campaigns that are also in those of --apart (see cohort.py). It writes
assets/whitening/, one file per backbone: how the vectors of a word vary, and the cohort, vectors of
windows of running speech from the sentences of SPEECHOCEAN, the calls and each recording of
`--speech`: windows of a second for words, longer ones for phrases. Where a backbone streams, they
are pooled from the frames of their recordings. It writes no recording and no word.

`ear_s` was made with Urdu, Russian and German speech, and without campaigns of tests (README.md has
the commands); the others with sentences and whole calls.
"""

import argparse
import collections
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from places import Place, encode, place, recordings
from speechocean import SHORTEST_PHRASE_S, phrases, tokens

from tapword.audio.files import SAMPLE_RATE
from tapword.listening.segmenter import WINDOW, Segmenter
from tapword.spotter import presets
from tapword.spotter.encoder import group_lengths
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import MAX_S
from tapword.spotter.whitening import (
    LINE_KEY,
    NEAREST_KEY,
    WEIGHT_KEY,
    Whitening,
    vector_kind,
)

SOURCE = "speechocean762 (J. Zhang et al., CC BY 4.0), words that are said three times or more"
ASSETS = Path(__file__).parent.parent / "src" / "tapword" / "assets"
# Vectors that need no whitening, as they were trained for comparison; see docs/backbones.md.
SCALED = ("ear_s", "tapword_ear")
# How scores are normalised, and the line of thresholds, where they are not the defaults of `cohort`
# and `thresholds`. training/cohort.py prints the lines; docs/choices.md has the others.
NORMALIZED: dict[str, dict[str, object]] = {
    "ear_s": {WEIGHT_KEY: 1.0, NEAREST_KEY: 30, LINE_KEY: [0.139, 0.033, 0.7, 0.0005, 0.002]},
    "speech_embedding": {WEIGHT_KEY: 0.5},
    "tapword_ear": {LINE_KEY: [0.22, 0.0374]},
}
# Fewest clips of a word, and most clips that are used.
LEAST, MOST = 3, 12
# Samples that a segmenter gets at once.
BLOCK = 10 * SAMPLE_RATE
# Windows of the cohort from the sentences, from the calls, and from each other recording: of a
# second, and longer.
WINDOWS, PHRASES = (500, 500, 200), (300, 300, 100)


def main() -> None:
    """Write a file for each backbone of the presets, and for speech_embedding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speechocean", type=Path)
    parser.add_argument("calls", nargs="+", metavar="call", type=Path)
    parser.add_argument("--campaigns", type=Path, metavar="FILE")
    parser.add_argument("--apart", nargs="+", default=[], metavar="CALL")
    parser.add_argument("--speech", nargs="+", default=[], type=Path, metavar="FILE")
    parser.add_argument("--only", metavar="BACKBONE", help="write this file alone")
    options = parser.parse_args()
    speechocean = options.speechocean
    sources = [recordings(options.calls, options.campaigns, options.apart)]
    sources += [recordings([path]) for path in options.speech]
    rng = np.random.default_rng(0)
    said = list(tokens(speechocean))
    cohort = drawn([one.among for one in said], WINDOWS[0], rng)
    for sounds, count in zip(sources, shares(WINDOWS), strict=False):
        cohort += drawn([window for sound in sounds for window in windows(sound)], count, rng)
    # A separate generator, so the windows above stay the same.
    apart = np.random.default_rng(1)
    longer = drawn(list(phrases(speechocean, apart)), PHRASES[0], apart)
    for sounds, count in zip(sources, shares(PHRASES), strict=False):
        found = [segment for sound in sounds for segment in segments(sound, apart)]
        longer += drawn(found, count, apart)
    counts = collections.Counter(one.word for one in said)
    taken: collections.Counter[str] = collections.Counter()
    chosen = []
    for one in said:
        if counts[one.word] >= LEAST and taken[one.word] < MOST:
            taken[one.word] += 1
            chosen.append(one)
    print(
        f"{len(chosen)} tokens of {len(taken)} words, {len({one.speaker for one in chosen})} people"
    )
    words = [one.word for one in chosen] * 2
    clips = [one.alone for one in chosen] + [one.among for one in chosen]
    done = set()
    for preset in (*presets.PRESETS.values(), presets.EARLIER, presets.EMBEDDING):
        for name, pooling in zip(preset.backbones, preset.poolings, strict=True):
            if name in done or options.only not in (None, name):
                continue
            done.add(name)
            spotter = Spotter(name, pooling, "ncm", align=preset.align)
            [part] = spotter.encoder.parts
            own = spotter.encoder.backbones[0].name
            about = (
                vector_kind(*part, align=preset.align)
                | {"source": SOURCE}
                | NORMALIZED.get(own, {})
            )
            make = Whitening.scale if own in SCALED else Whitening.fit
            made = make(encode(spotter, clips), words, group_lengths(*part), about)
            made.set_cohort(encode(spotter, cohort), encode(spotter, longer))
            path = ASSETS / "whitening" / f"{own}.safetensors"
            made.save(path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {made.within}", flush=True)


def shares(counts: tuple[int, ...]) -> Iterator[int]:
    """How many places are drawn from each recording of speech: calls first, then the others."""
    return itertools.chain(counts[1:], itertools.repeat(counts[-1]))


def drawn(places: list[Place], count: int, rng: np.random.Generator) -> list[Place]:
    """Draw some of the places."""
    return [places[row] for row in rng.choice(len(places), count, replace=False)]


def windows(sound: np.ndarray) -> list[Place]:
    """Windows of a recording that a detector would score."""
    segmenter, found = Segmenter(), []
    for start in range(0, len(sound), BLOCK):
        segmenter.push(sound[start : start + BLOCK])
        found += [Place(sound, one.start, WINDOW) for one in segmenter.windows() if one.loud]
    return found


def segments(sound: np.ndarray, rng: np.random.Generator) -> list[Place]:
    """Segments of a recording around its loud parts, of any length that a phrase may have."""
    segmenter, found = Segmenter(), []
    segmenter.push(sound)
    for one in segmenter.windows():
        if one.loud:
            length_s = float(np.exp(rng.uniform(np.log(SHORTEST_PHRASE_S), np.log(MAX_S))))
            start_s = one.centre / SAMPLE_RATE - length_s * float(rng.uniform(0.2, 0.8))
            found.append(place(sound, start_s, start_s + length_s))
    return found


if __name__ == "__main__":
    main()
