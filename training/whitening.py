"""Compute the whitening and the cohort that the package ships.

    python training/whitening.py SPEECHOCEAN CALL...

SPEECHOCEAN is the folder of speechocean762 (see speechocean.py), each CALL a recording of phone
calls. It writes assets/whitening/, one file per backbone: how the vectors of a word vary, and the
cohort, vectors of windows of running speech, half from each source: windows of a second for words,
longer ones for phrases. Where a backbone streams, they are pooled from the frames of their
recordings. It writes no recording and no word.
"""

import argparse
import collections
from pathlib import Path

import numpy as np
from places import Place, encode, place
from speechocean import SHORTEST_PHRASE_S, phrases, tokens

from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.segmenter import WINDOW, Segmenter
from tapword.spotter import presets
from tapword.spotter.encoder import group_lengths
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import MAX_S
from tapword.spotter.whitening import Whitening, vector_kind

SOURCE = "speechocean762 (J. Zhang et al., CC BY 4.0), words that are said three times or more"
ASSETS = Path(__file__).parent.parent / "src" / "tapword" / "assets"
# Vectors that need no whitening, as they were trained for comparison; see docs/backbones.md.
SCALED = ("tapword_ear",)
# How much of the cohort is taken off, where that is not as for size small, and the offset and slope
# of the thresholds' line (training/cohort.py).
SHARES: dict[str, dict[str, object]] = {
    "speech_embedding": {"share": 0.5},
    "tapword_ear": {"reach": [0.22, 0.0374]},
}
# Fewest clips of a word, and most clips that are used.
LEAST, MOST = 3, 12
# Samples that a segmenter gets at once.
BLOCK = 10 * SAMPLE_RATE
# Windows of the cohort from each source: of a second, and longer.
WINDOWS, PHRASES = 500, 300


def main() -> None:
    """Write a file for each backbone of the presets, and for speech_embedding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speechocean", type=Path)
    parser.add_argument("calls", nargs="+", metavar="call")
    options = parser.parse_args()
    speechocean, calls = options.speechocean, options.calls
    rng = np.random.default_rng(0)
    said = list(tokens(speechocean))
    among = [said[row].among for row in rng.choice(len(said), WINDOWS, replace=False)]
    heard = [window for call in calls for window in windows(call)]
    cohort = among + [heard[row] for row in rng.choice(len(heard), WINDOWS, replace=False)]
    # A separate generator, so the windows above stay the same.
    apart = np.random.default_rng(1)
    longer = list(phrases(speechocean, apart))
    longer = [longer[row] for row in apart.choice(len(longer), PHRASES, replace=False)]
    found = [segment for call in calls for segment in segments(call, apart)]
    longer += [found[row] for row in apart.choice(len(found), PHRASES, replace=False)]
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
    for preset in (*presets.PRESETS.values(), presets.EMBEDDING):
        for name, pooling in zip(preset.backbones, preset.poolings, strict=True):
            if name in done:
                continue
            done.add(name)
            spotter = Spotter(name, pooling, "ncm", align=preset.align)
            [part] = spotter.encoder.parts
            own = spotter.encoder.backbones[0].name
            about = (
                vector_kind(*part, align=preset.align) | {"source": SOURCE} | SHARES.get(own, {})
            )
            make = Whitening.scale if own in SCALED else Whitening.fit
            made = make(encode(spotter, clips), words, group_lengths(*part), about)
            made.set_cohort(encode(spotter, cohort), encode(spotter, longer))
            path = ASSETS / "whitening" / f"{own}.safetensors"
            made.save(path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {made.within}", flush=True)


def windows(path: str) -> list[Place]:
    """Windows of a recording that a detector would score."""
    segmenter, found = Segmenter(), []
    sound = np.concatenate(list(files.blocks(path)))
    for start in range(0, len(sound), BLOCK):
        segmenter.push(sound[start : start + BLOCK])
        found += [Place(sound, one.start, WINDOW) for one in segmenter.windows() if one.loud]
    return found


def segments(path: str, rng: np.random.Generator) -> list[Place]:
    """Segments of a recording around its loud parts, of any length that a phrase may have."""
    segmenter, found = Segmenter(), []
    sound = np.concatenate(list(files.blocks(path)))
    segmenter.push(sound)
    for one in segmenter.windows():
        if one.loud:
            length_s = float(np.exp(rng.uniform(np.log(SHORTEST_PHRASE_S), np.log(MAX_S))))
            start_s = one.centre / SAMPLE_RATE - length_s * float(rng.uniform(0.2, 0.8))
            found.append(place(sound, start_s, start_s + length_s))
    return found


if __name__ == "__main__":
    main()
