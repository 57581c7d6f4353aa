"""Write the weights that the package ships: normalisations folded in, 16 bits.

    python training/ear/ship.py EAR.safetensors RECORD.json TARGET.safetensors

RECORD is what the weights' model card says of how they came to be; it is kept beside them. What
training alone needs (the head, the frames that are like a teacher's) is left out.
"""

import json
import re
import sys
from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load_file, save_file

EPSILON = 1e-5  # of torch's batch normalisation
PARTS = {"widen": 0, "look": 1, "narrow": 2}


def main(source: str, record: str, target: str) -> None:
    """Write the file."""
    with open(record, encoding="utf-8") as file:
        about = json.dumps(json.load(file), ensure_ascii=False)
    save_file(folded(load_file(source)), target, {"tapword_ear": about})


def folded(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights and biases of a checkpoint with its normalisations folded in, float16."""
    kept: dict[str, np.ndarray] = {}

    def fold(name: str, part: str) -> None:
        scale = given[f"{part}.norm.weight"] / np.sqrt(given[f"{part}.norm.running_var"] + EPSILON)
        kept[f"{name}.weight"] = given[f"{part}.conv.weight"] * scale[:, None, None, None]
        kept[f"{name}.bias"] = (
            given[f"{part}.norm.bias"] - given[f"{part}.norm.running_mean"] * scale
        )

    fold("first", "bands.0")
    fold("flat", "flat")
    for room, first in (("bands", 1), ("time", 0)):
        found = {int(one) for one in re.findall(rf"\b{room}\.(\d+)\.body", " ".join(given))}
        for index in range(len(found)):
            for name, place in PARTS.items():
                fold(f"{room}.{index}.{name}", f"{room}.{index + first}.body.{place}")
    for kind in ("weight", "bias"):
        kept[f"out.{kind}"] = np.concatenate([given[f"out.{kind}"], given[f"look.{kind}"]])
    return {name: array.astype(np.float16) for name, array in sorted(kept.items())}


if __name__ == "__main__":
    main(*sys.argv[1:])
