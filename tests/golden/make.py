"""Write the model files of today's format that later versions must read, and what they know.

    python tests/golden/make.py tests/golden/format3

Run once for each new format, into a folder of its own, and never again: files that were published
do not change.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.spotter.whitening import Whitening
from tapword.voices.base import SpokenBy

PARTS: dict[str, dict[str, Any]] = {
    # The parts of the first default, with as little covariance as makes a small file.
    "small": {
        "backbone": "speech_embedding:layers=b64+emb+emb",
        "pooling": "blocks:poolings=tap:R=2+tap:R=2+middle",
        "learner": "cosine:prior=shipped,covariance=diagonal",
        "align": True,
        "augment": True,
        "whitening": [Whitening.load(Path(__file__).with_name("whitening.safetensors"))],
    },
    "slda": {"backbone": "logmel", "pooling": "avg", "learner": "slda"},
    "cbcl": {"backbone": "logmel", "pooling": "avg", "learner": "cbcl"},
}
TAUGHT = {"lamp": 3, "music": 3, "door": 3, "fan": 2}
NEGATIVES = ("lamp", "door")
# As if a voice had spoken them: clips of a known word and of a new one.
SYNTHETIC = {"door": 3, "window": 4}


def main(folder: Path) -> None:
    """Teach the models and write them beside what they answer."""
    folder.mkdir()
    clips = {word: sorted((CLIPS / word).glob("*.ogg")) for word in TAUGHT}
    asked = [clips[word][5] for word in TAUGHT] + [sorted((CLIPS / "stop").glob("*.ogg"))[0]]
    expected = {}
    for name, parts in PARTS.items():
        spotter = Spotter(**parts)
        for word in ("lamp", "music", "door"):
            spotter.learn_many(clips[word][: TAUGHT[word]], [word] * TAUGHT[word])
        encoded = spotter.encode([clips[word][7] for word in NEGATIVES])
        for word, vector in zip(NEGATIVES, encoded.vectors, strict=True):
            spotter.learner.learn_one(vector, word, negative=True)
        spotter.learn_many(clips["fan"][:2], ["fan"] * 2)
        if spotter.learner.supports_synthetic:
            for word, n in SYNTHETIC.items():
                said = sorted((CLIPS / word).glob("*.ogg"))[-n:]
                encoded = spotter.encode(said, learning=True)
                spotter.learn_encoded(encoded, [word] * n, SpokenBy("kokoro"))
        if spotter.has_thresholds:
            spotter.set_sensitivity(0.625, "lamp")
        spotter.save(folder / f"{name}.tap")
        encoded = spotter.encode(asked)
        words, negatives = spotter.learner.all_scores(encoded.vectors)
        scores = np.empty((len(asked), len(spotter.learner.rows)))
        negative = np.array([row.negative for row in spotter.learner.rows])
        scores[:, ~negative], scores[:, negative] = words, negatives
        expected[name] = {
            "rows": ["¬" * row.negative + row.word for row in spotter.learner.rows],
            "words": spotter.words,
            "rejected": spotter.learner.negatives,
            "synthetic": spotter.vocabulary.synthetic,
            "sensitivities": spotter.vocabulary.sensitivities,
            "files": [path.relative_to(CLIPS).as_posix() for path in asked],
            "scores": scores.tolist(),
            "nearest": [x.word for x in spotter.predict_encoded(encoded, closed=True)],
        }
        if spotter.has_thresholds:
            expected[name]["said"] = [x.word for x in spotter.predict_encoded(encoded)]
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (folder / "expected.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
