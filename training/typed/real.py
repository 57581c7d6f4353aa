"""Encode the words that people of speechocean762 say: to learn from, and to choose by.

    python training/typed/real.py SPEECHOCEAN WORDS.json FOLDER

Written are `real.npz`: `vectors` (n, 672) float16, as a model learns them, `seconds`, `rows` and
`speakers`; and for held-out words `asked.npz`: `vectors`, as a model hears them, and `rows`.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from speechocean import tokens

from tapword.spotter.spotter import Spotter

TOGETHER = 50


def main(corpus: str, words: str, folder: str) -> None:
    """Encode both."""
    listed = json.loads(Path(words).read_text("utf-8"))
    rows = {row[0]: k for k, row in enumerate(listed) if row[1] == "en-us"}
    encoder = Spotter().encoder
    learned, asked, waiting = [], [], []

    def encode() -> None:
        clips = [encoder.prepare(one.alone) for one, _ in waiting]
        chosen = np.array([row for _, row in waiting])
        learned.append((encoder.encode(clips, learning=True), chosen))
        held = [k for k, row in enumerate(chosen) if listed[row][3]]
        if held:
            asked.append((encoder.encode([clips[k] for k in held]), chosen[held]))
        waiting.clear()

    speakers = []
    for one in tokens(Path(corpus)):
        if one.word in rows:
            waiting.append((one, rows[one.word]))
            speakers.append(one.speaker)
            if len(waiting) == TOGETHER:
                encode()
    if waiting:
        encode()
    for name, found in (("real", learned), ("asked", asked)):
        np.savez(
            Path(folder, f"{name}.npz"),
            vectors=np.concatenate([one.vectors for one, _ in found]).astype(np.float16),
            seconds=np.concatenate([one.seconds for one, _ in found]),
            rows=np.concatenate([chosen for _, chosen in found]),
            **({"speakers": np.array(speakers)} if name == "real" else {}),
        )
        print(name, sum(len(chosen) for _, chosen in found))


if __name__ == "__main__":
    main(*sys.argv[1:])
