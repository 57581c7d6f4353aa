"""Make a checkpoint from shipped weights, so that training can go on where they stopped.

    python training/ear/unfold.py SHIPPED.safetensors SPEECHOCEAN FOLDER

Writes FOLDER/small/ear.safetensors and FOLDER/mel.npz, the mel matrices that training needs.
Shipped weights have their normalisations folded in. Here each convolution gets a normalisation
whose statistics are those of real sentences and which leaves its output unchanged.
"""

import sys
from pathlib import Path

import numpy as np
import soundfile
import torch
from network import Conv, Ear, Mel
from safetensors.numpy import load_file
from safetensors.torch import save_file
from ship import EPSILON, PARTS

from tapword.backbones import logmel, tapword_ear

SENTENCES, SECONDS = 256, 3


def main(shipped: str, folder: str, target: str) -> None:
    """Write both files."""
    bands = {
        "ear": (tapword_ear.BANDS, tapword_ear.LOW_HZ, tapword_ear.HIGH_HZ),
        # Of the speech embedding.
        "teacher": (32, 60.0, 3800.0),
    }
    tables = {name: np.ascontiguousarray(logmel.tables(*ends)[1].T) for name, ends in bands.items()}
    Path(target, "small").mkdir(parents=True, exist_ok=True)
    np.savez(Path(target, "mel.npz"), ear=tables["ear"], teacher=tables["teacher"])
    ear, given = Ear("small").eval(), load_file(shipped)

    def put(part: Conv, name: str) -> None:
        part.conv.weight.data = torch.tensor(given[f"{name}.weight"].astype(np.float32))
        part.norm.bias.data = torch.tensor(given[f"{name}.bias"].astype(np.float32))
        part.norm.running_var.fill_(1 - EPSILON)

    put(ear.bands[0], "first")
    put(ear.flat, "flat")
    for room, blocks in (("bands", list(ear.bands)[1:]), ("time", list(ear.time))):
        for index, block in enumerate(blocks):
            for name, place in PARTS.items():
                put(block.body[place], f"{room}.{index}.{name}")
    features = ear.size.frame
    for kind in ("weight", "bias"):
        value = torch.tensor(given[f"out.{kind}"].astype(np.float32))
        getattr(ear.out, kind).data, getattr(ear.look, kind).data = (
            value[:features].clone(),
            value[features:].clone(),
        )

    def settle(part: Conv, inputs: tuple, output: torch.Tensor) -> None:
        # The output before normalisation, by whose statistics it is normalised from now on.
        raw = output - part.norm.bias[:, None, None]
        mean, variance = raw.mean((0, 2, 3)), raw.var((0, 2, 3), unbiased=False)
        part.norm.running_mean.copy_(mean)
        part.norm.running_var.copy_(variance)
        part.norm.weight.data = (variance + EPSILON).sqrt()
        part.norm.bias.data += mean

    mel = Mel(tables["ear"])(_sentences(Path(folder)))
    with torch.no_grad():
        before = ear.hidden(mel)
        parts = [part for part in ear.modules() if isinstance(part, Conv)]
        hooks = [
            part.norm.register_forward_hook(lambda _, i, o, part=part: settle(part, i, o))
            for part in parts
        ]
        ear.hidden(mel)
        for hook in hooks:
            hook.remove()
        print("outputs differ by", float((ear.hidden(mel) - before).abs().max()))
    kept = {k: v.contiguous() for k, v in ear.state_dict().items() if v.is_floating_point()}
    save_file(kept, Path(target, "small", "ear.safetensors"))


def _sentences(folder: Path) -> torch.Tensor:
    """Beginnings of sentences at many levels (n, samples)."""
    found, rng = [], np.random.default_rng(0)
    for path in sorted(Path(folder, "clips").iterdir())[:: 4961 // SENTENCES]:
        audio, rate = soundfile.read(path, dtype="float32")
        audio = audio[: SECONDS * rate : rate // 16_000]
        audio = np.pad(audio, (0, SECONDS * 16_000 - len(audio)))
        audio /= np.abs(audio).max() + 1e-6
        noise = rng.normal(size=len(audio)) * 10 ** rng.uniform(-4, -1.5)
        found.append((audio + noise) * 10 ** rng.uniform(-1.5, 0))
    return torch.tensor(np.stack(found), dtype=torch.float32)


if __name__ == "__main__":
    main(*sys.argv[1:])
