"""Write the weights that the package ships: normalisations folded in, 16 bits.

    python training/ear/ship.py EAR.safetensors RECORD.json TARGET.safetensors

RECORD is what the weights' model card says of how they came to be; it is kept beside them. What
training alone needs (the head, the frames that are like a teacher's) is left out. Printed is where
the ear looks in a word, which `tapword.poolings.attentive` has as its arguments.
"""

import json
import re
import sys
from collections.abc import Mapping

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from tapword.backbones.tapword_ear import KEY, Layout

EPSILON = 1e-5  # of torch's batch normalisation
PARTS = {"widen": 0, "look": 1, "narrow": 2}


def main(source: str, record: str, target: str) -> None:
    """Write the file."""
    given = load_file(source)
    with open(record, encoding="utf-8") as file:
        about = json.dumps(json.load(file), ensure_ascii=False)
    halves = {name: one.astype(np.float16) for name, one in sorted(folded(given).items())}
    notes = {"tapword_ear": about}
    if described(source) != Layout():
        notes[KEY] = json.dumps(described(source)._asdict())
    save_file(halves, target, notes)
    print("places", given["place"].round(2), "reaches", np.exp(given["reach"]).round(2))


def described(source: str) -> Layout:
    """Layout of a checkpoint, which its notes describe; without notes that of the first ear.

    Blocks over time beyond the first ear's look at the past alone.
    """
    with safe_open(source, "numpy") as file:
        text = (file.metadata() or {}).get(KEY)
        names = list(file.keys())
        heads = file.get_tensor("look.bias").shape[0]
    if text is not None:
        return Layout.parse(text)
    first = Layout()
    count = blocks(names, "time")
    ahead = (first.time + (0,) * count)[:count]
    return first._replace(time=ahead, heads=heads)


def blocks(names: list[str], room: str) -> int:
    """Count the blocks of a kind in a checkpoint."""
    found = [re.match(rf"{room}\.(\d+)\.body", name) for name in names]
    return len({one[1] for one in found if one})


def folded(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights and biases of a checkpoint with its normalisations folded in."""
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
        for index in range(blocks(list(given), room)):
            for name, place in PARTS.items():
                fold(f"{room}.{index}.{name}", f"{room}.{index + first}.body.{place}")
    for kind in ("weight", "bias"):
        kept[f"out.{kind}"] = np.concatenate([given[f"out.{kind}"], given[f"look.{kind}"]])
    return kept


if __name__ == "__main__":
    main(*sys.argv[1:])
