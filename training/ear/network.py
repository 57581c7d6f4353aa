"""The ear: log-mel frames in, a frame of features every 40 ms out, and a vector of an extent.

Streaming: a frame sees 0.2 s from where it begins. It has only convolutions, batch normalisation
and ReLU, so it can be folded and quantised. There are two sizes of one family, `small` and
`medium`.

    python training/ear/network.py

prints their size and cost.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WINDOW, STEP, FFT, FLOOR = 400, 160, 512, 1e-3
# Samples between two frames of the network, and frames by which it answers late.
HOP, DELAY = 640, 2
# Outputs of the head, which only the word loss reads; features of a frame that reproduce the output
# of the speech embedding.
VECTOR, LIKE = 192, 96
# Attention heads: centres and widths as shares of the extent, as `tapword_ear` learned them. Since
# run 8 they stay, so that all ears share the pooling `attentive`.
CENTERS, WIDTHS = (-0.02, -0.03, 0.28, 0.63, 0.83), (0.21, 0.29, 0.23, 0.17, 0.23)
# Look-ahead of the first blocks over time, in frames.
LOOK_AHEAD = (1, 1, 1)


@dataclass(frozen=True)
class Size:
    """Channels of one size of the ear.

    Parameters
    ----------
    bands
        Channels before, between and after the blocks over bands.
    inner
        Channels inside those blocks.
    width
        Channels of the blocks over time; inside them twice as many.
    blocks
        Number of blocks over time.
    frame
        Features of a frame.
    """

    bands: tuple[int, ...]
    inner: tuple[int, ...]
    width: int
    blocks: int
    frame: int

    @property
    def pooled(self) -> int:
        """Length of a pooled vector: mean, deviation and attention heads."""
        return self.frame * (2 + len(CENTERS))


SIZES = {
    "small": Size((24, 24, 32, 40, 40, 64, 64), (48, 72, 96, 120, 160, 192), 184, 5, 96),
    "medium": Size((40, 40, 56, 64, 64, 112, 112), (80, 120, 160, 200, 288, 384), 336, 7, 128),
}


class Mel(nn.Module):
    """Log-mel frames as `tapword.backbones.logmel.log_mel` has them; `weights` (257, bands)."""

    def __init__(self, weights: np.ndarray):
        super().__init__()
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
        self.register_buffer("window", torch.tensor(window, dtype=torch.float32))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32))

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """(b, n) -> (b, bands, t)."""
        return self.log(self.spectrum(audio) @ self.weights).mT

    def spectrum(self, audio: torch.Tensor) -> torch.Tensor:
        """Magnitudes (b, t, 257) of audio (b, n)."""
        return torch.fft.rfft(audio.unfold(1, WINDOW, STEP) * self.window, n=FFT).abs()

    def log(self, energies: torch.Tensor) -> torch.Tensor:
        """Logarithm above a floor."""
        return torch.log(energies + FLOOR)


class Conv(nn.Module):
    """Convolution, batch normalisation, ReLU; over time it sees `ahead` steps of the future."""

    def __init__(
        self,
        i: int,
        o: int,
        k: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        ahead: int = 0,
        groups: int = 1,
        relu: bool = True,
    ):
        super().__init__()
        self.past, self.ahead, self.band, self.relu = k[1] - 1 - ahead, ahead, k[0] // 2, relu
        self.conv = nn.Conv2d(i, o, k, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(o)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, i, bands, t) -> (b, o, bands', t')."""
        x = F.pad(x, (self.past, self.ahead, self.band, self.band))
        x = self.norm(self.conv(x))
        return F.relu(x) if self.relu else x

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Do the same for (b, bands, t, i) by products and sums, which compile to fast kernels.

        For training alone: it normalises by the batch.
        """
        weight = self.conv.weight.to(x.dtype)
        (high, wide), (down, right) = self.conv.kernel_size, self.conv.stride
        if high == wide == 1:
            x = F.linear(x, weight[:, :, 0, 0])
        else:
            x = F.pad(x, (0, 0, self.past, self.ahead, self.band, self.band))
            h, t = (x.shape[1] - high) // down * down + 1, (x.shape[2] - wide) // right * right + 1
            taps = [
                x[:, a : a + h : down, b : b + t : right] for a in range(high) for b in range(wide)
            ]
            weight = weight.flatten(1)
            if self.conv.groups == 1:
                x = F.linear(torch.cat(taps, -1), weight)
            else:
                x = sum(tap * weight[:, k] for k, tap in enumerate(taps))
        x = self._normalized(x)
        return F.relu(x) if self.relu else x

    def _normalized(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise (b, bands, t, o) by sums, which compile to faster kernels than `self.norm`."""
        norm, count = self.norm, x.numel() / x.shape[-1]
        y = x.float()
        mean, square = y.mean((0, 1, 2)), y.square().mean((0, 1, 2))
        variance = (square - mean.square()).clamp_min(0)
        with torch.no_grad():
            norm.running_mean.lerp_(mean.detach(), norm.momentum)
            norm.running_var.lerp_(variance.detach() * (count / (count - 1)), norm.momentum)
        scale = norm.weight * (variance + norm.eps).rsqrt()
        return (y * scale + (norm.bias - mean * scale)).to(x.dtype)


class Inverted(nn.Module):
    """Widen, look around each channel, narrow; the input is added where shapes allow."""

    def __init__(
        self,
        i: int,
        o: int,
        wide: int,
        k: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        ahead: int = 0,
    ):
        super().__init__()
        self.same = i == o and stride == (1, 1)
        self.body = nn.Sequential(
            Conv(i, wide, (1, 1)),
            Conv(wide, wide, k, stride, ahead, groups=wide),
            Conv(wide, o, (1, 1), relu=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, i, bands, t) -> (b, o, bands', t')."""
        return x + self.body(x) if self.same else self.body(x)

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Do the same for (b, bands, t, i)."""
        y = x
        for part in self.body:
            y = part.rows(y)
        return x + y if self.same else y


class Ear(nn.Module):
    """Frames (b, t, d) from log-mel frames (b, 40, 4 t), and the vector (b, 7 d) of an extent."""

    def __init__(self, size: str = "small") -> None:
        super().__init__()
        self.size = SIZES[size]
        c, wide, width = self.size.bands, self.size.inner, self.size.width
        heads = len(CENTERS)
        self.bands = nn.Sequential(
            Conv(1, c[0], (5, 5), (2, 2), ahead=2),
            Inverted(c[0], c[1], wide[0], (3, 3), ahead=1),
            Inverted(c[1], c[2], wide[1], (3, 3), (2, 1), ahead=1),
            Inverted(c[2], c[3], wide[2], (3, 3), (1, 2), ahead=1),
            Inverted(c[3], c[4], wide[3], (3, 3)),
            Inverted(c[4], c[5], wide[4], (3, 3), (2, 1)),
            Inverted(c[5], c[6], wide[5], (3, 3)),
        )
        self.flat = Conv(c[6] * 5, width, (1, 1))
        ahead = LOOK_AHEAD + (0,) * (self.size.blocks - len(LOOK_AHEAD))
        self.time = nn.Sequential(
            *[Inverted(width, width, 2 * width, (1, 7), ahead=a) for a in ahead]
        )
        self.out = nn.Conv2d(width, self.size.frame, 1)
        self.like = nn.Conv2d(width, LIKE, 1)
        # Attention logits depend on what is heard; each head also has a centre and a width.
        self.look = nn.Conv2d(width, heads, 1)
        self.register_buffer("centers", torch.tensor(CENTERS), persistent=False)
        self.register_buffer("widths", torch.tensor(WIDTHS), persistent=False)
        self.head = nn.Linear(self.size.pooled, VECTOR)
        nn.init.zeros_(self.look.weight)
        nn.init.zeros_(self.look.bias)

    def hidden(self, mel: torch.Tensor) -> torch.Tensor:
        """Compute what the frames are read off: (b, t, width)."""
        x = self.bands((mel[:, None] + 2.0) / 3.0)
        return self.time(self.flat(x.flatten(1, 2)[:, :, None]))[:, :, 0].transpose(1, 2)

    def rows(self, mel: torch.Tensor) -> torch.Tensor:
        """Do the same by products and sums."""
        x = ((mel + 2.0) / 3.0)[..., None]
        for part in self.bands:
            x = part.rows(x)
        x = self.flat.rows(x.permute(0, 2, 3, 1).flatten(2)[:, None])
        for part in self.time:
            x = part.rows(x)
        return x[:, 0]

    def frames(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Frames (b, t, d), those like the speech embedding (b, t, 96), and logits (b, t, 5)."""
        frames, like, look = (
            F.linear(hidden, part.weight[:, :, 0, 0], part.bias)
            for part in (self.out, self.like, self.look)
        )
        return frames, like, look

    def clips(
        self, mel: Mel, x: torch.Tensor, start: torch.Tensor, stop: torch.Tensor
    ) -> torch.Tensor:
        """Pooled vectors (b, 7 d) of extents of clips (b, n), with frames that come late."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            hidden = self.hidden(mel(F.pad(x, (0, 1_600))))
        frames, _, look = self.frames(hidden.float())
        return self.pool(frames, look, start, stop)

    def pool(
        self, frames: torch.Tensor, look: torch.Tensor, start: torch.Tensor, stop: torch.Tensor
    ) -> torch.Tensor:
        """Mean, deviation and five attention heads over an extent, (b, 7 d)."""
        t = frames.shape[1]
        first, last = (start / HOP + DELAY)[:, None], (stop / HOP + DELAY)[:, None]
        at = torch.arange(t, device=frames.device)[None]
        # A frame that the extent covers in part counts in part.
        inside = (torch.minimum(last, at + 1.0) - torch.maximum(first, at.float())).clamp(0, 1)
        inside = inside / inside.sum(1, keepdim=True).clamp_min(1e-3)
        mean = torch.einsum("bt,btd->bd", inside, frames)
        square = torch.einsum("bt,btd->bd", inside, (frames - mean[:, None]) ** 2)
        share = (at + 0.5 - first) / (last - first)
        far = (share[..., None] - self.centers) / self.widths
        weights = torch.softmax(look - 0.5 * far.square(), dim=1)
        looks = torch.einsum("btk,btd->bkd", weights, frames)
        return torch.cat([mean, (square + 1e-4).sqrt(), looks.flatten(1)], 1)


def multiply_adds(net: Ear) -> float:
    """Count multiply-adds a second of speech, extents left out."""
    counts = []

    def count(module: nn.Conv2d, inputs: tuple, output: torch.Tensor) -> None:
        counts.append(output[0].numel() * module.weight[0].numel())

    hooks = [m.register_forward_hook(count) for m in net.modules() if isinstance(m, nn.Conv2d)]
    net.eval().hidden(torch.zeros(1, 40, 400))
    for hook in hooks:
        hook.remove()
    outputs = sum(part.weight.numel() for part in (net.out, net.like, net.look))
    return sum(counts) / 4 + 25 * outputs


if __name__ == "__main__":
    for name in SIZES:
        net = Ear(name)
        params = sum(p.numel() for p in net.parameters())
        millions = multiply_adds(net) / 1e6
        print(f"{name}: {params} parameters, {millions:.1f} million multiply-adds a second")
        mel = torch.randn(1, 40, 400)
        other = mel.clone()
        other[..., 200:] = 0
        before, after = net.hidden(mel), net.hidden(other)
        changed = (before - after).abs().amax((0, 2)) > 0
        print("a change at 2.0 s is seen from", changed.nonzero()[0].item() * 0.04, "s on")
        net.train()
        print("rows differ by", float((net.rows(mel) - net.hidden(mel)).abs().max().detach()))
