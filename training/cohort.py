"""Fit the line of thresholds to the alarms that a detector would give in running speech.

    python training/cohort.py SIZE SPEECHOCEAN CALL... [--campaigns FILE --apart CALL...]
        [--sentences] [--speech FILE ...] [--spoken] [--directions N]

SIZE is a preset, or a backbone with its own parts (speech_embedding); SPEECHOCEAN and each CALL are
as for training/whitening.py. FILE says which recorded message lies where in the calls, and its
campaign; campaigns that are also in calls of --apart are left out, so neither what is tested nor
the cohort has them. With `--sentences`, every eighth sentence of speechocean762 is searched, too,
for words that none of these has: one in ten gave the cohort a window. They count as much as all
calls together, and so does each recording of `--speech`.

Words of speechocean762 that calls hardly ever say are taught by five people each and searched for.
With `--spoken`, so are clips of these words, and of words of other languages, each said alone by
twelve voices of Kokoro; they count as much. The line of `ear_s` was fitted so, with Iban and
Malayalam speech; those of other backbones to words of speechocean762 in calls alone.
A line's share and quantiles are those of the shipped whitening.

An alarm is an event of a detector: the best of windows closer than its refractory time, with the
windows at offsets that it scores around those close to a threshold. For several weights of the
cohort (`cohort.WEIGHT`), it prints the line through the distances of events from the mean of a
word's tail at several rates of alarms (`thresholds.Line`), and how many clips by other people are
missed at these rates.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from places import Place, encode, recordings
from speechocean import tokens

from tapword import Spotter
from tapword.audio import files
from tapword.audio.align import align
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import REFRACTORY_S
from tapword.listening.segmenter import WINDOW, Segmenter, Window
from tapword.spotter import presets
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.thresholds import Line, Tail
from tapword.spotter.vocabulary import CLIP_S
from tapword.voices.kokoro import Kokoro

# Alarms per hour of a word: up to twenty words share half an alarm.
RATES = 0.5, 0.25, 0.1, 0.05, 0.025
# People who teach a word, draws of them, and fewest who are asked.
SAMPLES, DRAWS, ASKED = 5, 6, 3
# Voices that say a word.
VOICES = 12
# A choice, from words that at least eight people say: what these calls are about is left out, and
# what sounds like it (want, one, high).
UNSAID = """\
afraid another beautiful begin beginning billy book break cake child class difficult door dora draw
eyes father fight find forget friend girl glad gloves happen happened idea jack jeans layla likes
little live lived lives looked loves lucy lynda made mandy many miss mother move myself nice paint
party peter play safe school seemed sister sleep smiled story strong sweater talk talking teddy
thought tina tomorrow walk walked walking watch wish would"""
# Words of other languages that Kokoro has native speakers of: a choice.
FOREIGN = {
    "es": "ventana mariposa zapato naranja cuchillo espejo lluvia bosque jabón tijeras",
    "fr": "fenêtre papillon chaussure couteau miroir forêt brouillard écureuil parapluie",
    "it": "finestra farfalla scarpa coltello specchio pioggia bosco formaggio orologio giardino",
    "pt-br": "janela borboleta sapato faca espelho chuva floresta queijo relógio travesseiro",
}
WEIGHTS = 0.5, 0.75, 1.0
# One in this many sentences is searched.
ONE_IN = 8
# Windows that some word scores this much above are scored at offsets too: it is about as much below
# the lowest threshold as a detector's `CLOSE_SCORE`.
CLOSE = 0.07
# Highest events of a word that are kept; all rates need fewer.
MOST = 100


class Heard(NamedTuple):
    """Windows of calls: vectors (n, D), times (n,) in seconds, and vectors (m, D) at offsets.

    `beside` has the row (m,) of the window that each is beside; each of the `calls` (n,) is one.
    Words that are `said` in them are not searched.
    """

    vectors: np.ndarray
    times: np.ndarray
    calls: np.ndarray
    offsets: np.ndarray
    beside: np.ndarray
    hours: float
    said: set[str]


class Said(NamedTuple):
    """Drawn words, their directions (K, D), and vectors (n, D) of other clips, for each.

    `weights` (K,): how much a word counts; they sum to K.
    """

    words: list[str]
    directions: np.ndarray
    asked: list[np.ndarray]
    weights: np.ndarray


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size")
    parser.add_argument("speechocean", type=Path)
    parser.add_argument("calls", nargs="+", metavar="call", type=Path)
    parser.add_argument("--campaigns", type=Path, metavar="FILE")
    parser.add_argument("--apart", nargs="+", default=[], metavar="CALL")
    parser.add_argument("--directions", type=int, metavar="N", help="compare in few, too")
    parser.add_argument("--sentences", action="store_true", help="also search sentences")
    parser.add_argument("--speech", nargs="+", default=[], type=Path, metavar="FILE")
    parser.add_argument("--spoken", action="store_true", help="also teach words that Kokoro says")
    options = parser.parse_args()
    size = options.size
    spotter = Spotter(size=size) if size in presets.PRESETS else Spotter(size)
    sources = [encode_words(spotter, options.speechocean)]
    if options.spoken:
        sources.append(encode_spoken(spotter))
    said = together(sources)
    sounds = [(recordings(options.calls, options.campaigns, options.apart), set[str]())]
    sounds += [(recordings([path]), set[str]()) for path in options.speech]
    if options.sentences:
        sounds.append(sentences(options.speechocean))
    assert spotter.scorer.cohort is not None
    cohort = spotter.scorer.cohort.words
    compared = {
        f"weight {weight:g}": Windows(cohort.vectors, cohort.projection, weight, cohort.nearest)
        for weight in WEIGHTS
    }
    if options.directions:
        [whitening] = spotter.encoder.whitenings
        few = whitening.project(options.directions, whitening.line)
        assert few.cohort is not None
        vectors = few.cohort.astype(np.float32)
        projected = Windows(vectors, few.projection, cohort.weight, cohort.nearest)
        compared[f"{options.directions} directions"] = projected
    heard = [listen(spotter, one, cohort, said.directions, words) for one, words in sounds]
    print(f"{len(said.directions)} draws of words")
    for one in heard:
        print(f"{one.hours:.2f} hours, {len(one.times)} windows")
    for name, changed in compared.items():
        print(f"{name}:", end=" ")
        fit(changed, heard, said, spotter.encoder.line)


def fit(cohort: Windows, heard: Sequence[Heard], said: Said, tail: Line) -> Line:
    """Print and return the line through the scores of alarms at `RATES`.

    It has the share and the quantiles of another one.
    """
    tails = [Tail.of(column, tail) for column in cohort.scores(said.directions).T]
    places = np.array([one.tail_mean for one in tails])
    scores, counted = [], []
    for one in heard:
        found = events(cohort, one, said.directions) - tail.share * places
        scores.append(found.ravel())
        each = said.weights * [word not in one.said for word in said.words]
        each /= one.hours * each.sum() * len(heard)
        counted.append(np.broadcast_to(each, found.shape).ravel())
    ranked = np.concatenate(scores)
    order = np.argsort(-ranked)
    # Alarms per hour of a word, on average over sources, at each score.
    rates = np.concatenate(counted)[order].cumsum()
    reached = [ranked[order[rates.searchsorted(rate)]] for rate in RATES]
    slope, offset = np.polyfit(-np.log(RATES), reached, 1)
    line = tail._replace(offset=float(offset), slope=float(slope))
    missed = []
    for rate in RATES:
        thresholds = [Tail(place, line).threshold(rate) for place in places]
        asked = [
            scores_of(cohort, one[None], X)[:, 0]
            for one, X in zip(said.directions, said.asked, strict=True)
        ]
        shares = [np.mean(s < t) for s, t in zip(asked, thresholds, strict=True)]
        missed.append(100 * np.average(shares, weights=said.weights))
    shown = ", ".join(f"{one:.1f}% at {rate:g}" for one, rate in zip(missed, RATES, strict=True))
    print(f"Line({offset:.3f}, {slope:.4f}), missed {shown} an hour")
    return line


def events(cohort: Windows, heard: Heard, directions: np.ndarray) -> np.ndarray:
    """Highest scores of each word's events in the calls: (`MOST`, K)."""
    scores = scores_of(cohort, directions, heard.vectors)
    np.maximum.at(scores, heard.beside, scores_of(cohort, directions, heard.offsets))
    # Of windows within the refractory time, the best is the event.
    best, step = np.ones(scores.shape, dtype=bool), 1
    while True:
        close = heard.times[step:] - heard.times[:-step] < REFRACTORY_S
        close &= heard.calls[step:] == heard.calls[:-step]
        if not close.any():
            break
        later = scores[step:] > scores[:-step]
        best[:-step] &= ~(close[:, None] & later)
        best[step:] &= ~(close[:, None] & ~later)
        step += 1
    return np.sort(np.where(best, scores, -1.0), axis=0)[::-1][:MOST]


def scores_of(cohort: Windows, directions: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Scores (n, K) of vectors (n, D) for words' directions (K, D)."""
    return unit(X) @ directions.T - cohort.cohort_score(X)[:, None]


def sentences(folder: Path) -> tuple[list[np.ndarray], set[str]]:
    """Read every eighth sentence of speechocean762; also return the words in them."""
    sounds, said = [], set[str]()
    for line in (folder / "words.jsonl").read_text("utf-8").splitlines()[::ONE_IN]:
        sentence = json.loads(line)
        sounds.append(files.load(folder / "clips" / sentence["clip"]))
        said |= {word for word, *_ in sentence["words"]}
    return sounds, said


def listen(
    spotter: Spotter,
    sounds: Sequence[np.ndarray],
    cohort: Windows,
    directions: np.ndarray,
    said: set[str],
) -> Heard:
    """Encode the windows of calls, and those at offsets around any that is close to a word."""
    vectors: list[np.ndarray] = []
    times: list[float] = []
    calls: list[int] = []
    offsets: list[Place] = []
    beside: list[int] = []
    for number, sound in enumerate(sounds):
        segmenter = Segmenter()
        segmenter.push(np.concatenate([sound, np.zeros(segmenter.flush_samples, np.float32)]))
        found: list[Window] = []
        around: dict[int, list[int]] = {}
        for window in segmenter.windows():
            if window.loud and not window.is_offset:
                segmenter.request_offsets(window)
                found.append(window)
            elif window.loud:
                around.setdefault(window.centre, []).append(window.start)
        if not found:
            continue
        X = encode(spotter, [Place(sound, window.start, WINDOW) for window in found])
        heard = np.flatnonzero(~spotter.encoder.is_noise(X))
        highest = scores_of(cohort, directions, X).max(axis=1)
        for row in heard:
            if highest[row] > CLOSE:
                starts = around.get(found[row].centre, [])
                offsets += [Place(sound, start, WINDOW) for start in starts]
                beside += [len(times)] * len(starts)
            vectors.append(X[row])
            times.append(found[row].centre / SAMPLE_RATE)
            calls.append(number)
    near = encode(spotter, offsets) if offsets else np.zeros((0, len(vectors[0])), np.float32)
    kept = ~spotter.encoder.is_noise(near)
    hours = sum(map(len, sounds)) / SAMPLE_RATE / 3600
    found_vectors, rows = np.stack(vectors), np.array(beside)[kept]
    return Heard(found_vectors, np.array(times), np.array(calls), near[kept], rows, hours, said)


def encode_words(spotter: Spotter, folder: Path) -> Said:
    """Teach `UNSAID` words by several draws of people; others are asked."""
    clips: dict[str, dict[str, np.ndarray]] = {word: {} for word in UNSAID.split()}
    for one in tokens(folder):
        if one.word in clips:
            clips[one.word].setdefault(one.speaker, one.alone)
    return teach(spotter, list(clips), [list(said.values()) for said in clips.values()])


def encode_spoken(spotter: Spotter) -> Said:
    """Teach words by several draws of Kokoro's voices; others are asked."""
    words = [(word, "en-us") for word in UNSAID.split()]
    words += [(word, language) for language, said in FOREIGN.items() for word in said.split()]
    voice = Kokoro()
    clips = [
        [align(one.audio, CLIP_S) for one in voice.speak(word, language, VOICES, seed=row)]
        for row, (word, language) in enumerate(words)
    ]
    return teach(spotter, [word for word, _ in words], clips)


def teach(spotter: Spotter, words: Sequence[str], clips: Sequence[Sequence[np.ndarray]]) -> Said:
    """Teach words, each by several draws of its clips; those that are not drawn are asked."""
    names, directions, asked = [], [], []
    for word, one in zip(words, clips, strict=True):
        if len(one) < SAMPLES + ASKED:
            continue
        taught, plain = (
            spotter.encoder.encode(one, learning).vectors for learning in (True, False)
        )
        for seed in range(DRAWS):
            names.append(word)
            rows = np.random.default_rng(seed).permutation(len(one))
            directions.append(taught[rows[:SAMPLES]].mean(axis=0))
            asked.append(plain[rows[SAMPLES:]])
    return Said(names, unit(np.stack(directions)), asked, np.ones(len(asked)))


def together(sources: Sequence[Said]) -> Said:
    """Join sources, each of which counts as much as the others."""
    total = sum(len(one.asked) for one in sources)
    shares = [np.full(len(one.asked), total / len(sources) / len(one.asked)) for one in sources]
    asked = [X for one in sources for X in one.asked]
    directions = np.concatenate([one.directions for one in sources])
    words = [word for one in sources for word in one.words]
    return Said(words, directions, asked, np.concatenate(shares))


if __name__ == "__main__":
    main()
