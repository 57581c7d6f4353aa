"""Frozen networks that the network learns from, in addition to labels.

Google's speech embedding (Apache-2.0, from the wheel openwakeword 0.4.0) in torch, frame by frame;
and vectors of words from three together: the embedding, Moonshine base, and an earlier run.
"""

import numpy as np
import torch
from moonshine import VECTOR as MOONSHINE
from moonshine import Moonshine
from network import Ear, Mel
from rooms import HOP, cut, isolate
from torch.nn import functional as F

# The frame i of the speech embedding's inner block, and of its output, is centred on log-mel frame
# 4 i + CENTRE; the output is taken every 40 ms, twice as often as the network itself gives it.
INNER, INNER_CENTRE, CENTRE = "model/tf.math.maximum_18/Maximum:0", 27, 37
POOLED, OUTPUT = "model/max_pooling2d_4/MaxPool:0", "model/conv2d_19/Conv2D:0"
# Numbers of a vector: the embedding's as the default has them (moments of its inner frames, of its
# output, six frames of that), Moonshine's, and the earlier ear's.
MIDDLE = 6
GROUPS = (384, 192, 96 * MIDDLE, MOONSHINE)
EAR = 672
TARGET = sum(GROUPS) + EAR
# What each of the three counts, alone 87.2, 86.1 and 87.7% from one clip a word, together 91.4.
SHARES = (1.0, 1.2, 1.2)
# Numbers that are whitened together, and how often the covariance's diagonal counts.
BLOCK, DIAGONAL = 96, 2.0
# Seconds that the earlier ear takes a word to last, as the product does.
EXTENT = 0.65


class Embedding(torch.nn.Module):
    """The speech embedding: 192 numbers of its inner block and 96 of its output, every 40 ms."""

    def __init__(self, path: str, dtype: torch.dtype = torch.float32):
        import onnx

        super().__init__()
        graph = onnx.load(path).graph
        self.dtype = dtype
        self.names: dict[str, str] = {}
        for index, one in enumerate(graph.initializer):
            value = onnx.numpy_helper.to_array(one).copy()
            if value.dtype == np.float32:
                tensor = torch.tensor(value).to(dtype)
                if tensor.ndim == 4 and tensor.numel() > 1:
                    tensor = tensor.to(memory_format=torch.channels_last)
                self.names[one.name] = f"held_{index}"
                self.register_buffer(f"held_{index}", tensor)
        self.nodes = []
        for node in graph.node:
            options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            held = [self.names[name] for name in node.input if name in self.names]
            self.nodes.append((node.op_type, held, node.output[0], options))
            if node.output[0] == OUTPUT:
                break

    def forward(self, mel: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(b, 32, t) -> (b, t', 192), (b, t' - 5, 96)."""
        x = inner = mel.mT[:, None].to(self.dtype).contiguous(memory_format=torch.channels_last)
        for kind, names, output, options in self.nodes:
            held = [getattr(self, name) for name in names]
            if kind == "Pad":
                x = F.pad(x, (1, 1))
            elif kind == "Conv":
                top, left, bottom, right = options.get("pads", [0, 0, 0, 0])
                x = F.pad(x, (left, right, top, bottom))
                spread = (2, 1) if output == OUTPUT else 1
                x = F.conv2d(x, *held, stride=options["strides"], dilation=spread)
            elif kind == "MaxPool":
                strides = [1, 2] if output == POOLED else options["strides"]
                x = F.max_pool2d(x, options["kernel_shape"], strides)
            elif kind == "BatchNormalization":
                scale, shift, mean, variance = held
                x = F.batch_norm(x, mean, variance, scale, shift, eps=options["epsilon"])
            elif kind == "LeakyRelu":
                x = F.leaky_relu(x, options.get("alpha", 0.01))
            elif kind == "Max":
                x = torch.maximum(x, *held)
            elif kind == "Relu":
                x = F.relu(x)
            elif kind != "Reshape":
                raise ValueError(f"{kind} is no part of the speech embedding")
            if output == INNER:
                inner = x
        inner, x = (y.permute(0, 2, 1, 3).flatten(2).float() for y in (inner, x))
        return inner, x


class Panel:
    """Three teachers side by side."""

    def __init__(self, folder: str, embedding: Embedding, device: str):
        from safetensors.torch import load_file

        tables = np.load(f"{folder}/mel.npz")
        self.mel, self.embedding_mel = (Mel(tables[name]).to(device) for name in ("ear", "teacher"))
        self.embedding = embedding
        precise = torch.float32 if device == "cpu" else torch.bfloat16
        self.moonshine = Moonshine(f"{folder}/moonshine.safetensors", precise).to(device)
        self.ear = Ear("small").to(device).eval()
        self.ear.load_state_dict(load_file(f"{folder}/earlier.safetensors"), strict=False)

    @torch.no_grad()
    def hear(
        self, audio: torch.Tensor, spans: torch.Tensor, short: bool, batch: int
    ) -> torch.Tensor:
        """Raw vectors (n, TARGET) of words or phrases."""
        encode = self.words if short else self.phrases
        parts = [spans[first : first + batch] for first in range(0, len(spans), batch)]
        return torch.cat([encode(audio, part).half() for part in parts])

    def words(self, audio: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        """Encode words, cut out and centred in a second of silence."""
        x, start, stop = cut(audio, spans, 32_000, vary=False)
        x = isolate(x, start, stop, 1.0)
        at = torch.arange(32_000, device=x.device)[None]
        middle = (x.square() * at).sum(1) / x.square().sum(1).clamp_min(1e-9)
        turned = at + (middle.round().long() - 16_000)[:, None]
        inside = (turned >= 0) & (turned < 32_000) & ((at - 16_000).abs() < 8_000)
        x = x.gather(1, turned.clamp(0, 31_999)) * inside
        inner, heard = self.embedding(self.embedding_mel(x))
        heard = heard[:, ::2]
        first = (heard.shape[1] - MIDDLE) // 2
        frames = heard[:, first : first + MIDDLE].flatten(1)
        spoken = self.moonshine(x[:, 8_000:24_000]).float()
        edge = torch.full_like(middle, 16_000)
        half = EXTENT / 2 * 16_000
        pool = self._own(x, edge - half, edge + half)
        return torch.cat([_moments(inner), _moments(heard), frames, _moments(spoken), pool], 1)

    def phrases(self, audio: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        """Encode phrases, cut out from beginning to end."""
        x, start, stop = cut(audio, spans, 48_000, vary=False)
        x = isolate(x, start, stop, 1.0)
        inner, heard = self.embedding(self.embedding_mel(x))
        parts = []
        for frames, centre in ((inner, INNER_CENTRE), (heard, CENTRE)):
            at = (torch.arange(frames.shape[1], device=x.device)[None] * 4 + centre) * HOP
            inside = ((at > start[:, None] - 3_200) & (at < stop[:, None] + 3_200)).float()
            parts.append(_moments(frames, inside))
        share = (torch.arange(MIDDLE, device=x.device) + 0.5) / MIDDLE
        at = start[:, None] + (stop - start)[:, None] * share
        at = ((at / HOP - CENTRE) / 4).round().long().clamp(0, heard.shape[1] - 1)
        frames = heard.gather(1, at[..., None].expand(-1, -1, heard.shape[2])).flatten(1)
        spoken = self.moonshine(x).float()
        at = torch.arange(spoken.shape[1], device=x.device)[None] * 384 + 600
        inside = ((at > start[:, None] - 1_600) & (at < stop[:, None] + 1_600)).float()
        pool = self._own(x, start, stop)
        return torch.cat([*parts, frames, _moments(spoken, inside), pool], 1)

    def _own(self, x: torch.Tensor, start: torch.Tensor, stop: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.ear.clips(self.mel, x, start, stop), dim=1)


def agree(x: torch.Tensor, label: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
    """Turn raw vectors (n, TARGET) into targets: (n, TARGET) of length one, half precision.

    Each group is whitened by how the clips of a word differ, spoken ones (domain 0) and real ones
    (1) counting alike, those without labels (2 and up) not at all, and drawn half way to the mean
    of its word: what a voice adds is not to be learned. Nor is what a source of recordings adds:
    each domain is centred on its own mean.
    """
    words = int(label.max()) + 1
    count = torch.bincount(label, minlength=words).clamp_min(1)[:, None]
    several = (count[label, 0] > 1).float()
    sizes = torch.bincount(domain, minlength=4).clamp_min(1)
    weight = torch.where(domain < 2, 0.5 / sizes[domain], 0.0)
    weight = weight / weight.sum()

    def means(part: torch.Tensor) -> torch.Tensor:
        return torch.zeros(words, part.shape[1], device=x.device).index_add_(0, label, part) / count

    def centred(part: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(len(sizes), part.shape[1], device=x.device)
        return part - (total.index_add_(0, domain, part) / sizes[:, None])[domain]

    made, first = [], 0
    shares = [SHARES[0] / 3**0.5] * 3 + [SHARES[1]]
    for size, share in zip(GROUPS, shares, strict=True):
        group = []
        for start in range(first, first + size, BLOCK):
            part = centred(x[:, start : min(start + BLOCK, first + size)].float())
            part = part / ((part.square() * weight[:, None]).sum(0).sqrt() + 1e-6)
            apart = part - means(part)[label]
            scaled = apart * (weight * several)[:, None]
            covariance = apart.T @ scaled / (weight * several).sum().clamp_min(1e-9)
            covariance.diagonal().mul_(DIAGONAL).add_(1e-3)
            root = torch.linalg.cholesky(torch.linalg.inv(covariance.double())).float()
            group.append(part @ root)
        made.append((F.normalize(torch.cat(group, 1), dim=1) * share).half())
        first += size
    own = centred(x[:, first:].float())
    made.append((F.normalize(own, dim=1) * SHARES[2]).half())
    result = torch.empty(len(x), TARGET, dtype=torch.half, device=x.device)
    first = 0
    for part in made:
        size = part.shape[1]
        result[:, first : first + size] = part
        first += size
    mean = F.normalize(means(result.float()), dim=1)
    for start in range(0, len(x), 65_536):
        some = slice(start, start + 65_536)
        alone = F.normalize(result[some].float(), dim=1)
        result[some] = F.normalize(alone + mean[label[some]], dim=1).half()
    return result


def _moments(frames: torch.Tensor, inside: torch.Tensor | None = None) -> torch.Tensor:
    """Mean and standard deviation of the frames (b, t, d) inside."""
    if inside is None:
        inside = torch.ones(frames.shape[:2], device=frames.device)
    share = (inside / inside.sum(1, keepdim=True).clamp_min(1))[..., None]
    mean = (frames * share).sum(1)
    square = ((frames - mean[:, None]).square() * share).sum(1)
    return torch.cat([mean, square.clamp_min(0).sqrt()], 1)
