"""Keep what the ear makes of the words that people of speechocean762 say.

    python training/typed/people.py SPEECHOCEAN WORDS.json FOLDER

FOLDER/real.npz has what say.py keeps, of all words; vectors are those that a model learns. For the
words that are held out, `asked` has the vectors that a model hears, and `asked_rows` their rows.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from speechocean import BESIDE_S, tokens

from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.spotter import Spotter

TOGETHER = 64


def main(corpus: str, words: str, folder: str) -> None:
    """Encode all words of the list."""
    listed = json.loads(Path(words).read_text("utf-8"))
    rows = {row[0]: k for k, row in enumerate(listed) if row[1] == "en-us"}
    said = [(rows[one.word], one.alone) for one in tokens(Path(corpus)) if one.word in rows]
    encoder = Spotter().encoder
    frames: list[np.ndarray] = []
    vectors, asked = [], []
    for start in range(0, len(said), TOGETHER):
        clips = [encoder.prepare(clip) for _, clip in said[start : start + TOGETHER]]
        frames += [block.astype(np.float16) for (block,) in encoder.backbones[0].frames_many(clips)]
        vectors.append(encoder.encode(clips, learning=True).vectors.astype(np.float16))
        asked.append(encoder.encode(clips).vectors.astype(np.float16))
    spans = []
    for _, clip in said:
        # A word that was cut out lies in silence, with a margin.
        sound = np.flatnonzero(clip)[[0, -1]] / SAMPLE_RATE
        spans.append((sound[0] + BESIDE_S, sound[1] - BESIDE_S))
    chosen = np.array([row for row, _ in said])
    held = np.array([bool(listed[row][3]) for row in chosen])
    np.savez(
        Path(folder, "real.npz"),
        frames=np.stack(frames),
        vectors=np.concatenate(vectors),
        spans=np.array(spans),
        rows=chosen,
        asked=np.concatenate(asked)[held],
        asked_rows=chosen[held],
    )
    print(len(said), "words")


if __name__ == "__main__":
    main(*sys.argv[1:])
