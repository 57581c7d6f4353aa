"""Train a network from phonemes to the ear's vector of a word, and measure it.

    python training/typed/train.py WORDS.json FOLDER EPOCHS [PHRASES ENGLISH]

FOLDER has what people.py and say.py keep. The network says the ear's frames of a word; its own
pooling and whitening make a vector of them; and a linear map by ridge regression makes of it the
mean vector of people. Printed is how much of real frames and vectors it explains, and how many of
the words that real people say are missed if each is taught by it, or by recordings, alone. PHRASES
and ENGLISH are the tests of measure.py.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import measure
import numpy as np
import torch

from sounds import SOURCES, Inputs, Mouth, seconds_of, sounds_of
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.voices import espeak

BATCH, RATE, DECAY = 64, 3e-3, 0.01
# Ridge of the map, the scale of what it is given, and the weight of vectors that are not real.
RIDGE, SCALE, SYNTHETIC = 60.0, 5.0, 0.5
# Lengths of a word that stands alone, as shares of the estimate, and the longest in seconds.
LENGTHS, LONGEST_S = (0.8, 1.0, 1.25), 0.98
# Sources that a word is said by where neither the voice nor the room is known: real and kokoro.
MIXED = (0, 2)
# Fewest clips of a held-out word, and recordings that it is taught by.
FEWEST, TAKES = 8, (1, 3)


class Data(NamedTuple):
    """Words of all sources: inputs, the ear's frames and vectors, rows and sources."""

    given: np.ndarray
    frames: np.ndarray
    vectors: np.ndarray
    rows: np.ndarray
    source: np.ndarray


def read(folder: Path, words: list[tuple[str, str, str, int]], inputs: Inputs) -> Data:
    """Read what the sources kept."""
    parts = []
    for path in sorted(folder.glob("*.npz")):
        source = SOURCES.index(path.stem.partition("_")[0])
        one = np.eye(len(SOURCES))[source]
        with np.load(path) as kept:
            rows, spans = kept["rows"], kept["spans"]
            given = [inputs.of(words[r][2], span, one) for r, span in zip(rows, spans, strict=True)]
            frames, vectors = (kept[name].astype(np.float32) for name in ("frames", "vectors"))
        parts.append((np.stack(given), frames, vectors, rows, np.full(len(rows), source)))
    return Data(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def fit(mouth: Mouth, data: Data, epochs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Train the network; return the mean and deviation of frames (101,)."""
    mean, deviation = data.frames.mean((0, 1)), data.frames.std((0, 1)) + 0.05
    given, wanted = torch.tensor(data.given), torch.tensor((data.frames - mean) / deviation)
    optimizer = torch.optim.AdamW(mouth.parameters(), lr=RATE, weight_decay=DECAY)
    steps = len(given) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=epochs * steps + 1, pct_start=0.1
    )
    for epoch in range(epochs):
        order = torch.tensor(np.random.default_rng([seed, epoch]).permutation(len(given)))
        for step in range(steps):
            some = order[step * BATCH : (step + 1) * BATCH]
            loss = ((mouth(given[some]) - wanted[some]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)
    return mean, deviation


def explained(said: np.ndarray, wanted: np.ndarray) -> float:
    """Share of the variance that is explained."""
    centre = wanted.reshape(-1, wanted.shape[-1]).mean(axis=0)
    return float(1 - ((said - wanted) ** 2).sum() / ((wanted - centre) ** 2).sum())


def taught_twice(vector: np.ndarray) -> Encoded:
    """Two copies of a vector (672,): a typed word counts as two samples at most."""
    return Encoded.one_second(np.repeat(vector[None].astype(np.float32), 2, axis=0))


def main(words_path: str, folder: str, epochs: str, *tests: str, seed: int = 0) -> None:
    """Train and measure."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    words = json.loads(Path(words_path).read_text("utf-8"))
    inputs, empty = Inputs([row[2] for row in words]), Spotter()
    data = read(Path(folder), words, inputs)
    held = np.array([bool(words[row][3]) for row in data.rows])
    learned = Data(*(part[~held] for part in data))
    print({name: int(sum(learned.source == k)) for k, name in enumerate(SOURCES)})
    mouth = Mouth(inputs.width)
    mean, deviation = fit(mouth, learned, int(epochs), seed)

    def frames_of(given: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            parts = [mouth(torch.tensor(given[k : k + 256])) for k in range(0, len(given), 256)]
        return torch.cat(parts).numpy() * deviation + mean

    def pooled(given: np.ndarray) -> np.ndarray:
        clips = [[frames.astype(np.float32)] for frames in frames_of(given)]
        return empty.encoder.pool_first(clips) / SCALE

    def with_source(vectors: np.ndarray, source: np.ndarray) -> np.ndarray:
        return np.hstack([vectors, 3 * np.eye(len(SOURCES))[source]])

    # The map.
    x = with_source(pooled(learned.given), learned.source)
    weight = np.where(learned.source == 0, 1, SYNTHETIC)[:, None]
    normal = (x * weight).T @ x + RIDGE * np.eye(x.shape[1])
    mapped = np.linalg.solve(normal, (x * weight).T @ learned.vectors)

    def vector(phonemes: str, sources: tuple[int, ...]) -> Encoded:
        length = seconds_of(sounds_of(phonemes)).sum()
        halves = [min(share * length, LONGEST_S) / 2 for share in LENGTHS]
        found = []
        for source in sources:
            one = np.eye(len(SOURCES))[source]
            given = np.stack([inputs.of(phonemes, (0.5 - h, 0.5 + h), one) for h in halves])
            every = with_source(pooled(given), np.full(len(halves), source))
            found.append((every @ mapped).mean(axis=0))
        return taught_twice(np.mean(found, axis=0))

    real = held & (data.source == 0)
    said = with_source(pooled(data.given[real]), data.source[real]) @ mapped
    print(f"real frames explained: {explained(frames_of(data.given[real]), data.frames[real]):.3f}")
    print(f"real vectors explained: {explained(said, data.vectors[real]):.3f}")
    with np.load(Path(folder, "real.npz")) as kept:
        asked, asked_rows = kept["asked"].astype(np.float32), kept["asked_rows"]
    rows, counts = np.unique(asked_rows, return_counts=True)
    clips = {row: Encoded.one_second(asked[asked_rows == row]) for row in rows[counts >= FEWEST]}
    for sources in ((0,), (1,), (2,), MIXED, (0, 1, 2)):
        shares = [
            measure.missed(empty, vector(words[row][2], sources), some)
            for row, some in clips.items()
        ]
        name = ", ".join(SOURCES[k] for k in sources)
        print(f"taught as said by {name}: {np.mean(shares):.1f}% missed", flush=True)
    for n in TAKES:
        shares = []
        for row, some in clips.items():
            order = np.random.default_rng([0, 7]).permutation(len(some))
            said = data.vectors[(data.source == 0) & (data.rows == row)]
            taught = Encoded.one_second(said[order[:n]])
            shares.append(measure.missed(empty, taught, some[order[n:]], False))
        print(f"taught by {n} takes: {np.mean(shares):.1f}% missed", flush=True)
    if tests:
        shares_of: dict[str, list[np.ndarray]] = {}
        for word, *heard in measure.tested(empty, Path(tests[0]), Path(tests[1]), 10):
            taught = vector(espeak.phonemes(word.text, word.language), MIXED)
            shares = [measure.missed(empty, taught, one) for one in heard]
            shares_of.setdefault(word.set, []).append(np.array(shares))
            print(word.name, shares_of[word.set][-1].round(1), flush=True)
        for name, every in shares_of.items():
            print(name, np.mean(every, axis=0).round(1))


if __name__ == "__main__":
    main(*sys.argv[1:])
